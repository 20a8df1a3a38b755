/* Blocks in little room: what is refused, how they are sorted, and holes and overlaps by name. */
#include "layout.h"

#include <stdlib.h>
#include <string.h>

#include "boxtree.h"
#include "tap.h"
#include "tilings.h"

static struct ck_item_list table;

static void make_table(void)
{
	struct ck_item w = {.name = (char *)"w", .dtype = CK_F32, .ndim = 1, .shape = {10}};
	struct ck_item m = {.name = (char *)"m", .dtype = CK_F64, .ndim = 2, .shape = {4, 4}};
	struct ck_item rng = {.name = (char *)"rng", .kind = CK_PER_RANK, .dtype = CK_U8};
	struct ck_item none = {.name = (char *)"none", .dtype = CK_F32, .ndim = 2, .shape = {0, 7}};

	if (ck_item_list_append(&table, &w, NULL) || ck_item_list_append(&table, &m, NULL) ||
	    ck_item_list_append(&table, &rng, NULL) || ck_item_list_append(&table, &none, NULL))
		abort();
	ck_item_list_sort(&table); /* m none rng w */
}

enum { M, NONE, RNG, W };

static int put(struct ck_layout *layout, uint32_t item, uint32_t rank, struct ck_box box)
{
	struct ck_layout_block block = {.item = item, .rank = rank, .file = rank};

	return ck_layout_add(layout, &block, &box, NULL);
}

static struct ck_box box2(uint64_t r, uint64_t nr, uint64_t c, uint64_t nc)
{
	return (struct ck_box){.ndim = 2, .offset = {r, c}, .extent = {nr, nc}};
}

static void refusals(void)
{
	struct ck_layout_block block = {.item = 4};
	struct ck_error err = CK_ERROR_INIT;
	struct ck_layout layout;
	struct ck_box box = range(0, 4);

	ck_layout_init(&layout, &table);
	is_int(ck_layout_add(&layout, &block, &box, &err), CK_EITEM, "an item that is not there");
	like(err.text, "item 4 of 4", "is told by number");
	block.item = M;
	is_int(ck_layout_add(&layout, &block, &box, &err), CK_EITEM, "other dimensions");
	like(err.text, "item 'm': a block of other dimensions", "are told");
	block.item = W;
	box = range(8, 11);
	is_int(ck_layout_add(&layout, &block, &box, &err), CK_EITEM, "a block that leaves");
	like(err.text, "item 'w': a block leaves the tensor", "is told");
	box = range(3, 3);
	is_int(ck_layout_add(&layout, &block, &box, &err), 0, "an empty block");
	is_u64(layout.nblocks, 0, "is left out");
	block.item = RNG;
	box = range(0, 0);
	is_int(ck_layout_add(&layout, &block, &box, &err), 0, "0 bytes of a rank");
	is_u64(layout.nblocks, 1, "count");
	ck_layout_fini(&layout);
}

/* Fill in what the case does not spoil. */
static void fill(struct ck_layout *layout, bool w, bool m, bool rng)
{
	for (uint32_t r = 0; r < 2; r++) {
		if (w)
			put(layout, W, r, range(5 * r, 5 * r + 5));
		if (m)
			put(layout, M, r, box2(0, 4, 2 * r, 2));
		if (rng)
			put(layout, RNG, r, range(0, 3));
	}
}

static void hole(struct ck_layout *layout)
{
	fill(layout, false, true, true);
	put(layout, W, 0, range(0, 4));
	put(layout, W, 1, range(6, 10));
}

static void overlap(struct ck_layout *layout)
{
	fill(layout, true, false, true);
	put(layout, M, 1, box2(0, 3, 0, 4));
	put(layout, M, 0, box2(2, 2, 0, 4));
}

static void overlap_and_hole(struct ck_layout *layout)
{
	fill(layout, false, true, true);
	put(layout, W, 0, range(0, 6));
	put(layout, W, 1, range(5, 9));
}

static void twice(struct ck_layout *layout)
{
	fill(layout, true, true, true);
	put(layout, W, 4, range(5, 10));
}

static void missing(struct ck_layout *layout)
{
	fill(layout, true, false, true);
}

static void rank_missing(struct ck_layout *layout)
{
	fill(layout, true, true, false);
	put(layout, RNG, 1, range(0, 9));
}

static void rank_twice(struct ck_layout *layout)
{
	fill(layout, true, true, true);
	put(layout, RNG, 1, range(0, 4));
}

static void whole(struct ck_layout *layout)
{
	fill(layout, true, true, true);
}

