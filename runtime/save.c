/* A save: what each rank stores, the transaction around it, and what it means for the handle. */
#include "handle.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "commit.h"
#include "rotate.h"

#define WRITER "slurm-ckpt " CK_VERSION

/* What rank 0 tells the others when a save begins. */
struct announcement {
	struct ck_step_id id;
	char save_id[CK_RUN_ID_HEX + 1];
};

static bool is_known_bad(const ckpt *ck, struct ck_step_id id)
{
	for (size_t i = 0; i < ck->nbad; i++)
		if (ck_step_id_cmp(&ck->bad[i], &id) == 0)
			return true;
	return false;
}

int ck_mark_bad(ckpt *ck, struct ck_step_id id, struct ck_error *err)
{
	struct ck_step_id *more;

	if (is_known_bad(ck, id))
		return 0;
	more = realloc(ck->bad, (ck->nbad + 1) * sizeof(*more));
	if (!more)
		return ck_fail_nomem(err, (ck->nbad + 1) * sizeof(*more));
	more[ck->nbad++] = id;
	ck->bad = more;
	return 0;
}

/* Once per generation: which of the checkpoints we found are not even whole? */
static int size_up(ckpt *ck, const struct ck_catalog *catalog, struct ck_error *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < catalog->count; i++) {
		struct ck_manifest manifest = {0};
		int bad = ck_step_load(ck->io, ck->set.dir, catalog->steps[i], &manifest, NULL);

		if (!bad)
			bad = ck_step_sized(ck->io, ck->set.dir, &manifest, -1, NULL);
		ck_manifest_fini(&manifest);
		if (bad)
			rc = ck_mark_bad(ck, catalog->steps[i], err);
	}
	ck->sized_up = rc == 0;
	return rc;
}

static int delete_step(ckpt *ck, struct ck_step_id id, struct ck_error *err)
{
	int rc = ck_owner_check(ck->io, ck->set.dir, ck->generation, err);

	if (!rc)
		rc = ck_unpublish(ck->io, ck->set.dir, id, err);
	return rc ? rc : ck_unpublished_remove(ck->io, ck->set.dir, id, err);
}

static int rotate_steps(ckpt *ck, const struct ck_catalog *catalog, bool save_to_come,
			struct ck_error *err)
{
	struct ck_rotate_step *steps = calloc(catalog->count + 1, sizeof(*steps));
	bool *doomed = calloc(catalog->count + 1, sizeof(*doomed));
	int rc = 0;

	if (!steps || !doomed) {
		rc = ck_fail_nomem(err, catalog->count * sizeof(*steps));
		goto out;
	}
	for (size_t i = 0; i < catalog->count; i++) {
		steps[i].id = catalog->steps[i];
		steps[i].bad = is_known_bad(ck, catalog->steps[i]);
		steps[i].protected = ck->resumed && !ck->saved_here &&
				     ck_step_id_cmp(&ck->resumed_id, &catalog->steps[i]) == 0;
	}
	ck_rotate_decide(steps, catalog->count, ck->set.keep, save_to_come, doomed);
	for (size_t i = catalog->count; !rc && i-- > 0;)
		if (doomed[i])
			rc = delete_step(ck, steps[i].id, err);
out:
	free(steps);
	free(doomed);
	return rc;
}

/* Rank 0: make room before a save, or clear up after it. */
static int rotate(ckpt *ck, bool save_to_come, struct ck_error *err)
{
	struct ck_catalog catalog = {0};
	int rc = ck_catalog_load(ck->io, ck->set.dir, &catalog, err);

	if (!rc && !ck->sized_up)
		rc = size_up(ck, &catalog, err);
	if (!rc)
		rc = rotate_steps(ck, &catalog, save_to_come, err);
	ck_catalog_fini(&catalog);
	return rc;
}

