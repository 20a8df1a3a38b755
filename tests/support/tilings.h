/*
 * Random tensors, cut into random blocks of random ranks, and a copy of a box that is so plain
 * that it can only be right: for whatever moves blocks from one layout to another.
 */
#ifndef TESTS_TILINGS_H
#define TESTS_TILINGS_H

#include <stddef.h>
#include <stdint.h>

#include "items.h"
#include "layout.h"
#include "random.h"

/* `count` boxes that tile a shape, some of them empty. */
void tile_shape(uint64_t *state, int ndim, const uint64_t *shape, size_t count, struct ck_box *out);

/* Copy `part` out of (or, with `in`, into) `whole`, element by element; either may be packed. */
void plain_copy(const struct ck_box *whole, void *whole_data, const struct ck_box *part,
		void *part_data, size_t element, int in);

/*
 * Items of random dtypes, 0 to 4 dimensions, with extents of 0 and 1 among them: the table, with
 * names "i0", "i1" …. free with ck_item_list_fini.
 */
struct ck_item_list draw_items(uint64_t *state, size_t count);

/*
 * Cut every item of the table into blocks of `ranks` ranks. `copies`: some blocks are held by
 * several ranks. `at` is the number of the block, in order of adding; `file` is the rank. Sorted.
 */
struct ck_layout draw_layout(uint64_t *state, const struct ck_item_list *table, uint32_t ranks,
			     int copies);

/* A box of one dimension. */
struct ck_box range(uint64_t begin, uint64_t end);

#endif
