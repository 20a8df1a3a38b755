#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "shard_impl.h"

#define CUT_WORLD_MAX 1024
#define CUT_FILES_MAX 4
#define CUT_BYTES_MIN (UINT64_C(128) << 20)
#define CUT_BYTES_FILE (UINT64_C(64) << 20) /* the smallest file that cutting makes */
/* Pieces begin at multiples of it within their block where they can: memory for direct I/O. */
#define CUT_ALIGN 4096

/* The blocks of one item, adjacent. Per-rank items are never cut. */
struct group {
	size_t first, count; /* in the blocks */
	size_t stored;       /* of them, those that are not empty */
	uint64_t bytes;
	bool cut;
};

struct cutting {
	const struct ck_stored *blocks;
	struct group *groups;
	size_t ngroups;
	size_t nfiles;
	uint64_t load[CUT_FILES_MAX]; /* of the files, by what is not cut; sums behind the cut */
	struct ck_stored *pieces;
	size_t npieces;
};

bool ck_stored_follows(const struct ck_stored *blocks, size_t i)
{
	return i > 0 && blocks[i].kind == CK_SHARDED && blocks[i - 1].kind == CK_SHARDED &&
	       strcmp(blocks[i].name, blocks[i - 1].name) == 0;
}

bool ck_stored_counts(const struct ck_stored *block)
{
	return block->kind == CK_PER_RANK || !ck_box_empty(&block->box);
}

/* How many files the size asks for. Sums that overflow are the planner's to refuse. */
static size_t files_by_size(uint32_t world_size, const struct ck_stored *blocks, size_t nblocks)
{
	uint64_t total = 0;

	for (size_t i = 0; i < nblocks; i++)
		if (ck_stored_counts(&blocks[i]) && !ck_add_u64(total, blocks[i].bytes, &total))
			return 1;
	if (world_size > CUT_WORLD_MAX || total < CUT_BYTES_MIN || total > CK_JSON_INT_MAX)
		return 1;
	return total / CUT_BYTES_FILE < CUT_FILES_MAX ? (size_t)(total / CUT_BYTES_FILE)
						      : CUT_FILES_MAX;
}

/* Dimension along which a block can be cut into contiguous pieces; -1 when there is none. */
static int long_dim(const struct ck_box *box)
{
	for (int d = 0; d < box->ndim; d++)
		if (box->extent[d] > 1)
			return d;
	return -1;
}

static bool can_cut(const struct cutting *c, const struct group *g)
{
	const struct ck_stored *block = &c->blocks[g->first];

	if (block->kind != CK_SHARDED || g->stored == 0 || g->stored > c->nfiles / 2)
		return false;
	for (size_t i = 0; i < g->count; i++)
		if (ck_stored_counts(&block[i]) && long_dim(&block[i].box) < 0)
			return false;
	return true;
}

/* Add to, or take from the loads what this item brings to each file as long as it is not cut. */
static void load_files(struct cutting *c, const struct group *g, bool add)
{
	size_t file = 0;

	for (size_t i = g->first; i < g->first + g->count; i++) {
		if (!ck_stored_counts(&c->blocks[i]))
			continue;
		if (file < c->nfiles)
			c->load[file] += add ? c->blocks[i].bytes : -c->blocks[i].bytes;
		file++;
	}
}

static void find_groups(struct cutting *c, size_t nblocks)
{
	struct group *g = NULL;

	for (size_t i = 0; i < nblocks; i++) {
		if (!g || !ck_stored_follows(c->blocks, i)) {
			g = &c->groups[c->ngroups++];
			*g = (struct group){.first = i};
		}
		g->count++;
		g->stored += ck_stored_counts(&c->blocks[i]);
		g->bytes += ck_stored_counts(&c->blocks[i]) ? c->blocks[i].bytes : 0;
	}
	for (size_t k = 0; k < c->ngroups; k++)
		load_files(c, &c->groups[k], true);
}

static int by_falling_bytes(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->first < y->first ? -1 : 1;
}

static int by_first(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return x->first < y->first ? -1 : 1;
}

/*
 * The largest items are cut, as few as will do: what stays whole goes to the first file, which is
 * full when it has its share.
 */
