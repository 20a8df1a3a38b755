/* Who owns a run: ck_owner_* of run.h. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <time.h>

#include "dirfile.h"
#include "names.h"
#include "run.h"

static uint64_t highest_of(const struct ck_names *names)
{
	uint64_t generation, highest = 0;

	for (size_t i = 0; i < names->count; i++)
		if (ck_is_generation(names->names[i], &generation) && generation > highest)
			highest = generation;
	return highest;
}

int ck_generation_highest(const struct ck_io *io, const char *dir, uint64_t *out,
			  struct ck_error *err)
{
	struct ck_names names;
	int rc;

	rc = ck_dirfile_list(io, dir, &names, err);
	if (rc)
		return rc;
	*out = highest_of(&names);
	ck_names_fini(&names);
	return 0;
}

/* Is there a directory of this generation, with a claim in it that ought to be read? */
static bool is_claimed(const struct ck_io *io, const char *dir, uint64_t generation)
{
	char path[PATH_MAX];

	return ck_dirfile_generation(path, dir, generation, NULL) || !ck_io_is_no_dir(io, path);
}

int ck_owner_load(const struct ck_io *io, const char *dir, struct ck_claim *out,
		  struct ck_error *err)
{
	uint64_t *generations;
	size_t count;
	int rc;

	rc = ck_generations_load(io, dir, &generations, &count, err);
	if (rc)
		return rc;
	rc = ck_fail(err, CK_ENOENT, "%s: no program has opened this run yet", dir);
	for (size_t i = 0; i < count && rc == CK_ENOENT; i++)
		if (is_claimed(io, dir, generations[i]))
			rc = ck_claim_load(io, dir, generations[i], out, err);
	free(generations);
	return rc;
}

static bool has_claim(const struct ck_io *io, const char *dir, uint64_t generation)
{
	char sub[PATH_MAX], path[PATH_MAX];
	struct stat st;

	/* What cannot be looked at is not waited for: whoever reads the claim says why. */
	return ck_dirfile_generation(sub, dir, generation, NULL) || ck_io_is_no_dir(io, sub) ||
	       ck_dirfile_path(path, sub, CK_CLAIM_FILE, NULL) ||
	       io->ops->lstat(io, path, &st) == 0 || errno != ENOENT;
}

int ck_owner_wait(const struct ck_io *io, const char *dir, uint64_t *out, struct ck_error *err)
{
	const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
	const int tries = CK_CLAIM_SECONDS * 50;
	int rc = 0;

	for (int i = 0; i < tries; i++) {
		rc = ck_generation_highest(io, dir, out, err);
		if (rc || *out == 0 || has_claim(io, dir, *out))
			break;
		nanosleep(&pause, NULL);
	}
	return rc;
}

int ck_owner_ask(const struct ck_io *io, const char *dir, struct ck_claim *out, bool *found,
		 struct ck_error *err)
{
	struct ck_error why = CK_ERROR_INIT;
	int rc = ck_owner_load(io, dir, out, &why);

	*found = rc == 0;
	if (!rc || rc == CK_ENOENT)
		return 0;
	return ck_fail(
		err, CK_EREFUSED,
		"%s: who holds this run cannot be told (%s): when nobody does, take over with "
		"--ckpt-takeover",
		dir, why.text);
}

static int check_highest(const char *dir, uint64_t highest, uint64_t generation,
			 struct ck_error *err)
{
	if (highest > generation)
		return ck_fail(err, CK_EFENCED,
			       "%s: generation %" PRIu64 " has taken over this run, this program "
			       "holds generation %" PRIu64 " (see .gen-%" PRIu64 "/%s)",
			       dir, highest, generation, highest, CK_CLAIM_FILE);
	if (highest < generation)
		return ck_fail(err, CK_EIO, "%s: .gen-%" PRIu64 ", our claim, is gone", dir,
			       generation);
	return 0;
}

int ck_owner_check(const struct ck_io *io, const char *dir, uint64_t generation,
		   struct ck_error *err)
{
	uint64_t highest;
	int rc;

	rc = ck_generation_highest(io, dir, &highest, err);
	return rc ? rc : check_highest(dir, highest, generation, err);
}

int ck_owner_list(const struct ck_io *io, const char *dir, uint64_t generation,
		  struct ck_names *out, struct ck_error *err)
{
	struct ck_names names;
	int rc;

	rc = ck_dirfile_list(io, dir, &names, err);
	if (rc)
		return rc;
	rc = check_highest(dir, highest_of(&names), generation, err);
	if (rc)
		ck_names_fini(&names);
	else
		*out = names;
	return rc;
}
