/*
 * ckpt.so: Slurm's entry points. What they do is in alloc.c, srun.c and stepd.c.
 *
 * There are no prolog, epilog or slurmd callbacks, and nothing but 0 is returned: see plugin.h.
 */
#include <slurm/spank.h>
#include <stdlib.h>

#include "plugin.h"

#define EXPORT __attribute__((visibility("default")))

/* The plugin's name, its type, and the release of Slurm it was built for. */
#pragma GCC visibility push(default)
SPANK_PLUGIN(ckpt, 1)
#pragma GCC visibility pop

struct ck_plugin *ck_plugin(void)
{
	static struct ck_plugin plugin;

	return &plugin;
}

int ck_plugin_setenv(void *unused, const char *name, const char *value)
{
	(void)unused;
	return value ? setenv(name, value, 1) : unsetenv(name);
}

/* A bad argument is named, and what held without it holds. */
static void read_site(int argc, char **argv)
{
	struct ck_error err;

	ck_site_init(&ck_plugin()->site);
	for (int i = 0; i < argc; i++) {
		if (ck_site_arg(&ck_plugin()->site, argv[i], &err))
			slurm_error("ckpt: %s", err.text);
	}
}

EXPORT int slurm_spank_init(spank_t spank, int argc, char **argv)
{
	spank_context_t context = spank_context();

	if (context != S_CTX_ALLOCATOR && context != S_CTX_LOCAL && context != S_CTX_REMOTE)
		return 0;
	read_site(argc, argv);
	ck_opts_init(&ck_plugin()->opts);
	ck_spankopts_register(spank);
	if (context == S_CTX_ALLOCATOR)
		ck_alloc_init();
	else if (context == S_CTX_LOCAL)
		ck_srun_init();
	return 0;
}

EXPORT int slurm_spank_init_post_opt(spank_t spank, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (spank_context() == S_CTX_ALLOCATOR)
		ck_alloc_post_opt(spank);
	else if (spank_context() == S_CTX_LOCAL)
		ck_srun_post_opt();
	else if (spank_context() == S_CTX_REMOTE)
		ck_linger_init();
	return 0;
}

EXPORT int slurm_spank_local_user_init(spank_t spank, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	ck_srun_local_user_init(spank);
	return 0;
}

EXPORT int slurm_spank_task_init(spank_t spank, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (spank_context() == S_CTX_REMOTE)
		ck_stepd_task_init(spank);
	return 0;
}

EXPORT int slurm_spank_task_exit(spank_t spank, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (spank_context() == S_CTX_REMOTE)
		ck_linger_task_exit(spank);
	return 0;
}
