/*
 * Cutting boxes: a large one into pieces that follow each other in memory, and the items of a program
 * into the blocks of so many ranks.
 */
#ifndef CK_SLABS_H
#define CK_SLABS_H

#include <stdbool.h>
#include <stdint.h>

#include "error.h"
#include "items.h"
#include "layout.h"
#include "tensor.h"

/* Walking along a box in row-major order, piece by piece. */
struct ck_slabs {
	struct ck_box box;
	int dim;       /* pieces are ranges of this one, of one index before it, whole behind it */
	uint64_t rows; /* of a piece */
	bool done;
	uint64_t index[CK_MAX_NDIM];
};

/* Pieces have at most `most` elements (>= 1). An empty box has none. */
void ck_slabs_init(struct ck_slabs *slabs, const struct ck_box *box, uint64_t most);
/* False: no more. Each piece begins, in the memory of the box, where the one before it ended. */
bool ck_slabs_next(struct ck_slabs *slabs, struct ck_box *out);

/*
 * Cut items for `world` ranks that nobody has asked yet: the flat item and large ones into a part for each
 * rank, along the first dimension that is long enough, else the longest; small ones whole, to whom has
 * the fewest bytes. Per-rank items are left out. `at` is 0. Pure.
 *
 *   out  initialised and empty, of the table; sorted afterwards
 * Returns 0; CK_ENOMEM.
 */
int ck_slabs_deal(const struct ck_item_list *table, uint32_t world, struct ck_layout *out,
		  struct ck_error *err);

#endif
