#include "state.h"

#include <stdlib.h>
#include <string.h>

#include "tensor.h"

#define SPOILT 0xee
#define BIG_COLUMNS 1024

enum cut {
	WHOLE,  /* every rank has all of it */
	GRID,   /* a grid of ranks, over all dimensions */
	RISING, /* the first ranks have nothing, the last ones most */
	FLAT,   /* ZeRO: equal shares, the last ones padded */
	CYCLIC, /* rank r has rows r, r + size, …, each a block */
	PAIRS,  /* two ranks hold each block */
	TURNED, /* rows on an even number of ranks, columns on an odd one */
};

struct state_item {
	const char *name;
	enum ckpt_dtype dtype;
	enum cut cut;
	int ndim;
	uint64_t shape[4];
};

static const struct state_item items[] = {
	{"adam/exp_avg", CKPT_F32, FLAT, 1, {1003}},
	{"adam/exp_avg_sq", CKPT_F32, FLAT, 1, {1003}},
	{"adam/master", CKPT_F32, FLAT, 1, {1003}},
	{"flat/few", CKPT_F64, FLAT, 1, {5}},
	{"grid/2d", CKPT_BF16, GRID, 2, {9, 41}},
	{"grid/3d", CKPT_F32, GRID, 3, {13, 10, 7}},
	{"grid/4d", CKPT_F16, GRID, 4, {3, 5, 2, 6}},
	{"none", CKPT_F32, GRID, 2, {0, 7}},
	{"pairs/experts", CKPT_F8_E4M3, PAIRS, 2, {19, 6}},
	{"rising/bool", CKPT_BOOL, RISING, 1, {77}},
	{"rising/c64", CKPT_C64, RISING, 2, {33, 3}},
	{"rising/u16", CKPT_U16, RISING, 1, {257}},
	{"rows/i8", CKPT_I8, CYCLIC, 2, {21, 5}},
	{"turned/i32", CKPT_I32, TURNED, 2, {23, 29}},
	{"whole/f64", CKPT_F64, WHOLE, 0, {0}},
	{"whole/i64", CKPT_I64, WHOLE, 2, {3, 4}},
};

static const struct state_item big_item = {"big", CKPT_F32, TURNED, 2, {0, BIG_COLUMNS}};

#define NITEMS (sizeof(items) / sizeof(*items))

