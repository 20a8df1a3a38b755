#include "items.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "random.h"
#include "tap.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))
#define TWO_53 (UINT64_C(1) << 53)

static int add1(struct ck_item_list *list, const char *name, enum ck_dtype dtype, uint64_t extent,
		uint64_t offset, uint64_t count, struct ck_error *err)
{
	struct ck_box box = {.ndim = 1, .offset = {offset}, .extent = {count}};
	size_t item, block;

	return ck_item_list_add_block(list, name, dtype, 1, &extent, &box, &item, &block, err);
}

static void test_kinds(void)
{
	struct ck_error err = CK_ERROR_INIT;
	enum ck_kind kind = CK_SHARDED;

	is_int(ck_kind_parse("replicated", &kind, &err), CK_EFORMAT, "replicated is no kind");
	is_str(err.text, "unknown kind 'replicated'", "text");
	is_int(ck_kind_parse("", &kind, &err), CK_EFORMAT, "nor is nothing");
	is_int(ck_kind_parse(ck_kind_name(CK_PER_RANK), &kind, &err), 0, "per-rank");
	is_int(kind, CK_PER_RANK, "to itself");
	is_int(ck_kind_parse(ck_kind_name(CK_SHARDED), &kind, &err), 0, "sharded");
	is_int(kind, CK_SHARDED, "to itself");
}

static void test_add_refused(void)
{
	static const struct {
		const char *name;
		int dtype, ndim;
		uint64_t shape[3];
		struct ck_box box;
		const char *says;
	} rows[] = {
		{"", CK_F32, 1, {4}, {1, {0}, {4}}, "item name is empty"},
		{"rank-0/w", CK_F32, 1, {4}, {1, {0}, {4}}, "are reserved"},
		{"w", CK_DTYPES, 1, {4}, {1, {0}, {4}}, "item 'w': 19 is no dtype"},
		{"w", -1, 1, {4}, {1, {0}, {4}}, "item 'w': -1 is no dtype"},
		{"w", CK_F32, -1, {4}, {1, {0}, {4}}, "item 'w': -1 dimensions, 0 to 32 wanted"},
		{"w", CK_F32, 33, {4}, {1, {0}, {4}}, "item 'w': 33 dimensions, 0 to 32 wanted"},
		{"w",
		 CK_F32,
		 1,
		 {TWO_53},
		 {1, {0}, {0}},
		 "item 'w': extent 9007199254740992 of dimension 0 is not below 2^53"},
		{"w", CK_F32, 2, {0, TWO_53}, {2, {0}, {0}}, "of dimension 1 is not below 2^53"},
		{"w",
		 CK_F32,
		 2,
		 {TWO_53 - 1, TWO_53 - 1},
		 {2, {0}, {0}},
		 "item 'w': the tensor has 2^53 bytes or more"},
		{"w", CK_F32, 1, {TWO_53 / 4}, {1, {0}, {0}}, "has 2^53 bytes or more"},
		{"w",
		 CK_F32,
		 1,
		 {4},
		 {2, {0}, {4, 1}},
		 "item 'w': a block of 2 dimensions in a tensor of 1"},
		{"w",
		 CK_F32,
		 2,
		 {4, 4},
		 {2, {0, 1}, {4, 4}},
		 "item 'w': block of shape [4, 4] at [0, 1] leaves the tensor [4, 4]"},
		{"w", CK_F32, 1, {4}, {1, {UINT64_MAX}, {2}}, "leaves the tensor [4]"},
		{"there",
		 CK_F16,
		 1,
		 {8},
		 {1, {4}, {4}},
		 "item 'there': dtype F32 (before) and F16 (now)"},
		{"there",
		 CK_F32,
		 1,
		 {9},
		 {1, {4}, {4}},
		 "item 'there': global shape [8] (before) and [9] (now)"},
		{"there",
		 CK_F32,
		 2,
		 {8, 1},
		 {2, {4, 0}, {4, 1}},
		 "item 'there': global shape [8] (before) and [8, 1] (now)"},
		{"there",
		 CK_F32,
		 1,
		 {8},
		 {1, {0}, {4}},
		 "item 'there': blocks [0:4] and [0:4] of one rank are the same"},
		{"there",
		 CK_F32,
		 1,
		 {8},
		 {1, {3}, {4}},
		 "item 'there': blocks [0:4] and [3:7] of one rank overlap"},
		{"rng",
		 CK_U8,
		 1,
		 {8},
		 {1, {0}, {8}},
		 "item 'rng': per-rank (before) and sharded (now)"},
	};
	struct ck_item_list list = {0};
	struct ck_error err = CK_ERROR_INIT;
	size_t item = 77, block = 77;

	is_int(add1(&list, "there", CK_F32, 8, 0, 4, &err), 0, "a block: %s", err.text);
	is_int(ck_item_list_add_rank(&list, "rng", &item, &err), 0, "a per-rank item");
	item = 77;
	for (size_t i = 0; i < ROWS(rows); i++) {
		is_int(ck_item_list_add_block(&list, rows[i].name, (enum ck_dtype)rows[i].dtype,
					      rows[i].ndim, rows[i].shape, &rows[i].box, &item,
					      &block, &err),
		       CK_EARG, "add %zu: code", i);
		like(err.text, rows[i].says, "add %zu: text", i);
	}
	is_int(ck_item_list_add_rank(&list, "rng", &item, &err), CK_EARG, "per-rank twice");
	is_str(err.text, "item 'rng': registered twice", "text");
	is_int(ck_item_list_add_rank(&list, "there", &item, &err), CK_EARG, "sharded before");
	is_str(err.text, "item 'there': sharded (before) and per-rank (now)", "text");
	is_int(ck_item_list_add_rank(&list, "a\nb", &item, &err), CK_EARG, "a bad name");
	is_u64(list.count, 2, "the list is as before");
	is_u64(list.items[0].nblocks, 1, "its blocks are");
	ok(item == 77 && block == 77, "outputs untouched");
	ck_item_list_fini(&list);
	ck_item_list_fini(&list);
}

