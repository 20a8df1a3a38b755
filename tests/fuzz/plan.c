/*
 * What ranks send each other to reshard, of any bytes: headers, shares, file entries, item lists. The
 * first byte says which. Whatever is accepted is walked along, and planned with.
 */
#include <stdlib.h>
#include <string.h>

#include "cut.h"
#include "fuzz.h"
#include "json.h"
#include "reshard.h"
#include "share.h"

#define FILES 4
#define RANKS 3

static struct ck_item items[] = {
	{.name = (char *)"a", .dtype = CK_F32, .ndim = 1, .shape = {100}},
	{.name = (char *)"b", .dtype = CK_U8, .ndim = 2, .shape = {6, 5}},
	{.name = (char *)"own", .kind = CK_PER_RANK, .dtype = CK_U8},
	{.name = (char *)"s", .dtype = CK_F64, .ndim = 0},
};

static const struct ck_item_list table = {.items = items, .count = 4};

/* Everything in thirds, along the last dimension. */
static void want(struct ck_layout *layout)
{
	ck_layout_init(layout, &table);
	for (uint32_t i = 0; i < table.count; i++) {
		for (uint32_t r = 0; r < RANKS && items[i].kind == CK_SHARDED; r++) {
			struct ck_layout_block block = {.item = i, .rank = r};
			struct ck_box box = {.ndim = items[i].ndim};
			int d = box.ndim - 1;

			memcpy(box.extent, items[i].shape, sizeof(box.extent));
			if (d >= 0) {
				box.offset[d] = items[i].shape[d] * r / RANKS;
				box.extent[d] = items[i].shape[d] * (r + 1) / RANKS - box.offset[d];
			}
			fuzz_expect(ck_layout_add(layout, &block, &box, NULL) == 0);
		}
	}
	fuzz_expect(ck_layout_sort(layout, NULL) == 0);
}

/* Along a share, as a reader goes. */
static void walk(const uint8_t *data, size_t size)
{
	struct ck_share_walk along = {.reader = {.data = data, .len = size}, .table = &table};
	struct ck_share_block block;
	struct ck_share_move move;
	uint32_t number;

	while (ck_share_next_file(&along, &number, NULL) == 1) {
		while (ck_share_next_block(&along, &block, NULL) == 1) {
			while (ck_share_next_move(&along, &block, &move, NULL) == 1) {
				struct ck_cut cut;
				struct ck_box part;

				if (!ck_box_meet(&block.box, &move.box, &part))
					continue;
				ck_cut_init(&cut, &block.box, &part, block.element);
				fuzz_expect(ck_cut_seek(&cut, block.bytes) == cut.bytes);
				fuzz_expect(!cut.bytes ||
					    ck_cut_place(&cut, cut.bytes - 1) < block.bytes);
			}
		}
	}
}

/* Headers that are accepted make a plan, or are told to be no checkpoint; the plan's shares can be walked. */
static void plan(const uint8_t *data, size_t size)
{
	static const struct ck_file files[FILES] = {
		{.rank = 0}, {.rank = 1}, {.rank = 1}, {.rank = 2}};
	struct ck_layout stored, wanted;
	struct ck_error err = CK_ERROR_INIT;
	struct ck_buf share = CK_BUF_INIT;
	struct ck_reshard made;
	int rc;

	ck_layout_init(&stored, &table);
	want(&wanted);
	rc = ck_share_unpack_headers(data, size, files, FILES, &stored, &err);
	if (!rc)
		rc = ck_layout_sort(&stored, &err);
	if (!rc)
		rc = ck_reshard_plan(&stored, FILES, RANKS, &wanted, &made, &err);
	fuzz_expect(!rc || err.text[0]);
	if (!rc) {
		for (size_t f = 0; f < FILES; f++)
			ck_share_pack(&stored, &wanted, &made, f, &share);
		walk((const uint8_t *)share.data, share.len);
		ck_buf_fini(&share);
		ck_reshard_fini(&made);
	}
	ck_layout_fini(&stored);
	ck_layout_fini(&wanted);
}

static void entries(const uint8_t *data, size_t size)
{
	struct ck_share_file *files;
	size_t count;

	if (ck_share_unpack_files(data, size, &files, &count, NULL) == 0)
		ck_share_files_free(files, count);
}

static void list(const uint8_t *data, size_t size)
{
	struct ck_item_list unpacked;
	struct ck_buf again = CK_BUF_INIT;

	if (ck_item_list_unpack(data, size, &unpacked, NULL))
		return;
	/* The form is canonical. */
	fuzz_expect(ck_item_list_pack(&unpacked, &again, NULL) == 0);
	fuzz_expect(again.len == size && memcmp(again.data, data, size) == 0);
	ck_buf_fini(&again);
	ck_item_list_fini(&unpacked);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	switch (data[0] % 4) {
	case 0:
		plan(data + 1, size - 1);
		break;
	case 1:
		walk(data + 1, size - 1);
		break;
	case 2:
		entries(data + 1, size - 1);
		break;
	default:
		list(data + 1, size - 1);
	}
	return 0;
}
