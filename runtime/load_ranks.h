/* Per-rank items of a checkpoint whose files were read by whoever it was. */
#ifndef CK_LOAD_RANKS_H
#define CK_LOAD_RANKS_H

#include "intake.h"
#include "restore.h"

/*
 * As many ranks as saved: bring each rank its own bytes, into load->rank_bytes. Otherwise show those of all
 * old ranks to `reassign`, item by item: memory is needed for one item of all of them at a time.
 * Collective. Returns 0; CK_EFORMAT: a callback refuses; CK_ENOMEM; CK_EPEER.
 */
int ck_load_ranks(ckpt *ck, const struct ck_intake *intake, struct ck_load *load,
		  struct ck_error *err);

#endif
