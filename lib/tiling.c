#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tensor.h"

/*
 * A set of boxes falls apart where a hyperplane meets none of them. A grid falls apart into single
 * boxes, in O(n log n) per dimension; two boxes that overlap are never separated. What does not
 * fall apart is swept, comparing the boxes that are open at the same time.
 */

/* Levels of falling apart; beyond it (a spiral sheds one box per level) sweeping is cheaper. */
#define MAX_LEVEL 64
/* Box comparisons spent on finding where a hole is, in what does not fall apart. */
#define HOLE_EFFORT (UINT64_C(1) << 25)

struct range {
	size_t begin, end; /* of the index */
	int level;
};

struct tiling {
	int ndim;
	size_t count;
	const struct ck_box **index; /* the boxes, permuted at will */
	const struct ck_box **open;  /* room for the sweep */
	struct range *todo; /* ranges of two boxes or more, disjoint: count is enough room */
	size_t ntodo;
};

static void tiling_fini(struct tiling *t)
{
	free(t->index);
	free(t->open);
	free(t->todo);
}

static int tiling_init(struct tiling *t, int ndim, const struct ck_box *const *boxes, size_t count,
		       struct ck_error *err)
{
	*t = (struct tiling){.ndim = ndim, .count = count};
	t->index = calloc(count + 1, sizeof(*t->index));
	t->open = calloc(count + 1, sizeof(*t->open));
	t->todo = calloc(count + 1, sizeof(*t->todo));
	if (!t->index || !t->open || !t->todo) {
		tiling_fini(t);
		return ck_fail_nomem(err, count * sizeof(*t->todo));
	}
	if (count)
		memcpy(t->index, boxes, count * sizeof(*boxes));
	return 0;
}

static uint64_t end_of(const struct ck_box *box, int dim)
{
	return box->offset[dim] + box->extent[dim];
}

static int compare_offsets(const void *a, const void *b, void *dim)
{
	uint64_t x = (*(const struct ck_box *const *)a)->offset[*(int *)dim];
	uint64_t y = (*(const struct ck_box *const *)b)->offset[*(int *)dim];

	return x < y ? -1 : x > y;
}

static void sort_along(struct tiling *t, size_t begin, size_t end, int dim)
{
	qsort_r(t->index + begin, end - begin, sizeof(*t->index), compare_offsets, &dim);
}

/* In a range sorted along dim: where the boxes end that hang together with the first one. */
static size_t group_end(const struct tiling *t, size_t begin, size_t end, int dim, uint64_t *reach)
{
	size_t i = begin + 1;

	*reach = end_of(t->index[begin], dim);
	for (; i < end && t->index[i]->offset[dim] < *reach; i++)
		if (end_of(t->index[i], dim) > *reach)
			*reach = end_of(t->index[i], dim);
	return i;
}

/* A dimension along which a range falls apart, -1 if none. The range is sorted along it. */
static int find_cut(struct tiling *t, size_t begin, size_t end)
{
	uint64_t reach;

	for (int dim = 0; dim < t->ndim; dim++) {
		sort_along(t, begin, end, dim);
		if (group_end(t, begin, end, dim, &reach) < end)
			return dim;
	}
	return -1;
}

static void push_pieces(struct tiling *t, struct range range, int dim)
{
	size_t begin = range.begin, end;
	uint64_t reach;

	for (; begin < range.end; begin = end) {
		end = group_end(t, begin, range.end, dim, &reach);
		if (end - begin > 1)
			t->todo[t->ntodo++] = (struct range){begin, end, range.level + 1};
	}
}

static int busiest_dim(struct tiling *t, struct range range)
{
	size_t most = 0;
	int best = 0;

	for (int dim = 0; dim < t->ndim; dim++) {
		size_t distinct = 1;

		sort_along(t, range.begin, range.end, dim);
		for (size_t i = range.begin + 1; i < range.end; i++)
			distinct += t->index[i]->offset[dim] != t->index[i - 1]->offset[dim];
		if (distinct > most) {
			most = distinct;
			best = dim;
		}
	}
	return best;
}

/* Forget the open boxes that end before `box` begins; does one of the rest overlap it? */
static const struct ck_box *sweep_step(struct tiling *t, size_t *nopen, const struct ck_box *box,
				       int dim)
{
	size_t kept = 0;

	for (size_t i = 0; i < *nopen; i++) {
		const struct ck_box *other = t->open[i];

		if (end_of(other, dim) <= box->offset[dim])
			continue;
		if (ck_box_overlap(other, box))
			return other;
		t->open[kept++] = other;
	}
	*nopen = kept;
	return NULL;
}

