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

/* Ranks started by mpirun may know no step: then the job as a whole is meant. */
static bool has_step(const struct ck_owner *owner)
{
	uint64_t step;

	if (ck_parse_u64("step", owner->claim->job.step_id, 0, UINT32_MAX, &step, NULL))
		return ck_owner_job(owner->claim) != owner->job_id;
	for (size_t i = 0; i < owner->nsteps; i++)
		if (owner->steps[i] == step)
			return ck_owner_job(owner->claim) != owner->job_id ||
			       step != owner->step_id;
	return false;
}

bool ck_owner_runs(const struct ck_owner *owner)
{
	const struct ck_claim *claim = owner->claim;

	if (claim->ended || !ck_owner_job(claim) || strcmp(claim->job.cluster, owner->cluster) != 0)
		return false;
	return owner->loaded && owner->state == CK_JOB_RUNNING &&
	       claim->job.restart_count == owner->owner_restarts && has_step(owner);
}
