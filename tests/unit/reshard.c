/* From N ranks to M: random tensors in memory, ZeRO partitions, who reads what, what is refused. */
#include "reshard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cut.h"
#include "tap.h"
#include "tilings.h"

/* A layout and the memory of each block, by its `at`. */
struct world {
	struct ck_layout layout;
	unsigned char **data;
	size_t count;
};

static size_t element_of(const struct ck_layout *layout, size_t block)
{
	return ck_dtype_size((int)layout->table->items[layout->blocks[block].item].dtype);
}

static void world_init(struct world *w, struct ck_layout layout)
{
	w->layout = layout;
	w->count = layout.nblocks;
	w->data = calloc(w->count + 1, sizeof(*w->data));
	for (size_t b = 0; w->data && b < w->count; b++) {
		size_t bytes = ck_layout_bytes(&layout, b);

		/* What nobody delivers is seen: no tensor is full of this. */
		w->data[layout.blocks[b].at] = malloc(bytes);
		memset(w->data[layout.blocks[b].at], 0xee, bytes);
	}
}

static void world_fini(struct world *w)
{
	for (size_t b = 0; b < w->count; b++)
		free(w->data[b]);
	free(w->data);
	ck_layout_fini(&w->layout);
}

/* Cut each tensor into its blocks, or compare each block with its part of the tensor. */
static size_t with_tensors(struct world *w, unsigned char *const *tensors, int compare)
{
	size_t wrong = 0;

	for (size_t b = 0; b < w->count; b++) {
		const struct ck_layout_block *block = &w->layout.blocks[b];
		const struct ck_item *item = &w->layout.table->items[block->item];
		struct ck_box whole = {.ndim = item->ndim}, box;
		size_t bytes = ck_layout_bytes(&w->layout, b);
		unsigned char *want = malloc(bytes);

		memcpy(whole.extent, item->shape, sizeof(whole.extent));
		ck_layout_box(&w->layout, b, &box);
		plain_copy(&whole, tensors[block->item], &box, want, element_of(&w->layout, b), 0);
		if (!compare)
			memcpy(w->data[block->at], want, bytes);
		wrong += memcmp(w->data[block->at], want, bytes) != 0;
		free(want);
	}
	return wrong;
}

/* One stored block, as a stream in pieces, to one wanted block and all that are the same. */
static void deliver(const struct world *from, size_t b, struct world *to, size_t w, uint64_t *state)
{
	uint64_t total = ck_layout_bytes(&from->layout, b), next = 0;
	const unsigned char *data = from->data[from->layout.blocks[b].at];
	size_t element = element_of(&from->layout, b);
	struct ck_box source, target, part;
	struct ck_cut out, in;

	ck_layout_box(&from->layout, b, &source);
	ck_layout_box(&to->layout, w, &target);
	if (!ck_box_meet(&source, &target, &part))
		return;
	ck_cut_init(&out, &source, &part, element);
	ck_cut_init(&in, &target, &part, element);
	for (uint64_t bytes; next < total; next += bytes) {
		uint64_t begin, end;

		bytes = 1 + draw(state, 200);
		bytes = bytes < total - next ? bytes : total - next;
		begin = ck_cut_seek(&out, next);
		end = ck_cut_seek(&out, next + bytes);
		for (size_t k = w; k < ck_layout_same_end(&to->layout, w); k++)
			ck_cut_move(&out, data + next, next, &in, to->data[to->layout.blocks[k].at],
				    begin, end - begin);
	}
}

