/* What each rank is told of the deal, on its way. */
#include <string.h>

#include "deal.h"
#include "registered.h"
#include "tap.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

/* Does a duty's block say what the deal says? */
static bool same_block(const struct ck_deal *deal, size_t i, const struct ck_duty_block *duty)
{
	const struct ck_deal_block *block = &deal->blocks[i];
	struct ck_box box = box_of(deal, i);
	bool same = ck_box_equal(&box, &duty->box) && block->writer == duty->writer &&
		    block->nholders == duty->nholders;

	for (size_t h = 0; h < block->nholders && same && block->nholders > 1; h++)
		same = ck_deal_holder(deal, block, h) == duty->holders[h];
	return same;
}

static bool holds(const struct ck_deal *deal, size_t block, uint32_t rank)
{
	for (size_t h = 0; h < deal->blocks[block].nholders; h++)
		if (ck_deal_holder(deal, &deal->blocks[block], h) == rank)
			return true;
	return false;
}

static bool duty_is_right(const struct ck_deal *deal, uint32_t rank, const struct ck_duty *duty)
{
	size_t item = 0, block = 0;
	bool right = true;

	for (size_t i = 0; i < deal->nblocks && right; i++) {
		if (!holds(deal, i, rank))
			continue;
		right = item < duty->count && block < duty->items[item].nblocks &&
			!strcmp(duty->items[item].name,
				deal->table.items[deal->blocks[i].item].name) &&
			same_block(deal, i, &duty->items[item].blocks[block]);
		if (right && ++block == duty->items[item].nblocks) {
			block = 0;
			item++;
		}
	}
	return right && item == duty->count;
}

static void test_duties(void)
{
	/* Who holds the blocks: runs of any stride, alone, and irregular. */
	static const uint32_t holders[][16] = {
		{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
		{0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0},
		{1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1},
		{1, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1},
		{0, 1, 1, 1, 0, 1, 0, 1, 0, 1, 0, 0, 0, 1, 1, 0},
	};
	struct ck_item_list lists[16] = {0};
	struct ck_buf packed = CK_BUF_INIT;
	struct ck_error err = CK_ERROR_INIT;
	struct ck_deal deal = {0};

	for (uint32_t r = 0; r < 16; r++)
		for (uint64_t k = 0; k < ROWS(holders); k++)
			if (holders[k][r])
				add1(&lists[r], k < 2 ? "a" : "b", CK_U8, k < 2 ? 20 : 30,
				     k < 2 ? 10 * k : 10 * (k - 2), 10);
	is_int(ck_items_deal(lists, 16, &deal, &err), 0, "deal: %s", err.text);
	for (uint32_t r = 0; r < 16; r++) {
		struct ck_duty duty = {0};

		ck_buf_clear(&packed);
		is_int(ck_duty_pack(&deal, r, &packed, &err), 0, "pack the duty of rank %u", r);
		is_int(ck_duty_unpack(packed.data, packed.len, &duty, &err), 0, "unpack: %s",
		       err.text);
		ok(duty_is_right(&deal, r, &duty), "rank %u's duty is the deal's", r);
		ck_duty_fini(&duty);
		ck_duty_fini(&duty);
	}
	ck_buf_fini(&packed);
	ck_deal_fini(&deal);
	lists_fini(lists, 16);
}

static void pack_duty(struct ck_buf *out, uint64_t extent, uint32_t writer, const uint32_t run[3])
{
	ck_buf_add_u64(out, 1);
	ck_buf_add_u32(out, 1);
	ck_buf_add_str(out, "w");
	ck_buf_add_u32(out, 1);
	ck_buf_add_u64(out, 1);
	ck_buf_add_u64(out, 0);
	ck_buf_add_u64(out, extent);
	ck_buf_add_u32(out, writer);
	ck_buf_add_u32(out, 1);
	for (int i = 0; i < 3; i++)
		ck_buf_add_u32(out, run[i]);
}

static void test_duty_refused(void)
{
	static const struct {
		uint64_t extent;
		uint32_t writer, run[3];
		const char *says; /* NULL: accepted */
	} rows[] = {
		{4, 3, {1, 3, 2}, NULL},
		{0, 3, {1, 3, 2}, "a block is cut or out of range"},
		{UINT64_MAX, 3, {1, 3, 2}, "a block is cut or out of range"},
		{4, UINT32_MAX, {1, 3, 2}, "a block is cut or out of range"},
		{4, 3, {1, 0, 2}, "holders cut or out of range"},
		{4, 3, {1, 3, 0}, "holders cut or out of range"},
		{4, 3, {UINT32_MAX, 1, 1}, "holders cut or out of range"},
		{4, 3, {1, UINT32_MAX, UINT32_MAX}, "holders cut or out of range"},
	};
	static const uint32_t run[] = {1, 3, 2};
	struct ck_buf packed = CK_BUF_INIT;
	struct ck_duty duty = {0};
	uint64_t refused = 0;

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct ck_error err = CK_ERROR_INIT;

		ck_buf_clear(&packed);
		pack_duty(&packed, rows[i].extent, rows[i].writer, rows[i].run);
		is_int(ck_duty_unpack(packed.data, packed.len, &duty, &err),
		       rows[i].says ? CK_EFORMAT : 0, "duty %zu: code", i);
		like(err.text, rows[i].says ? rows[i].says : "", "duty %zu: text", i);
		ck_duty_fini(&duty);
	}
	ck_buf_clear(&packed);
	pack_duty(&packed, 4, 3, run);
	for (size_t length = 0; length < packed.len; length++)
		refused += ck_duty_unpack(packed.data, length, &duty, NULL) == CK_EFORMAT;
	is_u64(refused, packed.len, "every cut is refused");
	ck_buf_add_u32(&packed, 0);
	is_int(ck_duty_unpack(packed.data, packed.len, &duty, NULL), CK_EFORMAT, "trailing bytes");
	ck_buf_fini(&packed);
}

int main(void)
{
	test_duties();
	test_duty_refused();
	return done_testing();
}
