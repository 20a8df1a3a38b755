/* The training loop's calls: when to save, when to stop, when it is finished. */
#include "handle.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "restore.h"
#include "save.h"
#include "signals.h"

/* With --ckpt-fail=error. */
#define FAILURES_MAX 3

/* One signal to all ranks reaches one after the other. */
#define SIGNAL_SECONDS 1

/* Rank 0: a periodic save, unless one is under way; then it is skipped and counted. */
static bool interval_due(ckpt *ck, uint64_t step)
{
	if (!ck_interval_due(&ck->set.every, ck_now(), ck->last_save_at, step - ck->tried))
		return false;
	if (!ck->save)
		return true;
	ck->skipped++;
	ck->last_save_at = ck_now();
	ck->tried = step;
	return false;
}

/* Has a signal asked for a save? One that comes late asks for what the others have begun already. */
static bool save_signalled(ckpt *ck)
{
	if (ck_now() - ck->signalled_at < SIGNAL_SECONDS)
		ck->saves_seen = ck_signals_saves();
	return ck_signals_saves() != ck->saves_seen;
}

/* What does this rank want? Time is rank 0's business, signals are everybody's. */
static uint64_t urge(ckpt *ck, uint64_t step)
{
	int stop = ck_signals_stop();

	if (ck->requests && ck_requests_stop(ck->requests))
		return ck_urge_pack(CK_URGE_STOP, CK_WHY_STOP_REQUEST, 0);
	if (stop)
		return ck_urge_pack(CK_URGE_STOP, CK_WHY_STOP_SIGNAL, (unsigned)stop);
	if (ck_is_root(ck) && ck_deadline_reached(ck))
		return ck_urge_pack(CK_URGE_STOP, CK_WHY_TIME_LIMIT, 0);
	if (save_signalled(ck) && !ck->save)
		return ck_urge_pack(CK_URGE_SAVE, CK_WHY_SAVE_SIGNAL, 0);
	if (!ck->save && ck->requests && ck_requests_saves(ck->requests) != ck->requests_seen)
		return ck_urge_pack(CK_URGE_SAVE, CK_WHY_SAVE_REQUEST, 0);
	if (ck_is_root(ck) && interval_due(ck, step))
		return ck_urge_pack(CK_URGE_SAVE, CK_WHY_INTERVAL, 0);
	return 0;
}

/* Time since the last call, kept as the longest of the recent ones: it fades by a tenth per call. */
static void measure_gap(ckpt *ck)
{
	double gap = ck->last_call_at > 0 ? ck_now() - ck->last_call_at : 0;

	ck->longest_gap *= 0.9;
	if (gap > ck->longest_gap)
		ck->longest_gap = gap;
}

static bool is_saved(const ckpt *ck, uint64_t step)
{
	return ck->has_saved && ck->saved == step;
}

/* Collective: save this step, unless it is saved already, and wait for the commit. */
static int save_and_wait(ckpt *ck, uint64_t step, struct ck_error *err)
{
	int rc = ck_save_finish(ck, err);

	/* What became of an earlier save does not matter when this one succeeds. */
	if (rc == CK_EFENCED || rc == CK_EPEER)
		return rc;
	if (is_saved(ck, step))
		return 0;
	rc = ck_save_start(ck, step, false, err);
	return rc ? rc : ck_save_finish(ck, err);
}

/* Did this save fail in a way that leaves the run as it was? */
static bool goes_on(int code)
{
	return code != CK_EPEER && code != CK_EFENCED;
}

/*
 * Collective: save this step beside training. Where that is not possible it is over already, and *outcome is 0
 * or why it failed.
 */
static int save_beside(ckpt *ck, uint64_t step, int *outcome, struct ck_error *err)
{
	int rc = ck_save_start(ck, step, true, err);

	*outcome = 0;
	if (rc || ck->save->staged)
		return rc;
	*outcome = ck_save_finish(ck, err);
	return goes_on(*outcome) ? 0 : *outcome;
}

int ck_leave_mark(const ckpt *ck, uint64_t step, enum ck_want want, const char *reason,
		  struct ck_error *err)
{
	struct ck_mark mark = {
		.want = want,
		.job = ck->set.job,
		.step = step,
		.save_ms = (uint64_t)(1000 * ck->times.all_seconds),
		.save_bytes = ck->times.all_bytes,
	};

