#include "rival.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "handle.h"
#include "signals.h"

/* Each try that fails is a claim of somebody else: more than can start at once. */
#define CLAIM_TRIES 1000

/*
 * Of one step, on different hosts. Two worlds that have room side by side in the step's tasks may both be there; two
 * that have not are one that ended and one that was started again in its place (torchrun).
 */
static bool fit_side_by_side(const struct ck_rivals *rivals)
{
	return (uint64_t)rivals->owner->world_size + rivals->ours->world_size <= rivals->tasks;
}

enum ck_rival ck_rival_judge(const struct ck_rivals *rivals)
{
	const struct ck_claim *owner = rivals->owner, *ours = rivals->ours;
	bool runs = rivals->process == CK_PROCESS_RUNS;

	if (owner->ended || !*owner->job.job_id || !*ours->job.job_id ||
	    rivals->process == CK_PROCESS_GONE)
		return CK_RIVAL_NONE;
	if (rivals->looked && owner->generation <= rivals->generation)
		return CK_RIVAL_NONE;
	if (strcmp(owner->job.cluster, ours->job.cluster) != 0 ||
	    strcmp(owner->job.job_id, ours->job.job_id) != 0)
		return rivals->looked ? CK_RIVAL_JOB : CK_RIVAL_NONE;
	if (owner->job.restart_count != ours->job.restart_count)
		return CK_RIVAL_NONE;
	if (strcmp(owner->job.step_id, ours->job.step_id) == 0)
		return runs || (*ours->job.step_id && fit_side_by_side(rivals)) ? CK_RIVAL_TASK
										: CK_RIVAL_NONE;
	/* Ranks of mpirun may know no step. */
	if (!*owner->job.step_id || !*ours->job.step_id)
		return runs ? CK_RIVAL_STEP : CK_RIVAL_NONE;
	return runs || rivals->looked ? CK_RIVAL_STEP : CK_RIVAL_NONE;
}

/* So that the end of this step is not taken for one after which the job should go on. */
static void leave_refusal(const ckpt *ck, const struct ck_claim *owner)
{
	struct ck_mark mark = {.job = ck->claim.job};

	snprintf(mark.reason, sizeof(mark.reason),
		 "several tasks have opened the run, on %.90s and %.90s", owner->host,
		 ck->claim.host);
	ck_refusal_store(ck->io, ck->set.dir, owner->generation, &mark, NULL);
}

static int refuse(const ckpt *ck, const struct ck_claim *owner, enum ck_rival rival,
		  struct ck_error *err)
{
	const struct ck_claim *ours = &ck->claim;

	if (rival == CK_RIVAL_JOB)
		return ck_fail(err, CK_EREFUSED,
			       "%s: job %s has opened it on %s since this step began: wait for it, "
			       "cancel it, or take over with --ckpt-takeover",
			       ck->set.dir, owner->job.job_id, owner->host);
	if (rival == CK_RIVAL_STEP)
		return ck_fail(err, CK_EREFUSED,
			       "%s: step %s of this job has opened it on %s: steps that run at the "
			       "same time need a run each: srun --ckpt-name=<name>",
			       ck->set.dir, owner->job.step_id, owner->host);
	leave_refusal(ck, owner);
	return ck_fail(
		err, CK_EREFUSED,
		"%s: process %" PRIu64 " on %s has opened it for this step, and this is process "
		"%" PRIu64 " on %s: one task is to open the run, or all as the ranks of one "
		"program. MPI programs need srun --mpi=..., or each task is a program of its "
		"own",
		ck->set.dir, owner->pid, owner->host, ours->pid, ours->host);
}

static int judge_owner(const ckpt *ck, const struct ck_claim *owner, struct ck_error *err)
{
	const struct ck_claim *ours = &ck->claim;
	const struct ck_rivals rivals = {
		.owner = owner,
		.ours = ours,
		.process = ck_owner_process(ck->io, owner, ours),
		.looked = ck->set.looked,
		.generation = ck->set.generation,
		.tasks = ck->set.tasks,
	};
	enum ck_rival rival = ck_rival_judge(&rivals);

	/* Another handle of this process is nobody else's to see. */
	if (ck_signals_used() && ck_owner_is_us(ck->io, owner, ours))
		return ck_fail(err, CK_EREFUSED,
			       "%s: is open already in this process (generation %" PRIu64
			       "): ckpt_close that handle first, or take over with "
			       "ckpt_options.takeover",
			       ck->set.dir, owner->generation);
	if (!ck->set.planned && ck_owner_seems_alive(ck->io, owner, ours))
		return ck_fail(err, CK_EREFUSED,
			       "%s: is in use by process %" PRIu64 " on %s (generation %" PRIu64
			       "): end it first, or take over with --ckpt-takeover",
			       ck->set.dir, owner->pid, owner->host, owner->generation);
	return rival ? refuse(ck, owner, rival, err) : 0;
}

static int may_supersede(const ckpt *ck, struct ck_error *err)
{
	struct ck_claim owner;
	bool found;
	int rc;

	if (ck->set.takeover)
		return 0;
	rc = ck_owner_ask(ck->io, ck->set.dir, &owner, &found, err);
	if (rc || !found)
		return rc;
	rc = judge_owner(ck, &owner, err);
	ck_claim_fini(&owner);
	return rc;
}

int ck_rival_claim(ckpt *ck, struct ck_error *err)
{
	uint64_t seen;
	int rc = CK_EEXIST;

	for (int i = 0; i < CLAIM_TRIES && rc == CK_EEXIST; i++) {
		rc = ck_owner_wait(ck->io, ck->set.dir, &seen, err);
		if (!rc)
			rc = may_supersede(ck, err);
		if (!rc)
			rc = ck_claim_take_after(ck->io, ck->set.dir, seen, &ck->claim, err);
	}
	return rc;
}