static void test_too_many_blocks(void)
{
	struct ck_item_list list = {0};
	struct ck_error err = CK_ERROR_INIT;
	int rc = 0;

	/* Each block is compared with those before it: 8 million comparisons, and no threads. */
	if (!rounds(1, 1, 0)) {
		skip("4,096 blocks: a minute under ThreadSanitizer");
		return;
	}
	for (uint64_t i = 0; i < CK_PARTS_MAX && rc == 0; i++)
		rc = add1(&list, "w", CK_U8, 10000, i, 1, &err);
	is_int(rc, 0, "4,096 blocks: %s", err.text);
	is_int(add1(&list, "w", CK_U8, 10000, 9999, 1, &err), CK_EARG, "one more");
	is_str(err.text, "item 'w': more than 4096 blocks of one rank", "text");
	ck_item_list_fini(&list);
}

static void test_add(void)
{
	static const uint64_t shape[] = {4, 6};
	struct ck_box box = {.ndim = 2, .offset = {0, 3}, .extent = {4, 3}}, scalar = {.ndim = 0};
	struct ck_item_list list = {0};
	size_t item, block;

	is_int(ck_item_list_add_block(&list, "w", CK_BF16, 2, shape, &box, &item, &block, NULL), 0,
	       "a block");
	ok(item == 0 && block == 0, "stands first");
	is_int(ck_item_list_add_block(&list, "s", CK_F64, 0, NULL, &scalar, &item, &block, NULL), 0,
	       "a scalar, without a shape");
	ok(item == 1 && block == 0, "stands second");
	box.offset[1] = 0;
	is_int(ck_item_list_add_block(&list, "w", CK_BF16, 2, shape, &box, &item, &block, NULL), 0,
	       "a further block of the first");
	ok(item == 0 && block == 1, "stands there");
	box.extent[0] = 0;
	for (int i = 0; i < 2; i++)
		is_int(ck_item_list_add_block(&list, "w", CK_BF16, 2, shape, &box, &item, &block,
					      NULL),
		       0, "an empty block, now and again");
	ok(item == 0 && block == 3, "is kept");
	is_int(ck_item_list_add_rank(&list, "rng", &item, NULL), 0, "a per-rank item");
	is_u64(item, 2, "stands third");
	is_str(list.items[2].name, "rng", "name");
	is_int(list.items[2].kind, CK_PER_RANK, "kind");
	is_int(list.items[2].dtype, CK_U8, "dtype");
	is_int(list.items[0].ndim, 2, "dimensions");
	is_u64(list.items[0].shape[1], 6, "shape");
	is_u64(list.items[0].blocks[1].extent[1], 3, "block");
	ck_item_list_fini(&list);
}

