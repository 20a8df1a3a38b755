#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

/*
 * Slurm carries the option --ckpt-keep of the plugin "ckpt" as _SLURM_SPANK_OPTION_ckpt_ckpt_keep:
 * under this name to slurmstepd, and with SLURM_SPANK_ in front in the environment of jobs, where
 * a further sbatch, salloc or srun takes it as a default. [plugstack.c: _opt_env_name]
 */
#define CARRIER "_SLURM_SPANK_OPTION_ckpt_"
#define JOB_CARRIER "SLURM_SPANK_" CARRIER

#define TEXT_BYTES (PATH_MAX + 16)

/* "ckpt-keep" as CKPT_KEEP or ckpt_keep. */
static void print_name(enum ck_opt opt, bool upper, char *out, size_t size)
{
	size_t n = 0;

	for (const char *p = ck_opt_name(opt); *p && n + 1 < size; p++) {
		char c = *p == '-' ? '_' : *p;

		out[n++] = upper && c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
	}
	out[n] = '\0';
}

static char *print_var(const char *front, enum ck_opt opt, bool upper,
		       char out[static CK_SPANKOPTS_VAR])
{
	char name[32];

	print_name(opt, upper, name, sizeof(name));
	snprintf(out, CK_SPANKOPTS_VAR, "%s%s", front, name);
	return out;
}

char *ck_spankopts_job_var(enum ck_opt opt, char out[static CK_SPANKOPTS_VAR])
{
	return print_var(JOB_CARRIER, opt, false, out);
}

/* Keep the value, or why it is no good: which of the two counts in the end is not known yet. */
static bool take(enum ck_opt opt, const char *what, const char *text, struct ck_error *err)
{
	struct ck_arrival *arrival = &ck_plugin()->arrived[opt];
	int rc = ck_opts_set(&ck_plugin()->opts, opt, what, text, err);

	free(arrival->bad);
	arrival->bad = rc ? strdup(err->text) : NULL;
	return rc == 0;
}

/*
 * Called for each appearance of an option, the last one counts. In a user's command a bad value
 * ends it here: returning a failure would add a second line, Slurm's, that says less.
 */
static int callback(int val, const char *text, int remote)
{
	struct ck_error err = CK_ERROR_INIT;
	enum ck_opt opt = (enum ck_opt)val;
	char what[40];

	ck_plugin()->arrived[opt].calls++;
	snprintf(what, sizeof(what), "--%s", ck_opt_name(opt));
	if (take(opt, what, text, &err) || remote)
		return 0;
	slurm_error("ckpt: %s", err.text);
	exit(1);
}

void ck_spankopts_register(spank_t spank)
{
	static const struct {
		int has_arg; /* 1: needed, 2: optional */
		char *arginfo, *usage;
	} help[CK_OPT_COUNT] = {
		[CK_OPT_CKPT] = {2, "[on|off]", "[ckpt] save checkpoints, requeue and resume"},
		[CK_OPT_DIR] = {1, "directory",
				"[ckpt] where runs lie; this one in <directory>/<name>"},
		[CK_OPT_NAME] = {1, "name", "[ckpt] name of the run; the same name continues it"},
		[CK_OPT_EVERY] = {1, "time|steps",
				  "[ckpt] save every 30min (default), 2h, 500steps"},
		[CK_OPT_KEEP] = {1, "n", "[ckpt] checkpoints that are kept (default 3)"},
		[CK_OPT_REQUEUE] = {1, "max|no", "[ckpt] requeue at most so often, or not at all"},
		[CK_OPT_MARGIN] = {1, "time", "[ckpt] be done so long before the time limit (60s)"},
		[CK_OPT_RESUME] = {1, "auto|fresh|step",
				   "[ckpt] what to start from, until this job has saved"},
		[CK_OPT_FROM] = {1, "run", "[ckpt] begin from another run's checkpoint"},
		[CK_OPT_TAKEOVER] = {2, "[on|off]",
				     "[ckpt] take the run over from a job that uses it"},
		[CK_OPT_VERIFY] = {1, "auto|crc32|sha256", "[ckpt] how a checkpoint is verified"},
		[CK_OPT_FAIL] = {1, "warn|error", "[ckpt] what several failed saves in a row are"},
		[CK_OPT_KEEP_EVERY] = {1, "steps",
				       "[ckpt] keep one checkpoint per so many steps for good"},
		[CK_OPT_WORLD] = {1, "any|fixed",
				  "[ckpt] resume on any number of ranks, or the same"},
		[CK_OPT_STAGING] = {1, "auto|off|size",
				    "[ckpt] copy the state aside, of a rank at most so much"},
	};

	for (int opt = 0; opt < CK_OPT_COUNT; opt++) {
		struct spank_option option = {
			.name = (char *)ck_opt_name((enum ck_opt)opt),
			.arginfo = help[opt].arginfo,
			.usage = help[opt].usage,
			.has_arg = help[opt].has_arg,
			.val = opt,
			.cb = callback,
		};

		if (spank_option_register(spank, &option))
			slurm_error("ckpt: --%s cannot be registered",
				    ck_opt_name((enum ck_opt)opt));
	}
}

