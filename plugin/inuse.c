#include "inuse.h"

#include <string.h>

#include "parse.h"

uint32_t ck_owner_job(const struct ck_claim *claim)
{
	uint64_t id = 0;

	if (ck_parse_u64("job id", claim->job.job_id, 1, UINT32_MAX, &id, NULL))
		return 0;
	return (uint32_t)id;
}

static bool is_our_job(const struct ck_owner *owner)
{
	return ck_owner_job(owner->claim) == owner->job_id;
}

/* Ranks started by mpirun may know no step: then the job as a whole is meant. */
static bool has_step(const struct ck_owner *owner)
{
	uint64_t step;

	if (ck_parse_u64("step", owner->claim->job.step_id, 0, UINT32_MAX, &step, NULL))
		return !is_our_job(owner);
	if (is_our_job(owner) && step == owner->step_id)
		return false;
	for (size_t i = 0; i < owner->nsteps; i++)
		if (owner->steps[i] == step)
			return true;
	return !owner->steps_known;
}

enum ck_holding ck_owner_holding(const struct ck_owner *owner)
{
	const struct ck_claim *claim = owner->claim;

	if (claim->ended || !ck_owner_job(claim))
		return CK_HOLDING_NONE;
	if (strcmp(claim->job.cluster, owner->cluster) != 0)
		return CK_HOLDING_OTHER_CLUSTER;
	/* No earlier start of this job runs beside this one. */
	if (is_our_job(owner) && claim->job.restart_count != owner->restarts)
		return CK_HOLDING_NONE;
	if (owner->answer == CK_ANSWER_NO_JOB)
		return CK_HOLDING_NONE;
	if (owner->answer != CK_ANSWER_JOB)
		return owner->answer == CK_ANSWER_HIDDEN ? CK_HOLDING_HIDDEN : CK_HOLDING_UNKNOWN;
	if (owner->state != CK_JOB_RUNNING || claim->job.restart_count != owner->owner_restarts ||
	    !has_step(owner))
		return CK_HOLDING_NONE;
	return is_our_job(owner) ? CK_HOLDING_SAME_JOB : CK_HOLDING_OTHER_JOB;
}

static int refuse_unknown(const struct ck_owner *owner, const char *run, const char *why,
			  struct ck_error *err)
{
	const struct ck_claim *claim = owner->claim;

	return ck_fail(
		err, CK_EREFUSED,
		"%s: job %s of cluster %s has opened it on %s and not closed it, and whether "
		"that job still runs is not known: %s. If it does not, take over with "
		"--ckpt-takeover",
		run, claim->job.job_id, claim->job.cluster, claim->host, why);
}

int ck_owner_refuse(const struct ck_owner *owner, const char *run, const char *why,
		    struct ck_error *err)
{
	const struct ck_claim *claim = owner->claim;
	const char *step = *claim->job.step_id ? claim->job.step_id : "?";

	switch (ck_owner_holding(owner)) {
	case CK_HOLDING_NONE:
		return 0;
	case CK_HOLDING_SAME_JOB:
		return ck_fail(
			err, CK_EREFUSED,
			"%s: is in use by step %s of this job, which runs on %s: steps that run at "
			"the "
			"same time need a run each: srun --ckpt-name=<name>; a step that needs "
			"none: srun --ckpt=off",
			run, step, claim->host);
	case CK_HOLDING_OTHER_JOB:
		return ck_fail(err, CK_EREFUSED,
			       "%s: is in use by step %s of job %s, which runs on %s: wait for it, "
			       "cancel it, or take over with --ckpt-takeover",
			       run, step, claim->job.job_id, claim->host);
	case CK_HOLDING_HIDDEN:
		return refuse_unknown(
			owner, run,
			"it is another user's, and Slurm does not show such jobs here "
			"(PrivateData)",
			err);
	case CK_HOLDING_OTHER_CLUSTER:
		return refuse_unknown(owner, run, "another cluster cannot be asked", err);
	default:
		return refuse_unknown(owner, run, why, err);
	}
}
