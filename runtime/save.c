/* The training thread's side of a save under way: pass messages, learn how it ended. */
#include "save.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A report to rank 0: this, then the text of the record or of the failure. */
struct report {
	uint64_t number;
	int64_t code; /* 0: a record; REPORT_IN_FILE; < 0: a failure */
};

#define REPORT_IN_FILE 1 /* the record is too long for a message: read the file */

void ck_save_free(struct ck_save *save)
{
	ck_plan_fini(&save->plan);
	ck_rank_bytes_free(save->rank_bytes, save->nrank_bytes);
	ck_buf_fini(&save->record);
	free(save->stored);
	free(save->flat);
	free(save->head.user);
	free(save);
}

/* ---- messages ---- */

/* Send the report: a record, or why there is none. */
static int send_report(ckpt *ck, const struct ck_save *save, int written, struct ck_error *err)
{
	const char *text = written < 0 ? save->error.text : save->record.data;
	size_t bytes = written < 0 ? strlen(text) : save->record.len;
	struct report report = {.number = save->number, .code = written < 0 ? written : 0};

	if (sizeof(report) + bytes > ck->report->capacity) {
		report.code = REPORT_IN_FILE;
		bytes = 0;
	}
	memcpy(ck->report->data, &report, sizeof(report));
	memcpy(ck->report->data + sizeof(report), text, bytes);
	return ck_parcel_send(&ck->comm, ck->report, sizeof(report) + bytes, 0, CK_TAG_RECORD, err);
}

/* Let rank 0 know, once there is something to know. */
static int tell(ckpt *ck, struct ck_save *save, struct ck_error *err)
{
	int written = atomic_load(&save->written), rc;

	if (!written || save->told)
		return 0;
	rc = ck_parcel_test(&ck->comm, ck->report, err);
	if (rc != 1) /* the last one is still under way, or the communicator is dead */
		return rc;
	save->told = true;
	return send_report(ck, save, written, err);
}

static void take_report(ckpt *ck, const struct ck_parcel *parcel)
{
	uint32_t rank = (uint32_t)parcel->message.peer;
	size_t bytes = parcel->message.bytes;
	char text[CK_ERROR_TEXT];
	const char *rest = (const char *)parcel->data + sizeof(struct report);
	struct report report;

	if (bytes < sizeof(report))
		return;
	memcpy(&report, parcel->data, sizeof(report));
	bytes -= sizeof(report);
	if (report.code == 0) {
		ck_records_put(ck->records, report.number, rank, rest, bytes);
	} else if (report.code < 0) {
		snprintf(text, sizeof(text), "%.*s", (int)bytes, rest);
		ck_records_fail(ck->records, report.number, rank, (int)report.code, text);
	} /* else the background thread reads the file */
}

/* Rank 0: one receive is always open. */
static int listen(ckpt *ck, struct ck_error *err)
{
	int rc = ck_parcel_test(&ck->comm, ck->report, err);

	while (rc == 1) {
		if (ck->listening)
			take_report(ck, ck->report);
		ck->listening = true;
		rc = ck_parcel_recv(&ck->comm, ck->report, CKPT_ANY_PEER, CK_TAG_RECORD, err);
		if (!rc)
			rc = ck_parcel_test(&ck->comm, ck->report, err);
	}
	return rc;
}

int ck_save_progress(ckpt *ck, struct ck_error *err)
{
	if (ck->comm.table.size == 1)
		return 0;
	if (ck_is_root(ck))
		return listen(ck, err);
	return ck->save ? tell(ck, ck->save, err) : 0;
}

/* ---- the end ---- */

/* What became of save `number`, as one word: so that the largest is the latest. */
enum result { RESULT_COMMITTED = 1, RESULT_FAILED = 2, RESULT_FENCED = 3 };

uint64_t ck_save_result(const ckpt *ck)
{
	int ended;

	if (!ck->save || !ck_is_root(ck) || !(ended = atomic_load(&ck->save->ended)))
		return 0;
	return ck->save->number << 2 | (ended > 0             ? RESULT_COMMITTED
					: ended == CK_EFENCED ? RESULT_FENCED
							      : RESULT_FAILED);
}

/* What made the save slower than it might be, once. */
static void say_notes(ckpt *ck)
{
	unsigned news = atomic_load(&ck->notes) & ~ck->notes_told;

	if (news & CK_NOTE_BUFFERED)
		ck_log(ck,
		       "note: the file system of %s refuses direct I/O: writing through the "
		       "page cache",
		       ck->set.dir);
	if (news & CK_NOTE_NO_DIRECT)
		ck_log(ck,
		       "note: files could not be opened a second time, for direct I/O (too many "
		       "open files?): writing through the page cache");
	if (news & CK_NOTE_NO_QUEUE)
		ck_log(ck, "note: no io_uring here: threads write instead");
	ck->notes_told |= news;
}

