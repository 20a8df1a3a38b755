#include "commit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dirfile.h"
#include "json.h"
#include "leave.h"
#include "names.h"

static int staging_path(char out[static PATH_MAX], const char *dir, struct ck_step_id id,
			struct ck_error *err)
{
	char name[CK_NAME_MAX];

	return ck_dirfile_path(out, dir, ck_name_saving(id, name), err);
}

static int records_path(char out[static PATH_MAX], const char *dir, struct ck_step_id id,
			struct ck_error *err)
{
	char generation[PATH_MAX], name[CK_NAME_MAX];
	int rc;

	rc = ck_dirfile_generation(generation, dir, id.generation, err);
	return rc ? rc : ck_dirfile_path(out, generation, ck_name_records(id.step, name), err);
}

/* --- before the commit --- */

/* Another rank may have made it; but what we write goes nowhere else, so a link is not followed. */
static int make_dir(const struct ck_io *io, const char *path, struct ck_error *err)
{
	struct ck_error why;
	struct stat st;
	int rc = ck_io_mkdir(io, path, &why);

	if (rc != CK_EEXIST)
		return rc ? ck_fail(err, rc, "%s", why.text) : 0;
	if (io->ops->lstat(io, path, &st) < 0)
		return ck_fail_errno(err, errno, "%s: lstat", path);
	if (S_ISDIR(st.st_mode))
		return 0;
	return ck_fail(err, CK_EIO, "%s: is %s, and must be a directory of this save: remove it",
		       path, ck_io_kind_name(st.st_mode));
}

int ck_save_begin(const struct ck_io *io, const char *dir, struct ck_step_id id,
		  char staging[static PATH_MAX], struct ck_error *err)
{
	int rc;

	rc = staging_path(staging, dir, id, err);
	return rc ? rc : make_dir(io, staging, err);
}

/* Without fsync of the directory: only salvage reads this, and the records it needs beside it have none either. */
int ck_save_announce(const struct ck_io *io, const char *dir, const struct ck_manifest *save,
		     struct ck_error *err)
{
	struct ck_buf text = CK_BUF_INIT;
	char staging[PATH_MAX];
	int rc;

	rc = staging_path(staging, dir, save->id, err);
	if (!rc)
		rc = ck_manifest_print(save, false, &text, err);
	if (!rc)
		rc = ck_owner_check(io, dir, save->id.generation, err);
	if (!rc)
		rc = ck_dirfile_write(io, staging, CK_SAVE_FILE, &text, err);
	ck_buf_fini(&text);
	return rc;
}

static void find_flat(const struct ck_part *part, const char *flat, struct ck_file *file)
{
	for (size_t i = 0; flat && i < part->nblocks; i++) {
		const struct ck_stored *block = &part->blocks[i];

		if (block->kind == CK_SHARDED && strcmp(block->name, flat) == 0) {
			file->param_shard_offset = block->box.offset[0];
			file->param_shard_numel = block->box.extent[0];
		}
	}
}

/* The chunk table is handed over. */
static void fill_file(const struct ck_part *part, const char *flat,
		      const struct ck_digests *digests, struct ck_file *file)
{
	ck_name_shard(file->rank, file->part, file->path);
	file->bytes = digests->bytes;
	memcpy(file->sha256, digests->sha256, sizeof(file->sha256));
	file->crc32 = digests->crc32;
	file->chunk_bytes = digests->chunk_bytes;
	file->chunk_crc32 = digests->chunk_crc32;
	find_flat(part, flat, file);
}

static int store_record(const struct ck_io *io, const char *dir, struct ck_step_id id,
			const struct ck_record *record, struct ck_error *err)
{
	char records[PATH_MAX], name[CK_NAME_MAX];
	struct ck_buf text = CK_BUF_INIT;
	int rc;

	rc = ck_record_print(record, &text, err);
	if (!rc)
		rc = records_path(records, dir, id, err);
	if (!rc)
		rc = make_dir(io, records, err);
	if (!rc)
		rc = ck_dirfile_write(io, records, ck_name_record(record->rank, name), &text, err);
	ck_buf_fini(&text);
	return rc;
}

