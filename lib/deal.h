/*
 * Who stores what: the registrations of all ranks, merged, checked and dealt. The result depends on
 * these alone, so a restore with the same registrations finds the same deal.
 */
#ifndef CK_DEAL_H
#define CK_DEAL_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "error.h"
#include "items.h"
#include "layout.h"

/* A stored block and those who hold it. Its box: ck_deal_box. */
struct ck_deal_block {
	uint32_t item;   /* in the table */
	uint32_t writer; /* the one of the holders that stores it */
	size_t first;    /* of layout.blocks */
	size_t nholders; /* they are the ranks of layout.blocks[first …], ascending */
};

/* The merged table and the deal. */
struct ck_deal {
	struct ck_item_list table;    /* every item once, sorted by name; without blocks */
	struct ck_deal_block *blocks; /* non-empty, sorted by item, then box */
	size_t nblocks;
	uint32_t world_size;
	struct ck_layout
		layout; /* the non-empty blocks of all ranks, sorted; its table is not set */
	/* Private: per rank the blocks it holds, rank_blocks[rank_first[r] …]. */
	size_t *rank_first; /* world_size + 1 */
	size_t *rank_blocks;
};

/*
 * Merge and check: equal kind, dtype and shape on all ranks, per-rank items on every rank, exact
 * tiling (empty blocks aside), the flat item one-dimensional and sharded and the same on all ranks;
 * then give each block a writer, balancing bytes: blocks with one holder first, then the others by
 * falling size to the holder with the fewest bytes, the lowest rank on a tie.
 *
 *   lists  world_size of them; index = rank
 * Returns 0 (free with ck_deal_fini); CK_EITEM naming item, box and ranks; CK_ENOMEM. Pure.
 */
int ck_items_deal(const struct ck_item_list *lists, uint32_t world_size, struct ck_deal *out,
		  struct ck_error *err);

/*
 * The same for lists that are made one at a time: all of them at once would take a thousand times
 * their packed size.
 *
 *   next  makes the list of a rank, which is then freed (ck_item_list_fini) by the caller; called once
 *         for each rank in order, and for some again before a failure. Returns 0 or a code that ends it
 */
typedef int (*ck_deal_next)(void *arg, uint32_t rank, struct ck_item_list *out,
			    struct ck_error *err);
int ck_items_deal_each(ck_deal_next next, void *arg, uint32_t world_size, struct ck_deal *out,
		       struct ck_error *err);
void ck_deal_fini(struct ck_deal *deal);

/* The box of deal->blocks[block], and the rank of its h-th holder. */
void ck_deal_box(const struct ck_deal *deal, size_t block, struct ck_box *out);
uint32_t ck_deal_holder(const struct ck_deal *deal, const struct ck_deal_block *block, size_t h);

/*
 * What one rank needs of the deal, packed: for each of its blocks (in packed order: items by name,
 * blocks by box) its holders and writer.
 */
struct ck_duty_block {
	struct ck_box box;
	uint32_t writer;
	uint32_t *holders; /* ascending; NULL with nholders 1: this rank alone */
	size_t nholders;
};

struct ck_duty_item {
	char *name;
	struct ck_duty_block *blocks; /* this rank's non-empty blocks, by box */
	size_t nblocks;
};

struct ck_duty {
	struct ck_duty_item *items; /* sharded items with blocks here, by name */
	size_t count;
};

/* Holders go as runs of equal stride, so a block of all ranks is as short as a block of two. */
int ck_duty_pack(const struct ck_deal *deal, uint32_t rank, struct ck_buf *out,
		 struct ck_error *err);
int ck_duty_unpack(const void *data, size_t bytes, struct ck_duty *out, struct ck_error *err);
void ck_duty_fini(struct ck_duty *duty);

#endif
