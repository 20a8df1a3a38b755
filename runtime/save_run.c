/* The background thread's side of a save: nothing here knows of ranks but through files and records. */
#include "save.h"

#include <stdlib.h>

#include "commit.h"

/* When messages are late (the program is busy elsewhere), record files are looked at this often. */
#define FIRST_LOOK_MS 1000
#define LOOK_MS 500

/* Rank 0 before the first byte: room, staging directory, what it will be. */
static int announce(struct ck_save *save, struct ck_error *err)
{
	struct ck_error trouble = CK_ERROR_INIT;
	int rc = ck_rotation_unpublish(save->rotation, true, &trouble);

	if (rc == CK_EFENCED)
		return ck_fail(err, rc, "%s", trouble.text);
	if (rc)
		ck_fail(&save->warning, rc, "old checkpoints could not be deleted: %s",
			trouble.text);
	rc = ck_rotation_remove(save->rotation, &trouble);
	if (rc)
		ck_fail(&save->warning, rc, "old checkpoints could not be deleted: %s",
			trouble.text);
	return 0;
}

static int write_shard(struct ck_save *save, struct ck_error *err)
{
	struct ck_step_id id = save->head.id;
	struct ck_record record = {0};
	char staging[PATH_MAX];
	int rc = save->rotation ? announce(save, err) : 0;

	if (!rc)
		rc = ck_save_begin(save->io, save->dir, id, staging, err);
	if (!rc && save->rotation)
		rc = ck_save_announce(save->io, save->dir, &save->head, err);
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
	struct ck_error warning;
	int rc = ck_records_take(save->records, &manifest.files, &manifest.nfiles, err);

	if (rc)
		return rc;
	rc = ck_save_commit(save->io, save->dir, &manifest, &warning, err);
	if (!rc && !save->warning.code)
		save->warning = warning;
	for (size_t i = 0; i < manifest.nfiles; i++)
		free(manifest.files[i].chunk_crc32);
	free(manifest.files);
	return rc;
}

/* Rank 0, after the commit: records and what has become too old. */
static void clear_up(struct ck_save *save)
{
	struct ck_error trouble = CK_ERROR_INIT;
	int rc = ck_save_tidy(save->io, save->dir, save->head.id, &trouble);

	save->rotation->protects = false;
	if (!rc)
		rc = ck_sweep_fenced(save->io, save->dir, save->head.id.generation, &trouble);
	if (!rc)
		rc = ck_rotation_pin(save->rotation, save->head.id, &trouble);
	if (!rc)
		rc = ck_rotation_unpublish(save->rotation, false, &trouble);
	if (!rc)
		rc = ck_rotation_remove(save->rotation, &trouble);
	if (rc && !save->warning.code)
		ck_fail(&save->warning, rc, "clearing up: %s", trouble.text);
}

/* Rank 0: bring the save to its end, one way or the other. */
static int end(struct ck_save *save, struct ck_error *err)
{
	int rc = wait_for_all(save, err);

	if (!rc)
		rc = commit(save, err);
	if (!rc)
		clear_up(save);
	else if (rc != CK_EFENCED &&
		 rc != CK_EPEER) /* who is fenced or alone touches nothing more */
		ck_save_abandon(save->io, save->dir, save->head.id, NULL);
	return rc;
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
	atomic_store(&save->written, rc ? rc : 1);
	if (records) {
		rc = end(save, &save->outcome);
		atomic_store(&save->ended, rc ? rc : 1);
	}
}
