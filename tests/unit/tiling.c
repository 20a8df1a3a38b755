#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"
#include "tap.h"
#include "tensor.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

/* A set of boxes that grows. */
struct boxes {
	struct ck_box *box;
	size_t count, room;
};

static struct ck_box *add(struct boxes *boxes, const struct ck_box *box)
{
	if (boxes->count == boxes->room) {
		struct ck_box *more;

		boxes->room = boxes->room ? 2 * boxes->room : 16;
		more = realloc(boxes->box, boxes->room * sizeof(*boxes->box));
		if (!more)
			abort();
		boxes->box = more;
	}
	boxes->box[boxes->count] = *box;
	return &boxes->box[boxes->count++];
}

static void add2(struct boxes *boxes, uint64_t y, uint64_t x, uint64_t h, uint64_t w)
{
	add(boxes, &(struct ck_box){.ndim = 2, .offset = {y, x}, .extent = {h, w}});
}

static const struct ck_box **pointers(const struct boxes *boxes)
{
	const struct ck_box **index = calloc(boxes->count + 1, sizeof(*index));

	for (size_t i = 0; i < boxes->count; i++)
		index[i] = &boxes->box[i];
	return index;
}

static void shuffle(const struct ck_box **index, size_t count, uint64_t *state)
{
	for (size_t i = count; i > 1; i--) {
		size_t k = draw(state, i);
		const struct ck_box *swap = index[k];

		index[k] = index[i - 1];
		index[i - 1] = swap;
	}
}

static int check(int ndim, const uint64_t *shape, const struct boxes *boxes, struct ck_error *err)
{
	const struct ck_box **index = pointers(boxes);
	uint64_t state = 1 + boxes->count;
	int rc;

	shuffle(index, boxes->count, &state);
	rc = ck_tiling_check(ndim, shape, index, boxes->count, err);
	free(index);
	return rc;
}

