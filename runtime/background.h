/*
 * One thread beside the training thread, which does in order whatever must not stop training: writing
 * shards, commits, deletions, events. It calls no communicator and no callback of the program, and has
 * all signals blocked.
 */
#ifndef CK_BACKGROUND_H
#define CK_BACKGROUND_H

#include <stdbool.h>

#include "error.h"

struct ck_background;

/* Returns 0; CK_ENOMEM; CK_EIO (no thread). */
int ck_background_new(struct ck_background **out, struct ck_error *err);

/* Run `run(arg)` there, after everything posted before. Returns 0 or CK_ENOMEM (nothing is posted). */
int ck_background_post(struct ck_background *background, void (*run)(void *arg), void *arg,
		       struct ck_error *err);

/* Is there nothing left to do? */
bool ck_background_idle(struct ck_background *background);

/* Finish what was posted, end the thread. NULL is fine. */
void ck_background_free(struct ck_background *background);

#endif
