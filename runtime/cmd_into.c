/* Where `ckpt reshard` and `export` write: what may be written there, and by whom. */
#include "cmd_into.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "catalog.h"
#include "takeover.h"

/* --- its place --- */

static bool has_file(const struct ck_io *io, const char *dir, const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	return ck_path_join(path, dir, name) && io->ops->lstat(io, path, &st) == 0;
}

/* What a directory is by its name, or by what it holds; NULL: nothing of ours. */
static const char *what_is(const struct ck_io *io, const char *dir)
{
	const char *slash = strrchr(dir, '/'), *name = slash ? slash + 1 : dir;
	struct ck_step_id id;
	uint64_t generation;

	if (ck_is_step(name, &id) ||
	    (has_file(io, dir, CK_MANIFEST_FILE) && has_file(io, dir, CK_SUMS_FILE)))
		return "checkpoint";
	if (ck_is_generation(name, &generation) || ck_is_saving(name, &id) ||
	    ck_is_deleting(name, &id) || ck_is_salvage(name, &id) ||
	    ck_is_leaving(name, &generation) || ck_is_left(name, &generation))
		return "directory of a run's own";
	return NULL;
}

/* Take the last component off. Returns false when none is left. */
static bool go_up(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || strcmp(path, "/") == 0)
		return false;
	slash[slash == path] = '\0';
	return true;
}

/* What is there is walked up without its links; what is not can only be judged by its name. */
int ck_cmd_place_check(const struct ck_io *io, const char *dir, struct ck_error *err)
{
	char path[PATH_MAX], real[PATH_MAX];
	bool resolved = false, below = false;

	if (snprintf(path, sizeof(path), "%s%s", *dir == '/' ? "" : "./", dir) >= PATH_MAX)
		return ck_fail(err, CK_EARG, "%s: path too long", dir);
	do {
		const char *what;

		if (!resolved && realpath(path, real)) {
			resolved = true;
			strcpy(path, real);
		}
		what = what_is(io, path);
		if (what && !below)
			return ck_fail(err, CK_EREFUSED, "%s: is a %s: name another directory", dir,
				       what);
		if (what)
			return ck_fail(err, CK_EREFUSED,
				       "%s: is in %s, a %s: name another directory", dir, path,
				       what);
		below |= path[strlen(path) - 1] != '/';
	} while (go_up(path));
	return 0;
}

/* --- a run that a checkpoint is added to --- */

/* A run directory may be a symbolic link. */
static bool is_same_dir(const struct ck_io *io, const char *a, const char *b)
{
	char path[PATH_MAX];
	struct stat x, y;

	return ck_path_join(path, a, ".") && io->ops->lstat(io, path, &x) == 0 &&
	       ck_path_join(path, b, ".") && io->ops->lstat(io, path, &y) == 0 &&
	       x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/*
 * The result is of the highest generation, so a start resumes from it and rotation counts all others as older.
 * In the source's own run that rewinds it unless the source's step is where it is; in another directory, where
 * generations have nothing to do with the source's, unless it is as far.
 */
static int check_newest(const struct ck_io *io, const char *dir, const struct ck_source *from,
			struct ck_error *err)
{
	uint64_t step = from->manifest.id.step;
	struct ck_catalog catalog;
	struct ck_step_id newest;
	bool hides;
	int rc = ck_catalog_load(io, dir, &catalog, err);

	if (rc)
		return rc == CK_ENOENT ? 0 : rc;
	newest = catalog.count ? catalog.steps[0] : from->manifest.id;
	hides = is_same_dir(io, dir, from->run) ? newest.step != step : newest.step > step;
	ck_catalog_fini(&catalog);
	if (!hides)
		return 0;
	return ck_fail(err, CK_EREFUSED,
		       "%s: its newest checkpoint is of step %" PRIu64 ", generation %" PRIu64
		       "; a start would resume from the result, step %" PRIu64
		       ", instead, and rotation delete the others: name an empty directory",
		       dir, newest.step, newest.generation, step);
}

static int check_run(const char *dir, const struct ck_run *run, const struct ck_manifest *from,
		     struct ck_error *err)
{
	if (strcmp(run->run_id, from->run_id) != 0)
		return ck_fail(err, CK_EREFUSED, "%s: is run %s, the checkpoint belongs to run %s",
			       dir, run->run_id, from->run_id);
	if (run->complete)
		return ck_fail(err, CK_EREFUSED,
			       "%s: the run is complete, at step %" PRIu64
			       ", and nothing resumes there: name an empty directory",
			       dir, run->complete_step);
	return 0;
}

int ck_cmd_into_check(const struct ck_io *io, const char *dir, const struct ck_source *from,
		      struct ck_error *err)
{
	struct ck_run run;
	int rc = ck_cmd_place_check(io, dir, err);

	if (rc)
		return rc;
	rc = ck_run_load(io, dir, &run, err);
	if (!rc)
		rc = check_run(dir, &run, &from->manifest, err);
	else if (rc == CK_ENOENT)
		rc = 0;
	return rc ? rc : check_newest(io, dir, from, err);
}

/*
 * It is the same run, so it has the same id, and has committed: should the result not come to be, a start must
 * not take this for a run that begins. All of that in one write: a reshard may be killed at any time.
 */
static int make_run(const struct ck_io *io, const char *dir, const struct ck_manifest *from,
		    struct ck_error *err)
{
	struct ck_run run = {.committed = true};
	int rc;

	strcpy(run.name, from->run);
	strcpy(run.run_id, from->run_id);
	rc = ck_run_create(io, dir, &run, err);
	return rc ? rc : check_run(dir, &run, from, err); /* another one may have been first */
}

static int check_owner(const struct ck_io *io, const char *dir, const struct ck_claim *claim,
		       struct ck_error *err)
{
	struct ck_claim owner;
	int rc = ck_owner_load(io, dir, &owner, err);

	if (rc)
		return rc == CK_ENOENT ? 0 : rc; /* a claim that cannot be read may be anybody's */
	if (ck_owner_seems_alive(io, &owner, claim) || (!owner.ended && *owner.job.job_id))
		rc = ck_fail(err, CK_EREFUSED,
			     "%s: process %" PRIu64
			     " on %s%s%s may still write to it: end it, or name another directory",
			     dir, owner.pid, owner.host, *owner.job.job_id ? ", job " : "",
			     owner.job.job_id);
	ck_claim_fini(&owner);
	return rc;
}

int ck_cmd_into_claim(const struct ck_io *io, const char *dir, const struct ck_source *from,
		      uint32_t world, struct ck_claim *claim, struct ck_error *err)
{
	int rc = ck_cmd_into_check(io, dir, from, err);

	*claim = (struct ck_claim){.world_size = world};
	ck_claim_sign(io, claim);
	if (!rc)
		rc = make_run(io, dir, &from->manifest, err);
	if (!rc)
		rc = check_owner(io, dir, claim, err);
	return rc ? rc : ck_claim_take(io, dir, claim, err);
}