/* Tables of one and two dimensions; offset, extent. */
static void test_small(void)
{
	static const struct {
		const char *what;
		int ndim;
		uint64_t shape[2];
		size_t count;
		uint64_t box[6][4];
		const char *says; /* NULL: exact */
	} rows[] = {
		{"1-D: overlap", 1, {8}, 2, {{0, 4}, {2, 6}}, "[0:4] and [2:8] overlap"},
		{"1-D: one inside of the other",
		 1,
		 {8},
		 2,
		 {{0, 8}, {3, 1}},
		 "[0:8] and [3:4] overlap"},
		{"1-D: overlap far behind a long one",
		 1,
		 {9},
		 3,
		 {{0, 9}, {1, 1}, {7, 1}},
		 "[0:9] and [1:2] overlap"},
		{"1-D: identical boxes", 1, {4}, 2, {{0, 4}, {0, 4}}, "[0:4] and [0:4] overlap"},
		{"1-D: hole in front",
		 1,
		 {100},
		 1,
		 {{12, 88}},
		 "hole: 12 of 100 elements are in no block, the first at [0]"},
		{"1-D: hole in the middle",
		 1,
		 {100},
		 2,
		 {{0, 40}, {52, 48}},
		 "hole: 12 of 100 elements are in no block, the first at [40]"},
		{"1-D: hole at the end",
		 1,
		 {100},
		 2,
		 {{0, 40}, {40, 50}},
		 "hole: 10 of 100 elements are in no block, the first at [90]"},
		{"1-D: two holes",
		 1,
		 {10},
		 2,
		 {{1, 2}, {5, 5}},
		 "hole: 3 of 10 elements are in no block, the first at [0]"},
		{"1-D: no box",
		 1,
		 {7},
		 0,
		 {{0}},
		 "hole: 7 of 7 elements are in no block, the first at [0]"},
		{"scalar: no box",
		 0,
		 {0},
		 0,
		 {{0}},
		 "hole: 1 of 1 elements are in no block, the first at []"},
		{"scalar: two boxes", 0, {0}, 2, {{0}}, "[] and [] overlap"},
		{"2-D: no box",
		 2,
		 {2, 3},
		 0,
		 {{0}},
		 "hole: 6 of 6 elements are in no block, the first at [0, 0]"},
		{"2-D: overlap in a corner",
		 2,
		 {4, 4},
		 2,
		 {{0, 0, 3, 3}, {2, 2, 2, 2}},
		 "[0:3, 0:3] and [2:4, 2:4] overlap"},
		{"2-D: volume right, yet an overlap and a hole",
		 2,
		 {2, 2},
		 2,
		 {{0, 0, 1, 2}, {0, 1, 2, 1}},
		 "[0:1, 0:2] and [0:2, 1:2] overlap"},
		{"2-D: a corner is missing",
		 2,
		 {4, 4},
		 2,
		 {{0, 0, 2, 4}, {2, 0, 2, 3}},
		 "hole: 2 of 16 elements are in no block, the first at [2, 3]"},
		{"2-D: two columns, the second begins lower",
		 2,
		 {4, 4},
		 2,
		 {{0, 0, 3, 2}, {0, 2, 2, 2}},
		 "hole: 6 of 16 elements are in no block, the first at [2, 2]"},
		{"2-D: a pinwheel without its middle",
		 2,
		 {3, 3},
		 4,
		 {{0, 0, 1, 2}, {0, 2, 2, 1}, {2, 1, 1, 2}, {1, 0, 2, 1}},
		 "hole: 1 of 9 elements are in no block, the first at [1, 1]"},
		{"2-D: a pinwheel that overlaps",
		 2,
		 {3, 3},
		 5,
		 {{0, 0, 1, 2}, {0, 2, 2, 1}, {2, 1, 1, 2}, {1, 0, 2, 1}, {1, 1, 1, 2}},
		 "[0:2, 2:3] and [1:2, 1:3] overlap"},
		{"1-D: whole", 1, {8}, 1, {{0, 8}}, NULL},
		{"1-D: uneven", 1, {8}, 3, {{5, 3}, {0, 1}, {1, 4}}, NULL},
		{"1-D: no elements", 1, {0}, 0, {{0}}, NULL},
		{"1-D: 2^62 elements",
		 1,
		 {UINT64_C(1) << 62},
		 2,
		 {{0, 1}, {1, (UINT64_C(1) << 62) - 1}},
		 NULL},
		{"scalar", 0, {0}, 1, {{0}}, NULL},
		{"2-D: no elements", 2, {3, 0}, 0, {{0}}, NULL},
		{"2-D: a pinwheel",
		 2,
		 {3, 3},
		 5,
		 {{0, 0, 1, 2}, {0, 2, 2, 1}, {2, 1, 1, 2}, {1, 0, 2, 1}, {1, 1, 1, 1}},
		 NULL},
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct ck_error err = CK_ERROR_INIT;
		struct boxes boxes = {0};

		for (size_t k = 0; k < rows[i].count; k++) {
			struct ck_box *box = add(&boxes, &(struct ck_box){.ndim = rows[i].ndim});

			memcpy(box->offset, rows[i].box[k], (size_t)rows[i].ndim * 8);
			memcpy(box->extent, rows[i].box[k] + rows[i].ndim,
			       (size_t)rows[i].ndim * 8);
		}
		is_int(check(rows[i].ndim, rows[i].shape, &boxes, &err),
		       rows[i].says ? CK_EITEM : 0, "%s: code", rows[i].what);
		is_str(err.text, rows[i].says ? rows[i].says : "", "%s: text", rows[i].what);
		free(boxes.box);
	}
}

/* The truth about small boxes: how often each element is covered. */
struct truth {
	bool overlap;
	uint64_t missing;
	uint64_t first[CK_MAX_NDIM];
};

static void look(int ndim, const uint64_t *shape, const struct boxes *boxes, struct truth *truth)
{
	uint64_t volume, at[CK_MAX_NDIM];

	memset(truth, 0, sizeof(*truth));
	ck_volume(ndim, shape, &volume);
	for (uint64_t i = 0; i < volume; i++) {
		struct ck_box point = {.ndim = ndim};
		uint64_t rest = i, covers = 0;

		for (int d = ndim - 1; d >= 0; d--) {
			at[d] = point.offset[d] = rest % shape[d];
			point.extent[d] = 1;
			rest /= shape[d];
		}
		for (size_t k = 0; k < boxes->count; k++)
			covers += ck_box_overlap(&boxes->box[k], &point);
		truth->overlap = truth->overlap || covers > 1;
		if (covers == 0 && truth->missing++ == 0)
			memcpy(truth->first, at, sizeof(at));
	}
}

