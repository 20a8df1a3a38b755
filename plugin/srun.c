#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "begin.h"
#include "env.h"
#include "inuse.h"
#include "plugin.h"
#include "watch.h"

/* The job's own settings, as its batch script has them. */
static struct {
	char *seal, *run;
} job_has;

void ck_srun_init(void)
{
	ck_spankopts_defaults("SRUN");
}

static char *copy_or_null(const char *text)
{
	return text ? strdup(text) : NULL;
}

/*
 * Variables are taken away here, since srun has made a copy of its environment when it comes to
 * local_user_init; those that are set there still reach the tasks.
 */
void ck_srun_post_opt(void)
{
	bool on = ck_spankopts_on();

	if (on && ck_spankopts_bad()) {
		slurm_error("ckpt: %s", ck_spankopts_bad());
		exit(1);
	}
	if (!on)
		ck_spankopts_defaults_done();
	if (!on && !getenv(CK_ENV_SEAL))
		return; /* whatever is there is not ours */
	job_has.seal = copy_or_null(getenv(CK_ENV_SEAL));
	job_has.run = copy_or_null(getenv(CK_ENV_DIR));
	ck_start_env_clear(ck_plugin_setenv, NULL);
	if (!on) /* told from a node where the plugin is missing */
		setenv(CK_ENV_OFF, "1", 1);
}

/* srun must neither fail nor exit here, it would leave the step behind: its tasks are told. */
static void refuse(const struct ck_start *start, const struct ck_error *err)
{
	char text[CK_REFUSED_BYTES];

	setenv(CK_ENV_REFUSED, ck_begin_refusal(start, err->text, text), 1);
}

/* Is the run in use? Then the step must not begin: two writers would undo each other's work. */
static int check_owner(const struct ck_watch *watch, const struct ck_opts *opts,
		       struct ck_error *err)
{
	const struct ck_start *start = &watch->start;
	uint32_t steps[CK_STEPS_MAX];
	struct ck_claim claim;
	struct ck_jobinfo job = {.job_id = 0};
	struct ck_owner owner = {.claim = &claim, .cluster = start->cluster, .steps = steps};
	bool found;
	int rc;

	if (opts->takeover)
		return 0;
	rc = ck_owner_ask(&ck_io_posix, start->run, &claim, &found, err);
	if (rc || !found)
		return rc;
	owner.job_id = start->job_id;
	owner.restarts = start->restarts;
	owner.step_id = watch->step_id;
	if (ck_owner_job(&claim)) {
		owner.loaded = ck_jobinfo_load(ck_owner_job(&claim), &job, NULL) == 0;
		owner.state = job.state;
		owner.owner_restarts = job.restarts;
		if (ck_jobinfo_steps(ck_owner_job(&claim), steps, &owner.nsteps, NULL))
			owner.nsteps = 0;
	}
	if (ck_owner_runs(&owner))
		rc = ck_fail(err, CK_EREFUSED,
			     "%s: is in use by step %s of job %s, which runs on %s: wait for it, "
			     "cancel it, or "
			     "take over with --ckpt-takeover",
			     start->run, *claim.job.step_id ? claim.job.step_id : "?",
			     claim.job.job_id, claim.host);
	ck_claim_fini(&claim);
	return rc;
}

static void start_step(struct ck_watch *watch, const struct ck_opts *opts)
{
	struct ck_start *start = &watch->start;
	struct ck_error err = CK_ERROR_INIT;
	bool surprise;
	int rc;

	start->opts = opts;
	watch->most = opts->requeue;
	watch->known = ck_jobinfo_load(start->job_id, &watch->noted, NULL) == 0;
	watch->noted.job_id = watch->known ? start->job_id : 0; /* ck_begin: all zero */
	rc = ck_begin(start, &ck_plugin()->site, &watch->noted, environ, &surprise, &err);
	if (!rc && surprise && !job_has.seal)
		slurm_info("ckpt: checkpoints go to %s; --ckpt-dir or $SCRATCH change that",
			   start->base);
	ck_begin_job_run(start, job_has.seal, job_has.run);
	if (!rc)
		rc = ck_start_open(&ck_io_posix, start, &err);
	if (!rc)
		rc = check_owner(watch, opts, &err);
	if (rc) {
		refuse(start, &err);
		return;
	}
	ck_start_env(start, ck_plugin_setenv, NULL);
	watch->noted.job_id = start->job_id;
	if (!getenv(CK_ENV_SUPERVISED))
		ck_watch_start(watch);
}

void ck_srun_local_user_init(spank_t spank)
{
	struct ck_opts opts = ck_spankopts_effective();
	struct ck_watch watch = {.step_id = NO_VAL};

	/* Not for the shell that salloc may run as a step of its own. */
	if (spank_get_item(spank, S_JOB_ID, &watch.start.job_id) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_STEPID, &watch.step_id) != ESPANK_SUCCESS ||
	    watch.step_id >= SLURM_MAX_NORMAL_STEP_ID)
		return;
	if (opts.on)
		start_step(&watch, &opts);
}