static int reshard(const struct world *from, struct world *to, size_t nfiles, uint64_t *state)
{
	struct ck_error err = CK_ERROR_INIT;
	struct ck_reshard plan;
	int rc = ck_reshard_plan(&from->layout, nfiles, 1, &to->layout, &plan, &err);

	if (rc) {
		diag("%s", err.text);
		return rc;
	}
	for (size_t f = 0; f < nfiles; f++) {
		for (size_t i = plan.file_first[f]; i < plan.file_first[f + 1]; i++) {
			size_t b = plan.order[i];

			if (from->layout.blocks[b].file != f)
				rc = 1;
			for (size_t k = plan.first[b]; k < plan.first[b + 1]; k++)
				deliver(from, b, to, plan.to[k], state);
		}
	}
	ck_reshard_fini(&plan);
	return rc;
}

static int one_case(uint64_t *state)
{
	uint32_t n = 1 + (uint32_t)draw(state, 9), m = 1 + (uint32_t)draw(state, 9);
	struct ck_item_list table = draw_items(state, 1 + draw(state, 4));
	unsigned char *tensors[8] = {NULL};
	struct world a, b, c;
	int wrong = 0;

	for (size_t i = 0; i < table.count; i++) {
		struct ck_box whole = {.ndim = table.items[i].ndim};
		size_t bytes;

		memcpy(whole.extent, table.items[i].shape, sizeof(whole.extent));
		bytes = ck_box_volume(&whole) * ck_dtype_size((int)table.items[i].dtype);
		tensors[i] = malloc(bytes + 1);
		for (size_t k = 0; k < bytes; k++)
			tensors[i][k] = (unsigned char)draw(state, 256);
	}
	/* There and back: c is laid out as a was. */
	world_init(&a, draw_layout(state, &table, n, 0));
	world_init(&b, draw_layout(state, &table, m, 1));
	world_init(&c, draw_layout(state, &table, n, 1));
	with_tensors(&a, tensors, 0);
	wrong += reshard(&a, &b, n, state) != 0;
	wrong += with_tensors(&b, tensors, 1) != 0;
	world_fini(&a);
	world_init(&a, draw_layout(state, &table, m, 0));
	with_tensors(&a, tensors, 0);
	wrong += reshard(&a, &c, m, state) != 0;
	wrong += with_tensors(&c, tensors, 1) != 0;
	world_fini(&a);
	world_fini(&b);
	world_fini(&c);
	for (size_t i = 0; i < table.count; i++)
		free(tensors[i]);
	ck_item_list_fini(&table);
	return wrong;
}

static void properties(void)
{
	uint64_t state = 20, first = 0;
	int wrong = 0, cases = 3000;

	for (int i = 0; i < cases; i++) {
		uint64_t before = state;

		if (one_case(&state) && !wrong++)
			first = before;
	}
	is_int(wrong, 0, "%d random cases arrive bit for bit (first wrong: state %llu)", cases,
	       (unsigned long long)first);
}

/* ---- ZeRO: flat partitions of parameters and two moments, and the step ---- */

enum { EXP_AVG, EXP_AVG_SQ, PARAMS, STEP, FLATS = 3 };

static struct ck_item_list zero_table(uint64_t total)
{
	static const char *const names[] = {"exp_avg", "exp_avg_sq", "params"};
	struct ck_item_list table = {.count = 0};
	struct ck_item step = {.name = (char *)"step", .dtype = CK_I64};

	for (int i = 0; i < FLATS; i++) {
		struct ck_item item = {
			.name = (char *)names[i], .dtype = CK_F32, .ndim = 1, .shape = {total}};

		if (ck_item_list_append(&table, &item, NULL))
			abort();
	}
	if (ck_item_list_append(&table, &step, NULL))
		abort();
	return table;
}

/* As ZeRO cuts: the total is padded to a multiple of the ranks, the padding is at the tail. */
static uint64_t padded_share(uint64_t total, uint32_t ranks)
{
	return (total + ranks - 1) / ranks;
}