/* Rank 0: the manifest without files. Texts are the handle's; only files will be the manifest's own. */
static void describe(const ckpt *ck, const struct announcement *a, struct ck_manifest *m)
{
	*m = (struct ck_manifest){
		.world_size = (uint32_t)ck->comm.table.size,
		.id = a->id,
		.wall_clock_seconds = ck->wall_clock_before + ck_now() - ck->opened_at,
		.job = ck->set.job,
		.created = time(NULL),
		.writer = WRITER,
		.items = ck->dealt.deal.table,
		.user = ck->user,
	};
	strcpy(m->run_id, ck->run.run_id);
	strcpy(m->run, ck->run.name);
	strcpy(m->save_id, a->save_id);
}

/* All of the records are in: the files of the manifest, in order. */
static int collect(const ckpt *ck, const struct announcement *a, const struct ck_per_rank *texts,
		   struct ck_manifest *m, struct ck_error *err)
{
	for (int r = 0; r < ck->comm.table.size; r++) {
		struct ck_record record = {0};
		struct ck_file *files;
		int rc = ck_record_parse("record", (const char *)texts->data + texts->offsets[r],
					 texts->offsets[r + 1] - texts->offsets[r], &record, err);

		if (!rc && (record.rank != (uint32_t)r || strcmp(record.save_id, a->save_id) != 0))
			rc = ck_fail(err, CK_EFORMAT, "record of rank %d is of another save", r);
		if (!rc) {
			files = realloc(m->files, (m->nfiles + record.nfiles) * sizeof(*files));
			if (files) {
				memcpy(files + m->nfiles, record.files,
				       record.nfiles * sizeof(*files));
				m->files = files;
				m->nfiles += record.nfiles;
				record.nfiles = 0; /* their chunk tables have moved */
			} else {
				rc = ck_fail_nomem(err,
						   (m->nfiles + record.nfiles) * sizeof(*files));
			}
		}
		ck_record_fini(&record);
		if (rc)
			return rc;
	}
	return 0;
}

static void free_files(struct ck_manifest *m)
{
	for (size_t i = 0; i < m->nfiles; i++)
		free(m->files[i].chunk_crc32);
	free(m->files);
}

/* Rank 0: publish. Its warnings (`latest`, run.json) do not undo the commit. */
static int commit(ckpt *ck, const struct announcement *a, const struct ck_per_rank *texts,
		  struct ck_error *err)
{
	struct ck_error warning = CK_ERROR_INIT;
	struct ck_manifest manifest;
	int rc;

	describe(ck, a, &manifest);
	rc = collect(ck, a, texts, &manifest, err);
	if (!rc)
		rc = ck_save_commit(ck->io, ck->set.dir, &manifest, &warning, err);
	if (!rc && warning.code) {
		ck_log(ck, "warning: step %" PRIu64 " is committed, but %s", a->id.step,
		       warning.text);
		ck_note(ck, "warning", a->id.step, warning.text);
	}
	free_files(&manifest);
	return rc;
}

/* Rank 0: decide the save's identity, after room was made. */
static int announce(ckpt *ck, uint64_t step, struct announcement *a, struct ck_error *err)
{
	struct ck_error ignored = CK_ERROR_INIT;
	int rc = rotate(ck, true, &ignored);

	if (rc == CK_EFENCED) {
		*err = ignored;
		return rc;
	}
	if (rc)
		ck_log(ck, "warning: old checkpoints could not be deleted: %s", ignored.text);
	a->id = (struct ck_step_id){.step = step, .generation = ck->generation};
	return ck_random_hex(a->save_id, CK_RUN_ID_HEX / 2, err);
}

static int begin(ckpt *ck, const struct announcement *a, struct ck_error *err)
{
	char staging[PATH_MAX];
	struct ck_manifest manifest;
	int rc = ck_save_begin(ck->io, ck->set.dir, a->id, staging, err);

	if (rc || !ck_is_root(ck))
		return rc;
	describe(ck, a, &manifest);
	return ck_save_announce(ck->io, ck->set.dir, &manifest, err);
}

/* This rank's part: plan, write, record. */
static int write_mine(ckpt *ck, const struct announcement *a, struct ck_buf *text,
		      struct ck_error *err)
{
	uint32_t rank = (uint32_t)ck->comm.table.rank;
	struct ck_rank_bytes *rank_bytes = NULL;
	struct ck_stored *stored = NULL;
	struct ck_record record = {0};
	struct ck_plan plan = {0};
	size_t count = 0, nrank = 0;
	int rc;

