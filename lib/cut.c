#include "cut.h"

#include <string.h>

/* Put a loop around the others; one that goes on where the next inner one ends becomes part of it. */
static void add_loop(struct ck_cut *cut, uint64_t extent, uint64_t stride)
{
	if (extent == 1)
		return;
	if (cut->ndim && stride == cut->extent[0] * cut->stride[0]) {
		cut->extent[0] *= extent;
		return;
	}
	memmove(cut->extent + 1, cut->extent, (size_t)cut->ndim * sizeof(*cut->extent));
	memmove(cut->stride + 1, cut->stride, (size_t)cut->ndim * sizeof(*cut->stride));
	cut->extent[0] = extent;
	cut->stride[0] = stride;
	cut->ndim++;
}

void ck_cut_init(struct ck_cut *cut, const struct ck_box *whole, const struct ck_box *part,
		 size_t element)
{
	uint64_t stride = element;
	bool together = true;

	cut->begin = 0;
	cut->run = cut->bytes = element;
	cut->ndim = 0;
	for (int d = whole->ndim - 1; d >= 0; d--) {
		cut->begin += (part->offset[d] - whole->offset[d]) * stride;
		cut->bytes *= part->extent[d];
		if (together)
			cut->run *= part->extent[d];
		else
			add_loop(cut, part->extent[d], stride);
		/* The dimensions that the part has whole, and the first that it has not, are one run. */
		together = together && part->extent[d] == whole->extent[d];
		stride *= whole->extent[d];
	}
}

bool ck_box_meet(const struct ck_box *a, const struct ck_box *b, struct ck_box *out)
{
	out->ndim = a->ndim;
	for (int d = 0; d < a->ndim; d++) {
		uint64_t begin = a->offset[d] > b->offset[d] ? a->offset[d] : b->offset[d];
		uint64_t end_a = a->offset[d] + a->extent[d], end_b = b->offset[d] + b->extent[d];
		uint64_t end = end_a < end_b ? end_a : end_b;

		if (begin >= end)
			return false;
		out->offset[d] = begin;
		out->extent[d] = end - begin;
	}
	return true;
}

uint64_t ck_cut_seek(const struct ck_cut *cut, uint64_t offset)
{
	uint64_t inner = cut->bytes, before = 0;

	if (offset <= cut->begin || cut->bytes == 0)
		return 0;
	offset -= cut->begin;
	for (int d = 0; d < cut->ndim; d++) {
		uint64_t i = offset / cut->stride[d];

		inner /= cut->extent[d];
		if (i >= cut->extent[d])
			return before + cut->extent[d] * inner;
		before += i * inner;
		offset -= i * cut->stride[d];
	}
	return before + (offset < cut->run ? offset : cut->run);
}

/* A place in the stream that moves forward. */
struct cursor {
	const struct ck_cut *cut;
	uint64_t place; /* in the whole */
	uint64_t left;  /* bytes of this run */
	uint64_t index[CK_MAX_NDIM];
};

static void cursor_init(struct cursor *cursor, const struct ck_cut *cut, uint64_t at)
{
	uint64_t run = at / cut->run;

	cursor->cut = cut;
	cursor->left = cut->run - at % cut->run;
	cursor->place = cut->begin + at % cut->run;
	for (int d = cut->ndim - 1; d >= 0; d--) {
		cursor->index[d] = run % cut->extent[d];
		cursor->place += cursor->index[d] * cut->stride[d];
		run /= cut->extent[d];
	}
}

static void next_run(struct cursor *cursor)
{
	const struct ck_cut *cut = cursor->cut;

	cursor->place -= cut->run;
	cursor->left = cut->run;
	for (int d = cut->ndim - 1; d >= 0; d--) {
		cursor->place += cut->stride[d];
		if (++cursor->index[d] < cut->extent[d])
			return;
		cursor->index[d] = 0;
		cursor->place -= cut->extent[d] * cut->stride[d];
	}
}

static inline void skip(struct cursor *cursor, uint64_t bytes)
{
	cursor->place += bytes;
	cursor->left -= bytes;
	if (cursor->left == 0)
		next_run(cursor);
}

/* Runs of one element are common, where a tensor is cut along its last dimension. */
static inline void copy(char *to, const char *from, uint64_t bytes)
{
	switch (bytes) {
	case 2:
		memcpy(to, from, 2);
		break;
	case 4:
		memcpy(to, from, 4);
		break;
	case 8:
		memcpy(to, from, 8);
		break;
	case 16:
		memcpy(to, from, 16);
		break;
	default:
		memcpy(to, from, bytes);
	}
}

uint64_t ck_cut_place(const struct ck_cut *cut, uint64_t at)
{
	struct cursor cursor;

	cursor_init(&cursor, cut, at);
	return cursor.place;
}

void ck_cut_get(const struct ck_cut *cut, const void *piece, uint64_t base, uint64_t at, void *to,
		uint64_t bytes)
{
	struct cursor from;
	char *next = to;

	if (bytes == 0)
		return;
	cursor_init(&from, cut, at);
	while (bytes) {
		uint64_t n = from.left < bytes ? from.left : bytes;

		copy(next, (const char *)piece + (from.place - base), n);
		skip(&from, n);
		next += n;
		bytes -= n;
	}
}

void ck_cut_put(const struct ck_cut *cut, void *whole, uint64_t at, const void *from,
		uint64_t bytes)
{
	const char *next = from;
	struct cursor to;

	if (bytes == 0)
		return;
	cursor_init(&to, cut, at);
	while (bytes) {
		uint64_t n = to.left < bytes ? to.left : bytes;

		copy((char *)whole + to.place, next, n);
		skip(&to, n);
		next += n;
		bytes -= n;
	}
}

void ck_cut_move(const struct ck_cut *from, const void *piece, uint64_t base,
		 const struct ck_cut *to, void *whole, uint64_t at, uint64_t bytes)
{
	struct cursor a, b;

	if (bytes == 0)
		return;
	cursor_init(&a, from, at);
	cursor_init(&b, to, at);
	while (bytes) {
		uint64_t n = a.left < b.left ? a.left : b.left;

		n = n < bytes ? n : bytes;
		copy((char *)whole + b.place, (const char *)piece + (a.place - base), n);
		skip(&a, n);
		skip(&b, n);
		bytes -= n;
	}
}
