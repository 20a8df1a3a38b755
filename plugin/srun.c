#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "begin.h"
#include "dirfile.h"
#include "env.h"
#include "inuse.h"
#include "plugin.h"
#include "watch.h"

/* The job's own settings, as its batch script has them. */
static struct {
	uint64_t id; /* of the job that srun was called in; 0: in none */
	char *seal, *run, *first;
} job_has;

/* Before srun sets it to the job that it finds or makes. */
static void note_job(void)
{
	const char *id = getenv("SLURM_JOB_ID");

	if (ck_parse_u64("SLURM_JOB_ID", id, 1, UINT32_MAX, &job_has.id, NULL))
		job_has.id = 0;
}

/* How often srun has come by with options: once per component of a heterogeneous step. */
static unsigned components;

static bool is_het(void)
{
	return components > 1 || getenv("SLURM_HET_SIZE");
}

void ck_srun_init(void)
{
	note_job();
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

	components++;
	if (on && is_het()) {
		if (ck_spankopts_asked()) {
			slurm_error("ckpt: " CK_NO_HET);
			exit(1);
		}
		on = false;
	}
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
	job_has.first = copy_or_null(getenv(CK_ENV_FIRST));
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

/* Is the claim another user's, whose jobs we may not be shown? What cannot be told, may be so. */
static bool may_be_hidden(const char *run, const struct ck_claim *claim)
{
	char dir[PATH_MAX];
	struct stat st;

	if (ck_dirfile_generation(dir, run, claim->generation, NULL) ||
	    ck_io_posix.ops->lstat(&ck_io_posix, dir, &st))
		return true;
	return st.st_uid != geteuid() && ck_jobinfo_hides_others();
}

/* Ask slurmctld about the claim's job; `why`: what it says when it does not know. */
static void ask(struct ck_owner *owner, const char *run, uint32_t steps[static CK_STEPS_MAX],
		struct ck_error *why)
{
	uint32_t id = ck_owner_job(owner->claim);
	struct ck_jobinfo job = {.job_id = 0};
	int rc = ck_jobinfo_load(id, &job, why);

	owner->state = job.state;
	owner->owner_restarts = job.restarts;
	owner->steps = steps;
	if (rc == CK_ENOENT)
		owner->answer =
			may_be_hidden(run, owner->claim) ? CK_ANSWER_HIDDEN : CK_ANSWER_NO_JOB;
	else if (rc)
		owner->answer = CK_ANSWER_NONE;
	else if (ck_jobinfo_steps(id, steps, &owner->nsteps, NULL) == 0)
		owner->steps_known = owner->nsteps < CK_STEPS_MAX;
	else
		owner->nsteps = 0;
}

/*
 * Is the run in use? Then the step must not begin: two writers would undo each other's work. Who opens
 * it after this look is for the library to see; it is told how far we have looked.
 */
static int check_owner(struct ck_watch *watch, const struct ck_opts *opts, struct ck_error *err)
{
	struct ck_start *start = &watch->start;
	struct ck_error why = CK_ERROR_INIT;
	uint32_t steps[CK_STEPS_MAX];
	struct ck_claim claim;
	struct ck_owner owner = {.claim = &claim, .cluster = start->cluster};
	bool found;
	int rc;

	if (opts->takeover)
		return 0;
	rc = ck_owner_ask(&ck_io_posix, start->run, &claim, &found, err);
	if (rc)
		return rc;
	start->looked = true;
	if (!found)
		return 0;
	start->generation = claim.generation;
	owner.job_id = start->job_id;
	owner.restarts = start->restarts;
	owner.step_id = watch->step_id;
	if (ck_owner_job(&claim))
		ask(&owner, start->run, steps, &why);
	rc = ck_owner_refuse(&owner, start->run, why.text, err);
	ck_claim_fini(&claim);
	return rc;
}

/*
 * Was this srun sent into a job that others have made (srun --jobid)? It knows nothing of that job's
 * directory and name, and a default is no wish to have a run beside the job's. One that makes its own
 * job is in no job either; its step is the first, and it is no batch job.
 */
static bool is_visitor(const struct ck_watch *watch)
{
	return watch->start.outside && (watch->noted.batch || watch->step_id > 0);
}

/* Slurm sets it in jobs only, and where srun makes one; the tasks need it too. */
static void set_cluster(void)
{
	char name[CK_SHORT_TEXT];

	if (!getenv("SLURM_CLUSTER_NAME") && ck_jobinfo_cluster(name, NULL) == 0)
		setenv("SLURM_CLUSTER_NAME", name, 1);
}

static void start_step(struct ck_watch *watch, const struct ck_opts *opts)
{
	struct ck_start *start = &watch->start;
	struct ck_error err = CK_ERROR_INIT;
	bool surprise, foreign_count;
	int rc;

	start->opts = opts;
	start->outside = job_has.id != start->job_id;
	watch->most = opts->requeue;
	watch->margin = (uint32_t)opts->margin_seconds;
	watch->known = ck_jobinfo_load(start->job_id, &watch->noted, NULL) == 0;
	if (watch->noted.batch)
		watch->over_seconds = ck_jobinfo_over_seconds(&watch->noted);
	watch->noted.job_id = watch->known ? start->job_id : 0; /* ck_begin: all zero */
	if (is_visitor(watch) && !ck_spankopts_asked()) {
		setenv(CK_ENV_OFF, "1", 1);
		return;
	}
	set_cluster();
	rc = ck_begin(start, &ck_plugin()->site, &watch->noted, environ, &surprise, &err);
	if (!rc && surprise && !job_has.seal)
		slurm_info("ckpt: checkpoints go to %s; --ckpt-dir or $SCRATCH change that",
			   start->base);
	start->over_seconds = watch->over_seconds;
	ck_begin_job_run(start, job_has.seal, job_has.run, job_has.first);
	if (!rc)
		rc = ck_start_open(&ck_io_posix, start, &err);
	watch->lost_run = rc == CK_EREFUSED && start->lost_run;
	if (!rc)
		rc = check_owner(watch, opts, &err);
	watch->noted.job_id = start->job_id;
	if ((!rc || watch->lost_run) && !getenv(CK_ENV_SUPERVISED))
		ck_watch_start(watch);
	if (rc) {
		refuse(start, &err);
		return;
	}
	/* In a job submitted without --ckpt. srun has its copy of the environment by now: it can be changed only. */
	foreign_count = start->restarts == 0 && getenv(CK_ENV_RESTARTS);
	ck_start_env(start, ck_plugin_setenv, NULL);
	if (foreign_count)
		setenv(CK_ENV_RESTARTS, "0", 1);
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
	if (opts.on && !is_het())
		start_step(&watch, &opts);
}
