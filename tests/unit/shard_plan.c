#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "shard.h"
#include "stored.h"
#include "tap.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static void test_plan_refused(void)
{
	struct ck_stored wrong[] = {stored_block("w", CK_F32, 4, 0, 4, NULL)};
	struct ck_stored twice[] = {stored_block("w", CK_F32, 4, 0, 4, NULL),
				    stored_block("v", CK_F32, 4, 0, 4, NULL),
				    stored_block("w", CK_F32, 4, 0, 4, NULL)};
	struct ck_stored huge[] = {
		stored_block("a", CK_U8, UINT64_C(1) << 52, 0, UINT64_C(1) << 52, NULL),
		stored_block("b", CK_U8, UINT64_C(1) << 52, 0, UINT64_C(1) << 52, NULL)};
	struct ck_stored *many = calloc(CK_PARTS_MAX + 1, sizeof(*many));
	struct ck_error err = CK_ERROR_INIT;
	struct ck_plan plan = {.nparts = 77};

	wrong[0].bytes = 15;
	is_int(ck_shard_plan(0, wrong, 1, &plan, &err), CK_EARG, "bytes that are not the box's");
	like(err.text, "tensor 'w': bytes [0, 15) do not follow from its shape", "text");
	is_int(ck_shard_plan(0, twice, 3, &plan, &err), CK_EARG, "a name twice in a file");
	like(err.text, "tensor 'w' twice", "text");
	is_int(ck_shard_plan(3, huge, 2, &plan, &err), CK_EARG, "2^53 bytes");
	is_str(err.text, "shard of rank 3: 2^53 bytes or more", "text");
	for (uint64_t i = 0; i <= CK_PARTS_MAX; i++)
		many[i] = stored_block("w", CK_U8, 10000, i, 1, NULL);
	is_int(ck_shard_plan(3, many, CK_PARTS_MAX + 1, &plan, &err), CK_EARG, "4,097 files");
	is_str(err.text, "shard of rank 3: 4097 files wanted, the limit is 4096", "text");
	is_u64(plan.nparts, 77, "output untouched");
	free(many);
}

static void test_plan_header_too_large(void)
{
	size_t count = 34000;
	struct ck_stored *blocks = calloc(count, sizeof(*blocks));
	char(*names)[CK_ITEM_NAME_MAX] = calloc(count, sizeof(*names));
	struct ck_error err = CK_ERROR_INIT;
	struct ck_plan plan;

	for (size_t i = 0; i < count; i++) {
		memset(names[i], 'n', CK_ITEM_NAME_MAX - 1);
		names[i][snprintf(names[i], 8, "%06zu", i)] = 'n';
		blocks[i] = stored_block(names[i], CK_U8, 1, 0, 1, NULL);
	}
	is_int(ck_shard_plan(0, blocks, count, &plan, &err), CK_EARG,
	       "34,000 names of 1 KB, three times each");
	like(err.text, "for 34000 tensors: the limit is 100000000", "text");
	free(names);
	free(blocks);
}

static void test_plan(void)
{
	struct ck_stored blocks[] = {
		stored_block("bytes", CK_U8, 3, 0, 3, NULL),
		stored_block("w", CK_BF16, 100, 0, 10, NULL),
		stored_block("w", CK_BF16, 100, 20, 0, NULL),
		stored_block("w", CK_BF16, 100, 50, 20, NULL),
		stored_per_rank("rng", 5, NULL),
		stored_per_rank("none", 0, NULL),
		stored_block("v", CK_BF16, 100, 0, 0, NULL),
		stored_block("v", CK_BF16, 100, 30, 7, NULL),
		stored_block("d", CK_F64, 1, 0, 1, NULL),
		stored_block("u", CK_F32, 0, 0, 0, NULL),
	};
	static const char *const order[] = {"d", "v", "w", "bytes", "none", "rng"};
	struct ck_plan plan = {0};
	struct ck_error err = CK_ERROR_INIT;
	bool aligned = true;

	if (!is_int(ck_shard_plan(12, blocks, ROWS(blocks), &plan, &err), 0, "plan: %s", err.text))
		return;
	is_u64(plan.nparts, 2, "two files");
	is_u64(plan.parts[0].nblocks, 6, "six blocks in the first");
	for (size_t i = 0; i < 6; i++) {
		const struct ck_stored *block = &plan.parts[0].blocks[i];

		is_str(block->name, order[i], "wide types first, then by name");
		aligned = aligned && block->offset % ck_dtype_size(block->dtype) == 0;
	}
	ok(aligned, "all are aligned");
	is_u64(plan.parts[0].blocks[1].box.offset[0], 30, "an empty block is left out");
	is_u64(plan.parts[1].nblocks, 1, "one in the second");
	is_u64(plan.parts[1].blocks[0].box.offset[0], 50, "the second block of w");
	is_u64(plan.parts[0].header.len, 4096, "header");
	is_u64(plan.parts[0].blocks[0].offset, 4096, "data begin behind it");
	is_u64(plan.parts[0].bytes, 4096 + 8 + 14 + 20 + 3 + 0 + 5, "size");
	ck_plan_fini(&plan);
	ck_plan_fini(&plan);
}

/* To the letter, since other programs read it. */
static void test_header_text(void)
{
	static const char want[] =
		"{\"__metadata__\":{\"format\":\"pt\",\"DCP_SHARDING_INFO\":\"{"
		"\\\"w\\\":{\\\"saved_offsets\\\":[2,0]},\\\"s\\\\\\\"\\\":{\\\"saved_offsets\\\":["
		"]},"
		"\\\"rank-12/rng\\\":{\\\"saved_offsets\\\":[0]}}\",\"ckpt\":\"{"
		"\\\"w\\\":{\\\"kind\\\":\\\"sharded\\\",\\\"global_shape\\\":[4,6]},"
		"\\\"s\\\\\\\"\\\":{\\\"kind\\\":\\\"sharded\\\",\\\"global_shape\\\":[]},"
		"\\\"rank-12/rng\\\":{\\\"kind\\\":\\\"per-rank\\\",\\\"global_shape\\\":null}}\"},"
		"\"w\":{\"dtype\":\"F64\",\"shape\":[1,6],\"data_offsets\":[0,48]},"
		"\"s\\\"\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[48,52]},"
		"\"rank-12/rng\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[52,55]}} ";
	struct ck_stored blocks[] = {
		stored_per_rank("rng", 3, NULL),
		{.name = "s\"", .dtype = CK_F32, .bytes = 4},
		{.name = "w",
		 .dtype = CK_F64,
		 .ndim = 2,
		 .shape = {4, 6},
		 .box = {2, {2, 0}, {1, 6}},
		 .bytes = 48},
	};
	struct ck_plan plan = {0};

	is_int(ck_shard_plan(12, blocks, 3, &plan, NULL), 0, "plan");
	plan.parts[0].header.data[8 + sizeof(want) - 1] = '\0';
	is_str(plan.parts[0].header.data + 8, want, "header");
	ck_plan_fini(&plan);

	is_int(ck_shard_plan(0, NULL, 0, &plan, NULL), 0, "a rank without data");
	is_u64(plan.nparts, 1, "has one file");
	ok(!strncmp(plan.parts[0].header.data + 8,
		    "{\"__metadata__\":{\"format\":\"pt\",\"DCP_SHARDING_INFO\":\"{}\",\"ckpt\":\"{"
		    "}\"}} ",
		    66),
	   "without tensors");
	ck_plan_fini(&plan);
}

int main(void)
{
	test_plan_refused();
	test_plan_header_too_large();
	test_plan();
	test_header_text();
	return done_testing();
}
