/*
 * Checkpoints of random layouts, written by N ranks and taken in by M: bit for bit, each file read
 * once, little memory; and whatever fails on one rank fails alike on all, named, with nobody left
 * waiting.
 */
#include "intake.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm_threads.h"
#include "scratch.h"
#include "tap.h"
#include "tilings.h"
#include "written.h"

#define RANKS_MAX 16
#define TIMEOUT_MS 60000

/* One rank of the program that takes in. */
struct taker {
	struct ck_threads *threads;
	int rank;
	const struct ck_io *io;
	const struct written *from;
	const struct ck_layout *wanted;
	enum ck_level level;
	struct ck_slot *slots;
	size_t nslots;
	int code;
	struct ck_error err;
	struct ck_intake intake;
	pthread_t thread;
};

static void *take(void *arg)
{
	struct taker *t = arg;
	struct ckpt_comm table;
	struct ck_comm comm;

	ck_threads_comm(t->threads, t->rank, &table);
	if (ck_comm_init(&comm, &table, TIMEOUT_MS, NULL))
		abort();
	t->intake = (struct ck_intake){.comm = &comm,
				       .io = t->io,
				       .dir = t->from->step,
				       .level = t->level,
				       .slots = t->slots,
				       .nslots = t->nslots};
	if (t->rank == 0) {
		t->intake.manifest = &t->from->manifest;
		t->intake.wanted = t->wanted;
	}
	t->code = ck_intake_run(&t->intake, &t->err);
	ck_comm_fini(&comm);
	return NULL;
}

/* Number the blocks of each rank, and give them memory. */
static void make_slots(struct taker *t, struct ck_layout *wanted)
{
	t->slots = calloc(wanted->nblocks + 1, sizeof(*t->slots));
	for (size_t b = 0; b < wanted->nblocks; b++) {
		struct ck_slot *slot = &t->slots[t->nslots];
		size_t bytes = ck_layout_bytes(wanted, b);

		if (wanted->blocks[b].rank != (uint32_t)t->rank)
			continue;
		wanted->blocks[b].at = t->nslots++;
		ck_layout_box(wanted, b, &slot->box);
		slot->element = bytes / ck_box_volume(&slot->box);
		slot->data = malloc(bytes);
		memset(slot->data, 0xee, bytes);
	}
}

/* Run it; ios[r] of rank r, NULL: the plain one. */
static void run(struct taker *takers, int ranks, const struct written *from,
		struct ck_layout *wanted, enum ck_level level, const struct ck_io *const *ios)
{
	struct ck_threads *threads = ck_threads_new(ranks);

	for (int r = 0; r < ranks; r++) {
		takers[r] = (struct taker){.threads = threads,
					   .rank = r,
					   .io = ios && ios[r] ? ios[r] : &ck_io_posix,
					   .from = from,
					   .wanted = wanted,
					   .level = level};
		make_slots(&takers[r], wanted);
	}
	for (int r = 0; r < ranks; r++)
		pthread_create(&takers[r].thread, NULL, take, &takers[r]);
	for (int r = 0; r < ranks; r++)
		pthread_join(takers[r].thread, NULL);
	ck_threads_free(threads);
}

static void done(struct taker *takers, int ranks)
{
	for (int r = 0; r < ranks; r++) {
		for (size_t i = 0; i < takers[r].nslots; i++)
			free(takers[r].slots[i].data);
		free(takers[r].slots);
		ck_intake_fini(&takers[r].intake);
	}
}

/* Every slot is its part of the tensor. */
static size_t count_wrong(const struct taker *takers, const struct written *from,
			  const struct ck_layout *wanted)
{
	size_t wrong = 0;

	for (size_t b = 0; b < wanted->nblocks; b++) {
		const struct ck_layout_block *block = &wanted->blocks[b];
		const struct ck_slot *slot = &takers[block->rank].slots[block->at];
		void *part = written_part(from, block->item, &slot->box);

		wrong += memcmp(part, slot->data, ck_layout_bytes(wanted, b)) != 0;
		free(part);
	}
	return wrong;
}

/* The bytes of every old rank were kept by somebody, once. */
static size_t count_kept_wrong(const struct taker *takers, int ranks, uint32_t old_world,
			       size_t items)
{
	size_t wrong = 0, count = 0;

	for (int r = 0; r < ranks; r++) {
		for (size_t i = 0; i < takers[r].intake.nkept; i++, count++) {
			const struct ck_kept *kept = &takers[r].intake.kept[i];
			unsigned char own[64];
			size_t bytes = written_own(kept->rank, own);

			wrong += kept->bytes != bytes || memcmp(kept->data, own, bytes) != 0;
		}
	}
	return wrong + (count != items * old_world);
}