static void *need(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

/* ---- what is where ---- */

static uint64_t element_at(const struct state_item *item, uint64_t index)
{
	uint64_t x = (index + 1) * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)item->name[0] +
		     (uint64_t)item->name[strlen(item->name) - 1] * 257;

	return (x ^ (x >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
}

static size_t own_of(uint32_t rank, unsigned char out[static STATE_OWN_MAX])
{
	size_t bytes = (size_t)rank * 37 % STATE_OWN_MAX;

	for (size_t i = 0; i < bytes; i++)
		out[i] = (unsigned char)(rank * 11 + i * 5 + 1);
	return bytes;
}

static bool is_own_of(uint32_t rank, const void *data, size_t bytes)
{
	unsigned char own[STATE_OWN_MAX];

	return own_of(rank, own) == bytes && memcmp(own, data, bytes) == 0;
}

/* Part `r` of `n` of an extent, as even as it gets. */
static void part(uint64_t extent, uint64_t r, uint64_t n, uint64_t *offset, uint64_t *out)
{
	*offset = extent * r / n;
	*out = extent * (r + 1) / n - *offset;
}

/* Each prime factor of the number of ranks, largest first, goes to the dimension that is longest by then. */
static void cut_grid(struct state_block *b, int ndim, int rank, int size)
{
	uint64_t parts[4] = {1, 1, 1, 1}, rest = (uint64_t)size, at = (uint64_t)rank;

	for (uint64_t f = rest; f > 1; f--) {
		while (rest % f == 0 && (f == 2 || f % 2)) {
			int longest = 0;

			for (int d = 1; d < ndim; d++)
				if (b->shape[d] / parts[d] > b->shape[longest] / parts[longest])
					longest = d;
			parts[longest] *= f;
			rest /= f;
		}
	}
	for (int d = ndim - 1; d >= 0; d--) {
		part(b->shape[d], at % parts[d], parts[d], &b->offset[d], &b->extent[d]);
		at /= parts[d];
	}
}

static void cut_flat(struct state_block *b, int rank, int size, size_t element)
{
	uint64_t total = b->shape[0], share = (total + (uint64_t)size - 1) / (uint64_t)size;
	uint64_t begin = share * (uint64_t)rank;

	b->offset[0] = begin < total ? begin : total;
	b->extent[0] = total - b->offset[0] < share ? total - b->offset[0] : share;
	b->padding = (share - b->extent[0]) * element;
}

/* The k-th block of this rank. Returns false: it has no more. */
static bool cut(struct state_block *b, const struct state_item *item, int rank, int size, int k)
{
	uint64_t r = (uint64_t)rank, n = (uint64_t)size, rows = b->shape[0];
	int turned = size % 2;

	if (k && item->cut != CYCLIC)
		return false;
	switch (item->cut) {
	case WHOLE:
		break;
	case GRID:
		cut_grid(b, item->ndim, rank, size);
		break;
	case RISING:
		b->offset[0] = rows * r * r / (n * n);
		b->extent[0] = rows * (r + 1) * (r + 1) / (n * n) - b->offset[0];
		break;
	case FLAT:
		cut_flat(b, rank, size, ck_dtype_size((int)item->dtype));
		break;
	case CYCLIC:
		b->offset[0] = r + n * (uint64_t)k;
		b->extent[0] = 1;
		return b->offset[0] < rows;
	case PAIRS:
		part(rows, r / 2, (n + 1) / 2, &b->offset[0], &b->extent[0]);
		break;
	case TURNED:
		part(b->shape[turned], r, n, &b->offset[turned], &b->extent[turned]);
		break;
	}
	return true;
}

/* ---- the state ---- */

static void add_block(struct state *s, struct state_block b)
{
	size_t element = ck_dtype_size((int)b.item->dtype), bytes;

	b.elements = 1;
	for (int d = 0; d < b.item->ndim; d++)
		b.elements *= b.extent[d];
	bytes = b.elements * element;
	b.data = need(malloc(bytes + b.padding + 1));
	s->bytes += bytes;
	s->blocks = need(reallocarray(s->blocks, s->nblocks + 1, sizeof(b)));
	s->blocks[s->nblocks++] = b;
}

static void add_item(struct state *s, const struct state_item *item, uint64_t rows)
{
	struct state_block b = {.item = item};

	for (int k = 0;; k++) {
		memcpy(b.shape, item->shape, sizeof(b.shape));
		if (rows)
			b.shape[0] = rows;
		memset(b.offset, 0, sizeof(b.offset));
		memcpy(b.extent, b.shape, sizeof(b.extent));
		if (!cut(&b, item, s->rank, s->size, k))
			return;
		add_block(s, b);
	}
}

void state_init(struct state *s, int rank, int size, uint64_t big)
{
	*s = (struct state){.rank = rank, .size = size};
	for (size_t i = 0; i < NITEMS; i++)
		add_item(s, &items[i], 0);
	if (big)
		add_item(s, &big_item, big / BIG_COLUMNS / sizeof(float));
	state_spoil(s);
}

void state_fini(struct state *s)
{
	for (size_t b = 0; b < s->nblocks; b++)
		free(s->blocks[b].data);
	free(s->blocks);
}

/* Compare a run of elements with what they are to be, or make them so. Returns how many were not. */
static uint64_t run(const struct state_block *b, unsigned char *data, uint64_t first,
		    uint64_t count, bool make)
{
	size_t element = ck_dtype_size((int)b->item->dtype);
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < count; i++, data += element) {
		uint64_t value = element_at(b->item, first + i);

		if (make)
			memcpy(data, &value, element);
		else
			wrong += memcmp(data, &value, element) != 0;
	}
	return wrong;
}

static uint64_t walk(const struct state_block *b, bool make)
{
	int last = b->item->ndim - 1;
	uint64_t length = last < 0 ? 1 : b->extent[last], wrong = 0;
	size_t element = ck_dtype_size((int)b->item->dtype);

	for (uint64_t done = 0; done < b->elements; done += length) {
		uint64_t rest = length ? done / length : 0, index = 0, stride = 1;

		for (int d = last; d >= 0; d--) {
			uint64_t at = d == last ? 0 : rest % b->extent[d];

			rest = d == last ? rest : rest / b->extent[d];
			index += (b->offset[d] + at) * stride;
			stride *= b->shape[d];
		}
		wrong += run(b, b->data + done * element, index, length, make);
	}
	return wrong;
}

static bool all_spoilt(const unsigned char *data, size_t bytes)
{
	return !bytes || (data[0] == SPOILT && memcmp(data, data + 1, bytes - 1) == 0);
}

static const unsigned char *behind(const struct state_block *b)
{
	return b->data + b->elements * ck_dtype_size((int)b->item->dtype);
}

void state_fill(struct state *s, int64_t step)
{
	for (size_t b = 0; b < s->nblocks; b++)
		walk(&s->blocks[b], true);
	s->step = step;
	s->own_bytes = own_of((uint32_t)s->rank, s->own);
}

void state_spoil(struct state *s)
{
	for (size_t b = 0; b < s->nblocks; b++)
		memset(s->blocks[b].data, SPOILT,
		       (size_t)(behind(&s->blocks[b]) - s->blocks[b].data) + s->blocks[b].padding);
	memset(&s->step, SPOILT, sizeof(s->step));
	memset(s->own, SPOILT, sizeof(s->own));
	s->own_bytes = 0;
}

uint64_t state_wrong(const struct state *s, int64_t step)
{
	uint64_t wrong = s->step != step;

	for (size_t b = 0; b < s->nblocks; b++) {
		wrong += walk(&s->blocks[b], false);
		wrong += !all_spoilt(behind(&s->blocks[b]), s->blocks[b].padding);
	}
	return wrong;
}

bool state_is_spoilt(const struct state *s)
{
	bool spoilt = all_spoilt((const void *)&s->step, sizeof(s->step)) &&
		      all_spoilt(s->own, sizeof(s->own)) && !s->was_set && !s->seen_world;

	for (size_t b = 0; b < s->nblocks && spoilt; b++)
		spoilt = all_spoilt(s->blocks[b].data,
				    (size_t)(behind(&s->blocks[b]) - s->blocks[b].data));
	return spoilt;
}

/* ---- registering it ---- */

static size_t own_size(void *arg)
{
	return ((struct state *)arg)->own_bytes;
}

static int own_get(void *arg, void *dst, size_t bytes)
{
	memcpy(dst, ((struct state *)arg)->own, bytes);
	return 0;
}

static int own_set(void *arg, const void *src, size_t bytes)
{
	struct state *s = arg;

	s->was_set = true;
	s->own_wrong = s->own_wrong || !is_own_of((uint32_t)s->rank, src, bytes);
	return 0;
}

static int own_reassign(void *arg, uint32_t old_world, const struct ckpt_rank_value *values)
{
	struct state *s = arg;

	s->seen_world = old_world;
	for (uint32_t r = 0; r < old_world; r++)
		s->own_wrong = s->own_wrong || !is_own_of(r, values[r].data, values[r].bytes);
	return 0;
}

int state_register(struct state *s, ckpt *ck, bool drop)
{
	struct ckpt_rank_callbacks own = {.struct_size = sizeof(own),
					  .arg = s,
					  .size = own_size,
					  .get = own_get,
					  .set = own_set,
					  .reassign = drop ? ckpt_reassign_drop : own_reassign};
	int rc = ckpt_add_rank(ck, "own", &own);

	for (size_t i = 0; i < s->nblocks && !rc; i++) {
		struct state_block *b = &s->blocks[i];

		if (b->item->cut == WHOLE)
			rc = ckpt_add_replicated(ck, b->item->name, b->item->dtype, b->item->ndim,
						 b->shape, b->data);
		else
			rc = ckpt_add_sharded(ck, b->item->name, b->item->dtype, b->item->ndim,
					      b->shape, b->offset, b->extent, b->data);
	}
	if (!rc)
		rc = ckpt_add_replicated(ck, "step", CKPT_I64, 0, NULL, &s->step);
	return rc ? rc : ckpt_set_flat(ck, "adam/master");
}