int ck_save_write(const struct ck_io *io, const char *dir, struct ck_step_id id,
		  const char *save_id, uint32_t rank, const struct ck_plan *plan, const char *flat,
		  const struct ck_shard_options *options, struct ck_record *record,
		  struct ck_error *err)
{
	struct ck_record made = {.rank = rank, .step = id.step, .nfiles = plan->nparts};
	struct ck_digests *digests = NULL;
	char staging[PATH_MAX];
	int rc;

	if (strlen(save_id) != CK_RUN_ID_HEX)
		return ck_fail(err, CK_EFORMAT, "save_id: %zu hex digits, must be %d",
			       strlen(save_id), CK_RUN_ID_HEX);
	memcpy(made.save_id, save_id, sizeof(made.save_id));
	rc = staging_path(staging, dir, id, err);
	if (rc)
		return rc;
	made.files = calloc(plan->nparts, sizeof(*made.files));
	digests = calloc(plan->nparts, sizeof(*digests));
	if (!made.files || !digests)
		rc = ck_fail_nomem(err, plan->nparts * sizeof(*made.files));
	if (!rc)
		rc = ck_shard_write_all(io, staging, rank, plan, options, digests, err);
	for (size_t i = 0; i < plan->nparts && !rc; i++) {
		made.files[i].rank = rank;
		made.files[i].part = (uint32_t)i;
		fill_file(&plan->parts[i], flat, &digests[i], &made.files[i]);
	}
	if (!rc)
		rc = store_record(io, dir, id, &made, err);
	if (rc)
		ck_record_fini(&made);
	else
		*record = made;
	free(digests);
	return rc;
}

/* --- the commit --- */

static int unlink_file(const struct ck_io *io, const char *dir, const char *name,
		       struct ck_error *err)
{
	char path[PATH_MAX];
	int rc;

	rc = ck_dirfile_path(path, dir, name, err);
	if (!rc && io->ops->unlink(io, path) < 0) {
		int errnum = errno;

		if (errnum != ENOENT && !ck_io_is_gone(io, path))
			rc = ck_fail_errno(err, errnum, "%s: unlink", path);
	}
	return rc;
}

/*
 * The manifest is the last file: where it stands, everything that it names does. save.json goes
 * only after it, so that at every instant one of them says what the directory is.
 */
static int complete_staging(const struct ck_io *io, const char *staging,
			    const struct ck_manifest *manifest, struct ck_buf *text,
			    struct ck_error *err)
{
	struct ck_buf sums = CK_BUF_INIT;
	char sha256[CK_SHA256_HEX + 1];
	int rc;

	rc = ck_manifest_print(manifest, true, text, err);
	if (!rc)
		rc = ck_sha256_hex(text->data, text->len, sha256, err);
	if (!rc)
		rc = ck_sums_print(manifest, sha256, &sums, err);
	if (!rc)
		rc = ck_dirfile_write(io, staging, CK_SUMS_FILE, &sums, err);
	if (!rc)
		rc = ck_dirfile_write(io, staging, CK_MANIFEST_FILE, text, err);
	if (!rc)
		rc = unlink_file(io, staging, CK_SAVE_FILE, err);
	if (!rc)
		rc = ck_io_sync_dir(io, staging, NULL, err);
	ck_buf_fini(&sums);
	return rc;
}

/* Does our manifest (it has our save_id) stand in the target? */
static bool is_published(const struct ck_io *io, const char *step, const struct ck_buf *text)
{
	struct ck_buf there = CK_BUF_INIT;
	char path[PATH_MAX];
	bool ours;

	ours = ck_dirfile_read(io, step, CK_MANIFEST_FILE, CK_JSON_MAX_BYTES, path, &there, NULL) ==
		       0 &&
	       there.len == text->len && memcmp(there.data, text->data, text->len) == 0;
	ck_buf_fini(&there);
	return ours;
}

/* A newer owner takes the staging directory away: what fails then, fails for that reason. */
static int fail_or_fenced(const struct ck_io *io, const char *dir, uint64_t generation, int rc,
			  struct ck_error *err)
{
	struct ck_error fenced;

	if (ck_owner_check(io, dir, generation, &fenced) == CK_EFENCED)
		return ck_fail(err, CK_EFENCED, "%s", fenced.text);
	return rc;
}