	snprintf(mark.reason, sizeof(mark.reason), "%s", reason);
	return ck_mark_store(ck->io, ck->set.dir, ck->generation, &mark, err);
}

/*
 * Rank 0: leave word for the requeue, which only the owner may ask for: this job has nothing to come back to when
 * another one has the run. Returns 0; CK_EFENCED.
 */
static int mark_stop(const ckpt *ck, uint64_t step, enum ck_why why, const char *reason,
		     struct ck_error *err)
{
	enum ck_want want = why == CK_WHY_STOP_REQUEST ? CK_WANT_STOP : CK_WANT_REQUEUE;
	struct ck_error trouble;
	int rc = ck_owner_check(ck->io, ck->set.dir, ck->generation, err);

	if (rc == CK_EFENCED || !ck_leave_mark(ck, step, want, reason, &trouble))
		return rc == CK_EFENCED ? rc : 0;
	/* A newer owner sweeps away what was about to be renamed. */
	rc = ck_owner_check(ck->io, ck->set.dir, ck->generation, err);
	if (rc != CK_EFENCED)
		ck_log(ck, "warning: the mark for the requeue could not be written: %s",
		       trouble.text);
	return rc == CK_EFENCED ? rc : 0;
}

/* Collective: save, leave word for the requeue, and only then let any rank go. */
static int stop(ckpt *ck, uint64_t step, enum ck_why why, unsigned detail, struct ck_error *err)
{
	char reason[64];
	int rc = save_and_wait(ck, step, err);

	ck_why_text(why, detail, reason);
	if (!goes_on(rc))
		return rc;
	rc = ck_is_root(ck) ? mark_stop(ck, step, why, reason, err) : 0;
	if ((rc = ck_comm_agree(&ck->comm, rc, err)))
		return rc;
	ck->stopped = true;
	if (ck->has_saved)
		ck_log(ck, "stopping at step %" PRIu64 " (%s): it resumes from step %" PRIu64, step,
		       reason, ck->saved);
	else
		ck_log(ck, "stopping at step %" PRIu64 " (%s): nothing could be saved", step,
		       reason);
	ck_note(ck, "stop", step, reason);
	return CKPT_STOP;
}

/* --ckpt-fail=error: several failed saves in a row are an error of the program. Alike on all ranks. */
static int too_many_failures(const ckpt *ck, struct ck_error *err)
{
	if (!ck->set.fail_error || ck->failed_saves < FAILURES_MAX)
		return 0;
	return ck_fail(err, CK_EIO, "%u saves in a row have failed%s%s", ck->failed_saves,
		       *ck->last_failure ? ", the last: " : "", ck->last_failure);
}

/* Collective: act on what was said in this call. */
static int act(ckpt *ck, uint64_t step, const struct ck_say *said, struct ck_error *err)
{
	enum ck_urge what;
	enum ck_why why;
	unsigned detail;
	int outcome, rc = ck_save_conclude(ck, said->result, err);

	ck_urge_unpack(said->urge, &what, &why, &detail);
	if (!rc && what != CK_URGE_STOP)
		rc = too_many_failures(ck, err);
	if (rc || what == CK_URGE_NONE)
		return rc;
	if (what == CK_URGE_STOP)
		return stop(ck, step, why, detail, err);
	if (ck->save)
		return 0;
	ck->saves_seen = ck_signals_saves();
	if (why == CK_WHY_SAVE_SIGNAL)
		ck->signalled_at = ck_now();
	ck->requests_seen = ck->requests ? ck_requests_saves(ck->requests) : 0;
	return is_saved(ck, step) ? 0 : save_beside(ck, step, &outcome, err);
}

/* Collective: one call's part of the agreement, and what follows from it. Most calls have none. */
static int agree_and_act(ckpt *ck, uint64_t step, struct ck_error *err)
{
	struct ck_say mine = {0}, said;
	int rc = ck_agreement_collect(&ck->comm, &ck->agreement, &said, err);
	bool due;

	if (!rc)
		rc = act(ck, step, &said, err);
	if (rc)
		return rc;
	due = ck_agreement_due(&ck->agreement, step);
	if (due || ck->save)
		rc = ck_save_progress(ck, err);
	if (due)
		mine = (struct ck_say){.urge = urge(ck, step), .result = ck_save_result(ck)};
	if (!rc)
		rc = ck_agreement_post(&ck->comm, &ck->agreement, step,
				       (uint64_t)(ck->longest_gap * 1e6), &mine, &said, err);
	return rc ? rc : act(ck, step, &said, err);
}