static void add_own(struct ck_item_list *table)
{
	struct ck_item own = {.name = (char *)"own", .kind = CK_PER_RANK, .dtype = CK_U8};

	if (ck_item_list_append(table, &own, NULL))
		abort();
	ck_item_list_sort(table);
}

static const char *fresh_run(void)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/run", test_tmpdir());
	return path;
}

static int random_case(uint64_t *state)
{
	static struct taker takers[RANKS_MAX];
	static const struct ck_step_id id = {.step = 7, .generation = 1};
	uint32_t n = 1 + (uint32_t)draw(state, 8), m = 1 + (uint32_t)draw(state, 8);
	struct ck_item_list table = draw_items(state, 1 + draw(state, 5));
	struct ck_layout stored, wanted;
	struct written from;
	size_t wrong = 0;

	add_own(&table);
	stored = draw_layout(state, &table, n, 0);
	wanted = draw_layout(state, &table, m, 0);
	written_make(&from, fresh_run(), id, &table, &stored, n, *state);
	run(takers, (int)m, &from, &wanted, draw(state, 2) ? CK_LEVEL_CRC32 : CK_LEVEL_SHA256,
	    NULL);
	for (uint32_t r = 0; r < m; r++)
		if (takers[r].code && !wrong++)
			diag("rank %u of %u -> %u: %s", r, n, m, takers[r].err.text);
	wrong += count_wrong(takers, &from, &wanted);
	wrong += count_kept_wrong(takers, (int)m, n, 1);
	done(takers, (int)m);
	written_free(&from);
	ck_layout_fini(&stored);
	ck_layout_fini(&wanted);
	ck_item_list_fini(&table);
	return wrong != 0;
}

static void random_cases(void)
{
	uint64_t state = 4711;
	int wrong = 0, cases = (int)rounds(60, 25, 10);

	for (int i = 0; i < cases; i++)
		wrong += random_case(&state);
	is_int(wrong, 0, "%d random checkpoints of 1 to 8 ranks arrive at 1 to 8 others", cases);
}

/* ---- one large item, so that messages are under way when something happens ---- */

static struct ck_item_list big_table(uint64_t rows, uint64_t columns)
{
	struct ck_item_list table = {.count = 0};
	struct ck_item item = {
		.name = (char *)"big", .dtype = CK_F32, .ndim = 2, .shape = {rows, columns}};

	if (ck_item_list_append(&table, &item, NULL))
		abort();
	return table;
}

/* Cut along one dimension among so many ranks. */
static struct ck_layout slabs(const struct ck_item_list *table, uint32_t ranks, int dim)
{
	struct ck_layout layout;

	ck_layout_init(&layout, table);
	for (uint32_t r = 0; r < ranks; r++) {
		struct ck_layout_block block = {.rank = r, .file = r};
		uint64_t n = table->items[0].shape[dim];
		struct ck_box box = {.ndim = 2};

		memcpy(box.extent, table->items[0].shape, sizeof(box.extent));
		box.offset[dim] = n * r / ranks;
		box.extent[dim] = n * (r + 1) / ranks - box.offset[dim];
		if (ck_layout_add(&layout, &block, &box, NULL))
			abort();
	}
	if (ck_layout_sort(&layout, NULL))
		abort();
	return layout;
}

struct scene {
	struct ck_item_list table;
	struct ck_layout stored, wanted;
	struct written from;
	struct taker takers[RANKS_MAX];
	int ranks;
};

/* From slabs of rows to slabs of columns: everybody sends to everybody. */
static void scene_init(struct scene *s, uint32_t from, int to)
{
	static const struct ck_step_id id = {.step = 1, .generation = 1};

	memset(s, 0, sizeof(*s));
	s->ranks = to;
	s->table = big_table(6001, 1000);
	s->stored = slabs(&s->table, from, 0);
	s->wanted = slabs(&s->table, (uint32_t)to, 1);
	written_make(&s->from, fresh_run(), id, &s->table, &s->stored, from, 3);
}

static void scene_fini(struct scene *s)
{
	done(s->takers, s->ranks);
	written_free(&s->from);
	ck_layout_fini(&s->stored);
	ck_layout_fini(&s->wanted);
	ck_item_list_fini(&s->table);
}

