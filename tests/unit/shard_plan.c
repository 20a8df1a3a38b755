#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "shard.h"
#include "stored.h"
#include "tap.h"

#define MIB (UINT64_C(1) << 20)
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
	is_int(ck_shard_plan(0, 16, wrong, 1, &plan, &err), CK_EARG,
	       "bytes that are not the box's");
	like(err.text, "tensor 'w': bytes [0, 15) do not follow from its shape", "text");
	is_int(ck_shard_plan(0, 16, twice, 3, &plan, &err), CK_EARG, "a name twice in a file");
	like(err.text, "tensor 'w' twice", "text");
	is_int(ck_shard_plan(3, 16, huge, 2, &plan, &err), CK_EARG, "2^53 bytes");
	is_str(err.text, "shard of rank 3: 2^53 bytes or more", "text");
	for (uint64_t i = 0; i <= CK_PARTS_MAX; i++)
		many[i] = stored_block("w", CK_U8, 10000, i, 1, NULL);
	is_int(ck_shard_plan(3, 16, many, CK_PARTS_MAX + 1, &plan, &err), CK_EARG, "4,097 files");
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
	is_int(ck_shard_plan(0, 16, blocks, count, &plan, &err), CK_EARG,
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

	if (!is_int(ck_shard_plan(12, 16, blocks, ROWS(blocks), &plan, &err), 0, "plan: %s",
		    err.text))
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

	is_int(ck_shard_plan(12, 16, blocks, 3, &plan, NULL), 0, "plan");
	plan.parts[0].header.data[8 + sizeof(want) - 1] = '\0';
	is_str(plan.parts[0].header.data + 8, want, "header");
	ck_plan_fini(&plan);

	is_int(ck_shard_plan(0, 16, NULL, 0, &plan, NULL), 0, "a rank without data");
	is_u64(plan.nparts, 1, "has one file");
	ok(!strncmp(plan.parts[0].header.data + 8,
		    "{\"__metadata__\":{\"format\":\"pt\",\"DCP_SHARDING_INFO\":\"{}\",\"ckpt\":\"{"
		    "}\"}} ",
		    66),
	   "without tensors");
	ck_plan_fini(&plan);
}

/* An item of two dimensions whose rows are `row` bytes. */
static struct ck_stored rows_of(const char *name, uint64_t rows, uint64_t row, const void *data)
{
	return (struct ck_stored){.name = name,
				  .dtype = CK_U8,
				  .ndim = 3,
				  .shape = {1, rows + 7, row},
				  .box = {3, {0, 7, 0}, {1, rows, row}},
				  .bytes = rows * row,
				  .data = data};
}

/* Of every block, are the pieces in files 0, 1, …, do they follow each other, and cover it? */
static void check_pieces(const struct ck_plan *plan, const struct ck_stored *block)
{
	uint64_t next = 0, at;
	bool follow = true, here = true;
	size_t file = 0;

	for (; file < plan->nparts && here; file++) {
		const struct ck_stored *piece = NULL;

		for (size_t i = 0; i < plan->parts[file].nblocks; i++)
			if (strcmp(plan->parts[file].blocks[i].name, block->name) == 0)
				piece = &plan->parts[file].blocks[i];
		here = piece != NULL;
		if (!here)
			break;
		follow = follow && ck_box_run(&block->box, &piece->box, &at) &&
			 at * ck_dtype_size((int)block->dtype) == next &&
			 piece->bytes ==
				 ck_box_volume(&piece->box) * ck_dtype_size((int)block->dtype) &&
			 (const char *)piece->data - (const char *)block->data == (ptrdiff_t)next;
		next += piece->bytes;
	}
	ok(follow, "%s: its %zu pieces are runs that follow each other", block->name, file);
	is_u64(next, block->bytes, "%s: and cover it", block->name);
}

