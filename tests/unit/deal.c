#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "deal.h"
#include "registered.h"
#include "tap.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

/* Registrations of four ranks that fit, before `spoil` changes one thing. */
static void fill(struct ck_item_list *lists, const char *spoil)
{
	for (uint32_t r = 0; r < 4; r++) {
		bool last = r == 3;
		uint64_t width = last && !strcmp(spoil, "hole") ? 1 : 2;

		add1(&lists[r], "w", last && !strcmp(spoil, "dtype") ? CK_F16 : CK_F32,
		     last && !strcmp(spoil, "shape") ? 9 : 8, 2 * r, width);
		add1(&lists[r], "bias", CK_F32, 3, 0, 3);
		if (!(r > 0 && !strcmp(spoil, "missing")) && !(last && !strcmp(spoil, "kind")))
			add_rank(&lists[r], "rng");
		if (last && !strcmp(spoil, "kind"))
			add1(&lists[r], "rng", CK_U8, 3, 0, 3);
		if (last && !strcmp(spoil, "overlap"))
			add1(&lists[r], "w", CK_F32, 8, 0, 1);
		if (strcmp(spoil, "flat-missing") != 0 || !last)
			lists[r].flat = strdup(!strcmp(spoil, "flat-unknown")    ? "x"
					       : !strcmp(spoil, "flat-per-rank") ? "rng"
										 : "w");
	}
	if (!strcmp(spoil, "flat-2d")) {
		struct ck_box box = {.ndim = 2, .extent = {2, 2}};
		size_t item, block;

		ck_item_list_add_block(&lists[1], "m", CK_F32, 2, box.extent, &box, &item, &block,
				       NULL);
		for (uint32_t r = 0; r < 4; r++)
			memcpy(lists[r].flat, "m", 2);
	}
}

static void test_refused(void)
{
	static const struct {
		const char *spoil, *says;
	} rows[] = {
		{"dtype", "item 'w': dtype F32 (rank 0) and F16 (rank 3)"},
		{"shape", "item 'w': global shape [8] (rank 0) and [9] (rank 3)"},
		{"kind", "item 'rng': per-rank (rank 0) and sharded (rank 3)"},
		{"missing", "item 'rng': per-rank, but not registered on ranks 1, 2, 3"},
		{"overlap", "item 'w': [0:1] (rank 3) and [0:2] (rank 0) overlap"},
		{"hole", "item 'w': hole: 1 of 8 elements are in no block, the first at [7]"},
		{"flat-missing", "the flat item is 'w' on rank 0 and '' on rank 3"},
		{"flat-unknown", "the flat item 'x' is not registered"},
		{"flat-per-rank", "item 'rng': is named flat, so it has to be sharded, of one"},
		{"flat-2d", "item 'm': is named flat, so it has to be sharded, of one dimension"},
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct ck_item_list lists[4] = {0};
		struct ck_deal deal = {.nblocks = 77};
		struct ck_error err = CK_ERROR_INIT;

		fill(lists, rows[i].spoil);
		is_int(ck_items_deal(lists, 4, &deal, &err), CK_EITEM, "%s: code", rows[i].spoil);
		like(err.text, rows[i].says, "%s: text", rows[i].spoil);
		is_u64(deal.nblocks, 77, "%s: output untouched", rows[i].spoil);
		lists_fini(lists, 4);
	}
}

static void test_many_missing(void)
{
	struct ck_item_list lists[20] = {0};
	struct ck_error err = CK_ERROR_INIT;
	struct ck_deal deal;

	add_rank(&lists[4], "rng");
	is_int(ck_items_deal(lists, 20, &deal, &err), CK_EITEM, "19 of 20 ranks lack an item");
	is_str(err.text,
	       "item 'rng': per-rank, but not registered on ranks 0, 1, 2, 3, 5, 6, 7, 8 and 11 "
	       "more",
	       "some are named, the others counted");
	for (uint32_t r = 0; r < 19; r++)
		if (r != 4)
			add_rank(&lists[r], "rng");
	is_int(ck_items_deal(lists, 20, &deal, &err), CK_EITEM, "one of 20 ranks does");
	is_str(err.text, "item 'rng': per-rank, but not registered on rank 19", "text");
	lists_fini(lists, 20);
}

