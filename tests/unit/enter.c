/* enter.h: a job's run is opened where the plugin has found it, and nowhere else. */
#include "enter.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "env.h"
#include "run.h"
#include "rundir.h"
#include "tap.h"

static struct ckpt_options options = {.struct_size = sizeof(options)};
static char dir[PATH_MAX];
static const char *top;

static void quiet(void *arg, const char *line)
{
	(void)arg;
	(void)line;
}

/* A job's start, sealed; `run_id` is the plugin's word, NULL: it has none. */
static void start(const char *name, const char *run_id, const char *restarts)
{
	char seal[64];

	snprintf(dir, sizeof(dir), "%.*s/%s", PATH_MAX - 64, top, name);
	setenv("SLURM_JOB_ID", "12", 1);
	setenv("SLURM_CLUSTER_NAME", "mini", 1);
	setenv("SLURM_RESTART_COUNT", restarts, 1);
	snprintf(seal, sizeof(seal), "mini/12/%s", restarts);
	setenv(CK_ENV_SEAL, seal, 1);
	setenv(CK_ENV_DIR, dir, 1);
	unsetenv(CK_ENV_RUN_ID);
	unsetenv(CK_ENV_FIRST);
	if (run_id)
		setenv(CK_ENV_RUN_ID, run_id, 1);
}

static void opens(int code, const char *says, const char *what)
{
	ckpt *ck;
	int rc = ckpt_open(&ck, NULL, &options);

	is_int(rc, code, "%s (%s)", what, ckpt_error(ck));
	if (says)
		like(ckpt_error(ck), says, "... is told");
	ckpt_close(ck);
}

static void elsewhere(void)
{
	static const char id[] = "00112233445566778899aabbccddeeff";
	struct ck_run run;
	char path[PATH_MAX];

	start("gone", id, "0");
	opens(CKPT_EREFUSED,
	      "there is no run.json, where this job's run, 00112233445566778899aabbccddeeff, "
	      "should be",
	      "no directory, in a first start");
	is_int(access(dir, F_OK), -1, "... and none is made");
	start("empty", id, "1");
	mkdir(dir, 0777);
	opens(CKPT_EREFUSED, "is the file system mounted there, and in the container?",
	      "an empty directory, as a container makes it to mount to");
	snprintf(path, sizeof(path), "%.*s/" CK_RUN_FILE, PATH_MAX - 32, dir);
	is_int(access(path, F_OK), -1, "... and no run is made there");
	start("other", id, "1");
	make_run(dir);
	opens(CKPT_EREFUSED, " in place of this job's, 00112233445566778899aabbccddeeff",
	      "another run");
	is_int(ck_run_load(&ck_io_posix, dir, &run, NULL), 0, "(the run that is there)");
	start("other", run.run_id, "1");
	opens(0, NULL, "the run that the plugin means");
	start("other", "no id", "1");
	opens(CKPT_EARG, CK_ENV_RUN_ID, "what is no run's id");
}

/* Restarts that have not run the script are no past. */
static void first(void)
{
	start("missing", NULL, "1");
	opens(CKPT_EREFUSED, "this job has run before", "a restart without its directory");
	start("missing", NULL, "1");
	setenv(CK_ENV_FIRST, "1", 1);
	opens(0, NULL, "the same, but no script has run before");
}

int main(void)
{
	options.log = quiet;
	top = test_tmpdir();
	elsewhere();
	first();
	return done_testing();
}
