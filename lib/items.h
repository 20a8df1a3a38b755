/*
 * Items: what the ranks registered, merged into one table, checked, and dealt out.
 *
 * Each rank describes its registrations (ck_item_list), packs them (binary), rank 0 gathers the
 * packed lists and ck_items_deal decides, purely, which rank stores which block. The result depends
 * on the registrations alone, so a restore with the same registrations finds the same deal.
 */
#ifndef CK_ITEMS_H
#define CK_ITEMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "error.h"
#include "tensor.h"

enum ck_kind {
	CK_SHARDED =
		0, /* distinct blocks tile a global tensor; replicated is the case of one block */
	CK_PER_RANK = 1 /* bytes of one rank; global_shape is null */
};

const char *ck_kind_name(enum ck_kind kind); /* "sharded", "per-rank" */
int ck_kind_parse(const char *name, enum ck_kind *out, struct ck_error *err);

/* One item of one rank: sharded with 0 or more blocks, or per-rank (no blocks here, no size). */
struct ck_item {
	char *name;
	enum ck_kind kind;
	enum ck_dtype dtype; /* CK_U8 for per-rank */
	int ndim;
	uint64_t shape[CK_MAX_NDIM]; /* global */
	struct ck_box *blocks; /* this rank's, in order of registration, empty ones included */
	size_t nblocks;
};

/* The items of one rank, in order of registration. Zeros are an empty list. */
struct ck_item_list {
	struct ck_item *items; /* malloc'ed; whoever builds a list by hand leaves the rest at 0 */
	size_t count;
	char *flat; /* name of the flat item, or NULL */
	/* Private: room for items, and a hash of the names of the first `hashed` ones. */
	size_t capacity;
	size_t *slots;
	size_t nslots;
	size_t hashed;
};

void ck_item_list_fini(struct ck_item_list *list);

/* Where an item stands; not linear in the list's length. Returns 0; CK_ENOENT; CK_ENOMEM. */
int ck_item_list_find(struct ck_item_list *list, const char *name, size_t *item,
		      struct ck_error *err);

/* Sort by name (bytes). */
void ck_item_list_sort(struct ck_item_list *list);

/* Append a copy of an item, without its blocks and without any check. Returns 0 or CK_ENOMEM. */
int ck_item_list_append(struct ck_item_list *list, const struct ck_item *item,
			struct ck_error *err);

/*
 * Are two items of one name the same thing: kind, dtype, shape? If not: `code`, and a text that
 * names the item and both values: "item 'w': dtype F32 (rank 0) and F16 (rank 3)".
 *   a_is, b_is  whose they are, in a few words
 */
int ck_item_same(const struct ck_item *a, const char *a_is, const struct ck_item *b,
		 const char *b_is, int code, struct ck_error *err);

/*
 * Add a block (sharded) or a per-rank item to a list. Checks what one rank can check: name, dtype,
 * shape (each extent and the bytes of the whole below 2^53), box inside the shape, no second kind,
 * dtype or shape for a name, non-empty blocks of one rank neither equal nor overlapping, at most
 * CK_PARTS_MAX blocks. Returns 0; CK_EARG; CK_ENOMEM. *item, *block: where it stands. After a
 * failure the list is as before.
 *
 *   shape  ndim extents; NULL is fine with ndim 0
 */
int ck_item_list_add_block(struct ck_item_list *list, const char *name, enum ck_dtype dtype,
			   int ndim, const uint64_t *shape, const struct ck_box *box, size_t *item,
			   size_t *block, struct ck_error *err);
int ck_item_list_add_rank(struct ck_item_list *list, const char *name, size_t *item,
			  struct ck_error *err);

/*
 * Binary form for the way to rank 0 and for hashing: items by name, blocks by box, empty blocks
 * left out; so it does not depend on the order of registration. Unpacking trusts nothing:
 * CK_EFORMAT.
 */
int ck_item_list_pack(const struct ck_item_list *list, struct ck_buf *out, struct ck_error *err);
int ck_item_list_unpack(const void *data, size_t bytes, struct ck_item_list *out,
			struct ck_error *err); /* items come sorted by name */

/*
 * Are the items of a checkpoint those of the program? Both tables are sorted by name. Compared are
 * names, kinds, dtypes and global shapes. Returns 0; CK_EITEM listing up to eight differences
 * ("'w': saved as F32 [4, 8], the program has F32 [4, 9]; 'm': only in the checkpoint"). Pure.
 */
int ck_items_compare(const struct ck_item_list *saved, const struct ck_item_list *program,
		     struct ck_error *err);

/* A stored block and those who hold it. */
struct ck_deal_block {
	size_t item; /* in the table */
	struct ck_box box;
	uint32_t *holders; /* ascending ranks; the deal's */
	size_t nholders;
	uint32_t writer; /* the one of the holders that stores it */
};

/* The merged table and the deal. */
struct ck_deal {
	struct ck_item_list table;    /* every item once, sorted by name; without blocks */
	struct ck_deal_block *blocks; /* non-empty, sorted by item, then box */
	size_t nblocks;
	uint32_t world_size;
	/* Private: all holders; per rank the blocks it holds, rank_blocks[rank_first[r] …]. */
	uint32_t *holders;
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
void ck_deal_fini(struct ck_deal *deal);

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