static void say_saved(ckpt *ck, const struct ck_save *save)
{
	double rate = save->took > 0 ? (double)save->most_bytes / save->took : 0;
	char took[16], bytes[16], speed[16], text[96];

	if (save->staged)
		snprintf(text, sizeof(text), ", training waited %.0f ms", 1000 * ck->stall_seconds);
	else
		snprintf(text, sizeof(text), ", the largest rank %s at %s/s",
			 ck_format_bytes(save->most_bytes, bytes),
			 ck_format_bytes((uint64_t)rate, speed));
	ck_log(ck, "saved step %" PRIu64 " in %s%s%s", save->head.id.step,
	       ck_format_seconds(save->took, took), text,
	       ck->skipped ? " (a save that fell due meanwhile was skipped)" : "");
	ck_note(ck, "saved", save->head.id.step, took);
	say_notes(ck);
	if (save->warning.code) {
		ck_log(ck, "warning: step %" PRIu64 " is committed, but %s", save->head.id.step,
		       save->warning.text);
		ck_note(ck, "warning", save->head.id.step, save->warning.text);
	}
}

/* Past a number at the beginning: steps, offsets and names of temporary files differ from try to try. */
static const char *past_number(const char *text)
{
	if (strncmp(text, ".tmp-", 5) == 0)
		return text + 5 + strspn(text + 5, "0123456789abcdef");
	return text + strspn(text, "0123456789");
}

/* The same text but for numbers. */
static bool same_cause(const char *a, const char *b)
{
	for (; *a && *b; a++, b++) {
		a = past_number(a);
		b = past_number(b);
		if (*a != *b || !*a)
			break;
	}
	return *a == *b;
}

/* Each cause is told once. */
static void say_failed(ckpt *ck, const struct ck_save *save)
{
	bool told = same_cause(ck->last_failure, save->outcome.text);

	ck_note(ck, "failed", save->head.id.step, save->outcome.text);
	snprintf(ck->last_failure, sizeof(ck->last_failure), "%s", save->outcome.text);
	if (!told)
		ck_log(ck, "save of step %" PRIu64 " failed: %s", save->head.id.step,
		       save->outcome.text);
}

/* The save is over on all ranks; `code` is 0 or why it failed. */
static void close_save(ckpt *ck, int code)
{
	struct ck_save *save = ck->save;

	/* Rank 0 may have read our record's file an instant before our own flag. */
	while (!atomic_load(&save->written))
		sched_yield();
	save->took = save->ended_at - save->started; /* it may be known a long step later only */
	if (code) {
		ck->failed_saves++;
		if (ck_is_root(ck))
			say_failed(ck, save);
	} else {
		ck->saved = save->head.id.step;
		ck->has_saved = ck->saved_here = true;
		ck->failed_saves = 0;
		ck_save_times_add(&ck->times, save->took, save->most_bytes, !save->staged);
		ck->last_failure[0] = '\0';
		if (ck_is_root(ck))
			say_saved(ck, save);
	}
	ck_save_free(save);
	ck->save = NULL;
}

static int fenced(const ckpt *ck, struct ck_error *err)
{
	return ck_fail(err, CK_EFENCED,
		       "%s: a newer generation than %" PRIu64
		       " has taken over this run: stop, and do not exit "
		       "with %d",
		       ck->set.dir, ck->generation, CKPT_EXIT_REQUEUE);
}

int ck_save_conclude(ckpt *ck, uint64_t result, struct ck_error *err)
{
	static const int codes[] = {0, 0, CK_EIO, CK_EFENCED};
	int code = codes[result & 3];

	if (!ck->save || result >> 2 != ck->save->number)
		return 0;
	close_save(ck, code);
	return code == CK_EFENCED ? fenced(ck, err) : 0;
}

static bool has_written(const ckpt *ck)
{
	return ck_is_root(ck) ? atomic_load(&ck->save->written) != 0 : ck->save->told;
}

static bool has_ended(const ckpt *ck)
{
	return atomic_load(&ck->save->ended) != 0;
}

/* Pass messages until something is so, as long as the disk takes; those who ask are answered meanwhile. */
static int wait_until(ckpt *ck, bool (*is_so)(const ckpt *ck), struct ck_error *err)
{
	struct ck_wait wait;
	int rc;

	ck_wait_begin(&wait, UINT64_MAX / 1000000);
	while (!(rc = ck_save_progress(ck, err)) && !is_so(ck))
		if ((rc = ck_wait_pause(&wait, &ck->comm, err)))
			break;
	return rc;
}

int ck_save_finish(ckpt *ck, struct ck_error *err)
{
	struct ck_error outcome = CK_ERROR_INIT;
	int rc;

	if (!ck->save)
		return 0;
	rc = wait_until(ck, has_written, err);
	if (!rc) /* rank 0 must not wait for the report of a rank that is silent: here it is named */
		rc = ck_comm_barrier(&ck->comm, err);
	if (!rc && ck_is_root(ck)) {
		rc = wait_until(ck, has_ended, err);
		outcome = ck->save->outcome;
	}
	if (!rc)
		rc = ck_comm_bcast(&ck->comm, 0, &outcome, sizeof(outcome), err);
	if (rc)
		return rc;
	close_save(ck, outcome.code);
	if (outcome.code)
		*err = outcome;
	return outcome.code;
}

void ck_save_drop(ckpt *ck)
{
	if (ck->save)
		ck_save_free(ck->save);
	ck->save = NULL;
}