static void checks(void)
{
	static const struct {
		const char *what;
		void (*make)(struct ck_layout *layout);
		bool stored;
		int code;
		const char *text;
	} cases[] = {
		{"a hole", hole, true, CK_EITEM,
		 "item 'w': hole: 2 of 10 elements are in no block, the first at [4]"},
		{"an overlap", overlap, true, CK_EITEM,
		 "item 'm': [0:3, 0:4] (rank 1) and [2:4, 0:4] (rank 0) overlap"},
		{"an overlap that hides a hole", overlap_and_hole, false, CK_EITEM,
		 "item 'w': [0:6] (rank 0) and [5:9] (rank 1) overlap"},
		{"a block stored twice", twice, true, CK_EITEM,
		 "item 'w': [5:10] (rank 1) and [5:10] (rank 4) are the same, stored twice"},
		{"a block held twice", twice, false, 0, ""},
		{"an item that is missing", missing, true, CK_EITEM, "item 'm': hole: 16 of 16"},
		{"bytes of a rank that are missing", rank_missing, true, CK_EITEM,
		 "item 'rng': the bytes of rank 0 are stored nowhere"},
		{"bytes of a rank stored twice", rank_twice, true, CK_EITEM,
		 "item 'rng': the bytes of rank 1 are stored twice"},
		{"bytes of a rank do not matter for what is wanted", rank_missing, false, 0, ""},
		{"a whole layout", whole, true, 0, ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct ck_error err = CK_ERROR_INIT;
		struct ck_layout layout;

		ck_layout_init(&layout, &table);
		cases[i].make(&layout);
		is_int(ck_layout_sort(&layout, &err), 0, "%s: sorted", cases[i].what);
		is_int(ck_layout_check(&layout, 2, cases[i].stored, &err), cases[i].code, "%s",
		       cases[i].what);
		like(err.text, cases[i].text, "%s: text", cases[i].what);
		ck_layout_fini(&layout);
	}
}

static void sorted(void)
{
	struct ck_layout layout;
	struct ck_box box;

	ck_layout_init(&layout, &table);
	put(&layout, W, 2, range(5, 10));
	put(&layout, W, 1, range(5, 10));
	put(&layout, W, 1, range(0, 5));
	put(&layout, M, 0, box2(0, 4, 0, 4));
	is_int(ck_layout_sort(&layout, NULL), 0, "sorted");
	is_u64(layout.first[W], 1, "items in the order of the table");
	is_u64(layout.blocks[2].rank, 1, "identical blocks by rank");
	is_u64(ck_layout_same_end(&layout, 1), 2, "one block alone");
	is_u64(ck_layout_same_end(&layout, 2), 4, "two that are the same");
	ck_layout_box(&layout, 3, &box);
	is_u64(box.offset[0], 5, "coordinates come back");
	is_u64(ck_layout_bytes(&layout, 0), 128, "bytes of a block");
	ck_layout_fini(&layout);
}

/* Every question is answered as by looking at every box. */
static void tree(void)
{
	uint64_t state = 7, wrong = 0, asked = 0;
	struct ck_boxtree boxtree = {.layout = NULL};
	struct ck_hits hits = {.blocks = NULL};

	for (int trial = 0; trial < 1500; trial++) {
		struct ck_item_list items = draw_items(&state, 1);
		struct ck_layout a = draw_layout(&state, &items, 20, 1);
		struct ck_layout b = draw_layout(&state, &items, 20, 0);

		wrong += ck_boxtree_build(&boxtree, &a, 0, NULL) != 0;
		for (size_t i = 0; i < b.nblocks; i++) {
			const uint64_t *coords = b.coords + b.blocks[i].coords;
			struct ck_box box, other;
			size_t n = 0;

			hits.count = 0;
			wrong += ck_boxtree_find(&boxtree, coords, coords + b.blocks[i].ndim, &hits,
						 NULL) != 0;
			ck_layout_box(&b, i, &box);
			for (size_t k = 0; k < a.nblocks; k = ck_layout_same_end(&a, k)) {
				ck_layout_box(&a, k, &other);
				if (!ck_box_overlap(&box, &other))
					continue;
				wrong += n >= hits.count || hits.blocks[n] != k;
				n++;
			}
			wrong += n != hits.count;
			asked++;
		}
		ck_layout_fini(&a);
		ck_layout_fini(&b);
		ck_item_list_fini(&items);
	}
	free(hits.blocks);
	ck_boxtree_fini(&boxtree);
	ok(asked > 2000, "%llu questions were asked", (unsigned long long)asked);
	is_u64(wrong, 0, "the tree finds what a look at every box finds, in order");
}

int main(void)
{
	make_table();
	refusals();
	checks();
	sorted();
	tree();
	ck_item_list_fini(&table);
	return done_testing();
}