static bool sweep(struct tiling *t, struct range range, const struct ck_box *pair[static 2])
{
	int dim = t->ndim ? busiest_dim(t, range) : 0;
	size_t nopen = 0;

	/* Scalars have one element, so any two of them overlap. */
	if (t->ndim == 0) {
		pair[0] = t->index[range.begin];
		pair[1] = t->index[range.begin + 1];
		return true;
	}
	sort_along(t, range.begin, range.end, dim);
	for (size_t i = range.begin; i < range.end; i++) {
		const struct ck_box *box = t->index[i];
		const struct ck_box *other = sweep_step(t, &nopen, box, dim);

		if (other) {
			pair[0] = other;
			pair[1] = box;
			return true;
		}
		t->open[nopen++] = box;
	}
	return false;
}

static void find_overlap(struct tiling *t, const struct ck_box *pair[static 2])
{
	pair[0] = pair[1] = NULL;
	t->ntodo = 0;
	if (t->count > 1)
		t->todo[t->ntodo++] = (struct range){0, t->count, 0};
	while (t->ntodo > 0) {
		struct range range = t->todo[--t->ntodo];
		int dim = range.level < MAX_LEVEL ? find_cut(t, range.begin, range.end) : -1;

		if (dim >= 0)
			push_pieces(t, range, dim);
		else if (sweep(t, range, pair))
			return;
	}
}

/* The pair in the order of ck_box_cmp, so that a text does not depend on how it was found. */
static void order_pair(const struct ck_box *pair[static 2])
{
	const struct ck_box *first = pair[0];

	if (first && ck_box_cmp(first, pair[1]) > 0) {
		pair[0] = pair[1];
		pair[1] = first;
	}
}

int ck_tiling_overlap(int ndim, const struct ck_box *const *boxes, size_t count,
		      const struct ck_box *pair[static 2], struct ck_error *err)
{
	struct tiling t;
	int rc = tiling_init(&t, ndim, boxes, count, err);

	if (rc)
		return rc;
	find_overlap(&t, pair);
	order_pair(pair);
	tiling_fini(&t);
	return 0;
}

/* The row-major first element that is in no box, as far as the search has come. */
struct hole {
	bool found;
	bool given_up; /* somewhere the search would have taken too long */
	uint64_t at[CK_MAX_NDIM];
};

static void hole_add(struct hole *hole, int ndim, const uint64_t *at)
{
	int dim = 0;

	while (hole->found && dim < ndim && at[dim] == hole->at[dim])
		dim++;
	if (hole->found && (dim == ndim || at[dim] > hole->at[dim]))
		return;
	hole->found = true;
	memcpy(hole->at, at, (size_t)ndim * sizeof(*at));
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/*
 * Each coordinate of the first missing element is the region's begin or the end of a box: else its
 * predecessor along that dimension would be missing too, and come first.
 */
static size_t coordinates(const struct tiling *t, const struct ck_box *region, struct range range,
			  int dim, uint64_t *out)
{
	size_t n = 0, kept = 0;

	out[n++] = region->offset[dim];
	for (size_t i = range.begin; i < range.end; i++)
		if (end_of(t->index[i], dim) < end_of(region, dim))
			out[n++] = end_of(t->index[i], dim);
	qsort(out, n, sizeof(*out), compare_u64);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || out[i] != out[i - 1])
			out[kept++] = out[i];
	return kept;
}

static bool covered(const struct tiling *t, struct range range, const uint64_t *at)
{
	struct ck_box point = {.ndim = t->ndim};

	for (int d = 0; d < t->ndim; d++) {
		point.offset[d] = at[d];
		point.extent[d] = 1;
	}
	for (size_t i = range.begin; i < range.end; i++)
		if (ck_box_overlap(t->index[i], &point))
			return true;
	return false;
}

/* The next candidate in row-major order; false behind the last one. */
static bool advance(int ndim, const size_t *counts, size_t *digit)
{
	for (int d = ndim - 1; d >= 0; d--) {
		if (++digit[d] < counts[d])
			return true;
		digit[d] = 0;
	}
	return false;
}

/* Try the candidates. values[d] are the counts[d] coordinates along d. */
static bool search_candidates(const struct tiling *t, struct range range, uint64_t *const *values,
			      const size_t *counts, uint64_t *at)
{
	size_t digit[CK_MAX_NDIM] = {0};

	do {
		for (int d = 0; d < t->ndim; d++)
			at[d] = values[d][digit[d]];
		if (!covered(t, range, at))
			return true;
	} while (advance(t->ndim, counts, digit));
	return false;
}

static void hole_in_tangle(const struct tiling *t, const struct ck_box *region, struct range range,
			   struct hole *hole)
{
	size_t n = range.end - range.begin, counts[CK_MAX_NDIM];
	uint64_t *room = calloc((n + 1) * ((size_t)t->ndim + 1), sizeof(*room));
	uint64_t *values[CK_MAX_NDIM], at[CK_MAX_NDIM], effort = n;
	bool bounded = room != NULL;

