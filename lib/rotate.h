/*
 * What to delete, and deleting it.
 */
#ifndef CK_ROTATE_H
#define CK_ROTATE_H

#include <stdbool.h>
#include <stddef.h>

#include "catalog.h"
#include "error.h"
#include "io.h"

/* One checkpoint as the decision sees it. */
struct ck_rotate_step {
	struct ck_step_id id;
	bool bad;       /* refused by a resume, or failing *sized* */
	bool pinned;    /* not counted, never deleted */
	bool protected; /* the one this generation resumed from, until it has committed its own */
};

/*
 * Pure. Before a save: which to delete so that, with the save, `keep` good ones are there: the
 * oldest first, past the pinned, which are not counted, and the protected, which are. Never the
 * last good one (keep 1: it goes after the commit, with save_to_come false). Of the bad ones the
 * newest two stay, beside those that are pinned or protected.
 *
 *   steps         newest first
 *   save_to_come  true before a save (keep - 1 may stay), false after its commit
 *   out           out[i] = true: delete steps[i]
 * Returns how many.
 */
size_t ck_rotate_decide(const struct ck_rotate_step *steps, size_t count, unsigned keep,
			bool save_to_come, bool *out);

/*
 * Un-publish a checkpoint: rename to .deleting-…, fsync the run directory. Gone already is fine; what is
 * no directory is nobody's checkpoint, and stays.
 * The files are removed by ck_sweep or ck_unpublished_remove. Returns 0; CK_EIO.
 */
int ck_unpublish(const struct ck_io *io, const char *dir, struct ck_step_id id,
		 struct ck_error *err);
int ck_unpublished_remove(const struct ck_io *io, const char *dir, struct ck_step_id id,
			  struct ck_error *err);

/*
 * Pins: a pinned checkpoint is not counted and never deleted. A pin is an empty file .pin-… in the run
 * directory, beside the checkpoint. Pinning twice, and removing a pin that is not there, is fine.
 * Return 0; CK_ENOENT (pin: no such checkpoint); CK_EIO (also: something else has the name).
 */
int ck_pin(const struct ck_io *io, const char *dir, struct ck_step_id id, struct ck_error *err);
int ck_unpin(const struct ck_io *io, const char *dir, struct ck_step_id id, struct ck_error *err);
/* Does a listing of the run directory have a pin of it? */
bool ck_pin_listed(const struct ck_names *names, struct ck_step_id id);
/* When it cannot be known, it counts as pinned. */
bool ck_is_pinned(const struct ck_io *io, const char *dir, struct ck_step_id id);

#endif
