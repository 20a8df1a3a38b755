/* ck_sweep of commit.h: what earlier generations left behind. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "commit.h"
#include "dirfile.h"
#include "names.h"
#include "parse.h"

/* A sweep goes on after a failure and reports the first. */
struct sweep {
	const struct ck_io *io;
	const char *dir;
	uint64_t generation;
	const struct ck_names *names; /* of the directory */
	int rc;
	struct ck_error err;
};

static void note(struct sweep *sweep, int rc, const struct ck_error *err)
{
	if (rc && !sweep->rc) {
		sweep->rc = rc;
		sweep->err = *err;
	}
}

/* What only has such a name, and is no directory, is not ours. */
static void remove_named(struct sweep *sweep, const char *dir, const char *name)
{
	struct ck_error err = CK_ERROR_INIT;
	char path[PATH_MAX];
	int rc;

	rc = ck_dirfile_path(path, dir, name, &err);
	if (!rc)
		rc = ck_io_remove_tree(sweep->io, path, &err);
	if (rc != CK_EFORMAT || !ck_io_is_no_dir(sweep->io, path))
		note(sweep, rc, &err);
}

static bool is_records(const char *name)
{
	static const char prefix[] = "records-";
	char again[CK_NAME_MAX];
	uint64_t step;

	return strncmp(name, prefix, sizeof(prefix) - 1) == 0 &&
	       ck_parse_u64("step", name + sizeof(prefix) - 1, 0, CK_STEP_MAX, &step, NULL) == 0 &&
	       strcmp(ck_name_records(step, again), name) == 0;
}

/* Records may still be wanted while a save of theirs waits to be salvaged. */
static bool awaits_salvage(const struct sweep *sweep, uint64_t generation)
{
	struct ck_step_id id;

	for (size_t i = 0; i < sweep->names->count; i++)
		if ((ck_is_salvage(sweep->names->names[i], &id) ||
		     ck_is_saving(sweep->names->names[i], &id)) &&
		    id.generation == generation)
			return true;
	return false;
}

/* Of a writer that died between a write and its rename. */
static bool is_temporary(const char *name, const char *const *of, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (ck_is_temporary(name, of[i]))
			return true;
	return false;
}

static void unlink_named(struct sweep *sweep, const char *dir, const char *name)
{
	struct ck_error err = CK_ERROR_INIT;
	char path[PATH_MAX];
	int rc;

	rc = ck_dirfile_path(path, dir, name, &err);
	if (!rc && sweep->io->ops->unlink(sweep->io, path) < 0 && errno != ENOENT &&
	    errno != EISDIR)
		rc = ck_fail_errno(&err, errno, "%s: unlink", path);
	note(sweep, rc, &err);
}

static void sweep_generation(struct sweep *sweep, const char *generation, bool records)
{
	static const char *const files[] = {CK_CLAIM_FILE, CK_MARK_FILE};
	struct ck_error err = CK_ERROR_INIT;
	struct ck_names names;
	char path[PATH_MAX];
	int rc;

	rc = ck_dirfile_path(path, sweep->dir, generation, &err);
	if (!rc)
		rc = ck_io_list(sweep->io, path, &names, &err);
	if (rc == CK_ENOENT || (rc && ck_io_is_no_dir(sweep->io, path)))
		return;
	note(sweep, rc, &err);
	if (rc)
		return;
	for (size_t i = 0; i < names.count; i++) {
		if (records && is_records(names.names[i]))
			remove_named(sweep, path, names.names[i]);
		else if (is_temporary(names.names[i], files, 2))
			unlink_named(sweep, path, names.names[i]);
	}
	ck_names_fini(&names);
}

