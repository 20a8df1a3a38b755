/* The training thread's side of a save: gather, copy aside, pass messages, learn how it ended. */
#include "save.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "parallel.h"

#define WRITER "slurm-ckpt " CK_VERSION

/* A report to rank 0: this, then the text of the record or of the failure. */
struct report {
	uint64_t number;
	int64_t code; /* 0: a record; REPORT_IN_FILE; < 0: a failure */
};

#define REPORT_IN_FILE 1 /* the record is too long for a message: read the file */

/* ---- starting ---- */

/* Alike on all ranks without a message: the claim's nonce and the save's number. */
static int make_save_id(const ckpt *ck, struct ck_save *save, struct ck_error *err)
{
	char seed[CK_RUN_ID_HEX + 64], hex[CK_SHA256_HEX + 1];
	int n = snprintf(seed, sizeof(seed), "%s %" PRIu64, ck->nonce, save->number);
	int rc = ck_sha256_hex(seed, (size_t)n, hex, err);

	if (!rc)
		snprintf(save->head.save_id, sizeof(save->head.save_id), "%.*s", CK_RUN_ID_HEX,
			 hex);
	return rc;
}

static int describe(const ckpt *ck, struct ck_save *save, struct ck_error *err)
{
	struct ck_manifest *m = &save->head;

	m->world_size = (uint32_t)ck->comm.table.size;
	m->wall_clock_seconds = ck->wall_clock_before + ck_now() - ck->opened_at;
	m->job = ck->set.job;
	m->created = time(NULL);
	strcpy(m->writer, WRITER);
	strcpy(m->run_id, ck->run.run_id);
	strcpy(m->run, ck->run.name);
	m->items = ck->dealt.deal.table; /* stays as it is while a save is under way */
	if (ck->user && !(m->user = strdup(ck->user)))
		return ck_fail_nomem(err, strlen(ck->user));
	return 0;
}

/* What this rank stores, as it is now. */
static int gather(ckpt *ck, struct ck_save *save, bool staged, struct ck_error *err)
{
	const char *flat = ck->registry.list.flat;
	size_t count = 0;
	int rc;

	if (flat && !(save->flat = strdup(flat)))
		return ck_fail_nomem(err, strlen(flat));
	if ((rc = make_save_id(ck, save, err)) ||
	    (ck_is_root(ck) && (rc = describe(ck, save, err))))
		return rc;
	rc = ck_registry_stored(&ck->registry, &ck->dealt.duty, save->rank, &save->stored, &count,
				&save->rank_bytes, &save->nrank_bytes, err);
	if (!rc)
		rc = ck_shard_plan(save->rank, (uint32_t)ck->comm.table.size, save->stored, count,
				   &save->plan, err);
	if (!rc && (staged || ck_registry_has_copiers(&ck->registry)))
		rc = ck_stage_copy(&ck->stage, &save->plan, &ck->registry, err);
	return rc;
}

static void save_free(struct ck_save *save)
{
	ck_plan_fini(&save->plan);
	ck_rank_bytes_free(save->rank_bytes, save->nrank_bytes);
	ck_buf_fini(&save->record);
	free(save->stored);
	free(save->flat);
	free(save->head.user);
	free(save);
}

int ck_save_reserve(ckpt *ck, struct ck_error *err)
{
	struct ck_save *save = calloc(1, sizeof(*save));
	int rc;

	if (!save)
		return ck_fail_nomem(err, sizeof(*save));
	save->rank = (uint32_t)ck->comm.table.rank;
	rc = gather(ck, save, true, err);
	save_free(save);
	return rc;
}

/* A second thread where the rank has CPUs for it: one alone can be slower than the disk. */
struct ck_shard_options ck_transfer_options(ckpt *ck)
{
	return (struct ck_shard_options){.threads = ck_parallel_cpus() >= 2 ? 2 : 1,
					 .direct = true,
					 .sha = ck->set.sha,
					 .notes = &ck->notes};
}

int ck_save_start(ckpt *ck, uint64_t step, bool staged, struct ck_error *err)
{
	struct ck_save *save;
	int rc = ck_deal_refresh(ck, err);

	if (rc)
		return rc;
	save = calloc(1, sizeof(*save));
	if (!save) /* the others have begun: there is no way back for this rank alone */
		return ck_comm_die(&ck->comm, err, "rank %d: out of memory", ck->comm.table.rank);
	save->io = ck->io;
	save->dir = ck->set.dir;
	save->options = ck_transfer_options(ck);
	save->rank = (uint32_t)ck->comm.table.rank;
	save->number = ++ck->saves_started;
	save->head.id = (struct ck_step_id){.step = step, .generation = ck->generation};
	save->started = ck->last_save_at = ck_now();
	ck->tried = step;
	ck->skipped = 0;
	save->staged = staged;
	save->refused = gather(ck, save, staged, &save->error);
	if (ck_is_root(ck)) {
		save->records = ck->records;
		save->rotation = &ck->rotation;
		ck_records_begin(ck->records, save->number, save->head.id, save->head.save_id);
	}
	ck->save = save;
	ck->stall_seconds = ck_now() - save->started;
	if (ck_background_post(ck->background, ck_save_run, save, err)) {
		save_free(save);
		ck->save = NULL;
		return ck_comm_die(&ck->comm, err, "rank %d: out of memory", ck->comm.table.rank);
	}
	return 0;
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
	if (news & CK_NOTE_NO_QUEUE)
		ck_log(ck, "note: no io_uring here: threads write instead");
	ck->notes_told |= news;
}

static void say_saved(ckpt *ck, const struct ck_save *save)
{
	char took[16], text[96];

	ck->save_seconds = save->took;
	text[0] = '\0';
	if (save->staged)
		snprintf(text, sizeof(text), ", training waited %.0f ms", 1000 * ck->stall_seconds);
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

/* The same text but for numbers: steps and offsets differ from try to try. */
static bool same_cause(const char *a, const char *b)
{
	for (; *a && *b; a++, b++) {
		a += strspn(a, "0123456789");
		b += strspn(b, "0123456789");
		if (*a != *b || !*a)
			break;
	}
	return *a == *b;
}

/* Each cause is told once. */
static void say_failed(ckpt *ck, const struct ck_save *save)
{
	ck_note(ck, "failed", save->head.id.step, save->outcome.text);
	if (same_cause(ck->last_failure, save->outcome.text))
		return;
	snprintf(ck->last_failure, sizeof(ck->last_failure), "%s", save->outcome.text);
	ck_log(ck, "save of step %" PRIu64 " failed: %s", save->head.id.step, save->outcome.text);
}

/* The save is over on all ranks; `code` is 0 or why it failed. */
static void close_save(ckpt *ck, int code)
{
	struct ck_save *save = ck->save;

	/* Rank 0 may have read our record's file an instant before our own flag. */
	while (!atomic_load(&save->written))
		sched_yield();
	save->took = ck_now() - save->started;
	if (code) {
		ck->failed_saves++;
		if (ck_is_root(ck))
			say_failed(ck, save);
	} else {
		ck->saved = save->head.id.step;
		ck->has_saved = ck->saved_here = true;
		ck->failed_saves = 0;
		ck->last_failure[0] = '\0';
		if (ck_is_root(ck))
			say_saved(ck, save);
	}
	save_free(save);
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
		save_free(ck->save);
	ck->save = NULL;
}