/* Collective: nothing under way, neither an agreement nor a save. Returns 0; CK_EFENCED; CK_EPEER. */
static int settle(ckpt *ck, struct ck_error *err)
{
	struct ck_say said;
	int rc = ck_agreement_collect(&ck->comm, &ck->agreement, &said, err);

	if (!rc)
		rc = ck_save_conclude(ck, said.result, err);
	if (!rc)
		rc = ck_save_finish(ck, err);
	return goes_on(rc) ? 0 : rc;
}

/* What every collective call begins with: false to go on, else return *answer. */
static bool is_over(ckpt *ck, int *answer)
{
	if (ck_is_idle(ck, answer))
		return true;
	*answer = ck->stopped ? CKPT_STOP : 0;
	return *answer;
}

/* Memory that a failed restore has left, or that never was the run's, is no state of it. Alike on all ranks. */
static int may_save(ckpt *ck, struct ck_error *err)
{
	if (!ck->no_saves.code)
		return 0;
	if (!ck->no_saves_told)
		ck_log(ck, "nothing is saved: %s", ck->no_saves.text);
	ck->no_saves_told = true;
	*err = ck->no_saves;
	return err->code;
}

static int check_step(ckpt *ck, uint64_t step, struct ck_error *err)
{
	if (step > CK_STEP_MAX)
		return ck_fail(err, CK_EARG, "step %" PRIu64 ": beyond 2^53 - 1", step);
	if (step < ck->step)
		return ck_fail(err, CK_EARG, "step %" PRIu64 " is below the last one, %" PRIu64,
			       step, ck->step);
	return 0;
}

int ckpt_step(ckpt *ck, uint64_t step)
{
	struct ck_error err = CK_ERROR_INIT;
	int rc;

	if (is_over(ck, &rc))
		return rc;
	if ((rc = may_save(ck, &err)) || (rc = check_step(ck, step, &err)))
		return ck_keep(ck, rc, &err);
	measure_gap(ck);
	ck->step = step;
	rc = agree_and_act(ck, step, &err);
	ck->last_call_at = ck_now();
	return rc < 0 ? ck_keep(ck, rc, &err) : rc;
}

/* Collective: a checkpoint of different steps would be a false one. */
static int same_step(ckpt *ck, uint64_t step, struct ck_error *err)
{
	uint64_t words[] = {step, ~step};
	int rc = ck_comm_allreduce_max(&ck->comm, words, 2, err);

	if (rc || words[0] == ~words[1])
		return rc;
	return ck_fail(err, CK_EARG,
		       "ckpt_save: ranks are at different steps, %" PRIu64 " to %" PRIu64,
		       ~words[1], words[0]);
}

int ckpt_save(ckpt *ck, uint64_t step)
{
	struct ck_error err = CK_ERROR_INIT;
	int outcome = 0, rc;

	if (is_over(ck, &rc))
		return rc;
	rc = may_save(ck, &err);
	if (!rc)
		rc = check_step(ck, step, &err);
	if (!rc)
		rc = settle(ck, &err);
	if (!rc)
		rc = same_step(ck, step, &err);
	if (!rc) {
		ck->step = step;
		rc = is_saved(ck, step) ? 0 : save_beside(ck, step, &outcome, &err);
	}
	rc = rc ? rc : outcome;
	ck->last_call_at = 0; /* the next gap is no step's length */
	return rc < 0 ? ck_keep(ck, rc, &err) : rc;
}

int ckpt_wait(ckpt *ck)
{
	struct ck_error err = CK_ERROR_INIT;
	struct ck_say said;
	int rc;

	if (is_over(ck, &rc))
		return rc < 0 ? rc : 0;
	rc = ck_agreement_collect(&ck->comm, &ck->agreement, &said, &err);
	if (!rc)
		rc = ck_save_finish(ck, &err);
	ck->last_call_at = 0;
	return rc < 0 ? ck_keep(ck, rc, &err) : rc;
}

