/*
 * What ranks tell each other to reshard, packed: little endian, in the order of reading.
 *
 *	file entries   rank 0 to each reader: which files, and what their digests must be
 *	headers        each reader to rank 0: which blocks stand where in its files
 *	shares         rank 0 to each reader: which block goes to whom
 *
 * Everything that reads trusts nothing: CK_EFORMAT.
 */
#ifndef CK_SHARE_H
#define CK_SHARE_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "error.h"
#include "layout.h"
#include "manifest.h"
#include "reshard.h"
#include "shard.h"

/* A file that a rank reads; `number` counts the files of the manifest. */
struct ck_share_file {
	uint32_t number;
	struct ck_file file; /* param_shard_* are 0 */
	/* Of the reader: the header that it parsed, as in struct ck_shard. */
	uint64_t head_bytes;
	uint32_t head_crc32;
};

/* Entry of one file, appended. Failure is remembered in `out`. */
void ck_share_pack_file(uint32_t number, const struct ck_file *file, struct ck_buf *out);
/* All of them. Returns 0 (ck_share_files_free); CK_EFORMAT; CK_ENOMEM. */
int ck_share_unpack_files(const void *data, size_t bytes, struct ck_share_file **files,
			  size_t *count, struct ck_error *err);
void ck_share_files_free(struct ck_share_file *files, size_t count);

/* What of a stored block is not as its item says: "kind", "dtype", "global shape"; NULL: nothing. */
const char *ck_share_differs(const struct ck_stored *block, const struct ck_item *item);

/*
 * Append the blocks of an open shard, which is file `number`, after comparing each with its item:
 * kind, dtype, global shape. Returns 0; CK_EFORMAT (path and item named); CK_ENOMEM.
 */
int ck_share_pack_header(uint32_t number, const struct ck_shard *shard, struct ck_item_list *table,
			 struct ck_buf *out, struct ck_error *err);

/*
 * Add what a reader packed to the layout of what is stored.
 *   files, nfiles  of the manifest: whose file it is
 * Returns 0; CK_EFORMAT; CK_EITEM; CK_ENOMEM. After a failure some blocks may have been added.
 */
int ck_share_unpack_headers(const void *data, size_t bytes, const struct ck_file *files,
			    size_t nfiles, struct ck_layout *stored, struct ck_error *err);

/* Append what is to be done with the blocks of file `number`. Failure is remembered in `out`. */
void ck_share_pack(const struct ck_layout *stored, const struct ck_layout *wanted,
		   const struct ck_reshard *plan, size_t number, struct ck_buf *out);

/*
 * Walking along a share: the files in their order, in each its blocks by place, for each its moves.
 *
 *	while (ck_share_next_file …) while (ck_share_next_block …) ck_share_next_move …
 */
struct ck_share_walk {
	struct ck_reader reader;
	const struct ck_item_list *table;
	uint32_t blocks, moves; /* left of this file, of this block */
};

struct ck_share_block {
	uint32_t item;
	uint32_t moves;
	uint64_t at; /* in the file */
	uint64_t bytes;
	size_t element; /* bytes */
	struct ck_box box;
};

struct ck_share_move {
	uint32_t rank;
	uint32_t slot; /* the rank's word for the block it wants, ck_layout_block.at */
	struct ck_box box;
};

/* Each returns 1: here is the next; 0: no more of this kind; CK_EFORMAT. Moves may be left out. */
int ck_share_next_file(struct ck_share_walk *walk, uint32_t *number, struct ck_error *err);
int ck_share_next_block(struct ck_share_walk *walk, struct ck_share_block *out,
			struct ck_error *err);
int ck_share_next_move(struct ck_share_walk *walk, const struct ck_share_block *block,
		       struct ck_share_move *out, struct ck_error *err);

#endif
