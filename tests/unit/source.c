/*
 * Reading a checkpoint by item, as `ckpt export` and `ckpt diff` do: bit for bit, and each stored byte once, as
 * ck_verify reads it once.
 */
#include "source.h"

#include <stdlib.h>
#include <string.h>

#include "counted.h"
#include "rundir.h"
#include "slabs.h"
#include "tap.h"
#include "tilings.h"
#include "verify.h"
#include "written.h"

static const struct ck_step_id id = {.step = 5, .generation = 1};
static struct counted counted;

static uint64_t counted_since(uint64_t before)
{
	return atomic_load(&counted.bytes) - before;
}

/* Item by item, in pieces of at most `most` elements. Returns how many items are wrong. */
static size_t read_tensors(struct ck_source *source, const struct written *w, uint64_t most)
{
	size_t wrong = 0;

	for (size_t i = 0; i < w->manifest.items.count; i++) {
		const struct ck_item *item = &w->manifest.items.items[i];
		size_t element = ck_dtype_size((int)item->dtype), done = 0;
		struct ck_box whole = {.ndim = item->ndim}, slab;
		unsigned char *data = malloc(most * element);
		struct ck_slabs slabs;
		bool same = true;

		memcpy(whole.extent, item->shape, sizeof(whole.extent));
		ck_slabs_init(&slabs, &whole, most);
		while (item->kind == CK_SHARDED && ck_slabs_next(&slabs, &slab)) {
			size_t bytes = ck_box_volume(&slab) * element;

			same = same && !ck_source_read(source, i, &slab, data, NULL) &&
			       memcmp(data, w->tensors[i] + done, bytes) == 0;
			done += bytes;
		}
		wrong += !same;
		free(data);
	}
	return wrong;
}

static size_t read_ranks(struct ck_source *source, size_t item, uint32_t ranks)
{
	unsigned char own[64];
	size_t wrong = 0;

	for (uint32_t r = 0; r < ranks; r++) {
		void *data = NULL;
		uint64_t bytes = 0;

		wrong += ck_source_read_rank(source, item, r, &data, &bytes, NULL) ||
			 bytes != written_own(r, own) || memcmp(data, own, bytes) != 0;
		free(data);
	}
	return wrong;
}

static uint64_t data_bytes(const struct ck_source *source)
{
	uint64_t total = 0;

	for (size_t b = 0; b < source->layout.nblocks; b++)
		total += ck_layout_bytes(&source->layout, b);
	return total;
}

/* Returns 0, or what is wrong with one random checkpoint: 1 bytes, 2 too much was read, 4 it cannot be opened. */
static int one_case(uint64_t *state)
{
	struct ck_item own = {.name = (char *)"own", .kind = CK_PER_RANK, .dtype = CK_U8};
	uint32_t ranks = 1 + (uint32_t)draw(state, 6);
	struct ck_item_list table = draw_items(state, 1 + draw(state, 4));
	struct ck_source source;
	struct ck_layout layout;
	struct written w;
	uint64_t before;
	size_t item = 0;
	int wrong = 4;

	if (ck_item_list_append(&table, &own, NULL))
		abort();
	ck_item_list_sort(&table);
	layout = draw_layout(state, &table, ranks, 0);
	written_make(&w, in_dir(test_tmpdir(), "run"), id, &table, &layout, ranks, *state);
	while (strcmp(table.items[item].name, "own") != 0)
		item++;
	if (!ck_source_open(&counted.io, w.run, id, &source, NULL, NULL, NULL)) {
		before = atomic_load(&counted.bytes);
		wrong = read_tensors(&source, &w, 1 + draw(state, 50)) != 0;
		wrong |= read_ranks(&source, item, ranks) != 0;
		wrong |= counted_since(before) != data_bytes(&source) ? 2 : 0;
		ck_source_close(&source);
	}
	ck_layout_fini(&layout);
	ck_item_list_fini(&table);
	written_free(&w);
	return wrong;
}

static void reads_once(void)
{
	uint64_t state = 77;
	int bytes = 0, count = 0, closed = 0, cases = (int)rounds(40, 15, 10);

	for (int i = 0; i < cases; i++) {
		int wrong = one_case(&state);

		bytes += (wrong & 1) != 0;
		count += (wrong & 2) != 0;
		closed += (wrong & 4) != 0;
	}
	is_int(closed, 0, "%d random checkpoints are opened", cases);
	is_int(bytes, 0, "and read along their tensors, bit for bit");
	is_int(count, 0, "each stored byte once");
}

/* The headers are read beforehand; the rest is manifest.json and SHA256SUMS, some KiB. */
static void verifies_once(void)
{
	const char *dir = test_tmpdir();
	struct ck_report report;
	uint64_t before, read;

	make_run(dir);
	is_int(save_step(&ck_io_posix, dir, id, 8, NULL, NULL), 0, "a checkpoint");
	before = atomic_load(&counted.bytes);
	is_int(ck_verify(&counted.io, dir, id, CK_LEVEL_SHA256, 2, NULL, NULL, &report, NULL), 0,
	       "is verified");
	read = counted_since(before);
	is_u64(report.nbad, 0, "and good");
	ok(read >= report.bytes && read <= report.bytes + report.nfiles * 4096 + 32768,
	   "%llu bytes are stored, %llu were read", (unsigned long long)report.bytes,
	   (unsigned long long)read);
	ck_report_fini(&report);
}

int main(void)
{
	counted_init(&counted);
	reads_once();
	verifies_once();
	return done_testing();
}