/* Thousands of items, found by name, also after sorting and in a list that was built by hand. */
static void test_find(void)
{
	struct ck_item_list list = {0}, hand = {0};
	struct ck_error err = CK_ERROR_INIT;
	size_t item = 77, right = 0;
	char name[32];
	int rc = 0;

	is_int(ck_item_list_find(&list, "w", &item, &err), CK_ENOENT, "nothing in an empty list");
	is_str(err.text, "no item 'w'", "text");
	is_u64(item, 77, "output untouched");
	for (int i = 0; i < 5000 && rc == 0; i++) {
		snprintf(name, sizeof(name), "layer.%d", (i * 7919) % 5000);
		rc = add1(&list, name, CK_F32, 4, 0, 4, &err);
	}
	is_int(rc, 0, "5,000 items");
	ck_item_list_sort(&list);
	for (int i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "layer.%d", i);
		right += ck_item_list_find(&list, name, &item, &err) == 0 &&
			 strcmp(list.items[item].name, name) == 0 &&
			 (item == 0 || strcmp(list.items[item - 1].name, name) < 0) &&
			 ck_item_list_search(&list, name) == &list.items[item];
	}
	is_u64(right, 5000, "are found after sorting, and sorted");
	is_int(ck_item_list_find(&list, "layer.5000", &item, &err), CK_ENOENT, "no other is");
	ok(!ck_item_list_search(&list, "layer.5000"), "nor by search");

	hand.items = calloc(2, sizeof(*hand.items));
	hand.count = 2;
	hand.items[0].name = strdup("b");
	hand.items[1].name = strdup("a");
	is_int(ck_item_list_find(&hand, "a", &item, &err), 0, "a list built by hand");
	is_u64(item, 1, "has it");
	is_int(ck_item_list_append(&hand, &list.items[0], &err), 0, "can grow");
	is_int(ck_item_list_find(&hand, "layer.0", &item, &err), 0, "and knows");
	is_u64(hand.items[item].nblocks, 0, "items are appended without their blocks");
	ck_item_list_fini(&hand);
	ck_item_list_fini(&list);
}

static void test_same(void)
{
	struct ck_item a = {.name = (char *)"w\n", .dtype = CK_F32, .ndim = 2, .shape = {4, 8}};
	struct ck_item b = a;
	struct ck_error err = CK_ERROR_INIT;

	b.name = (char *)"not looked at";
	b.shape[2] = 99;
	is_int(ck_item_same(&a, "x", &b, "y", CK_EITEM, &err), 0, "the same");
	b.shape[1] = 9;
	is_int(ck_item_same(&a, "the checkpoint", &b, "rank 3", CK_EITEM, &err), CK_EITEM, "shape");
	is_str(err.text, "item 'w\\x0a': global shape [4, 8] (the checkpoint) and [4, 9] (rank 3)",
	       "text");
	b.dtype = CK_F16;
	is_int(ck_item_same(&a, "x", &b, "y", CK_EARG, &err), CK_EARG, "dtype");
	is_str(err.text, "item 'w\\x0a': dtype F32 (x) and F16 (y)", "text");
	b.kind = CK_PER_RANK;
	is_int(ck_item_same(&a, "x", &b, "y", CK_EARG, &err), CK_EARG, "kind");
	is_str(err.text, "item 'w\\x0a': sharded (x) and per-rank (y)", "text");
}

/* The same registrations in one of two orders. */
static void fill(struct ck_item_list *list, bool other_order)
{
	static const char *const names[] = {"b", "a", "c"};
	struct ck_box scalar = {.ndim = 0};
	size_t item, block;

	if (other_order)
		ck_item_list_add_rank(list, "rng", &item, NULL);
	for (int i = 0; i < 3; i++) {
		const char *name = names[other_order ? 2 - i : i];

		add1(list, name, CK_F32, 100, other_order ? 60 : 10, 20, NULL);
		add1(list, name, CK_F32, 100, other_order ? 10 : 60, 20, NULL);
		if (other_order)
			add1(list, name, CK_F32, 100, 5, 0, NULL);
	}
	ck_item_list_add_block(list, "s", CK_I64, 0, NULL, &scalar, &item, &block, NULL);
	if (!other_order)
		ck_item_list_add_rank(list, "rng", &item, NULL);
	list->flat = strdup("a");
}

