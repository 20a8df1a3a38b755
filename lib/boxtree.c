#include "boxtree.h"

#include <stdlib.h>

/* A node with so few boxes is not divided further. */
#define LEAF 4

void ck_boxtree_fini(struct ck_boxtree *tree)
{
	free(tree->order);
	free(tree->bounds);
	*tree = (struct ck_boxtree){.layout = NULL};
}

static const uint64_t *coords_of(const struct ck_boxtree *tree, size_t i)
{
	const struct ck_layout *layout = tree->layout;

	return layout->coords + layout->blocks[tree->order[i]].coords;
}

/* Nodes are numbered as in a heap: those below node n are 2n + 1 and 2n + 2. */
static size_t count_nodes(size_t count)
{
	size_t nodes = 1;

	for (; count > LEAF; count = (count + 1) / 2)
		nodes = 2 * nodes + 1;
	return nodes;
}

/* The box around a range of boxes. */
static void bound(struct ck_boxtree *tree, size_t node, size_t begin, size_t end)
{
	uint64_t *low = tree->bounds + node * 2 * tree->ndim, *high = low + tree->ndim;

	for (uint32_t d = 0; d < tree->ndim; d++) {
		low[d] = UINT64_MAX;
		high[d] = 0;
	}
	for (size_t i = begin; i < end; i++) {
		const uint64_t *offset = coords_of(tree, i), *extent = offset + tree->ndim;

		for (uint32_t d = 0; d < tree->ndim; d++) {
			uint64_t last = offset[d] + extent[d];

			low[d] = offset[d] < low[d] ? offset[d] : low[d];
			high[d] = last > high[d] ? last : high[d];
		}
	}
}

/* The dimension along which a range spans most boxes. */
static uint32_t widest(const struct ck_boxtree *tree, size_t node, size_t begin, size_t end)
{
	const uint64_t *low = tree->bounds + node * 2 * tree->ndim, *high = low + tree->ndim;
	double most = 0;
	uint32_t best = 0;

	for (uint32_t d = 0; d < tree->ndim && tree->ndim > 1; d++) {
		double sum = 0, span;

		for (size_t i = begin; i < end; i++)
			sum += (double)coords_of(tree, i)[tree->ndim + d];
		span = (double)(high[d] - low[d]) / sum;
		if (span > most) {
			most = span;
			best = d;
		}
	}
	return best;
}

static void swap(uint32_t *a, uint32_t *b)
{
	uint32_t kept = *a;

	*a = *b;
	*b = kept;
}

/* Reorder a range so that no box before `middle` begins behind one from `middle` on (quickselect). */
static void divide(struct ck_boxtree *tree, size_t begin, size_t end, size_t middle, uint32_t d)
{
	while (end - begin > 1) {
		uint64_t pivot = coords_of(tree, begin + (end - begin) / 2)[d];
		size_t i = begin, j = end - 1;

		for (;;) {
			while (coords_of(tree, i)[d] < pivot)
				i++;
			while (coords_of(tree, j)[d] > pivot)
				j--;
			if (i >= j)
				break;
			swap(&tree->order[i++], &tree->order[j--]);
		}
		/* Now [begin, i) <= pivot <= [j + 1, end), and i is j, or the next. */
		if (middle < i)
			end = i;
		else if (middle > j)
			begin = j + 1;
		else
			return;
	}
}

static void build(struct ck_boxtree *tree, size_t node, size_t begin, size_t end)
{
	size_t middle = begin + (end - begin + 1) / 2;

	bound(tree, node, begin, end);
	if (end - begin <= LEAF)
		return;
	divide(tree, begin, end, middle, widest(tree, node, begin, end));
	build(tree, 2 * node + 1, begin, middle);
	build(tree, 2 * node + 2, middle, end);
}

static int reserve(struct ck_boxtree *tree, size_t count, struct ck_error *err)
{
	size_t words = count_nodes(count) * 2 * tree->ndim + 1;

	if (count > tree->capacity || !tree->order) {
		free(tree->order);
		tree->order = malloc((count + 1) * sizeof(*tree->order));
		tree->capacity = tree->order ? count : 0;
	}
	if (words > tree->bounds_capacity) {
		free(tree->bounds);
		tree->bounds = malloc(words * sizeof(*tree->bounds));
		tree->bounds_capacity = tree->bounds ? words : 0;
	}
	return tree->order && tree->bounds ? 0 : ck_fail_nomem(err, words * sizeof(uint64_t));
}

int ck_boxtree_build(struct ck_boxtree *tree, const struct ck_layout *layout, size_t item,
		     struct ck_error *err)
{
	size_t begin = layout->first[item], end = layout->first[item + 1];
	int rc;

	tree->layout = layout;
	tree->ndim = (uint32_t)layout->table->items[item].ndim;
	tree->count = 0;
	rc = reserve(tree, end - begin, err);
	if (rc)
		return rc;
	for (size_t i = begin; i < end; i = ck_layout_same_end(layout, i))
		tree->order[tree->count++] = (uint32_t)i;
	if (tree->count)
		build(tree, 0, 0, tree->count);
	return 0;
}

static int add_hit(struct ck_hits *hits, uint32_t block, struct ck_error *err)
{
	if (hits->count == hits->capacity) {
		size_t capacity = hits->capacity ? 2 * hits->capacity : 64;
		uint32_t *blocks = reallocarray(hits->blocks, capacity, sizeof(*blocks));

		if (!blocks)
			return ck_fail_nomem(err, capacity * sizeof(*blocks));
		hits->blocks = blocks;
		hits->capacity = capacity;
	}
	hits->blocks[hits->count++] = block;
	return 0;
}

struct question {
	const struct ck_boxtree *tree;
	const uint64_t *offset, *extent;
	struct ck_hits *hits;
};

static int look_at_leaf(const struct question *q, size_t begin, size_t end, struct ck_error *err)
{
	uint32_t ndim = q->tree->ndim;
	int rc = 0;

	for (size_t i = begin; i < end && !rc; i++) {
		const uint64_t *offset = coords_of(q->tree, i), *extent = offset + ndim;
		uint32_t d = 0;

		while (d < ndim && q->offset[d] < offset[d] + extent[d] &&
		       offset[d] < q->offset[d] + q->extent[d])
			d++;
		if (d == ndim)
			rc = add_hit(q->hits, q->tree->order[i], err);
	}
	return rc;
}

static int look(const struct question *q, size_t node, size_t begin, size_t end,
		struct ck_error *err)
{
	uint32_t ndim = q->tree->ndim;
	const uint64_t *low = q->tree->bounds + node * 2 * ndim, *high = low + ndim;
	size_t middle = begin + (end - begin + 1) / 2;
	int rc;

	for (uint32_t d = 0; d < ndim; d++)
		if (q->offset[d] >= high[d] || low[d] >= q->offset[d] + q->extent[d])
			return 0;
	if (end - begin <= LEAF)
		return look_at_leaf(q, begin, end, err);
	rc = look(q, 2 * node + 1, begin, middle, err);
	return rc ? rc : look(q, 2 * node + 2, middle, end, err);
}

static int compare_hits(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

int ck_boxtree_find(const struct ck_boxtree *tree, const uint64_t *offset, const uint64_t *extent,
		    struct ck_hits *hits, struct ck_error *err)
{
	struct question q = {.tree = tree, .offset = offset, .extent = extent, .hits = hits};
	size_t before = hits->count;
	int rc = tree->count ? look(&q, 0, 0, tree->count, err) : 0;

	if (hits->count > before + 1)
		qsort(hits->blocks + before, hits->count - before, sizeof(*hits->blocks),
		      compare_hits);
	return rc;
}
