#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "begin.h"
#include "env.h"
#include "plugin.h"

/* End this task, as its user, before it is a program; one of them says why. */
static void fail_task(spank_t spank, const char *text) __attribute__((noreturn));

static void fail_task(spank_t spank, const char *text)
{
	uint32_t task = 0;

	spank_get_item(spank, S_TASK_GLOBAL_ID, &task);
	if (task == 0)
		dprintf(STDERR_FILENO, "ckpt: %s\n", text);
	_exit(CK_EXIT_REFUSED);
}

static int set_variable(void *arg, const char *name, const char *value)
{
	spank_t spank = arg;

	if (value)
		return spank_setenv(spank, name, value, 1) != ESPANK_SUCCESS;
	spank_unsetenv(spank, name);
	return 0;
}

/* One dead rank would leave the others of an MPI program waiting for it for ever. */
static void kill_on_bad_exit(spank_t spank)
{
	if (spank_setenv(spank, "SLURM_KILL_BAD_EXIT", "1", 0) == ESPANK_SUCCESS)
		spank_setenv(spank, CK_ENV_KILL_SET, "1", 1);
}

static void start_batch(spank_t spank, uint32_t job_id, char *const *env)
{
	struct ck_opts opts = ck_spankopts_effective();
	struct ck_start *start = calloc(1, sizeof(*start));
	struct ck_jobinfo job = {.job_id = 0};
	struct ck_error err = CK_ERROR_INIT;
	bool surprise;
	int rc;

	if (!start)
		fail_task(spank, "out of memory");
	start->job_id = job_id;
	start->opts = &opts;
	/* When slurmctld does not answer, the environment has to do. */
	if (ck_jobinfo_load(job_id, &job, NULL))
		job = (struct ck_jobinfo){.job_id = 0};
	rc = ck_begin(start, &ck_plugin()->site, &job, env, &surprise, &err);
	if (!rc)
		rc = ck_start_open(&ck_io_posix, start, &err);
	if (!rc && ck_start_env(start, set_variable, spank))
		rc = ck_fail(&err, CK_EIO, "the environment cannot be set");
	if (rc)
		fail_task(spank, err.text);
	kill_on_bad_exit(spank);
	free(start);
}

/* The options have come by root's hands, but from a user: a bad one is the task's failure only. */
static void init_batch(spank_t spank, uint32_t job_id, char *const *env)
{
	ck_spankopts_from_job_env(spank);
	if (!ck_spankopts_on())
		return;
	if (ck_spankopts_bad())
		fail_task(spank, ck_spankopts_bad());
	start_batch(spank, job_id, env);
}

/*
 * srun had no plugin, so the node of the batch script has no line in its plugstack.conf. A program with
 * the library refuses to run; of another one nobody would learn that it is not requeued. It is for the
 * first node of the step to say, or for the second, when the first is the one without.
 */
static void say_no_plugin(spank_t spank, char *const *env)
{
	const char *nodes = ck_begin_getenv(env, "SLURM_JOB_NODELIST");
	uint32_t node = 0;
	int task = 0;
	char host[CK_SHORT_TEXT];

	if (!ck_begin_getenv(env, CK_ENV_SUBMITTED) || ck_begin_getenv(env, CK_ENV_OFF) ||
	    spank_get_item(spank, S_JOB_NODEID, &node) != ESPANK_SUCCESS || node > 1 ||
	    spank_get_item(spank, S_TASK_ID, &task) != ESPANK_SUCCESS || task != 0)
		return;
	dprintf(STDERR_FILENO,
		"ckpt: warning: Slurm's ckpt plugin was not loaded on node %s, where the script "
		"runs: this step has no run directory, and the job is not requeued; see "
		"plugstack.conf there\n",
		ck_first_host(nodes ? nodes : "(unknown)", host, sizeof(host)));
}

static void init_step(spank_t spank, uint32_t job_id, char *const *env)
{
	const char *seal = ck_begin_getenv(env, CK_ENV_SEAL);
	const char *refused = ck_begin_refused(ck_begin_getenv(env, CK_ENV_REFUSED), job_id);

	if (refused)
		fail_task(spank, refused);
	if (!seal)
		say_no_plugin(spank, env);
	if (seal && ck_spankopts_bad())
		fail_task(spank, ck_spankopts_bad());
}

void ck_stepd_task_init(spank_t spank)
{
	uint32_t job_id, step_id;
	char **env = NULL;

	if (spank_get_item(spank, S_JOB_ID, &job_id) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_STEPID, &step_id) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_ENV, &env) != ESPANK_SUCCESS)
		return;
	ck_spankopts_clear_task_env(spank);
	if (step_id == SLURM_BATCH_SCRIPT)
		init_batch(spank, job_id, env);
	else if (step_id < SLURM_MAX_NORMAL_STEP_ID)
		init_step(spank, job_id, env);
}
