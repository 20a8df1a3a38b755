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
#include "pin.h"

/* One checkpoint as the decision sees it. */
struct ck_rotate_step {
	struct ck_step_id id;
	bool bad;       /* refused by a resume, or failing *sized* */
	bool pinned;    /* not counted, never deleted */
	bool protected; /* the one this generation resumed from, until it has committed its own */
	bool held;      /* goes, if it has to, only after a commit */
	bool given_up;  /* of a time line that this generation does not continue */
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
 * Pure. Which are to be pinned by keep_every, and are not: killed between commit and pin, published by a salvage, or a
 * pin that failed? The first that is there, in this time line, at or after a multiple of keep_every; not those before
 * the newest that is pinned, whose pins somebody may have taken away on purpose. Steps as above. Returns how many.
 */
size_t ck_rotate_due(const struct ck_rotate_step *steps, size_t count, uint64_t keep_every,
		     bool *out);

/* Remove the files of a checkpoint that has left (leave.h). Missing is fine. Returns 0; CK_EIO. */
int ck_unpublished_remove(const struct ck_io *io, const char *dir, struct ck_step_id id,
			  struct ck_error *err);

#endif