static void choose(struct cutting *c)
{
	uint64_t total = 0, share;

	for (size_t g = 0; g < c->ngroups; g++)
		total += c->groups[g].bytes;
	share = total / c->nfiles;
	qsort(c->groups, c->ngroups, sizeof(*c->groups), by_falling_bytes);
	for (size_t g = 0; g < c->ngroups && c->load[0] > share; g++) {
		c->groups[g].cut = can_cut(c, &c->groups[g]);
		if (c->groups[g].cut)
			load_files(c, &c->groups[g], false);
	}
	qsort(c->groups, c->ngroups, sizeof(*c->groups), by_first);
	/* From here on: the room that is left in the first k + 1 files. */
	for (size_t k = 0; k < c->nfiles; k++) {
		c->load[k] = c->load[k] < share ? share - c->load[k] : 0;
		c->load[k] += k ? c->load[k - 1] : 0;
	}
}

static void add_piece(struct cutting *c, const struct ck_stored *block, int dim, uint64_t begin,
		      uint64_t end)
{
	struct ck_stored *piece = &c->pieces[c->npieces++];
	uint64_t row = block->bytes / block->box.extent[dim];

	*piece = *block;
	piece->box.offset[dim] += begin;
	piece->box.extent[dim] = end - begin;
	piece->bytes = row * (end - begin);
	if (block->data)
		piece->data = (const char *)block->data + row * begin;
}

/* A row boundary near rows * part / whole, behind `after`, with a row left for each later piece. */
static uint64_t boundary(const struct ck_stored *block, uint64_t rows, uint64_t part,
			 uint64_t whole, uint64_t after, uint64_t later)
{
	uint64_t row = block->bytes / rows, at = 0;
	uint64_t unit = row && row < CUT_ALIGN && CUT_ALIGN % row == 0 ? CUT_ALIGN / row : 1;

	if (whole)
		at = (uint64_t)((unsigned __int128)rows * part / whole);
	at -= at % unit;
	if (at <= after)
		at = after + unit;
	return at < rows - later ? at : rows - later;
}

/* Into at most `count` pieces, of equal size, or as the files have room when all of them get one. */
static void cut_block(struct cutting *c, const struct ck_stored *block, size_t count)
{
	int dim = long_dim(&block->box);
	uint64_t rows = block->box.extent[dim], begin = 0;
	bool by_room = count == c->nfiles && c->load[count - 1] > 0;

	if (count > rows)
		count = (size_t)rows;
	by_room = by_room && count == c->nfiles;
	for (size_t k = 0; k < count; k++) {
		uint64_t part = by_room ? c->load[k] : k + 1;
		uint64_t whole = by_room ? c->load[count - 1] : count;
		uint64_t end = rows;

		if (k + 1 < count)
			end = boundary(block, rows, part, whole, begin, count - 1 - k);
		add_piece(c, block, dim, begin, end);
		begin = end;
	}
}

static void cut_group(struct cutting *c, const struct group *g)
{
	for (size_t i = g->first; i < g->first + g->count; i++) {
		if (!ck_stored_counts(&c->blocks[i]))
			continue;
		if (g->cut)
			cut_block(c, &c->blocks[i], c->nfiles / g->stored);
		else
			c->pieces[c->npieces++] = c->blocks[i];
	}
}

static size_t count_pieces(const struct cutting *c)
{
	size_t count = 0;

	for (size_t g = 0; g < c->ngroups; g++)
		count += c->groups[g].cut ? c->nfiles : c->groups[g].stored;
	return count;
}

int ck_shard_cut(uint32_t world_size, const struct ck_stored *blocks, size_t nblocks,
		 struct ck_stored **pieces, size_t *npieces, struct ck_error *err)
{
	struct group *groups = calloc(nblocks + 1, sizeof(*groups));
	struct cutting c = {.blocks = blocks, .groups = groups};

	if (!groups)
		return ck_fail_nomem(err, nblocks * sizeof(*groups));
	c.nfiles = files_by_size(world_size, blocks, nblocks);
	find_groups(&c, nblocks);
	if (c.nfiles > 1)
		choose(&c);
	c.pieces = calloc(count_pieces(&c) + 1, sizeof(*c.pieces));
	for (size_t g = 0; c.pieces && g < c.ngroups; g++)
		cut_group(&c, &c.groups[g]);
	free(groups);
	if (!c.pieces)
		return ck_fail_nomem(err, nblocks * sizeof(*c.pieces));
	*pieces = c.pieces;
	*npieces = c.npieces;
	return 0;
}