static void test_pack(void)
{
	struct ck_item_list one = {0}, other = {0}, back = {0};
	struct ck_buf a = CK_BUF_INIT, b = CK_BUF_INIT;
	struct ck_error err = CK_ERROR_INIT;

	fill(&one, false);
	fill(&other, true);
	is_int(ck_item_list_pack(&one, &a, &err), 0, "pack");
	is_int(ck_item_list_pack(&other, &b, &err), 0, "pack in another order");
	ok(a.len == b.len && memcmp(a.data, b.data, a.len) == 0,
	   "packed forms are equal, empty blocks aside");
	is_int(ck_item_list_unpack(a.data, a.len, &back, &err), 0, "unpack: %s", err.text);
	is_u64(back.count, 5, "five items");
	is_str(back.flat, "a", "flat");
	is_str(back.items[0].name, "a", "sorted");
	is_int(back.items[0].dtype, CK_F32, "dtype");
	is_u64(back.items[0].shape[0], 100, "shape");
	is_u64(back.items[0].nblocks, 2, "blocks");
	is_u64(back.items[0].blocks[1].offset[0], 60, "sorted");
	is_u64(back.items[0].blocks[1].extent[0], 20, "whole");
	is_int(back.items[3].kind, CK_PER_RANK, "per-rank");
	is_u64(back.items[4].nblocks, 1, "a scalar's block");
	ck_buf_clear(&b);
	is_int(ck_item_list_pack(&back, &b, &err), 0, "pack again");
	ok(a.len == b.len && memcmp(a.data, b.data, a.len) == 0, "the same bytes");
	free(one.flat);
	one.flat = strdup("b");
	ck_buf_clear(&b);
	is_int(ck_item_list_pack(&one, &b, &err), 0, "pack with another flat item");
	ok(a.len == b.len && memcmp(a.data, b.data, a.len) != 0, "other bytes");
	ck_buf_fini(&a);
	ck_buf_fini(&b);
	ck_item_list_fini(&one);
	ck_item_list_fini(&other);
	ck_item_list_fini(&back);
}

static void test_pack_nothing(void)
{
	struct ck_item_list none = {0}, back = {.count = 77};
	struct ck_buf a = CK_BUF_INIT;

	is_int(ck_item_list_pack(&none, &a, NULL), 0, "pack nothing");
	is_int(ck_item_list_unpack(a.data, a.len, &back, NULL), 0, "unpack nothing");
	ok(back.count == 0 && back.flat == NULL, "nothing");
	ck_item_list_fini(&back);
	ck_buf_fini(&a);
}

/* A packed item of one dimension, to be spoilt. */
struct raw {
	uint32_t kind, dtype, ndim;
	uint64_t shape, nblocks, box[4];
	const char *names[2];
	uint64_t count;
};

static void pack_raw(struct ck_buf *out, const struct raw *raw)
{
	ck_buf_add_u64(out, raw->count);
	ck_buf_add_u32(out, 0);
	for (size_t i = 0; i < 2 && raw->names[i]; i++) {
		ck_buf_add_u32(out, (uint32_t)strlen(raw->names[i]));
		ck_buf_add_str(out, raw->names[i]);
		ck_buf_add_u32(out, raw->kind);
		ck_buf_add_u32(out, raw->dtype);
		ck_buf_add_u32(out, raw->ndim);
		ck_buf_add_u64(out, raw->shape);
		ck_buf_add_u64(out, raw->nblocks);
		for (size_t k = 0; k < 4; k++)
			ck_buf_add_u64(out, raw->box[k]);
	}
}