static void test_table(void)
{
	struct ck_item_list lists[4] = {0};
	struct ck_error err = CK_ERROR_INIT;
	struct ck_deal deal = {0};

	fill(lists, "");
	if (!is_int(ck_items_deal(lists, 4, &deal, &err), 0, "four ranks: %s", err.text))
		return;
	is_u64(deal.table.count, 3, "three items");
	is_str(deal.table.items[0].name, "bias", "sorted");
	is_str(deal.table.items[1].name, "rng", "sorted");
	is_int(deal.table.items[1].kind, CK_PER_RANK, "kind");
	is_str(deal.table.items[2].name, "w", "sorted");
	is_u64(deal.table.items[2].shape[0], 8, "shape");
	is_u64(deal.table.items[2].nblocks, 0, "no blocks in the table");
	is_str(deal.table.flat, "w", "flat");
	is_u64(deal.nblocks, 5, "one block of bias, four of w");
	is_u64(deal.blocks[0].nholders, 4, "bias has four holders");
	is_int(ck_deal_holder(&deal, &deal.blocks[0], 3), 3, "ascending");
	is_int(deal.blocks[0].writer, 0, "loads are equal: the lowest rank writes it");
	for (uint32_t r = 0; r < 4; r++) {
		const struct ck_deal_block *block = &deal.blocks[1 + r];

		ok(block->item == 2 && block->nholders == 1 &&
			   ck_deal_holder(&deal, block, 0) == r && block->writer == r &&
			   box_of(&deal, 1 + r).offset[0] == 2 * r,
		   "block of rank %u", r);
	}
	ck_deal_fini(&deal);
	ck_deal_fini(&deal);
	lists_fini(lists, 4);
}

static void test_nothing(void)
{
	struct ck_item_list lists[3] = {0};
	struct ck_buf packed = CK_BUF_INIT;
	struct ck_duty duty;
	struct ck_deal deal;

	is_int(ck_items_deal(lists, 3, &deal, NULL), 0, "no item on any rank");
	ok(deal.nblocks == 0 && deal.table.count == 0, "no block");
	is_int(ck_duty_pack(&deal, 2, &packed, NULL), 0, "no duty");
	is_int(ck_duty_unpack(packed.data, packed.len, &duty, NULL), 0, "unpacks");
	is_u64(duty.count, 0, "to nothing");
	ck_duty_fini(&duty);
	ck_deal_fini(&deal);
	ck_buf_clear(&packed);

	add1(&lists[1], "none", CK_F32, 0, 0, 0);
	add1(&lists[1], "w", CK_F32, 4, 4, 0);
	add1(&lists[2], "w", CK_F32, 4, 0, 4);
	is_int(ck_items_deal(lists, 3, &deal, NULL), 0,
	       "empty blocks and an item without elements");
	is_u64(deal.nblocks, 1, "one block is stored");
	is_u64(deal.table.count, 2, "both are items");
	is_int(deal.blocks[0].writer, 2, "by who has it");
	ck_deal_fini(&deal);
	ck_buf_fini(&packed);
	lists_fini(lists, 3);
}

static void loads(const struct ck_deal *deal, uint64_t *load)
{
	memset(load, 0, deal->world_size * sizeof(*load));
	for (size_t i = 0; i < deal->nblocks; i++) {
		struct ck_box box = box_of(deal, i);

		load[deal->blocks[i].writer] +=
			ck_box_volume(&box) *
			ck_dtype_size((int)deal->table.items[deal->blocks[i].item].dtype);
	}
}

/* 64 replicated items of different sizes on 8 ranks; rank 5 has a large block of its own. */
static void test_balance(void)
{
	struct ck_item_list lists[8] = {0};
	struct ck_deal deal = {0};
	uint64_t load[8], least = UINT64_MAX, most = 0;
	bool held = true;
	char name[32];

	for (uint32_t r = 0; r < 8; r++) {
		for (uint64_t i = 0; i < 64; i++) {
			snprintf(name, sizeof(name), "p%" PRIu64, i);
			add1(&lists[r], name, CK_F32, 1000 + 37 * i, 0, 1000 + 37 * i);
		}
		add1(&lists[r], "own", CK_U8, 60000, 0, r == 5 ? 60000 : 0);
	}
	is_int(ck_items_deal(lists, 8, &deal, NULL), 0, "replicated items");
	loads(&deal, load);
	for (uint32_t r = 0; r < 8; r++) {
		least = load[r] < least ? load[r] : least;
		most = load[r] > most ? load[r] : most;
	}
	ok(most - least < 4 * (1000 + 37 * 64), "spread within one item: %" PRIu64 " to %" PRIu64,
	   least, most);
	is_u64(least + most > 0 ? load[0] + load[1] + load[2] + load[3] + load[4] + load[5] +
					  load[6] + load[7]
				: 0,
	       60000 + 4 * (64 * 1000 + 37 * 63 * 32), "each is stored once");
	for (size_t i = 0; i < deal.nblocks; i++)
		held = held && (deal.blocks[i].nholders == 8 || deal.blocks[i].writer == 5);
	ok(held, "writers are holders");
	ck_deal_fini(&deal);
	lists_fini(lists, 8);
}

/* Falling sizes: the large one first, then the small ones fill the other rank up. */
static void test_large_first(void)
{
	struct ck_item_list lists[2] = {0};
	struct ck_deal deal = {0};
	uint64_t load[2];

	for (uint32_t r = 0; r < 2; r++) {
		add1(&lists[r], "a", CK_U8, 10, 0, 10);
		add1(&lists[r], "b", CK_U8, 10, 0, 10);
		add1(&lists[r], "c", CK_F16, 10, 0, 10);
	}
	is_int(ck_items_deal(lists, 2, &deal, NULL), 0, "10, 10 and 20 bytes on two ranks");
	loads(&deal, load);
	is_u64(load[0], 20, "rank 0 writes 20");
	is_u64(load[1], 20, "rank 1 writes 20");
	is_int(deal.blocks[2].writer, 0, "the large one goes to the lowest rank");
	ck_deal_fini(&deal);
	lists_fini(lists, 2);
}

