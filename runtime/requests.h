/*
 * Requests from outside (`ckpt stop RUN`, `ckpt save RUN`): files in the run directory. A thread of rank 0
 * looks for them, so that no other thread makes a call to a slow file system for them.
 */
#ifndef CK_REQUESTS_H
#define CK_REQUESTS_H

#include <stdbool.h>

#include "error.h"
#include "io.h"

struct ck_requests;

/* Remove requests that were meant for an earlier start, and begin to look, about once a second. 0; CK_ENOMEM; CK_EIO. */
int ck_requests_new(struct ck_requests **out, const struct ck_io *io, const char *dir,
		    struct ck_error *err);

/* Has a stop been asked for? It stays. */
bool ck_requests_stop(const struct ck_requests *requests);
/* How many saves have been asked for so far. */
unsigned ck_requests_saves(const struct ck_requests *requests);

/* NULL is fine. */
void ck_requests_free(struct ck_requests *requests);

#endif
