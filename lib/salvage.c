/* ck_salvage of commit.h: saves of earlier generations that were complete, and only not committed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "commit.h"
#include "dirfile.h"
#include "files.h"
#include "json.h"
#include "names.h"

struct salvage {
	const struct ck_io *io;
	const char *dir;
	uint64_t generation; /* our own */
	char path[PATH_MAX]; /* of the .salvage-… directory */
	struct ck_step_id id;
	bool unknown; /* it may be complete, and is not published yet */
};

/* A manifest that was written already: the rename was all that was missing. */
static int read_manifest(const struct salvage *s, struct ck_manifest *out, struct ck_error *err)
{
	struct ck_buf text = CK_BUF_INIT;
	char path[PATH_MAX];
	int rc = ck_dirfile_read(s->io, s->path, CK_MANIFEST_FILE, CK_JSON_MAX_BYTES, path, &text,
				 err);

	if (!rc)
		rc = ck_manifest_parse(path, text.data, text.len, true, out, err);
	ck_buf_fini(&text);
	return rc;
}

/* Add the files that one rank's record names. */
static int add_record(const struct salvage *s, const char *records, uint32_t rank,
		      struct ck_manifest *m, struct ck_error *err)
{
	char path[PATH_MAX], name[CK_NAME_MAX];
	struct ck_record record = {0};
	struct ck_buf text = CK_BUF_INIT;
	struct ck_file *files;
	int rc = ck_dirfile_read(s->io, records, ck_name_record(rank, name), CK_JSON_MAX_BYTES,
				 path, &text, err);

	if (!rc)
		rc = ck_record_parse(path, text.data, text.len, &record, err);
	ck_buf_fini(&text);
	if (rc)
		return rc;
	if (record.rank != rank || strcmp(record.save_id, m->save_id) != 0) {
		ck_record_fini(&record);
		return ck_fail(err, CK_EFORMAT, "%s: is of another save", path);
	}
	files = realloc(m->files, (m->nfiles + record.nfiles) * sizeof(*files));
	if (files) {
		memcpy(files + m->nfiles, record.files, record.nfiles * sizeof(*files));
		m->files = files;
		m->nfiles += record.nfiles;
		record.nfiles = 0; /* their chunk tables have moved */
	} else {
		rc = ck_fail_nomem(err, (m->nfiles + record.nfiles) * sizeof(*files));
	}
	ck_record_fini(&record);
	return rc;
}

/* save.json and a record of each rank are what the manifest would have been made of. */
static int read_records(const struct salvage *s, struct ck_manifest *out, struct ck_error *err)
{
	char generation[PATH_MAX], records[PATH_MAX], path[PATH_MAX], name[CK_NAME_MAX];
	struct ck_buf text = CK_BUF_INIT;
	int rc = ck_dirfile_read(s->io, s->path, CK_SAVE_FILE, CK_JSON_MAX_BYTES, path, &text, err);

	if (!rc)
		rc = ck_manifest_parse(path, text.data, text.len, false, out, err);
	ck_buf_fini(&text);
	if (rc)
		return rc;
	rc = ck_dirfile_generation(generation, s->dir, s->id.generation, err);
	if (!rc)
		rc = ck_dirfile_path(records, generation, ck_name_records(s->id.step, name), err);
	for (uint32_t rank = 0; !rc && rank < out->world_size; rank++)
		rc = add_record(s, records, rank, out, err);
	if (rc)
		ck_manifest_fini(out);
	return rc;
}

/* Was the save complete? Every file must be there with its size; bytes are verified when loaded. */
static int reconstruct(const struct salvage *s, struct ck_manifest *out, struct ck_error *err)
{
	int rc = read_manifest(s, out, err);

	/* Where it cannot be looked at it may be there, and save.json gone for good. */
	if (rc && !ck_is_unseen(rc))
		rc = read_records(s, out, err);
	if (rc)
		return rc;
	if (ck_step_id_cmp(&out->id, &s->id) != 0)
		rc = ck_fail(err, CK_EFORMAT, "%s: is of another step or generation", s->path);
	for (size_t i = 0; !rc && i < out->nfiles; i++)
		rc = ck_file_sized(s->io, s->path, &out->files[i], err);
	if (rc)
		ck_manifest_fini(out);
	return rc;
}

static bool belongs(const struct ck_manifest *m, const char *name)
{
	uint32_t rank, part;
	size_t first, count;

	if (strcmp(name, CK_SAVE_FILE) == 0 || strcmp(name, CK_MANIFEST_FILE) == 0 ||
	    strcmp(name, CK_SUMS_FILE) == 0)
		return true;
	return ck_is_shard(name, &rank, &part) && ck_manifest_rank_files(m, rank, &first, &count) &&
	       part < count;
}

/* A checkpoint holds its files and nothing else: a writer that died may have left temporary ones. */
static int remove_strays(const struct salvage *s, const struct ck_manifest *m, struct ck_error *err)
{
	struct ck_names names;
	int rc = ck_io_list(s->io, s->path, &names, err);

	if (rc)
		return rc;
	for (size_t i = 0; !rc && i < names.count; i++) {
		char path[PATH_MAX];

		if (belongs(m, names.names[i]))
			continue;
		rc = ck_dirfile_path(path, s->path, names.names[i], err);
		if (!rc && s->io->ops->unlink(s->io, path) < 0 && errno != ENOENT)
			rc = ck_fail_errno(err, errno, "%s: unlink", path);
	}
	ck_names_fini(&names);
	return rc;
}