/* Tensor x data parallel: 6 ranks, 2 blocks, each held by every second rank. */
static void fill_grid(struct ck_item_list *lists, uint32_t world_size, bool backwards)
{
	char name[32];

	for (uint32_t r = 0; r < world_size; r++) {
		for (uint32_t k = 0; k < 12; k++) {
			uint32_t i = backwards ? 11 - k : k;
			uint64_t half = 50 + i;

			snprintf(name, sizeof(name), "t%u", i);
			add1(&lists[r], name, CK_F16, 2 * half, r % 2 * half, half);
		}
	}
}

static bool deals_equal(const struct ck_deal *a, const struct ck_deal *b)
{
	bool equal = a->nblocks == b->nblocks;

	for (size_t i = 0; i < a->nblocks && equal; i++) {
		const struct ck_deal_block *x = &a->blocks[i], *y = &b->blocks[i];
		struct ck_box box = box_of(a, i), other = box_of(b, i);

		equal = x->item == y->item && ck_box_equal(&box, &other) &&
			x->writer == y->writer && x->nholders == y->nholders;
		for (size_t h = 0; h < x->nholders && equal; h++)
			equal = ck_deal_holder(a, x, h) == ck_deal_holder(b, y, h);
	}
	return equal;
}

static void test_determinism(void)
{
	struct ck_item_list lists[6] = {0}, other[6] = {0}, unpacked[6] = {0};
	struct ck_deal a = {0}, b = {0}, c = {0};

	fill_grid(lists, 6, false);
	fill_grid(other, 6, true);
	for (uint32_t r = 0; r < 6; r++) {
		struct ck_buf packed = CK_BUF_INIT;

		ck_item_list_pack(&lists[r], &packed, NULL);
		ck_item_list_unpack(packed.data, packed.len, &unpacked[r], NULL);
		ck_buf_fini(&packed);
	}
	is_int(ck_items_deal(lists, 6, &a, NULL), 0, "one order of registration");
	is_int(ck_items_deal(other, 6, &b, NULL), 0, "another order");
	is_int(ck_items_deal(unpacked, 6, &c, NULL), 0, "lists that travelled");
	is_u64(a.nblocks, 24, "two blocks of twelve items");
	ok(deals_equal(&a, &b), "the order does not matter");
	ok(deals_equal(&a, &c), "nor does the travel");
	is_u64(a.blocks[1].nholders, 3, "three holders");
	ok(ck_deal_holder(&a, &a.blocks[1], 0) == 1 && ck_deal_holder(&a, &a.blocks[1], 1) == 3 &&
		   ck_deal_holder(&a, &a.blocks[1], 2) == 5,
	   "every second rank");
	ck_deal_fini(&a);
	ck_deal_fini(&b);
	ck_deal_fini(&c);
	lists_fini(lists, 6);
	lists_fini(other, 6);
	lists_fini(unpacked, 6);
}

/* 128 ranks with 1,000 items, half of them replicated: far from quadratic in either. No threads are in it. */
static void test_scale(void)
{
	struct ck_item_list *lists = calloc(128, sizeof(*lists));
	struct ck_buf packed = CK_BUF_INIT;
	double begin = cpu_seconds();
	struct ck_deal deal = {0};
	size_t bytes = 0, count = rounds(1000, 1000, 100);
	char name[64];

	for (uint32_t r = 0; r < 128; r++) {
		for (uint64_t i = 0; i < count; i++) {
			snprintf(name, sizeof(name), "model.layers.%" PRIu64 ".weight", i);
			if (i % 2)
				add1(&lists[r], name, CK_BF16, 4096, 0, 4096);
			else
				add1(&lists[r], name, CK_BF16, 4096, 32 * r, 32);
		}
	}
	is_int(ck_items_deal(lists, 128, &deal, NULL), 0, "128 ranks with %zu items", count);
	is_u64(deal.nblocks, count / 2 + 128 * (count / 2), "blocks");
	for (uint32_t r = 0; r < 128; r++) {
		ck_buf_clear(&packed);
		ck_duty_pack(&deal, r, &packed, NULL);
		bytes += packed.len;
	}
	ok(bytes < 128 * count * 100, "duties are short: %zu bytes in all", bytes);
	ok(cpu_seconds() - begin < 10, "in %.2f s", cpu_seconds() - begin);
	ck_buf_fini(&packed);
	ck_deal_fini(&deal);
	lists_fini(lists, 128);
	free(lists);
}

int main(void)
{
	test_refused();
	test_many_missing();
	test_table();
	test_nothing();
	test_balance();
	test_large_first();
	test_determinism();
	test_scale();
	return done_testing();
}
