/*
 * Between the files of shard.h.
 */
#ifndef CK_SHARD_IMPL_H
#define CK_SHARD_IMPL_H

#include "shard.h"

/* One transfer; file offsets of transfers are multiples of it. */
#define CK_SHARD_BLOCK ((size_t)4 << 20)
/* Blocks of one file that are under way, or just coming. */
#define CK_SHARD_SLOTS 2
/* Files that one thread advances together; what SHA-256 gains by (sha256_ni.h). */
#define CK_SHARD_LANES 4
/* Below this, all parts together, neither direct I/O nor a queue is worth its beginning. */
#define CK_SHARD_SMALL ((uint64_t)4 << 20)
#define CK_SHARD_ALIGN 4096

/* `options` or the default; `sha` is not CK_SHA_NONE in it. */
struct ck_shard_options ck_shard_options_or_default(const struct ck_shard_options *options);
void ck_shard_note(const struct ck_shard_options *options, unsigned note);
/* ck_io_open_direct failed with `errnum`. */
void ck_shard_note_direct(const struct ck_shard_options *options, int errnum);

/* Is this block of the same item as the one before it? */
bool ck_stored_follows(const struct ck_stored *blocks, size_t i);

/* Does it stand in a file at all? Empty sharded blocks do not. */
bool ck_stored_counts(const struct ck_stored *block);

/*
 * The pieces that the blocks of a shard are stored in, in their order, by the rule of
 * ck_shard_plan; empty blocks are left out. Returns 0 (free(*pieces)) or CK_ENOMEM. Pure.
 */
int ck_shard_cut(uint32_t world_size, const struct ck_stored *blocks, size_t nblocks,
		 struct ck_stored **pieces, size_t *npieces, struct ck_error *err);

#endif