/* A rename that fails may have happened all the same (a lost reply of NFS). */
static int publish(const struct ck_io *io, const char *dir, const char *staging, const char *step,
		   uint64_t generation, const struct ck_buf *text, struct ck_error *err)
{
	struct ck_error why;
	int rc;

	rc = ck_io_rename(io, staging, step, &why);
	if (!rc || is_published(io, step, text))
		return 0;
	rc = fail_or_fenced(io, dir, generation, rc, &why);
	return ck_fail(err, rc, "%s", why.text);
}

/* The first one stays. */
static void warn(struct ck_error *warning, const struct ck_error *why)
{
	if (warning && warning->code == CK_OK)
		*warning = *why;
}

/*
 * A commit that is not known to be on disk must not let older checkpoints go, so it is taken back.
 * Where even that fails, readers see it: then it is one.
 */
static int make_durable(const struct ck_io *io, const char *dir, const char *staging,
			const char *step, struct ck_step_id id, uint64_t owner,
			struct ck_error *warning, struct ck_error *err)
{
	struct ck_error why;
	int rc;

	rc = ck_dirfile_sync(io, dir, &why);
	if (!rc)
		return 0;
	if (ck_leave_to(io, dir, id, owner, staging, NULL) == 0 || ck_io_is_gone(io, step))
		return ck_fail(err, rc, "%s", why.text);
	ck_error_prefix(&why, "not known to be on disk");
	warn(warning, &why);
	return 0;
}

static int write_latest(const struct ck_io *io, const char *dir, struct ck_step_id id,
			struct ck_error *err)
{
	struct ck_buf text = CK_BUF_INIT;
	char name[CK_NAME_MAX];
	int rc;

	ck_buf_addf(&text, "%s\n", ck_name_step(id, name));
	rc = ck_buf_check(&text, err);
	if (!rc)
		rc = ck_dirfile_write(io, dir, CK_LATEST_FILE, &text, err);
	ck_buf_fini(&text);
	return rc;
}

int ck_commit_directory(const struct ck_io *io, const char *dir, const char *staging,
			const struct ck_manifest *manifest, uint64_t owner,
			struct ck_error *warning, struct ck_error *err)
{
	char step[PATH_MAX], name[CK_NAME_MAX];
	struct ck_buf text = CK_BUF_INIT;
	struct ck_error why;
	int rc;

	if (warning)
		*warning = (struct ck_error)CK_ERROR_INIT;
	rc = ck_dirfile_path(step, dir, ck_name_step(manifest->id, name), err);
	if (!rc) {
		rc = complete_staging(io, staging, manifest, &text, err);
		rc = rc ? fail_or_fenced(io, dir, owner, rc, err)
			: ck_owner_check(io, dir, owner, err);
	}
	if (!rc)
		rc = publish(io, dir, staging, step, owner, &text, err);
	if (!rc)
		rc = make_durable(io, dir, staging, step, manifest->id, owner, warning, err);
	ck_buf_fini(&text);
	if (rc)
		return rc;
	if (write_latest(io, dir, manifest->id, &why))
		warn(warning, &why);
	return 0;
}

int ck_save_commit(const struct ck_io *io, const char *dir, const struct ck_manifest *manifest,
		   struct ck_error *warning, struct ck_error *err)
{
	char staging[PATH_MAX];
	struct ck_error why;
	int rc;

	rc = staging_path(staging, dir, manifest->id, err);
	if (!rc)
		rc = ck_commit_directory(io, dir, staging, manifest, manifest->id.generation,
					 warning, err);
	if (!rc && ck_run_set_committed(io, dir, &why))
		warn(warning, &why);
	return rc;
}

/* --- after it --- */

int ck_save_tidy(const struct ck_io *io, const char *dir, struct ck_step_id id,
		 struct ck_error *err)
{
	char records[PATH_MAX];
	int rc;

	rc = records_path(records, dir, id, err);
	return rc ? rc : ck_io_remove_tree(io, records, err);
}

/* The records first: what is left of a staging directory must never pass for a complete one. */
int ck_save_abandon(const struct ck_io *io, const char *dir, struct ck_step_id id,
		    struct ck_error *err)
{
	char staging[PATH_MAX];
	int tidied, rc;

	tidied = ck_save_tidy(io, dir, id, err);
	rc = staging_path(staging, dir, id, tidied ? NULL : err);
	if (!rc)
		rc = ck_io_remove_tree(io, staging, tidied ? NULL : err);
	return tidied ? tidied : rc;
}
