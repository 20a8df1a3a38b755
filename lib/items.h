/*
 * Items: what the ranks registered, merged into one table, checked, and dealt out.
 *
 * Each rank describes its registrations (ck_item_list), packs them (binary), rank 0 gathers the
 * packed lists and ck_items_deal (deal.h) decides, purely, which rank stores which block.
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

/* The item of this name in a sorted list, or NULL. */
const struct ck_item *ck_item_list_search(const struct ck_item_list *list, const char *name);

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

/* Of a per-rank item that a checkpoint lacks: the likely cause, and the remedy. */
#define CK_LEFT_OUT                                                                          \
	"`ckpt reshard --per-rank=drop` leaves such items out: register it with "            \
	"ckpt_reassign_drop to begin without it, or resume from the checkpoint that it was " \
	"made from"

/*
 * Are the items of a checkpoint those of the program? Both tables are sorted by name. Compared are
 * names, kinds, dtypes and global shapes. Returns 0; CK_EITEM listing up to eight differences
 * ("'w': saved as F32 [4, 8], the program has F32 [4, 9]; 'm': only in the checkpoint"). Pure.
 */
int ck_items_compare(const struct ck_item_list *saved, const struct ck_item_list *program,
		     struct ck_error *err);

#endif
