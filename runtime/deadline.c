/* When does the last save have to begin, so that it is over before the job is? */
#include "save.h"

#include <time.h>

/* Slurm has this long to tell the end time; then the one known before counts. */
#define ASK_SECONDS 3
/* A limit may be lowered, or set, while the job runs: an administrator's reservation, say. */
#define LOOK_SECONDS 45

/* Rank 0: how long the save under way still needs, by the longest recent one. */
static double rest_of_save(const ckpt *ck)
{
	double rest = ck->save ? ck->times.longest - (ck_now() - ck->save->started) : 0;

	return rest > 0 ? rest : 0;
}

/* Start to ask Slurm for the end time. False: there is nobody to ask. */
static bool ask(ckpt *ck)
{
	ck->asked_at = ck_now();
	return *ck->set.job.job_id &&
	       ck_end_time_ask(&ck->end_query, ck->set.job.job_id, NULL) == 0;
}

/*
 * Rank 0: must the last save begin now? Limits get extended, so Slurm is asked once more before it is
 * believed, and lowered, so it is asked now and then; training goes on meanwhile.
 */
bool ck_deadline_reached(ckpt *ck)
{
	struct ck_deadline d = {
		.now = (double)time(NULL),
		.end = (double)ck->set.end_time,
		.save = ck_save_times_expect(&ck->times),
		.rest = rest_of_save(ck),
		.longest_gap = ck->longest_gap,
		.calls_late =
			ck->agreement.pace.same_call ? 1 : (unsigned)ck->agreement.pace.every + 1,
		.margin = ck->set.margin_seconds,
	};
	int64_t end = 0;
	bool near;
	int rc;

	near = ck_deadline_near(&d);
	if (ck->deadline_seen ||
	    (!near && !ck->end_query.pid && ck_now() - ck->asked_at < LOOK_SECONDS))
		return ck->deadline_seen;
	if (!ck->end_query.pid && !ask(ck))
		return ck->deadline_seen = near;
	rc = ck_end_time_answer(&ck->end_query, &end, NULL);
	if (rc == 0 && ck_now() - ck->asked_at < ASK_SECONDS)
		return false;
	ck_end_time_forget(&ck->end_query);
	if (rc == 1)
		ck->set.end_time = end ? end + ck->set.over_seconds : 0;
	d.end = (double)ck->set.end_time;
	ck->deadline_seen = ck_deadline_near(&d);
	return ck->deadline_seen;
}

/* Another number of ranks writes at another rate. */
static bool is_alike(const ckpt *ck, uint64_t generation)
{
	struct ck_claim claim;
	bool alike;

	if (ck_claim_load(ck->io, ck->set.dir, generation, &claim, NULL))
		return false;
	alike = claim.world_size == ck->claim.world_size;
	ck_claim_fini(&claim);
	return alike;
}

void ck_deadline_recall(ckpt *ck)
{
	uint64_t before = ck->generation - 1;
	struct ck_mark mark;

	if (!before || ck_mark_load(ck->io, ck->set.dir, before, &mark, NULL) || !mark.save_ms ||
	    !mark.save_bytes || !is_alike(ck, before))
		return;
	ck->times.all_seconds = (double)mark.save_ms / 1000;
	ck->times.all_bytes = mark.save_bytes;
}
