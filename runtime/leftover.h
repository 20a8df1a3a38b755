/*
 * What earlier starts of the run have left.
 */
#ifndef CK_LEFTOVER_H
#define CK_LEFTOVER_H

#include "handle.h"

/*
 * Rank 0, once the run is ours: complete saves of dead generations are published, the others are put out of the way, and
 * both are told. Returns 0, also when something fails that loses nothing; CK_EIO, CK_ENOMEM: a save could not be
 * looked at, or completed, time and again, and no older checkpoint was asked for.
 */
int ck_leftover_salvage(ckpt *ck, struct ck_error *err);

#endif