	for (int d = 0; d < t->ndim && bounded; d++) {
		values[d] = room + (n + 1) * (size_t)d;
		counts[d] = coordinates(t, region, range, d, values[d]);
		bounded = ck_mul_u64(effort, counts[d], &effort) && effort <= HOLE_EFFORT;
	}
	if (!bounded)
		hole->given_up = true;
	else if (search_candidates(t, range, values, counts, at))
		hole_add(hole, t->ndim, at);
	free(room);
}

static uint64_t volume_of(const struct tiling *t, size_t begin, size_t end)
{
	uint64_t volume = 0;

	for (size_t i = begin; i < end; i++)
		volume += ck_box_volume(t->index[i]);
	return volume;
}

static void hole_in(struct tiling *t, const struct ck_box *region, struct range range,
		    struct hole *hole);

/* The slabs of a region along dim, those without a box included. The range is sorted along dim. */
static void hole_in_slabs(struct tiling *t, const struct ck_box *region, struct range range,
			  int dim, struct hole *hole)
{
	uint64_t reach = region->offset[dim];
	struct ck_box slab = *region;
	size_t begin = range.begin, end;

	for (; begin < range.end; begin = end) {
		slab.offset[dim] = reach;
		if (t->index[begin]->offset[dim] > reach)
			hole_add(hole, t->ndim, slab.offset);
		slab.offset[dim] = t->index[begin]->offset[dim];
		end = group_end(t, begin, range.end, dim, &reach);
		slab.extent[dim] = reach - slab.offset[dim];
		hole_in(t, &slab, (struct range){begin, end, range.level + 1}, hole);
	}
	slab.offset[dim] = reach;
	if (reach < end_of(region, dim))
		hole_add(hole, t->ndim, slab.offset);
}

static bool spans(const struct tiling *t, const struct ck_box *region, struct range range, int dim)
{
	uint64_t reach;

	return group_end(t, range.begin, range.end, dim, &reach) == range.end &&
	       t->index[range.begin]->offset[dim] == region->offset[dim] &&
	       reach == end_of(region, dim);
}

/* Recursion is bounded by MAX_LEVEL. A range is never empty, its boxes lie in the region. */
static void hole_in(struct tiling *t, const struct ck_box *region, struct range range,
		    struct hole *hole)
{
	if (volume_of(t, range.begin, range.end) == ck_box_volume(region))
		return;
	for (int dim = 0; dim < t->ndim && range.level < MAX_LEVEL; dim++) {
		sort_along(t, range.begin, range.end, dim);
		if (!spans(t, region, range, dim)) {
			hole_in_slabs(t, region, range, dim, hole);
			return;
		}
	}
	hole_in_tangle(t, region, range, hole);
}

static int fail_hole(struct tiling *t, const struct ck_box *whole, uint64_t missing,
		     struct ck_error *err)
{
	struct hole hole = {.found = false};
	struct ck_buf at = CK_BUF_INIT;
	int rc;

	if (t->count)
		hole_in(t, whole, (struct range){0, t->count, 0}, &hole);
	else
		hole_add(&hole, t->ndim, whole->offset);
	if (hole.found)
		ck_shape_print(&at, t->ndim, hole.at);
	rc = ck_buf_check(&at, err);
	if (rc == 0)
		rc = ck_fail(err, CK_EITEM,
			     "hole: %" PRIu64 " of %" PRIu64 " elements are in no block%s%s",
			     missing, ck_box_volume(whole),
			     !hole.found     ? ""
			     : hole.given_up ? ", one at "
					     : ", the first at ",
			     hole.found ? at.data : "");
	ck_buf_fini(&at);
	return rc;
}

static int fail_overlap(const struct ck_box *const pair[static 2], struct ck_error *err)
{
	struct ck_buf text = CK_BUF_INIT;
	int rc;

	ck_box_print(&text, pair[0]);
	ck_buf_add_str(&text, " and ");
	ck_box_print(&text, pair[1]);
	rc = ck_buf_check(&text, err);
	if (rc == 0)
		rc = ck_fail(err, CK_EITEM, "%s overlap", text.data);
	ck_buf_fini(&text);
	return rc;
}

int ck_tiling_check(int ndim, const uint64_t *shape, const struct ck_box *const *boxes,
		    size_t count, struct ck_error *err)
{
	struct ck_box whole = {.ndim = ndim};
	const struct ck_box *pair[2];
	struct tiling t;
	uint64_t covers;
	int rc = tiling_init(&t, ndim, boxes, count, err);

	if (rc)
		return rc;
	if (ndim)
		memcpy(whole.extent, shape, (size_t)ndim * sizeof(*shape));
	find_overlap(&t, pair);
	order_pair(pair);
	/* Disjoint boxes inside the shape cover it exactly when they have its volume. */
	covers = pair[0] ? 0 : volume_of(&t, 0, count);
	if (pair[0])
		rc = fail_overlap(pair, err);
	else if (covers != ck_box_volume(&whole))
		rc = fail_hole(&t, &whole, ck_box_volume(&whole) - covers, err);
	tiling_fini(&t);
	return rc;
}
