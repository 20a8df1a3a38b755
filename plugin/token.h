/*
 * Has a script of this job run before? Slurm's restart count does not tell: it counts a launch that
 * failed as well, in a prolog or by the node's death, after which nothing of the job is on disk.
 *
 * So sbatch leaves a token where the runs lie, an empty directory ".submitted-<random>", whose path
 * goes with the job. The first start takes it away; in an array each element leaves its number in it.
 * A token that is there and not spent says two things: the file system is mounted, and there is
 * nothing to resume.
 */
#ifndef CK_TOKEN_H
#define CK_TOKEN_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "io.h"

struct ck_token {
	char path[PATH_MAX]; /* "": none was left */
	bool in_array;
	uint32_t element; /* of an array */
};

/* Make one in `dir`, which exists. Returns 0; CK_ENOENT, CK_EIO, CK_EARG (too long a path). */
int ck_token_make(const struct ck_io *io, const char *dir, char path[static PATH_MAX],
		  struct ck_error *err);

/*
 * Take `path`, from a job's environment, if it is a token's and lies in a directory that leads to
 * `base`, where this job's runs lie; otherwise it says nothing about them.
 */
void ck_token_take(struct ck_token *token, const char *path, const char *base);

/* True: it is there, and no start of this job, or of this element, has spent it. */
bool ck_token_is_unspent(const struct ck_io *io, const struct ck_token *token);

/* Spend it. What fails leaves it as it is, so that a start is taken for the first once more. */
void ck_token_spend(const struct ck_io *io, const struct ck_token *token);

/* Remove tokens of `dir` from before `before`, of jobs that never began and of arrays. */
void ck_token_sweep(const struct ck_io *io, const char *dir, int64_t before);

#endif