static void test_unpack_refused(void)
{
	static const struct {
		struct raw raw;
		const char *says; /* NULL: accepted */
	} rows[] = {
		{{0, CK_F32, 1, 8, 2, {0, 4, 4, 4}, {"w"}, 1}, NULL},
		{{0, CK_F32, 1, 8, 2, {0, 4, 4, 4}, {"v", "w"}, 2}, NULL},
		{{2, CK_F32, 1, 8, 2, {0, 4, 4, 4}, {"w"}, 1}, "kind, dtype or number"},
		{{0, CK_DTYPES, 1, 8, 2, {0, 4, 4, 4}, {"w"}, 1}, "kind, dtype or number"},
		{{0, CK_F32, 33, 8, 2, {0, 4, 4, 4}, {"w"}, 1}, "kind, dtype or number"},
		{{0, CK_F32, 32, 8, 2, {0, 4, 4, 4}, {"w"}, 1}, "shape cut or too large"},
		{{0, CK_F32, 1, TWO_53, 2, {0, 4, 4, 4}, {"w"}, 1}, "shape cut or too large"},
		{{0, CK_F32, 1, 8, 3, {0, 4, 4, 4}, {"w"}, 1}, "more blocks than"},
		{{0, CK_F32, 1, 8, UINT64_MAX, {0, 4, 4, 4}, {"w"}, 1}, "more blocks than"},
		{{1, CK_U8, 1, 8, 1, {0, 4, 4, 4}, {"w"}, 1}, "more blocks than"},
		{{0, CK_F32, 1, 8, 2, {0, 4, 4, 5}, {"w"}, 1}, "leaves its tensor"},
		{{0, CK_F32, 1, 8, 2, {0, 0, 4, 4}, {"w"}, 1}, "empty or leaves"},
		{{0, CK_F32, 1, 8, 2, {4, 4, 0, 4}, {"w"}, 1}, "blocks out of order"},
		{{0, CK_F32, 1, 8, 2, {0, 4, 0, 4}, {"w"}, 1}, "blocks out of order"},
		{{0, CK_F32, 1, 8, 1, {0, 4, 4, 4}, {"w"}, 1}, "trailing bytes"},
		{{0, CK_F32, 1, 8, 2, {0, 4, 4, 4}, {"w", "v"}, 2}, "items out of order"},
		{{0, CK_F32, 1, 8, 2, {0, 4, 4, 4}, {"w", "w"}, 2}, "items out of order"},
		{{0, CK_F32, 1, 8, 2, {0, 4, 4, 4}, {""}, 1}, "a bad item name"},
		{{0, CK_F32, 1, 8, 2, {0, 4, 4, 4}, {"rank-1/w"}, 1}, "a bad item name"},
		{{0, CK_F32, 1, 8, 2, {0, 4, 4, 4}, {"w"}, 2}, "name is cut or too long"},
		{{0, CK_F32, 1, 8, 2, {0, 4, 4, 4}, {"w"}, UINT64_MAX}, "more items than"},
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct ck_item_list list = {.count = 0};
		struct ck_error err = CK_ERROR_INIT;
		struct ck_buf text = CK_BUF_INIT;

		pack_raw(&text, &rows[i].raw);
		is_int(ck_item_list_unpack(text.data, text.len, &list, &err),
		       rows[i].says ? CK_EFORMAT : 0, "packed %zu: code", i);
		like(err.text, rows[i].says ? rows[i].says : "", "packed %zu: text", i);
		ck_item_list_fini(&list);
		ck_buf_fini(&text);
	}
}

static void test_unpack_mutations(void)
{
	struct ck_item_list list = {0}, back;
	struct ck_buf packed = CK_BUF_INIT, again = CK_BUF_INIT;
	uint64_t state = 31, refused = 0, accepted = 0, unlike_itself = 0;

	fill(&list, false);
	ck_item_list_pack(&list, &packed, NULL);
	for (size_t length = 0; length < packed.len; length++) {
		char *copy = malloc(length + 1);

		memcpy(copy, packed.data, length);
		refused += ck_item_list_unpack(copy, length, &back, NULL) == CK_EFORMAT;
		free(copy);
	}
	is_u64(refused, packed.len, "every cut is refused");
	for (int i = 0; i < 20000; i++) {
		char *copy = malloc(packed.len);

		memcpy(copy, packed.data, packed.len);
		for (uint64_t k = draw(&state, 2) + 1; k > 0; k--)
			copy[draw(&state, packed.len)] = (char)next_random(&state);
		if (ck_item_list_unpack(copy, packed.len, &back, NULL) == 0) {
			accepted++;
			ck_buf_clear(&again);
			ck_item_list_pack(&back, &again, NULL);
			unlike_itself +=
				again.len != packed.len || memcmp(again.data, copy, again.len) != 0;
			ck_item_list_fini(&back);
		}
		free(copy);
	}
	ok(accepted > 100 && accepted < 15000, "%lu of 20,000 mutations accepted",
	   (unsigned long)accepted);
	is_u64(unlike_itself, 0, "each of those packs to what it was");
	ck_buf_fini(&packed);
	ck_buf_fini(&again);
	ck_item_list_fini(&list);
}

int main(void)
{
	test_kinds();
	test_add_refused();
	test_too_many_blocks();
	test_add();
	test_find();
	test_same();
	test_pack();
	test_pack_nothing();
	test_unpack_refused();
	test_unpack_mutations();
	return done_testing();
}
