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
#include "run.h"

struct ck_rotation {
	const struct ck_io *io;
	const char *dir;
	uint64_t generation;
	unsigned keep;
	struct ck_step_id *bad; /* known to be bad */
	size_t nbad;
	struct ck_step_id *unseen; /* could not be looked at: as if pinned, until they can */
	size_t nunseen;
	bool sized_up;       /* those found at the start have been looked at, all of them */
	uint64_t keep_every; /* pin the first checkpoint at or after each multiple; 0: none */
	uint64_t last_step;  /* of the run's newest checkpoint before the one to come */
	uint64_t began_at;   /* the step that this generation continues from */
	bool pins_known;     /* what keep_every wants pinned, is */
	bool no_space;       /* a save has failed for that: nothing waits for a commit any more */
	bool leftovers;      /* of a save that failed, or of records, could not be removed */
	bool protects;       /* `protected_id` was resumed from, and nothing is committed since */
	struct ck_step_id protected_id;
	bool committed;     /* this generation has committed one */
	struct ck_run *run; /* what run.json says */
	bool noted;         /* it is known to say that there was a commit */
	struct ck_error
		trouble; /* of ck_rotation_tidy, or that one was not looked at: not told yet */
};

void ck_rotation_fini(struct ck_rotation *rotation);

/* Remember a bad checkpoint. Returns 0 or CK_ENOMEM. */
int ck_rotation_mark_bad(struct ck_rotation *rotation, struct ck_step_id id, struct ck_error *err);

/* No checkpoint is known to be bad any more; those there are looked at again before the next save. */
void ck_rotation_forget_bad(struct ck_rotation *rotation);

/*
 * Before the save `id`, when its staging directory has been made: look whether the run is still ours, and run.json there,
 * un-publish and unlink what has to go, and what is left of former tries and of writers that were fenced. A
 * checkpoint that cannot be looked at stays, and is looked at again before the next save.
 * Returns 0; CK_EFENCED; CK_EIO; CK_ENOMEM; what ck_rotation_tidy met.
 */
int ck_rotation_before(struct ck_rotation *rotation, struct ck_step_id id, struct ck_error *err);

/*
 * After the commit of `id`: pin it, if it is the first at or after a multiple of keep_every; with keep 1 the one
 * before it goes, and after the first commit of a start that went back, those newer than what it resumed from. Returns 0; CK_EFENCED; CK_EIO; CK_ENOMEM.
 */
int ck_rotation_after(struct ck_rotation *rotation, struct ck_step_id id, struct ck_error *err);

/* Later: unlink the records of `id`. What fails is told by the next ck_rotation_before. */
void ck_rotation_tidy(struct ck_rotation *rotation, struct ck_step_id id);

#endif