/*
 * A default of the environment goes where Slurm looks for one itself, between script and command
 * line. A bad one is not shown to Slurm: the job may have nothing to do with checkpoints.
 */
void ck_spankopts_defaults(const char *prefix)
{
	char front[16], mine[CK_SPANKOPTS_VAR], slurms[CK_SPANKOPTS_VAR];

	snprintf(front, sizeof(front), "%s_", prefix);
	for (int opt = 0; opt < CK_OPT_COUNT; opt++) {
		struct ck_arrival *arrival = &ck_plugin()->arrived[opt];
		struct ck_error err = CK_ERROR_INIT;
		struct ck_opts check;
		const char *text = getenv(print_var(front, (enum ck_opt)opt, true, mine));

		print_var(JOB_CARRIER, (enum ck_opt)opt, false, slurms);
		ck_opts_init(&check);
		if (text && ck_opts_set(&check, (enum ck_opt)opt, mine, text, &err)) {
			free(arrival->bad_default);
			arrival->bad_default = strdup(err.text);
		} else if (text) {
			setenv(slurms, text, 1);
		}
		arrival->from_env = getenv(slurms) != NULL;
	}
}

void ck_spankopts_defaults_done(void)
{
	char name[CK_SPANKOPTS_VAR];

	for (int opt = 0; opt < CK_OPT_COUNT; opt++)
		unsetenv(print_var(JOB_CARRIER, (enum ck_opt)opt, false, name));
}

bool ck_spankopts_on(void)
{
	const struct ck_plugin *plugin = ck_plugin();

	if (ck_opts_has(&plugin->opts, CK_OPT_CKPT))
		return plugin->opts.on;
	for (int opt = CK_OPT_CKPT + 1; opt < CK_OPT_COUNT; opt++) {
		if (plugin->arrived[opt].calls > plugin->arrived[opt].from_env)
			return true;
	}
	return plugin->site.on;
}

bool ck_spankopts_asked(void)
{
	const struct ck_plugin *plugin = ck_plugin();

	for (int opt = 0; opt < CK_OPT_COUNT; opt++) {
		if (plugin->arrived[opt].calls > plugin->arrived[opt].from_env)
			return true;
	}
	return false;
}

const char *ck_spankopts_bad(void)
{
	for (int opt = 0; opt < CK_OPT_COUNT; opt++) {
		const struct ck_arrival *arrival = &ck_plugin()->arrived[opt];

		if (arrival->bad)
			return arrival->bad;
		if (arrival->bad_default && arrival->calls <= arrival->from_env)
			return arrival->bad_default;
	}
	return NULL;
}

struct ck_opts ck_spankopts_effective(void)
{
	const struct ck_opts *site = &ck_plugin()->site.opts;
	struct ck_opts opts = ck_plugin()->opts;

	if (!ck_opts_has(&opts, CK_OPT_EVERY))
		opts.every = site->every;
	if (!ck_opts_has(&opts, CK_OPT_KEEP))
		opts.keep = site->keep;
	opts.on = ck_spankopts_on();
	return opts;
}

void ck_spankopts_forward(spank_t spank, enum ck_opt opt, const char *value)
{
	char name[CK_SPANKOPTS_VAR];

	print_var(CARRIER, opt, false, name);
	if (value) {
		setenv(name, value, 1);
		spank_job_control_setenv(spank, name, value, 1);
	} else {
		unsetenv(name);
		spank_job_control_unsetenv(spank, name);
	}
}

void ck_spankopts_from_job_env(spank_t spank)
{
	char name[CK_SPANKOPTS_VAR], what[40], *text = malloc(TEXT_BYTES);

	for (int opt = 0; text && opt < CK_OPT_COUNT; opt++) {
		struct ck_error err = CK_ERROR_INIT;

		print_var(JOB_CARRIER, (enum ck_opt)opt, false, name);
		if (ck_plugin()->arrived[opt].calls ||
		    spank_getenv(spank, name, text, TEXT_BYTES) != ESPANK_SUCCESS)
			continue;
		ck_plugin()->arrived[opt].calls++;
		snprintf(what, sizeof(what), "--%s", ck_opt_name((enum ck_opt)opt));
		take((enum ck_opt)opt, what, text, &err);
	}
	free(text);
}

void ck_spankopts_clear_task_env(spank_t spank)
{
	char name[CK_SPANKOPTS_VAR];

	for (int opt = 0; opt < CK_OPT_COUNT; opt++)
		spank_unsetenv(spank, print_var(CARRIER, (enum ck_opt)opt, false, name));
}