static struct ck_layout zero_layout(const struct ck_item_list *table, uint64_t total,
				    uint32_t ranks, int all_hold_step)
{
	uint64_t share = padded_share(total, ranks);
	struct ck_box scalar = {.ndim = 0};
	struct ck_layout layout;

	ck_layout_init(&layout, table);
	for (uint32_t r = 0; r < ranks; r++) {
		uint64_t begin = share * r < total ? share * r : total;
		uint64_t end = begin + share < total ? begin + share : total;
		struct ck_box box = range(begin, end);

		for (uint32_t i = 0; i < FLATS; i++) {
			struct ck_layout_block block = {.item = i, .rank = r, .file = r};

			block.at = layout.nblocks;
			if (ck_layout_add(&layout, &block, &box, NULL))
				abort();
		}
		if (r == 0 || all_hold_step) {
			struct ck_layout_block block = {.item = STEP, .rank = r, .file = r};

			block.at = layout.nblocks;
			if (ck_layout_add(&layout, &block, &scalar, NULL))
				abort();
		}
	}
	if (ck_layout_sort(&layout, NULL))
		abort();
	return layout;
}

static float value_of(uint32_t item, uint64_t i)
{
	return (float)(i * 3 + item) + 0.25f;
}

/* A rank's partition after the load, as the program has it: `share` elements, zeroed beforehand. */
static size_t check_partition(const struct world *w, uint32_t rank, uint32_t item, uint64_t total,
			      uint64_t share)
{
	float *mine = calloc(share + 1, sizeof(*mine));
	size_t wrong = 0;

	for (size_t b = 0; b < w->count; b++) {
		const struct ck_layout_block *block = &w->layout.blocks[b];

		if (block->item == item && block->rank == rank)
			memcpy(mine, w->data[block->at], ck_layout_bytes(&w->layout, b));
	}
	for (uint64_t i = 0; i < share; i++) {
		uint64_t global = share * rank + i;
		float want = global < total ? value_of(item, global) : 0;

		wrong += memcmp(&mine[i], &want, sizeof(want)) != 0;
	}
	free(mine);
	return wrong;
}

static void zero_case(uint64_t total, uint32_t from, uint32_t to)
{
	struct ck_item_list table = zero_table(total);
	int64_t step = 123456789;
	uint64_t state = 1, stored = 0;
	struct world a, b;
	size_t wrong = 0;

	world_init(&a, zero_layout(&table, total, from, 0));
	world_init(&b, zero_layout(&table, total, to, 1));
	for (size_t i = 0; i < a.count; i++) {
		const struct ck_layout_block *block = &a.layout.blocks[i];
		float *values = (void *)a.data[block->at];
		struct ck_box box;

		ck_layout_box(&a.layout, i, &box);
		if (block->item == STEP)
			memcpy(values, &step, sizeof(step));
		for (uint64_t k = 0; block->item != STEP && k < box.extent[0]; k++)
			values[k] = value_of(block->item, box.offset[0] + k);
		stored += block->item == PARAMS ? ck_layout_bytes(&a.layout, i) : 0;
	}
	is_int(reshard(&a, &b, from, &state), 0, "%u -> %u ranks, %llu elements", from, to,
	       (unsigned long long)total);
	is_u64(stored, total * sizeof(float), "the padding is not stored");
	for (uint32_t r = 0; r < to; r++)
		for (uint32_t i = 0; i < FLATS; i++)
			wrong += check_partition(&b, r, i, total, padded_share(total, to));
	is_u64(wrong, 0, "concatenated and split again: the same, the padding zero");
	wrong = 0;
	for (size_t i = b.layout.first[STEP]; i < b.layout.first[STEP + 1]; i++)
		wrong += memcmp(b.data[b.layout.blocks[i].at], &step, sizeof(step)) != 0;
	is_u64(wrong, 0, "every rank has the step");
	world_fini(&a);
	world_fini(&b);
	ck_item_list_fini(&table);
}

