/*
 * Rank 0's deletions: which checkpoints go, and getting rid of them. Used by the background thread while
 * saves run, by the training thread only when none is under way.
 */
#ifndef CK_ROTATION_H
#define CK_ROTATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "io.h"
#include "names.h"

struct ck_rotation {
	const struct ck_io *io;
	const char *dir;
	uint64_t generation;
	unsigned keep;
	struct ck_step_id *bad; /* known to be bad */
	size_t nbad;
	bool sized_up;       /* those found at the start have been looked at */
	uint64_t keep_every; /* pin the first checkpoint at or after each multiple; 0: none */
	uint64_t last_step;  /* of the run's newest checkpoint before the one to come */
	bool protects;       /* `protected_id` was resumed from, and nothing is committed since */
	struct ck_step_id protected_id;
};

void ck_rotation_fini(struct ck_rotation *rotation);

/* Remember a bad checkpoint. Returns 0 or CK_ENOMEM. */
int ck_rotation_mark_bad(struct ck_rotation *rotation, struct ck_step_id id, struct ck_error *err);

/*
 * Un-publish what has to go: before a save (save_to_come), or after its commit. Only renames, so that it is
 * quick; ck_rotation_remove unlinks. Returns 0; CK_EFENCED; CK_EIO; CK_ENOMEM.
 */
int ck_rotation_unpublish(struct ck_rotation *rotation, bool save_to_come, struct ck_error *err);

/* After a commit: pin it, if it is the first at or after a multiple of keep_every. Returns 0; CK_EIO. */
int ck_rotation_pin(struct ck_rotation *rotation, struct ck_step_id id, struct ck_error *err);

/* Unlink what was un-published. Returns 0; CK_EIO. */
int ck_rotation_remove(struct ck_rotation *rotation, struct ck_error *err);

#endif
