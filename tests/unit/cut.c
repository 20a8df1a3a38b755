/* A box inside a box: runs as long as can be, and every byte where it belongs, in any pieces. */
#include "cut.h"

#include <stdlib.h>
#include <string.h>

#include "tap.h"
#include "tilings.h"

#define BYTES_MAX 65536

static struct ck_box box_of(int ndim, const uint64_t *offset, const uint64_t *extent)
{
	struct ck_box box = {.ndim = ndim};

	for (int d = 0; d < ndim; d++) {
		box.offset[d] = offset[d];
		box.extent[d] = extent[d];
	}
	return box;
}

static void runs(void)
{
	static const struct {
		const char *what;
		int ndim;
		uint64_t whole[3], offset[3], extent[3];
		size_t element;
		uint64_t begin, run, bytes;
		int loops;
	} cases[] = {
		{"a scalar", 0, {0}, {0}, {0}, 8, 0, 8, 8, 0},
		{"all of it", 2, {3, 5}, {0, 0}, {3, 5}, 4, 0, 60, 60, 0},
		{"rows", 2, {3, 5}, {1, 0}, {2, 5}, 4, 20, 40, 40, 0},
		{"columns", 2, {3, 5}, {0, 1}, {3, 2}, 4, 4, 8, 24, 1},
		{"one row's part", 2, {3, 5}, {1, 1}, {1, 2}, 4, 24, 8, 8, 0},
		{"a full dimension in the middle is no loop of its own",
		 3,
		 {4, 3, 5},
		 {1, 0, 1},
		 {2, 3, 2},
		 2,
		 32,
		 4,
		 24,
		 1},
		{"two loops", 3, {4, 3, 5}, {0, 1, 1}, {2, 2, 2}, 1, 6, 2, 8, 2},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const uint64_t zeros[3] = {0};
		struct ck_box whole = box_of(cases[i].ndim, zeros, cases[i].whole);
		struct ck_box part = box_of(cases[i].ndim, cases[i].offset, cases[i].extent);
		struct ck_cut cut;

		ck_cut_init(&cut, &whole, &part, cases[i].element);
		is_u64(cut.begin, cases[i].begin, "%s: where it begins", cases[i].what);
		is_u64(cut.run, cases[i].run, "%s: length of a run", cases[i].what);
		is_u64(cut.bytes, cases[i].bytes, "%s: bytes", cases[i].what);
		is_int(cut.ndim, cases[i].loops, "%s: loops", cases[i].what);
	}
}

/* A whole, a part of it, and another whole that has the part too. */
struct trial {
	uint64_t state;
	size_t element;
	struct ck_box part, a, b;
	unsigned char a_data[BYTES_MAX], b_data[BYTES_MAX], got[BYTES_MAX], want[BYTES_MAX];
};

static void draw_trial(struct trial *t)
{
	int ndim = (int)draw(&t->state, 5);

	t->element = (size_t)1 << draw(&t->state, 4);
	t->part = t->a = t->b = (struct ck_box){.ndim = ndim};
	for (int d = 0; d < ndim; d++) {
		uint64_t extent = draw(&t->state, 12) ? 1 + draw(&t->state, 4) : 0;
		uint64_t low_a = draw(&t->state, 3), low_b = draw(&t->state, 3);

		t->part.offset[d] = 2;
		t->part.extent[d] = extent;
		t->a.offset[d] = 2 - low_a;
		t->a.extent[d] = low_a + extent + draw(&t->state, 3);
		t->b.offset[d] = 2 - low_b;
		t->b.extent[d] = low_b + extent + draw(&t->state, 3);
	}
	for (size_t i = 0; i < ck_box_volume(&t->a) * t->element; i++)
		t->a_data[i] = (unsigned char)draw(&t->state, 256);
}

/* What a stream that comes in pieces brings into b, by way of a message or at once. */
static void stream(struct trial *t, int message)
{
	uint64_t total = ck_box_volume(&t->a) * t->element, next = 0;
	struct ck_cut from, to;

	ck_cut_init(&from, &t->a, &t->part, t->element);
	ck_cut_init(&to, &t->b, &t->part, t->element);
	while (next < total) {
		uint64_t bytes = 1 + draw(&t->state, 100), begin, end;
		unsigned char note[BYTES_MAX];

		bytes = bytes < total - next ? bytes : total - next;
		begin = ck_cut_seek(&from, next);
		end = ck_cut_seek(&from, next + bytes);
		if (message) {
			ck_cut_get(&from, t->a_data + next, next, begin, note, end - begin);
			ck_cut_put(&to, t->got, begin, note, end - begin);
		} else {
			ck_cut_move(&from, t->a_data + next, next, &to, t->got, begin, end - begin);
		}
		next += bytes;
	}
}

static void pieces(void)
{
	struct trial *t = calloc(1, sizeof(*t));
	int wrong = 0, misplaced = 0, trials = 3000;

	if (!t) {
		ok(0, "memory");
		return;
	}
	for (int i = 0; i < trials; i++) {
		unsigned char packed[BYTES_MAX];
		struct ck_cut cut;

		draw_trial(t);
		memset(t->got, 0xaa, sizeof(t->got));
		memset(t->want, 0xaa, sizeof(t->want));
		plain_copy(&t->a, t->a_data, &t->part, packed, t->element, 0);
		plain_copy(&t->b, t->want, &t->part, packed, t->element, 1);
		stream(t, i & 1);
		wrong += memcmp(t->got, t->want, sizeof(t->got)) != 0;
		ck_cut_init(&cut, &t->a, &t->part, t->element);
		for (uint64_t at = 0; at < cut.bytes; at++) {
			uint64_t place = ck_cut_place(&cut, at);

			misplaced += t->a_data[place] != packed[at];
			misplaced += ck_cut_seek(&cut, place) != at;
			misplaced += ck_cut_seek(&cut, place + 1) != at + 1;
		}
	}
	is_int(wrong, 0, "%d random parts in pieces of 1 to 100 bytes arrive as a plain copy does",
	       trials);
	is_int(misplaced, 0, "place and seek are inverse for each of their bytes");
	free(t);
}

static void meets(void)
{
	struct ck_box a = range(2, 6), b = range(4, 9), c = range(6, 7), out;
	struct ck_box scalar = {.ndim = 0};

	ok(ck_box_meet(&a, &b, &out), "[2:6] and [4:9] share");
	is_u64(out.offset[0], 4, "from 4");
	is_u64(out.extent[0], 2, "two elements");
	ok(!ck_box_meet(&a, &c, &out), "[2:6] and [6:7] share nothing");
	ok(ck_box_meet(&scalar, &scalar, &out), "two scalars are the same element");
}

int main(void)
{
	runs();
	meets();
	pieces();
	return done_testing();
}
