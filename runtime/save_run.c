/* The background thread's side of a save: nothing here knows of ranks but through files and records. */
#include "save.h"

#include <stdlib.h>

#include "commit.h"

/* When messages are late (the program is busy elsewhere), record files are looked at this often. */
#define FIRST_LOOK_MS 1000
#define LOOK_MS 500

/* What fails beside the save itself does not end it. The first such failure is told. */
static void warn(struct ck_save *save, const char *what, int rc, const struct ck_error *trouble)
{
	if (rc && !save->warning.code)
		ck_fail(&save->warning, rc, "%s%s", what, trouble->text);
}

/* Rank 0, with its staging directory made and before the first byte: room, and what it will be. */
static int announce(struct ck_save *save, struct ck_error *err)
{
	struct ck_error trouble = CK_ERROR_INIT;
	int rc = ck_rotation_before(save->rotation, save->head.id, &trouble);

	if (rc == CK_EFENCED)
		return ck_fail(err, rc, "%s", trouble.text);
	warn(save, "old checkpoints could not be deleted: ", rc, &trouble);
	return ck_save_announce(save->io, save->dir, &save->head, err);
}

static int write_shard(struct ck_save *save, struct ck_error *err)
{
	struct ck_step_id id = save->head.id;
	struct ck_record record = {0};
	int rc = ck_save_begin(save->io, save->dir, id, save->staging, err);

	if (!rc && save->rotation)
		rc = announce(save, err);
	if (!rc)
		rc = ck_save_write(save->io, save->dir, id, save->head.save_id, save->rank,
				   &save->plan, save->flat, &save->options, &record, err);
	if (!rc)
		rc = ck_record_print(&record, &save->record, err);
	ck_record_fini(&record);
	return rc;
}

/* Rank 0: until everybody has reported. */
static int wait_for_all(struct ck_save *save, struct ck_error *err)
{
	int rc = ck_records_wait(save->records, FIRST_LOOK_MS);

	while (rc == 0) {
		ck_records_look(save->records, save->io, save->dir);
		rc = ck_records_wait(save->records, LOOK_MS);
	}
	return rc > 0 ? 0 : ck_fail(err, CK_EPEER, "other ranks have died");
}

static int commit(struct ck_save *save, struct ck_error *err)
{
	struct ck_manifest manifest = save->head;
	struct ck_error trouble = CK_ERROR_INIT;
	int rc = ck_records_take(save->records, &manifest.files, &manifest.nfiles, err);

	if (rc)
		return rc;
	rc = ck_commit_directory(save->io, save->dir, save->staging, &manifest,
				 manifest.id.generation, &trouble, err);
	warn(save, "", trouble.code, &trouble);
	for (size_t i = 0; i < manifest.nfiles; i++)
		free(manifest.files[i].chunk_crc32);
	free(manifest.files);
	return rc;
}

/*
 * run.json says that there was a commit. Where somebody has removed it, as the listing before a save shows, nobody
 * but us knows what it said, and without it the next start is refused.
 */
static void note_commit(struct ck_save *save)
{
	struct ck_rotation *rotation = save->rotation;
	struct ck_error trouble = CK_ERROR_INIT;
	bool mended;
	int rc;

	if (rotation->noted)
		return;
	rotation->run->committed = true;
	rc = ck_run_mend(save->io, save->dir, rotation->run, &mended, &trouble);
	if (!rc && !mended)
		rc = ck_run_set_committed(save->io, save->dir, &trouble);
	rotation->noted = !rc;
	if (mended)
		rc = ck_fail(&trouble, CK_ENOENT,
			     "%s/" CK_RUN_FILE " was gone: it has been written again. Do not "
			     "remove it: without it the run does not start",
			     save->dir);
	warn(save, "", rc, &trouble);
}

/* Rank 0, after the commit: what run.json says, and what has become too old. */
static void conclude(struct ck_save *save)
{
	struct ck_error trouble = CK_ERROR_INIT;
	struct ck_rotation *rotation = save->rotation;
	int rc;

	note_commit(save);
	rc = ck_rotation_after(rotation, save->head.id, &trouble);
	warn(save, "clearing up: ", rc, &trouble);
}

/*
 * Rank 0: the save has failed on some rank. A successor takes the staging directory away, and the records: whatever
 * failed then, failed for that. Who is fenced or alone touches nothing more.
 */
static int give_up(struct ck_save *save, int rc, struct ck_error *err)
{
	struct ck_error fenced;

	if (rc == CK_EFENCED || rc == CK_EPEER)
		return rc;
	if (ck_owner_check(save->io, save->dir, save->head.id.generation, &fenced) == CK_EFENCED)
		return ck_fail(err, CK_EFENCED, "%s", fenced.text);
	save->rotation->no_space |= ck_error_is_space(err);
	if (ck_save_abandon(save->io, save->dir, save->head.id, NULL))
		save->rotation->leftovers = true; /* swept before the next one */
	return rc;
}

/* Rank 0: bring the save to its end, one way or the other. */
static int end(struct ck_save *save, struct ck_error *err)
{
	int rc = wait_for_all(save, err);

	if (!rc)
		rc = commit(save, err);
	if (!rc)
		conclude(save);
	else
		rc = give_up(save, rc, err);
	return rc;
}

/*
 * Rank 0: bring it to its end, and let it be known; nobody waits for the records to go, of which there are as many
 * as ranks. The save is the training thread's by then: it may be gone.
 */
static void end_and_tidy(struct ck_save *save)
{
	struct ck_rotation *rotation = save->rotation;
	struct ck_step_id id = save->head.id;
	int rc = end(save, &save->outcome);

	if (!rc) /* whatever was tried on the way: all ranks go by its code */
		save->outcome = (struct ck_error)CK_ERROR_INIT;
	save->ended_at = ck_now();
	atomic_store(&save->ended, rc ? rc : 1);
	if (!rc)
		ck_rotation_tidy(rotation, id);
}

void ck_save_run(void *arg)
{
	struct ck_save *save = arg;
	struct ck_records *records = save->records;
	int rc = save->refused ? save->refused : write_shard(save, &save->error);

	if (records && rc)
		ck_records_fail(records, save->number, save->rank, rc, save->error.text);
	else if (records)
		ck_records_put(records, save->number, save->rank, save->record.data,
			       save->record.len);
	/* From here on the save of a rank other than 0 belongs to the training thread. */
	save->ended_at = ck_now();
	atomic_store(&save->written, rc ? rc : 1);
	if (records)
		end_and_tidy(save);
}
