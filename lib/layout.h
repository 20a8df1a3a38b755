/*
 * The blocks of many ranks, in little room: 32 bytes and the coordinates of its own dimensions for
 * each (a struct ck_box always has room for CK_MAX_NDIM).
 *
 *	ck_layout_init -> ck_layout_add, many times -> ck_layout_sort -> look, check, plan
 *
 * Used for what a checkpoint has and for what a program wants; both count items in the same table.
 */
#ifndef CK_LAYOUT_H
#define CK_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "items.h"
#include "tensor.h"

struct ck_layout_block {
	uint32_t item;   /* in the table */
	uint32_t rank;   /* whose it is */
	uint32_t file;   /* stored: which file; wanted: 0 */
	uint32_t ndim;   /* of the item; 1 for bytes of a rank */
	uint64_t at;     /* stored: byte of the file; wanted: the rank's own word for it */
	uint64_t coords; /* in the pool: ndim offsets, ndim extents */
};

struct ck_layout {
	const struct ck_item_list *table; /* sorted by name; the caller's, and stays */
	struct ck_layout_block *blocks;
	size_t nblocks;
	uint64_t *coords;
	size_t ncoords;
	size_t *first; /* once sorted: blocks of item i are [first[i], first[i + 1]) */
	/* private */
	size_t capacity, coords_capacity;
};

void ck_layout_init(struct ck_layout *layout, const struct ck_item_list *table);
void ck_layout_fini(struct ck_layout *layout);

/*
 * Add a block; an empty one of a sharded item is left out. Of a per-rank item the box is [0, bytes).
 * `block` gives item, rank, file and at. Returns 0; CK_EITEM (no such item, other dimensions, or
 * the box leaves the tensor); CK_ENOMEM.
 */
int ck_layout_add(struct ck_layout *layout, const struct ck_layout_block *block,
		  const struct ck_box *box, struct ck_error *err);

/* By item; then sharded ones by box, rank, file, those of a rank by rank, file. 0 or CK_ENOMEM. */
int ck_layout_sort(struct ck_layout *layout, struct ck_error *err);

void ck_layout_box(const struct ck_layout *layout, size_t block, struct ck_box *out);
uint64_t ck_layout_bytes(const struct ck_layout *layout, size_t block);

/* Sorted: behind the last block that is the same box of the same item as `block`. */
size_t ck_layout_same_end(const struct ck_layout *layout, size_t block);

/*
 * Sorted: do the distinct blocks of each sharded item tile it exactly, and has each of `world` ranks
 * its bytes of each per-rank item, once?
 *
 *   stored  true: a box that stands twice is an error too; false: per-rank items are not looked at
 * Returns 0; CK_EITEM: "item 'w': [0:4] (rank 1) and [2:6] (rank 3) overlap"; CK_ENOMEM.
 */
int ck_layout_check(const struct ck_layout *layout, uint32_t world, bool stored,
		    struct ck_error *err);

#endif