	rc = ck_registry_stored(&ck->registry, &ck->dealt.duty, rank, &stored, &count, &rank_bytes,
				&nrank, err);
	if (!rc)
		rc = ck_shard_plan(rank, stored, count, &plan, err);
	if (!rc)
		rc = ck_save_write(ck->io, ck->set.dir, a->id, a->save_id, rank, &plan,
				   ck->registry.list.flat, &record, err);
	if (!rc)
		rc = ck_record_print(&record, text, err);
	ck_record_fini(&record);
	ck_plan_fini(&plan);
	ck_rank_bytes_free(rank_bytes, nrank);
	free(stored);
	return rc;
}

/* Collective: the whole transaction. The same answer on all ranks. */
static int transact(ckpt *ck, uint64_t step, struct announcement *a, struct ck_error *err)
{
	struct ck_per_rank texts = CK_PER_RANK_INIT;
	struct ck_buf text = CK_BUF_INIT;
	int rc = ck_is_root(ck) ? announce(ck, step, a, err) : 0;

	if ((rc = ck_comm_agree(&ck->comm, rc, err)) ||
	    (rc = ck_comm_bcast(&ck->comm, 0, a, sizeof(*a), err)))
		return rc;
	rc = begin(ck, a, err);
	if ((rc = ck_comm_agree(&ck->comm, rc, err)))
		return rc;
	rc = write_mine(ck, a, &text, err);
	rc = ck_comm_agree(&ck->comm, rc, err);
	if (!rc)
		rc = ck_comm_gather(&ck->comm, 0, text.data, text.len, &texts, err);
	ck_buf_fini(&text);
	if (rc)
		return rc;
	if (ck_is_root(ck))
		rc = commit(ck, a, &texts, err);
	ck_per_rank_fini(&texts);
	return ck_comm_agree(&ck->comm, rc, err);
}

static void after_success(ckpt *ck, const struct announcement *a, double started)
{
	struct ck_error err = CK_ERROR_INIT;
	char took[16];

	ck->saved = a->id.step;
	ck->has_saved = ck->saved_here = true;
	ck->failed_saves = 0;
	ck->last_failure[0] = '\0';
	ck->last_save_at = ck_now();
	ck->save_seconds = ck->last_save_at - started;
	ck_log(ck, "saved step %" PRIu64 " in %s", a->id.step,
	       ck_format_seconds(ck->save_seconds, took));
	ck_note(ck, "saved", a->id.step, "");
	if (!ck_is_root(ck))
		return;
	if (ck_save_tidy(ck->io, ck->set.dir, a->id, &err) || rotate(ck, false, &err))
		ck_log(ck, "warning: clearing up after step %" PRIu64 ": %s", a->id.step, err.text);
}

static void after_failure(ckpt *ck, uint64_t step, int code, const struct ck_error *err)
{
	struct ck_step_id id = {.step = step, .generation = ck->generation};

	ck->failed_saves++;
	ck->last_save_at = ck_now(); /* tried again at its time, not at once */
	if (ck_is_root(ck) && code != CK_EFENCED && code != CK_EPEER)
		ck_save_abandon(ck->io, ck->set.dir, id, NULL);
	ck_note(ck, "failed", step, err->text);
	if (strcmp(ck->last_failure, err->text) == 0)
		return;
	snprintf(ck->last_failure, sizeof(ck->last_failure), "%s", err->text);
	ck_log(ck, "save of step %" PRIu64 " failed: %s", step, err->text);
}

int ck_save_now(ckpt *ck, uint64_t step, struct ck_error *err)
{
	struct announcement a = {.id = {.step = step}};
	double started = ck_now();
	int rc;

	if ((rc = ck_deal_refresh(ck, err)))
		return rc;
	rc = transact(ck, step, &a, err);
	if (rc)
		after_failure(ck, step, rc, err);
	else
		after_success(ck, &a, started);
	return rc;
}
