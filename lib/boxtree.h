/*
 * Which boxes of an item meet a given box? A balanced tree over disjoint boxes: a question costs
 * the answers and a few steps down, not a look at every box.
 */
#ifndef CK_BOXTREE_H
#define CK_BOXTREE_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "layout.h"

struct ck_boxtree {
	const struct ck_layout *layout;
	uint32_t ndim;
	uint32_t *order; /* blocks, so that each node of the tree is a range */
	size_t count;
	uint64_t *bounds; /* of each node: ndim begins, ndim ends */
	/* private */
	size_t capacity, bounds_capacity;
};

/* Zeros are an empty tree, ready to be built; building again keeps the memory. */
void ck_boxtree_fini(struct ck_boxtree *tree);

/*
 * Build it over the distinct boxes of a sharded item of a sorted layout, which must stay. Identical
 * boxes are one, that of the first. Returns 0 or CK_ENOMEM.
 */
int ck_boxtree_build(struct ck_boxtree *tree, const struct ck_layout *layout, size_t item,
		     struct ck_error *err);

/* Blocks that were found, ascending. Zeros to begin with; free(blocks). */
struct ck_hits {
	uint32_t *blocks;
	size_t count;
	size_t capacity;
};

/*
 * Append the blocks that share an element with a box: ndim offsets, ndim extents, none of them 0.
 * Returns 0 or CK_ENOMEM.
 */
int ck_boxtree_find(const struct ck_boxtree *tree, const uint64_t *offset, const uint64_t *extent,
		    struct ck_hits *hits, struct ck_error *err);

#endif