int ckpt_prepare(ckpt *ck)
{
	struct ck_error err = CK_ERROR_INIT;
	int rc;

	if (is_over(ck, &rc))
		return rc < 0 ? rc : 0;
	rc = settle(ck, &err);
	if (!rc)
		rc = ck_save_reserve(ck, &err);
	return ck_keep(ck, rc, &err);
}

int ckpt_restore(ckpt *ck, uint64_t *step)
{
	struct ck_error err = CK_ERROR_INIT;
	enum ckpt_restored result;
	int rc;

	if (ck && !ck->dead && !step)
		return ck_keep(ck,
			       ck_fail(&err, CK_EARG,
				       "ckpt_restore: step is NULL: the loop begins with it"),
			       &err);
	if (is_over(ck, &rc)) {
		if (rc == 0)
			*step = 0;
		return rc < 0 ? rc : CKPT_FRESH;
	}
	rc = settle(ck, &err);
	if (!rc)
		rc = ck_restore_now(ck, &result, &err);
	ck->no_saves = (struct ck_error)CK_ERROR_INIT;
	ck->no_saves_told = false;
	if (rc) {
		ck_log(ck, "cannot resume: %s", err.text);
		ck_fail(&ck->no_saves, rc, "the restore failed: %s", err.text);
		return ck_keep(ck, rc, &err);
	}
	*step = ck->step;
	return (int)result;
}

/* Does run.json say so, whatever the answer to writing it was? */
static bool is_marked_complete(const ckpt *ck)
{
	struct ck_run run;

	return ck_run_load(ck->io, ck->set.dir, &run, NULL) == 0 && run.complete &&
	       run.complete_step == ck->step;
}

/* Rank 0: note in run.json that there is nothing left to do. */
static int mark_complete(ckpt *ck, struct ck_error *err)
{
	struct ck_error why = CK_ERROR_INIT;
	struct ck_run run = ck->run;
	int rc = ck_owner_check(ck->io, ck->set.dir, ck->generation, err);

	if (rc)
		return rc;
	run.committed = run.complete = true;
	run.complete_step = ck->step;
	rc = ck_run_store(ck->io, ck->set.dir, &run, &why);
	if (rc && is_marked_complete(ck)) {
		ck_log(ck, "warning: marked as complete, but not known to be on disk: %s",
		       why.text);
		rc = 0;
	}
	if (!rc)
		ck->run = run;
	return rc ? ck_fail(err, rc, "%s", why.text) : 0;
}

/* Rank 0: the mark of a stop asks for a requeue, and a finished run needs none. */
static void mark_finished(ckpt *ck)
{
	struct ck_error err = CK_ERROR_INIT;

	if (ck->stopped && ck_leave_mark(ck, ck->step, CK_WANT_STOP, "complete", &err))
		ck_log(ck, "warning: the mark for the requeue could not be taken back: %s",
		       err.text);
}

int ckpt_complete(ckpt *ck)
{
	struct ck_error err = CK_ERROR_INIT;
	int rc;

	if (ck_is_idle(
		    ck,
		    &rc)) /* but not when it was told to stop: it may have finished with that step */
		return rc;
	rc = may_save(ck, &err);
	if (!rc)
		rc = settle(ck, &err);
	if (!rc)
		rc = save_and_wait(ck, ck->step, &err);
	if (!rc) {
		rc = ck_is_root(ck) ? mark_complete(ck, &err) : 0;
		if (ck_is_root(ck) && !rc)
			mark_finished(ck);
		rc = ck_comm_agree(&ck->comm, rc, &err);
	}
	if (!rc) {
		ck_log(ck, "complete at step %" PRIu64, ck->step);
		ck_note(ck, "complete", ck->step, "");
	}
	return ck_keep(ck, rc, &err);
}

int ckpt_should_stop(const ckpt *ck)
{
	return ck && !ck->off && (ck->dead || ck->stopped || ck_signals_stop());
}

int ckpt_alive(ckpt *ck)
{
	struct ck_error err = CK_ERROR_INIT;
	int rc;

	if (ck_is_idle(ck, &rc))
		return ck ? rc : 0;
	rc = ck_comm_listen(&ck->comm, &err);
	return rc < 0 ? ck_keep(ck, rc, &err) : 0;
}
