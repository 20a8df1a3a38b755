/*
 * The run directory and its run.json, when a run is opened: found or made by rank 0, and seen by every rank.
 */
#ifndef CK_ENTER_H
#define CK_ENTER_H

#include "ckpt.h"
#include "error.h"

/*
 * Collective. Fills ck->run on rank 0. No run is made where the job has one elsewhere: when it has run before, or the
 * plugin has told us the id of its run. A rank that does not see that run, in a container or on a node without the
 * mount, fails for all: what it saves there would vanish.
 * Returns 0; CK_EREFUSED; CK_EFORMAT, CK_EIO, CK_ENOMEM: the directory or run.json; CK_EPEER.
 */
int ck_enter_run(ckpt *ck, struct ck_error *err);

#endif