static void sweep_name(struct sweep *sweep, const char *name)
{
	static const char *const files[] = {CK_RUN_FILE, CK_LATEST_FILE};
	struct ck_step_id id;
	uint64_t generation;

	if (ck_is_deleting(name, &id))
		remove_named(sweep, sweep->dir, name);
	else if (is_temporary(name, files, 2))
		unlink_named(sweep, sweep->dir, name);
	else if (ck_is_generation(name, &generation) && generation < sweep->generation)
		sweep_generation(sweep, name, !awaits_salvage(sweep, generation));
}

/* Renamed before it is emptied: a late commit then finds nothing, instead of something half removed. */
static void remove_saving(struct sweep *sweep, const char *name, struct ck_step_id id)
{
	struct ck_error err = CK_ERROR_INIT;
	char from[PATH_MAX], to[PATH_MAX], deleting[CK_NAME_MAX];
	int rc = ck_dirfile_path(from, sweep->dir, name, &err);

	ck_name_deleting(id, deleting);
	if (!rc)
		rc = ck_dirfile_path(to, sweep->dir, deleting, &err);
	if (!rc && ck_io_is_no_dir(sweep->io, from))
		return;
	if (!rc)
		rc = ck_io_rename(sweep->io, from, to, &err);
	if (rc == CK_ENOENT)
		return;
	note(sweep, rc, &err);
	if (!rc)
		remove_named(sweep, sweep->dir, deleting);
}

static int outcome(const struct sweep *sweep, struct ck_error *err)
{
	if (sweep->rc && err)
		*err = sweep->err;
	return sweep->rc;
}

int ck_sweep_deleting(const struct ck_io *io, const char *dir, const struct ck_names *names,
		      struct ck_error *err)
{
	struct sweep sweep = {.io = io, .dir = dir};
	struct ck_step_id id;

	for (size_t i = 0; i < names->count; i++)
		if (ck_is_deleting(names->names[i], &id))
			remove_named(&sweep, dir, names->names[i]);
	return outcome(&sweep, err);
}

int ck_sweep_fenced(const struct ck_io *io, const char *dir, const struct ck_names *names,
		    uint64_t generation, struct ck_error *err)
{
	struct sweep sweep = {.io = io, .dir = dir};
	struct ck_step_id id;

	for (size_t i = 0; i < names->count; i++)
		if (ck_is_saving(names->names[i], &id) && id.generation < generation)
			remove_saving(&sweep, names->names[i], id);
	return outcome(&sweep, err);
}

static void sweep_records(struct sweep *sweep, struct ck_step_id current)
{
	char path[PATH_MAX], keep[CK_NAME_MAX];
	struct ck_error err = CK_ERROR_INIT;
	struct ck_names names;
	int rc = ck_dirfile_generation(path, sweep->dir, current.generation, &err);

	if (!rc)
		rc = ck_io_list(sweep->io, path, &names, &err);
	note(sweep, rc, &err);
	if (rc)
		return;
	ck_name_records(current.step, keep);
	for (size_t i = 0; i < names.count; i++)
		if (is_records(names.names[i]) && strcmp(names.names[i], keep) != 0)
			remove_named(sweep, path, names.names[i]);
	ck_names_fini(&names);
}

int ck_sweep_own(const struct ck_io *io, const char *dir, const struct ck_names *names,
		 struct ck_step_id current, bool records, struct ck_error *err)
{
	struct sweep sweep = {.io = io, .dir = dir};
	struct ck_step_id id;

	if (records)
		sweep_records(&sweep, current);
	for (size_t i = 0; i < names->count; i++)
		if (ck_is_saving(names->names[i], &id) && id.generation == current.generation &&
		    id.step != current.step)
			remove_saving(&sweep, names->names[i], id);
	return outcome(&sweep, err);
}

int ck_sweep(const struct ck_io *io, const char *dir, const struct ck_names *names,
	     uint64_t generation, struct ck_error *err)
{
	struct sweep sweep = {.io = io, .dir = dir, .generation = generation, .names = names};

	for (size_t i = 0; i < names->count; i++)
		sweep_name(&sweep, names->names[i]);
	return outcome(&sweep, err);
}