static bool agrees(int ndim, const uint64_t *shape, const struct boxes *boxes)
{
	struct ck_error err = CK_ERROR_INIT;
	struct ck_buf want = CK_BUF_INIT;
	struct truth truth;
	uint64_t volume;
	int rc = check(ndim, shape, boxes, &err);
	bool good;

	look(ndim, shape, boxes, &truth);
	ck_volume(ndim, shape, &volume);
	if (truth.overlap) {
		good = rc == CK_EITEM && strstr(err.text, " overlap");
	} else if (truth.missing) {
		ck_buf_addf(&want,
			    "hole: %" PRIu64 " of %" PRIu64
			    " elements are in no block, the first at ",
			    truth.missing, volume);
		ck_shape_print(&want, ndim, truth.first);
		good = rc == CK_EITEM && strcmp(err.text, want.data) == 0;
	} else {
		good = rc == 0;
	}
	if (!good)
		diag("%d dimensions, %zu boxes: %d '%s', want '%s'", ndim, boxes->count, rc,
		     err.text,
		     truth.overlap ? "overlap"
		     : want.data   ? want.data
				   : "");
	ck_buf_fini(&want);
	return good;
}

static int random_shape(uint64_t *shape, uint64_t *state)
{
	int ndim = (int)draw(state, 4) + 1;
	static const uint64_t most[] = {0, 60, 12, 6, 4};

	for (int d = 0; d < ndim; d++)
		shape[d] = draw(state, most[ndim]) + 1;
	return ndim;
}

static struct ck_box random_box(int ndim, const uint64_t *shape, uint64_t *state)
{
	struct ck_box box = {.ndim = ndim};

	for (int d = 0; d < ndim; d++) {
		box.offset[d] = draw(state, shape[d]);
		box.extent[d] = draw(state, shape[d] - box.offset[d]) + 1;
		if (box.extent[d] > 3)
			box.extent[d] = 3;
	}
	return box;
}

static bool is_free(const struct boxes *boxes, const struct ck_box *box)
{
	for (size_t i = 0; i < boxes->count; i++)
		if (ck_box_overlap(&boxes->box[i], box))
			return false;
	return true;
}

/* Disjoint boxes wherever they fit, so tangles with holes; now and then one that does not fit. */
static void test_random_boxes(void)
{
	uint64_t state = 99, good = 0;

	for (int round = 0; round < 1500; round++) {
		struct boxes boxes = {0};
		uint64_t shape[4];
		int ndim = random_shape(shape, &state);

		for (uint64_t tries = draw(&state, 60); tries > 0; tries--) {
			struct ck_box box = random_box(ndim, shape, &state);

			if (draw(&state, 150) == 0 || is_free(&boxes, &box))
				add(&boxes, &box);
		}
		good += agrees(ndim, shape, &boxes);
		free(boxes.box);
	}
	is_u64(good, 1500, "1,500 random sets agree with counting each element");
}

/* Cut a box in two, again and again: an exact tiling. */
static void cut(struct boxes *boxes, size_t cuts, uint64_t *state)
{
	while (cuts-- > 0) {
		struct ck_box *box = &boxes->box[draw(state, boxes->count)], half = *box;
		int d = (int)draw(state, (uint64_t)box->ndim);

		if (box->extent[d] < 2)
			continue;
		box->extent[d] = draw(state, box->extent[d] - 1) + 1;
		half.offset[d] += box->extent[d];
		half.extent[d] -= box->extent[d];
		add(boxes, &half);
	}
}

static void test_random_tilings(void)
{
	uint64_t state = 7, exact = 0, hole = 0, overlap = 0;

	for (int round = 0; round < 600; round++) {
		struct boxes boxes = {0};
		uint64_t shape[4];
		int ndim = random_shape(shape, &state), d;
		struct ck_box whole = {.ndim = ndim};
		size_t victim;

		memcpy(whole.extent, shape, (size_t)ndim * 8);
		add(&boxes, &whole);
		cut(&boxes, draw(&state, 40), &state);
		exact += agrees(ndim, shape, &boxes) && check(ndim, shape, &boxes, NULL) == 0;

		/* One box shrinks in one dimension, or grows into its neighbour. */
		victim = draw(&state, boxes.count);
		d = (int)draw(&state, (uint64_t)ndim);
		if (boxes.box[victim].extent[d] > 1) {
			boxes.box[victim].extent[d]--;
			hole += agrees(ndim, shape, &boxes) &&
				check(ndim, shape, &boxes, NULL) == CK_EITEM;
			boxes.box[victim].extent[d]++;
		} else {
			hole++;
		}
		if (boxes.box[victim].offset[d] > 0) {
			boxes.box[victim].offset[d]--;
			boxes.box[victim].extent[d]++;
			overlap += agrees(ndim, shape, &boxes) &&
				   check(ndim, shape, &boxes, NULL) == CK_EITEM;
		} else {
			overlap++;
		}
		free(boxes.box);
	}
	is_u64(exact, 600, "random tilings are exact");
	is_u64(hole, 600, "with a box that shrank there is the right hole");
	is_u64(overlap, 600, "with a box that grew there is an overlap");
}

