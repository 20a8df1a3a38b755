#include "layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

void ck_layout_init(struct ck_layout *layout, const struct ck_item_list *table)
{
	*layout = (struct ck_layout){.table = table};
}

void ck_layout_fini(struct ck_layout *layout)
{
	free(layout->blocks);
	free(layout->coords);
	free(layout->first);
	*layout = (struct ck_layout){.table = NULL};
}

static int fail_item(const struct ck_layout *layout, size_t item, const char *text,
		     struct ck_error *err)
{
	char shown[CK_JSON_SHOW];

	return ck_fail(err, CK_EITEM, "item '%s': %s",
		       ck_json_show(shown, layout->table->items[item].name), text);
}

/* Room for `more` in an array that doubles; NULL: none. */
static void *grow(void *array, size_t *capacity, size_t used, size_t more, size_t size)
{
	size_t wanted = *capacity ? *capacity : 64;
	void *grown;

	if (used + more <= *capacity)
		return array;
	while (wanted < used + more)
		wanted *= 2;
	grown = reallocarray(array, wanted, size);
	if (grown)
		*capacity = wanted;
	return grown;
}

static int make_room(struct ck_layout *layout, uint32_t ndim, struct ck_error *err)
{
	void *room = grow(layout->blocks, &layout->capacity, layout->nblocks, 1,
			  sizeof(*layout->blocks));

	if (!room)
		return ck_fail_nomem(err, 2 * layout->nblocks * sizeof(*layout->blocks));
	layout->blocks = room;
	room = grow(layout->coords, &layout->coords_capacity, layout->ncoords, (size_t)2 * ndim + 1,
		    sizeof(*layout->coords));
	if (!room)
		return ck_fail_nomem(err, 2 * layout->ncoords * sizeof(*layout->coords));
	layout->coords = room;
	return 0;
}

int ck_layout_add(struct ck_layout *layout, const struct ck_layout_block *block,
		  const struct ck_box *box, struct ck_error *err)
{
	const struct ck_item *item;
	struct ck_layout_block *to;
	size_t bytes = (size_t)box->ndim * sizeof(uint64_t);
	int rc;

	if (block->item >= layout->table->count)
		return ck_fail(err, CK_EITEM, "item %" PRIu32 " of %zu: there is none", block->item,
			       layout->table->count);
	item = &layout->table->items[block->item];
	if (box->ndim != (item->kind == CK_PER_RANK ? 1 : item->ndim))
		return fail_item(layout, block->item, "a block of other dimensions", err);
	if (item->kind == CK_SHARDED && !ck_box_inside(box, item->shape))
		return fail_item(layout, block->item, "a block leaves the tensor", err);
	if (item->kind == CK_SHARDED && ck_box_empty(box))
		return 0;
	rc = make_room(layout, (uint32_t)box->ndim, err);
	if (rc)
		return rc;
	to = &layout->blocks[layout->nblocks++];
	*to = *block;
	to->ndim = (uint32_t)box->ndim;
	to->coords = layout->ncoords;
	memcpy(layout->coords + layout->ncoords, box->offset, bytes);
	memcpy(layout->coords + layout->ncoords + box->ndim, box->extent, bytes);
	layout->ncoords += 2 * (size_t)box->ndim;
	return 0;
}

static int compare_coords(const struct ck_layout *layout, const struct ck_layout_block *a,
			  const struct ck_layout_block *b)
{
	const uint64_t *x = layout->coords + a->coords, *y = layout->coords + b->coords;

	for (uint32_t i = 0; i < 2 * a->ndim; i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	return 0;
}

static int compare_blocks(const void *a, const void *b, void *arg)
{
	const struct ck_layout_block *x = a, *y = b;
	const struct ck_layout *layout = arg;
	int order = 0;

	if (layout->table->items[x->item].kind == CK_SHARDED)
		order = compare_coords(layout, x, y);
	if (order)
		return order;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->file > y->file) - (x->file < y->file);
}