/* What is incomplete goes: renamed here, unlinked by ck_sweep. */
static int discard(const struct salvage *s, struct ck_error *err)
{
	char to[PATH_MAX], name[CK_NAME_MAX];
	int rc = ck_dirfile_path(to, s->dir, ck_name_deleting(s->id, name), err);

	if (!rc)
		rc = ck_io_rename(s->io, s->path, to, NULL);
	/* Something of that name may be left already: then this one goes at once. */
	if (rc && rc != CK_ENOENT)
		rc = ck_io_remove_tree(s->io, s->path, err);
	return rc == CK_ENOENT ? 0 : rc;
}

/* Is this step of this generation there already, from a commit whose end was not seen? 0 when it can be told. */
static int look_for_commit(const struct salvage *s, bool *committed, struct ck_error *err)
{
	char step[PATH_MAX], name[CK_NAME_MAX];
	struct stat st;
	int rc = ck_dirfile_path(step, s->dir, ck_name_step(s->id, name), err);

	if (rc)
		return rc;
	*committed = s->io->ops->lstat(s->io, step, &st) == 0;
	return *committed || errno == ENOENT ? 0 : ck_fail_errno(err, errno, "%s: lstat", step);
}

static int salvage_one(struct salvage *s, bool *published, bool *lost, struct ck_error *err)
{
	struct ck_manifest manifest = {0};
	struct ck_error why = CK_ERROR_INIT;
	bool committed = false;
	int rc = look_for_commit(s, &committed, err);

	*published = *lost = false;
	if (rc)
		return rc;
	s->unknown = !committed;
	if (committed)
		return discard(s, err);
	rc = reconstruct(s, &manifest, &why);
	if (ck_is_unseen(rc)) /* not known to be incomplete: left for the next opener */
		return ck_fail(err, rc, "%s", why.text);
	*lost = rc != 0;
	s->unknown = rc == 0;
	if (rc)
		return discard(s, err);
	rc = remove_strays(s, &manifest, err);
	if (!rc)
		rc = ck_commit_directory(s->io, s->dir, s->path, &manifest, s->generation, NULL,
					 err);
	*published = !rc;
	if (!rc) /* or the next commit does */
		ck_run_set_committed(s->io, s->dir, NULL);
	ck_manifest_fini(&manifest);
	return rc;
}

int ck_salvage_look(const struct ck_io *io, const char *dir, struct ck_step_id id, bool seized,
		    struct ck_manifest *out, struct ck_error *err)
{
	struct salvage s = {.io = io, .dir = dir, .id = id};
	char name[CK_NAME_MAX];
	bool committed = false;
	int rc =
		ck_dirfile_path(s.path, dir,
				seized ? ck_name_salvage(id, name) : ck_name_saving(id, name), err);

	if (!rc)
		rc = look_for_commit(&s, &committed, err);
	if (!rc && committed)
		rc = ck_fail(err, CK_EEXIST, "%s: there is a %s", s.path, ck_name_step(id, name));
	return rc ? rc : reconstruct(&s, out, err);
}

/* Take a directory out of the reach of a late commit. CK_ENOENT: there is none, or none any more. */
static int seize(struct salvage *s, const char *name, struct ck_error *err)
{
	char from[PATH_MAX], to[CK_NAME_MAX];
	int rc = ck_dirfile_path(s->path, s->dir, ck_name_salvage(s->id, to), err);

	if (!rc)
		rc = ck_dirfile_path(from, s->dir, name, err);
	if (!rc && ck_io_is_no_dir(s->io, from))
		return CK_ENOENT;
	if (!rc && strcmp(name, to) != 0)
		rc = ck_io_rename(s->io, from, s->path, err);
	return rc;
}

static int add_published(struct ck_salvaged *out, struct ck_step_id id, struct ck_error *err)
{
	struct ck_step_id *more = realloc(out->steps, (out->count + 1) * sizeof(*more));

	if (!more)
		return ck_fail_nomem(err, (out->count + 1) * sizeof(*more));
	more[out->count++] = id;
	out->steps = more;
	return 0;
}

static void add_lost(struct ck_salvaged *out, struct ck_step_id id)
{
	if (out->nlost++ == 0 || ck_step_id_cmp(&id, &out->lost) > 0)
		out->lost = id;
}

int ck_salvage(const struct ck_io *io, const char *dir, uint64_t generation,
	       struct ck_salvaged *out, struct ck_error *err)
{
	struct salvage s = {.io = io, .dir = dir, .generation = generation};
	struct ck_names names;
	int rc, first = 0;

	*out = (struct ck_salvaged){0};
	rc = ck_dirfile_list(io, dir, &names, err);
	out->unknown = rc != 0;
	if (rc)
		return rc;
	for (size_t i = 0; i < names.count; i++) {
		bool published = false, lost = false;

		if (!ck_is_salvage(names.names[i], &s.id) && !ck_is_saving(names.names[i], &s.id))
			continue;
		if (s.id.generation >= generation)
			continue;
		s.unknown = true;
		rc = seize(&s, names.names[i], first ? NULL : err);
		if (rc == CK_ENOENT)
			continue;
		if (!rc)
			rc = salvage_one(&s, &published, &lost, first ? NULL : err);
		if (lost)
			add_lost(out, s.id);
		if (!rc && published)
			rc = add_published(out, s.id, first ? NULL : err);
		out->unknown |= rc && s.unknown;
		first = first ? first : rc;
	}
	ck_names_fini(&names);
	return first;
}

void ck_salvaged_fini(struct ck_salvaged *salvaged)
{
	free(salvaged->steps);
	*salvaged = (struct ck_salvaged){0};
}