static void test_cut(void)
{
	static char base[1];
	const struct ck_stored flat =
		stored_block("flat", CK_F32, 1 << 30, 5, UINT64_C(100) * MIB + 3, base);
	const struct ck_stored small = stored_block("small", CK_F32, MIB, 0, MIB, base);
	const struct ck_stored big = rows_of("big", 1000, MIB / 2, base);
	const struct ck_stored two = rows_of("two", 2, 100 * MIB, base);
	const struct ck_stored odd = rows_of("odd", 130 * MIB / 13, 13, base);
	const struct {
		const char *what;
		uint32_t world;
		struct ck_stored blocks[3];
		size_t nblocks, nparts;
		uint64_t largest; /* MiB of the largest file, rounded up */
	} rows[] = {
		{"below 128 MiB", 1, {rows_of("w", 127, MIB, base)}, 1, 1, 128},
		{"128 MiB", 1, {rows_of("w", 128, MIB, base)}, 1, 2, 65},
		{"192 MiB", 1024, {rows_of("w", 192, MIB, base)}, 1, 3, 65},
		{"more than 1,024 ranks", 1025, {rows_of("w", 192, MIB, base)}, 1, 1, 193},
		{"flat", 8, {flat}, 1, 4, 101},
		{"small ones stay whole", 8, {small, big, small}, 2, 4, 127},
		{"rows of 100 MiB", 8, {two, small}, 2, 2, 105},
		{"rows of 13 bytes", 8, {odd}, 1, 2, 66},
		{"an item that fills its share", 1, {big, rows_of("m", 60, MIB, base)}, 2, 4, 141},
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct ck_error err = CK_ERROR_INIT;
		struct ck_plan plan = {0};
		uint64_t largest = 0;

		is_int(ck_shard_plan(0, rows[i].world, rows[i].blocks, rows[i].nblocks, &plan,
				     &err),
		       0, "%s: %s", rows[i].what, err.text);
		is_u64(plan.nparts, rows[i].nparts, "%s: files", rows[i].what);
		for (size_t p = 0; p < plan.nparts; p++)
			if (plan.parts[p].bytes > largest)
				largest = plan.parts[p].bytes;
		is_u64((largest + MIB - 1) / MIB, rows[i].largest, "%s: the largest", rows[i].what);
		for (size_t b = 0; b < rows[i].nblocks; b++)
			check_pieces(&plan, &rows[i].blocks[b]);
		ck_plan_fini(&plan);
	}
}

/* Two blocks of an item are two files each when there are four; three are left as they are. */
static void test_cut_blocks(void)
{
	struct ck_stored blocks[4];
	struct ck_plan plan = {0};

	for (uint64_t i = 0; i < 4; i++)
		blocks[i] = stored_block("w", CK_U8, 4096 * MIB, i * 1024 * MIB,
					 i == 1 ? 0 : 200 * MIB, NULL);
	is_int(ck_shard_plan(0, 1, blocks, 3, &plan, NULL), 0, "two blocks, and an empty one");
	is_u64(plan.nparts, 4, "four files");
	is_u64(plan.parts[1].blocks[0].box.offset[0], 100 * MIB, "the second half of the first");
	is_u64(plan.parts[2].blocks[0].box.offset[0], 2048 * MIB, "the first of the second");
	is_u64(plan.parts[3].blocks[0].bytes, 100 * MIB, "all are halves");
	ck_plan_fini(&plan);
	is_int(ck_shard_plan(0, 1, blocks, 4, &plan, NULL), 0, "three blocks");
	is_u64(plan.nparts, 3, "three files");
	is_u64(plan.parts[2].blocks[0].bytes, 200 * MIB, "not cut");
	ck_plan_fini(&plan);
	blocks[0] = stored_per_rank("state", 300 * MIB, NULL);
	is_int(ck_shard_plan(0, 1, blocks, 1, &plan, NULL), 0, "a per-rank item");
	is_u64(plan.nparts, 1, "one file");
	ck_plan_fini(&plan);
}

int main(void)
{
	test_cut();
	test_cut_blocks();
	test_plan_refused();
	test_plan_header_too_large();
	test_plan();
	test_header_text();
	return done_testing();
}