static void test_grid(void)
{
	static const uint64_t shape[] = {128 * 1000, 128 * 1000};
	struct ck_error err = CK_ERROR_INIT;
	struct boxes boxes = {0};
	double begin = cpu_seconds();

	for (uint64_t y = 0; y < 128; y++)
		for (uint64_t x = 0; x < 128; x++)
			add2(&boxes, y * 1000, x * 1000, 1000, 1000);
	is_int(check(2, shape, &boxes, &err), 0, "a grid of 16,384 boxes: %s", err.text);
	boxes.box[77 * 128 + 5].extent[1]++;
	is_int(check(2, shape, &boxes, &err), CK_EITEM, "one is a column too wide");
	is_str(err.text, "[77000:78000, 5000:6001] and [77000:78000, 6000:7000] overlap", "text");
	boxes.box[77 * 128 + 5].extent[1] -= 2;
	is_int(check(2, shape, &boxes, &err), CK_EITEM, "one is a column too narrow");
	is_str(err.text,
	       "hole: 1000 of 16384000000 elements are in no block, the first at [77000, 5999]",
	       "text");
	ok(cpu_seconds() - begin < 1, "three times in %.3f s", cpu_seconds() - begin);
	free(boxes.box);
}

/* Each box is the rest's first row or column in turn: nothing for a divider to divide. */
static void test_spiral(void)
{
	static const uint64_t shape[] = {2000, 2000};
	struct ck_error err = CK_ERROR_INIT;
	struct boxes boxes = {0};
	double begin = cpu_seconds();

	for (uint64_t i = 0; i < 1999; i++) {
		add2(&boxes, i, i, 1, 2000 - i);
		add2(&boxes, i + 1, i, 1999 - i, 1);
	}
	is_int(check(2, shape, &boxes, &err), CK_EITEM, "a spiral of 3,998 boxes lacks its heart");
	like(err.text, "hole: 1 of 4000000 elements are in no block", "text");
	add2(&boxes, 1999, 1999, 1, 1);
	is_int(check(2, shape, &boxes, &err), 0, "then it has it: %s", err.text);
	ok(cpu_seconds() - begin < 3, "in %.3f s", cpu_seconds() - begin);
	free(boxes.box);
}

static void test_overlap_pair(void)
{
	struct ck_error err = CK_ERROR_INIT;
	struct boxes boxes = {0};
	const struct ck_box *pair[2], **index;

	add2(&boxes, 0, 0, 1, 1);
	add2(&boxes, 0, 1, 2, 2);
	add2(&boxes, 1, 2, 2, 2);
	index = pointers(&boxes);
	is_int(ck_tiling_overlap(2, index, 3, pair, &err), 0, "three boxes");
	ok((pair[0] == index[1] && pair[1] == index[2]) ||
		   (pair[0] == index[2] && pair[1] == index[1]),
	   "the pair that overlaps is found");
	is_int(ck_tiling_overlap(2, index, 2, pair, &err), 0, "two boxes");
	ok(!pair[0] && !pair[1], "are disjoint");
	ok(index[0] == &boxes.box[0] && index[1] == &boxes.box[1], "the caller's order stays");
	is_int(ck_tiling_overlap(2, NULL, 0, pair, &err), 0, "no box");
	ok(!pair[0] && !pair[1], "is disjoint");
	free(index);
	free(boxes.box);
}

int main(void)
{
	test_small();
	test_random_boxes();
	test_random_tilings();
	test_grid();
	test_spiral();
	test_overlap_pair();
	return done_testing();
}