static void zero(void)
{
	static const uint64_t totals[] = {1003, 1000, 8, 5, 2, 1};
	static const uint32_t worlds[][2] = {{4, 8}, {8, 3}, {3, 7}, {1, 4}, {5, 1}, {4, 4}};

	for (size_t t = 0; t < sizeof(totals) / sizeof(*totals); t++)
		for (size_t w = 0; w < sizeof(worlds) / sizeof(*worlds); w++)
			zero_case(totals[t], worlds[w][0], worlds[w][1]);
}

/* ---- who reads what ---- */

static void deal_case(const char *what, const uint64_t *bytes, size_t nfiles, uint32_t ranks)
{
	uint32_t *readers = calloc(nfiles + 1, sizeof(*readers));
	uint64_t *load = calloc(ranks, sizeof(*load)), total = 0, largest = 0, most = 0;
	int rising = 1;

	ck_reshard_deal(bytes, nfiles, ranks, readers);
	for (size_t i = 0; i < nfiles; i++) {
		rising = rising && readers[i] < ranks && (i == 0 || readers[i - 1] <= readers[i]);
		load[readers[i]] += bytes[i];
		total += bytes[i];
		largest = bytes[i] > largest ? bytes[i] : largest;
	}
	for (uint32_t r = 0; r < ranks; r++)
		most = load[r] > most ? load[r] : most;
	ok(rising, "%s: readers rise from 0 to %u", what, ranks - 1);
	ok(most <= total / ranks + largest + 1, "%s: %llu bytes at most, %llu in all", what,
	   (unsigned long long)most, (unsigned long long)total);
	free(readers);
	free(load);
}

static void deals(void)
{
	static const uint64_t even[8] = {9, 9, 9, 9, 9, 9, 9, 9};
	static const uint64_t uneven[6] = {100, 1, 1, 1, 1, 50}, zeros[3] = {0, 0, 0};
	uint32_t readers[8];

	deal_case("8 files, 3 ranks", even, 8, 3);
	deal_case("8 files, 8 ranks", even, 8, 8);
	deal_case("8 files, 1 rank", even, 8, 1);
	deal_case("3 files, 7 ranks", even, 3, 7);
	deal_case("uneven files", uneven, 6, 4);
	deal_case("empty files", zeros, 3, 2);
	ck_reshard_deal(even, 8, 8, readers);
	for (uint32_t i = 0; i < 8; i++)
		is_u64(readers[i], i, "as many ranks as files: rank %u reads its own", i);
}

/* ---- refusals ---- */

static void refusals(void)
{
	struct ck_item_list table = zero_table(10);
	struct ck_layout good = zero_layout(&table, 10, 2, 0), bad;
	struct ck_layout_block block = {.item = PARAMS, .rank = 3, .file = 1};
	struct ck_box box = range(4, 7);
	struct ck_error err = CK_ERROR_INIT;
	struct ck_reshard plan = {.nmoves = 77};

	ck_layout_init(&bad, &table);
	is_int(ck_layout_sort(&bad, NULL), 0, "an empty layout");
	is_int(ck_reshard_plan(&bad, 2, 2, &good, &plan, &err), CK_EFORMAT, "nothing is stored");
	like(err.text, "checkpoint: item 'exp_avg': hole: 10 of 10", "the side is named");
	ck_layout_fini(&bad);
	bad = zero_layout(&table, 10, 2, 1);
	if (ck_layout_add(&bad, &block, &box, NULL) || ck_layout_sort(&bad, NULL))
		abort();
	is_int(ck_reshard_plan(&good, 2, 2, &bad, &plan, &err), CK_EITEM, "blocks that overlap");
	like(err.text, "program: item 'params': [0:5] (rank 0) and [4:7] (rank 3) overlap",
	     "item, boxes and ranks are named");
	is_u64(plan.nmoves, 77, "the plan is untouched");
	ck_layout_fini(&bad);
	ck_layout_fini(&good);
	ck_item_list_fini(&table);
}

int main(void)
{
	refusals();
	deals();
	zero();
	properties();
	return done_testing();
}