/* Blocks come rank by rank: bring those of each item together first, which is linear. */
static void scatter_by_item(const struct ck_layout *layout, const size_t *first, size_t *next,
			    struct ck_layout_block *to)
{
	memcpy(next, first, layout->table->count * sizeof(*next));
	for (size_t i = 0; i < layout->nblocks; i++)
		to[next[layout->blocks[i].item]++] = layout->blocks[i];
}

int ck_layout_sort(struct ck_layout *layout, struct ck_error *err)
{
	size_t count = layout->table->count;
	size_t *first = calloc(count + 1, sizeof(*first));
	size_t *next = calloc(count + 1, sizeof(*next));
	struct ck_layout_block *sorted = calloc(layout->nblocks + 1, sizeof(*sorted));

	if (!first || !next || !sorted) {
		free(first);
		free(next);
		free(sorted);
		return ck_fail_nomem(err, (layout->nblocks + 1) * sizeof(*sorted));
	}
	for (size_t i = 0; i < layout->nblocks; i++)
		first[layout->blocks[i].item + 1]++;
	for (size_t i = 0; i < count; i++)
		first[i + 1] += first[i];
	scatter_by_item(layout, first, next, sorted);
	for (size_t i = 0; i < count; i++)
		qsort_r(sorted + first[i], first[i + 1] - first[i], sizeof(*sorted), compare_blocks,
			layout);
	free(next);
	free(layout->blocks);
	free(layout->first);
	layout->blocks = sorted;
	layout->capacity = layout->nblocks + 1;
	layout->first = first;
	return 0;
}

void ck_layout_box(const struct ck_layout *layout, size_t block, struct ck_box *out)
{
	const struct ck_layout_block *from = &layout->blocks[block];
	const uint64_t *coords = layout->coords + from->coords;

	out->ndim = (int)from->ndim;
	memcpy(out->offset, coords, from->ndim * sizeof(*coords));
	memcpy(out->extent, coords + from->ndim, from->ndim * sizeof(*coords));
}

uint64_t ck_layout_bytes(const struct ck_layout *layout, size_t block)
{
	const struct ck_layout_block *from = &layout->blocks[block];
	uint64_t volume = 0;

	ck_volume((int)from->ndim, layout->coords + from->coords + from->ndim, &volume);
	return volume * ck_dtype_size((int)layout->table->items[from->item].dtype);
}

size_t ck_layout_same_end(const struct ck_layout *layout, size_t block)
{
	const struct ck_layout_block *blocks = layout->blocks;
	size_t end = layout->first[blocks[block].item + 1], i = block + 1;

	while (i < end && compare_coords(layout, &blocks[block], &blocks[i]) == 0)
		i++;
	return i;
}

/* ---- is it exact? ---- */

/* The distinct boxes of one item, in full, as the tiling check wants them. */
struct distinct {
	struct ck_box *boxes;
	const struct ck_box **index;
	size_t *block; /* boxes[i] is that of block[i] */
	size_t capacity;
	size_t count;
};

static void distinct_fini(struct distinct *d)
{
	free(d->boxes);
	free(d->index);
	free(d->block);
}

static int distinct_reserve(struct distinct *d, size_t count, struct ck_error *err)
{
	if (count <= d->capacity)
		return 0;
	distinct_fini(d);
	d->boxes = malloc(count * sizeof(*d->boxes));
	d->index = malloc(count * sizeof(*d->index));
	d->block = malloc(count * sizeof(*d->block));
	d->capacity = d->boxes && d->index && d->block ? count : 0;
	return d->capacity ? 0 : ck_fail_nomem(err, count * sizeof(*d->boxes));
}

/* `rank` of the block that a box of the index is. */
static uint32_t rank_of(const struct ck_layout *layout, const struct distinct *d,
			const struct ck_box *box)
{
	return layout->blocks[d->block[box - d->boxes]].rank;
}

