#include "decide.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "opts.h"
#include "short.h"

static enum ck_end_action say(char *reason, enum ck_end_action action, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static enum ck_end_action say(char *reason, enum ck_end_action action, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(reason, CK_END_REASON, fmt, ap);
	va_end(ap);
	return action;
}

static enum ck_end_action too_short(const struct ck_end *end, char *reason)
{
	return say(reason, CK_END_HOLD,
		   "the time limit is too short: %u starts in a row took longer to start and stop "
		   "than they trained (time limit %" PRId64 " s, --ckpt-margin %" PRIu32
		   " s): submit it again with a longer --time or a smaller --ckpt-margin",
		   end->short_starts, end->limit, end->margin);
}

/* REQUEUE, HOLD: there is work left. Whether the job may go on is not looked at here. */
static enum ck_end_action work_left(const struct ck_end *end, char *reason)
{
	if (end->superseded && !end->has_mark)
		return say(reason, CK_END_SAY, "another job has taken over this run");
	if (end->has_mark && end->want == CK_WANT_REFUSE)
		return end->complete ? say(reason, CK_END_NOTHING, "the run is complete")
				     : say(reason, CK_END_SAY, "%s", end->mark_reason);
	if (end->has_mark && end->want == CK_WANT_STOP)
		return say(reason, CK_END_FORBID, "%s, saved at step %" PRIu64, end->mark_reason,
			   end->mark_step);
	if (end->has_mark && end->want == CK_WANT_HOLD)
		return say(reason, CK_END_HOLD, "%s", end->mark_reason);
	/* A run may go on beyond the step at which it was complete. */
	if (end->has_mark && !(end->complete && end->complete_step >= end->mark_step))
		return end->short_starts >= CK_SHORT_MAX
			       ? too_short(end, reason)
			       : say(reason, CK_END_REQUEUE, "%s, saved at step %" PRIu64,
				     end->mark_reason, end->mark_step);
	if (end->complete)
		return say(reason, CK_END_NOTHING, "the run is complete");
	if (end->at_limit || (end->loaded && end->state == CK_JOB_TIMEOUT))
		return say(reason, CK_END_REQUEUE, "time limit");
	if (end->loaded && end->state == CK_JOB_PREEMPTED)
		return say(reason, CK_END_REQUEUE, "preempted");
	if (end->exit_code == CK_EXIT_REQUEUE)
		return say(reason, CK_END_REQUEUE, "exit code %d", CK_EXIT_REQUEUE);
	if (end->exit_code == CK_EXIT_REFUSED && end->lost_run)
		return say(reason, CK_END_FAIL, "the run of its earlier start is not there");
	if (end->exit_code == CK_EXIT_REFUSED)
		return say(reason, CK_END_NOTHING, "refused"); /* and its task has said why */
	if (end->exit_code > 0 && end->nodes == CK_NODES_LOST)
		return say(reason, CK_END_REQUEUE, "node %s failed", end->lost);
	if (end->exit_code > 0 && end->nodes == CK_NODES_KEPT)
		return say(reason, CK_END_SAY, "node %s failed, and the job goes on (--no-kill)",
			   end->lost);
	if (end->exit_code > 0)
		return say(reason, end->nodes == CK_NODES_UNKNOWN ? CK_END_LOOK : CK_END_SAY,
			   "exit code %d", end->exit_code);
	return say(reason, CK_END_NOTHING, "the program ended by itself");
}

/* A crash too: Slurm may have ended the step. */
static bool depends_on_slurm(const struct ck_end *end, enum ck_end_action action)
{
	if (end->loaded || end->forgotten || end->most == 0)
		return false;
	return action == CK_END_REQUEUE || action == CK_END_HOLD || action == CK_END_LOOK ||
	       action == CK_END_FAIL ||
	       (action == CK_END_SAY && end->exit_code > 0 && !end->has_mark && !end->superseded);
}

/* REQUEUE: Slurm's state of the job does not forbid it. */
static enum ck_end_action job_allows(const struct ck_end *end, char *reason)
{
	if (end->forgotten)
		return say(reason, CK_END_SAY, "slurmctld does not know the job any more");
	if (!end->loaded)
		return CK_END_REQUEUE;
	if (end->state == CK_JOB_CANCELLED)
		return say(reason, CK_END_SAY, "the job was cancelled");
	if (end->state == CK_JOB_PENDING || end->restarts != end->restarts_noted ||
	    (end->start_noted && end->start != end->start_noted))
		return say(reason, CK_END_WAIT, "the job is being requeued already");
	if (end->state == CK_JOB_ENDED)
		return say(reason, CK_END_SAY, "the job has ended");
	return CK_END_REQUEUE;
}

/* REQUEUE: neither the user nor a lack of progress forbids it. */
static enum ck_end_action limits_allow(const struct ck_end *end, char *reason)
{
	if (end->most == 0)
		return say(reason, CK_END_FORBID, "--ckpt-requeue=no");
	if (end->loaded && !end->may_requeue)
		return say(reason, CK_END_SAY, "the job was submitted with --no-requeue");
	if (end->most > 0 && end->restarts >= (uint32_t)end->most)
		return say(reason, CK_END_FORBID,
			   "it has run %" PRIu32 " times, --ckpt-requeue=%" PRId32,
			   end->restarts + 1, end->most);
	if (end->most > 0)
		return CK_END_REQUEUE;
	if (end->library && end->fruitless >= CK_FRUITLESS_MAX)
		return say(reason, CK_END_FORBID, "%" PRIu64 " starts without a new checkpoint",
			   end->fruitless);
	if (!end->library && end->restarts >= CK_FRUITLESS_MAX)
		return say(reason, CK_END_FORBID,
			   "%" PRIu32 " requeues, and no way to see progress; --ckpt-requeue=<max> "
			   "allows more",
			   end->restarts);
	return CK_END_REQUEUE;
}

enum ck_end_action ck_end_decide(const struct ck_end *end, char reason[static CK_END_REASON])
{
	char because[CK_END_REASON];
	enum ck_end_action action, job;

	reason[0] = '\0';
	if (end->supervised)
		return say(reason, CK_END_NOTHING, "supervised");
	action = work_left(end, because);
	if (action == CK_END_NOTHING)
		return say(reason, action, "%s", because);
	if (!end->batch) {
		if (action == CK_END_FAIL)
			return say(reason, CK_END_NOTHING, "%s", because);
		if (action == CK_END_HOLD)
			action = CK_END_SAY; /* nothing to hold */
		else if (action != CK_END_REQUEUE && (end->has_mark || !end->library))
			action = CK_END_NOTHING; /* told to stop, or a program we know nothing of */
		else
			action = CK_END_RESUME_BY_HAND;
		return say(reason, action, "%s", because);
	}
	if (depends_on_slurm(end, action))
		return say(reason, CK_END_ASK, "slurmctld does not answer");
	job = job_allows(end, reason);
	if (job != CK_END_REQUEUE)
		return job;
	if (action == CK_END_REQUEUE || action == CK_END_HOLD)
		job = limits_allow(end, reason);
	if (job != CK_END_REQUEUE)
		return job;
	if (action == CK_END_LOOK && !end->may_requeue)
		action = CK_END_SAY; /* Slurm would not requeue it either */
	return say(reason, action, "%s", because);
}