static void worlds(void)
{
	static const int pairs[][2] = {{4, 3}, {3, 7}, {5, 1}, {1, 5}, {4, 8}};
	static struct scene s;

	for (size_t i = 0; i < rounds(5, 5, 2); i++) {
		struct ck_io_fault *count = scratch_fault("open:*.safetensors");
		const struct ck_io *ios[RANKS_MAX];

		for (int r = 0; r < RANKS_MAX; r++)
			ios[r] = ck_io_fault_io(count);
		scene_init(&s, (uint32_t)pairs[i][0], pairs[i][1]);
		run(s.takers, s.ranks, &s.from, &s.wanted, CK_LEVEL_SHA256, ios);
		is_int(s.takers[0].code, 0, "24 MB, %d -> %d ranks: %s", pairs[i][0], pairs[i][1],
		       s.takers[0].err.text);
		is_u64(count_wrong(s.takers, &s.from, &s.wanted), 0, "arrive bit for bit");
		is_u64(ck_io_fault_count(count, 0), 3 * s.from.manifest.nfiles,
		       "each file is opened by one rank: its header, its data, and those past the "
		       "cache");
		scene_fini(&s);
		ck_io_fault_free(count);
	}
}

static void failures(void)
{
	static const struct {
		const char *what, *rules;
		int faulty; /* rank; -1: the file is damaged instead */
		int code;
		const char *text;
	} cases[] = {
		{"a read that fails in the middle", "pread:*.safetensors:errno=EIO:after=3", 1,
		 CK_EIO, "rank 1: "},
		{"a read that fails on the last rank", "pread:*.safetensors:errno=EIO:after=3", 2,
		 CK_EIO, "rank 2: "},
		{"a header that cannot be opened", "open:*.safetensors:errno=EACCES", 2, CK_EIO,
		 "rank 2: "},
		{"a file that is gone when its data is read",
		 "open:*.safetensors:errno=ENOENT:after=1", 2, CK_ENOENT, "rank 2: "},
		{"a bit that has turned over", NULL, -1, CK_EDIGEST,
		 "rank-00001.0.safetensors: chunk 0"},
	};
	static struct scene s;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct ck_io_fault *fault = cases[i].rules ? scratch_fault(cases[i].rules) : NULL;
		const struct ck_io *ios[RANKS_MAX] = {NULL};
		char path[PATH_MAX + 64];
		FILE *file;

		scene_init(&s, 3, 3);
		if (fault)
			ios[cases[i].faulty] = ck_io_fault_io(fault);
		snprintf(path, sizeof(path), "%s/rank-00001.0.safetensors", s.from.step);
		if (!fault && (file = fopen(path, "r+b"))) {
			fseek(file, 5000000, SEEK_SET);
			fputc(fgetc(file) ^ 1, file);
			fclose(file);
		}
		run(s.takers, s.ranks, &s.from, &s.wanted, CK_LEVEL_SHA256, ios);
		for (int r = 0; r < s.ranks; r++) {
			is_int(s.takers[r].code, cases[i].code, "%s: rank %d", cases[i].what, r);
			like(s.takers[r].err.text, cases[i].text,
			     "and the rank that failed is named");
			is_str(s.takers[r].err.text, s.takers[0].err.text, "alike everywhere");
		}
		scene_fini(&s);
		ck_io_fault_free(fault);
	}
}

/* A block that the manifest's item has and no file. */
static void hole(void)
{
	static struct scene s;
	struct ck_layout part;
	struct ck_box box;

	scene_init(&s, 2, 3);
	written_free(&s.from);
	ck_layout_init(&part, &s.table);
	ck_layout_box(&s.stored, 0, &box);
	if (ck_layout_add(&part, &s.stored.blocks[0], &box, NULL) || ck_layout_sort(&part, NULL))
		abort();
	written_make(&s.from, fresh_run(), (struct ck_step_id){1, 1}, &s.table, &part, 2, 3);
	run(s.takers, s.ranks, &s.from, &s.wanted, CK_LEVEL_SHA256, NULL);
	for (int r = 0; r < s.ranks; r++) {
		is_int(s.takers[r].code, CK_EFORMAT, "a hole in the checkpoint: rank %d", r);
		like(s.takers[r].err.text, "checkpoint: item 'big': hole:", "names the item");
	}
	ck_layout_fini(&part);
	scene_fini(&s);
}

int main(void)
{
	alarm(600);
	failures();
	hole();
	worlds();
	random_cases();
	return done_testing();
}
