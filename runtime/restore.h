/*
 * Restoring: restore.c decides which checkpoint; load.c brings it into memory where this rank wants what it
 * stored itself, load_any.c where the blocks or the number of ranks are others.
 */
#ifndef CK_RESTORE_H
#define CK_RESTORE_H

#include "handle.h"
#include "shard.h"

/* Collective. Returns 0 with *result; a code, the same on all ranks. Logs the one line that says which. */
int ck_restore_now(ckpt *ck, enum ckpt_restored *result, struct ck_error *err);

/* Host memory for a block whose own memory needs a copier. */
struct ck_bounce {
	size_t item;
	struct ck_box box;
	void *host;
	uint64_t bytes;
};

/* One rank's files of the checkpoint that is being tried. */
struct ck_load {
	struct ck_shard *shards;
	void ***dst; /* dst[file][block]: where it goes */
	size_t nshards;
	struct ck_rank_bytes *rank_bytes; /* per-rank items, before they are handed over */
	size_t nrank_bytes;
	struct ck_bounce *bounces;
	size_t nbounces;
};

/* Memory for blocks whose items have copiers, and for per-rank items. Local. Returns 0 or CK_ENOMEM. */
int ck_load_init(ckpt *ck, struct ck_load *load, struct ck_error *err);

/* Where a block of this rank is read to: its own memory, or the host's where that needs a copier. */
void *ck_load_memory(ckpt *ck, const struct ck_load *load, size_t item, const struct ck_box *box);

/*
 * Open this rank's files, check their sizes, and find the memory of each block: what is stored must be
 * what this rank would store now. Local. Returns 0; CK_ENOENT, CK_EFORMAT, CK_EIO: the file is bad;
 * CK_EITEM: it has other blocks than this rank wants.
 *   load  after ck_load_init
 */
int ck_load_open(ckpt *ck, const char *dir, const struct ck_record *record, struct ck_load *load,
		 struct ck_error *err);

/*
 * Bring a checkpoint of other blocks, or of another number of ranks, to those who want it: each stored file
 * is read once, by one rank. Blocks that several ranks hold arrive at their writer (ck_load_share). Per-rank
 * items are in load->rank_bytes; with another number of ranks they go to `reassign`, at once.
 *
 *   manifest  rank 0's
 *   load      after ck_load_init
 * Collective. Returns as ck_intake_run; CK_EITEM also: a per-rank item cannot be reassigned.
 */
int ck_load_any(ckpt *ck, const char *dir, const struct ck_manifest *manifest, uint32_t old_world,
		enum ck_level level, struct ck_load *load, struct ck_error *err);

/* Read and verify each file once, into the registered memory. Local. 0; CK_EDIGEST; CK_EIO. */
int ck_load_read(ckpt *ck, const struct ck_record *record, enum ck_level level,
		 struct ck_load *load, struct ck_error *err);

/* Bring each block that several ranks hold from the one that read it to the others. Collective. */
int ck_load_share(ckpt *ck, struct ck_load *load, struct ck_error *err);

/*
 * Give the program what its callbacks take: per-rank items, and blocks by copiers. Local. 0; CK_EFORMAT when
 * one refuses.
 */
int ck_load_hand_over(ckpt *ck, struct ck_load *load, struct ck_error *err);

void ck_load_fini(ckpt *ck, struct ck_load *load);

#endif