static int fail_pair(const struct ck_layout *layout, size_t item, const struct ck_box *const *pair,
		     const uint32_t *ranks, const char *what, struct ck_error *err)
{
	struct ck_buf text = CK_BUF_INIT;
	int rc;

	ck_box_print(&text, pair[0]);
	ck_buf_addf(&text, " (rank %" PRIu32 ") and ", ranks[0]);
	ck_box_print(&text, pair[1]);
	ck_buf_addf(&text, " (rank %" PRIu32 ") %s", ranks[1], what);
	rc = ck_buf_check(&text, err);
	if (!rc)
		rc = fail_item(layout, item, text.data, err);
	ck_buf_fini(&text);
	return rc;
}

static int fail_tiling(const struct ck_layout *layout, size_t item, const struct distinct *d,
		       struct ck_error *err)
{
	const struct ck_item *it = &layout->table->items[item];
	struct ck_error why = CK_ERROR_INIT;
	const struct ck_box *pair[2];
	uint32_t ranks[2];
	int rc = ck_tiling_overlap(it->ndim, d->index, d->count, pair, err);

	if (rc)
		return rc;
	if (!pair[0]) {
		rc = ck_tiling_check(it->ndim, it->shape, d->index, d->count, &why);
		return rc == CK_EITEM ? fail_item(layout, item, why.text, err)
				      : ck_fail(err, rc, "%s", why.text);
	}
	ranks[0] = rank_of(layout, d, pair[0]);
	ranks[1] = rank_of(layout, d, pair[1]);
	return fail_pair(layout, item, pair, ranks, "overlap", err);
}

static int fail_twice(const struct ck_layout *layout, size_t a, size_t b, struct ck_error *err)
{
	uint32_t ranks[2] = {layout->blocks[a].rank, layout->blocks[b].rank};
	const struct ck_box *pair[2];
	struct ck_box box;

	ck_layout_box(layout, a, &box);
	pair[0] = pair[1] = &box;
	return fail_pair(layout, layout->blocks[a].item, pair, ranks, "are the same, stored twice",
			 err);
}

static int check_sharded(const struct ck_layout *layout, size_t item, bool stored,
			 struct distinct *d, struct ck_error *err)
{
	const struct ck_item *it = &layout->table->items[item];
	size_t begin = layout->first[item], end = layout->first[item + 1], next;
	int rc = distinct_reserve(d, end - begin, err);

	if (rc)
		return rc;
	d->count = 0;
	for (size_t i = begin; i < end; i = next) {
		next = ck_layout_same_end(layout, i);
		if (stored && next > i + 1)
			return fail_twice(layout, i, i + 1, err);
		d->block[d->count] = i;
		d->index[d->count] = &d->boxes[d->count];
		ck_layout_box(layout, i, &d->boxes[d->count++]);
	}
	rc = ck_tiling_check(it->ndim, it->shape, d->index, d->count, NULL);
	return rc ? fail_tiling(layout, item, d, err) : 0;
}

static int check_per_rank(const struct ck_layout *layout, size_t item, uint32_t world,
			  struct ck_error *err)
{
	char text[96];
	size_t begin = layout->first[item], count = layout->first[item + 1] - begin;

	for (size_t i = 0; i < count || i < world; i++) {
		uint32_t rank = i < count ? layout->blocks[begin + i].rank : UINT32_MAX;

		if (rank == i)
			continue;
		snprintf(text, sizeof(text), "the bytes of rank %zu are stored %s",
			 rank < i ? (size_t)rank : i, rank < i ? "twice" : "nowhere");
		return fail_item(layout, item, text, err);
	}
	return 0;
}

int ck_layout_check(const struct ck_layout *layout, uint32_t world, bool stored,
		    struct ck_error *err)
{
	struct distinct d = {.boxes = NULL};
	int rc = 0;

	for (size_t i = 0; i < layout->table->count && !rc; i++) {
		if (layout->table->items[i].kind == CK_SHARDED)
			rc = check_sharded(layout, i, stored, &d, err);
		else if (stored)
			rc = check_per_rank(layout, i, world, err);
	}
	distinct_fini(&d);
	return rc;
}
