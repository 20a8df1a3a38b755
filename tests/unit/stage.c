/* stage.h: the buffer holds the files as they will be; it is grown when needed, and then stays. */
#include "stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stored.h"
#include "tap.h"

#define MIB ((size_t)1 << 20)

static struct ck_registry registry;
static unsigned char *memory; /* no two places alike */

static unsigned char value(size_t at)
{
	return (unsigned char)(at ^ at >> 8 ^ at >> 16);
}

static void register_bytes(const char *name, uint64_t bytes, void *data)
{
	struct ck_box box = {.ndim = 1, .extent = {bytes}};

	is_int(ck_registry_add_block(&registry, name, CK_U8, 1, &bytes, &box, data, NULL), 0,
	       "register %s", name);
}

static int copier_answer;

static int invert(void *arg, void *host, const void *src, size_t bytes)
{
	(void)arg;
	for (size_t i = 0; i < bytes; i++)
		((unsigned char *)host)[i] = (unsigned char)~((const unsigned char *)src)[i];
	return copier_answer;
}

static int no_write(void *arg, void *dst, const void *host, size_t bytes)
{
	(void)arg, (void)dst, (void)host, (void)bytes;
	return 0;
}

static struct ck_plan plan_of(const struct ck_stored *blocks, size_t count)
{
	struct ck_plan plan;

	is_int(ck_shard_plan(0, 1, blocks, count, &plan, NULL), 0, "plan");
	return plan;
}

/* Where the copy differs from what it was made of; ~0: nowhere. */
static size_t differs(const unsigned char *copy, size_t from, size_t bytes, unsigned char mask)
{
	for (size_t i = 0; i < bytes; i++)
		if (copy[i] != (value(from + i) ^ mask))
			return i;
	return ~(size_t)0;
}

static void failures(void)
{
	struct ck_stage stage = {.memory = NULL};
	struct ck_error err = CK_ERROR_INIT;
	struct ck_part parts[2] = {{.bytes = UINT64_C(1) << 61}, {.bytes = 1}};
	struct ck_plan plan = {.parts = parts, .nparts = 1};

	is_int(ck_stage_reserve(&stage, ck_stage_bytes(&plan), 0, &err), CK_ENOMEM,
	       "more than there is");
	like(err.text, "no memory for 2305843009213693952 bytes (0 are there)", "both numbers");
	ok(!stage.memory, "nothing is held");
	parts[0].bytes = 5000;
	is_int(ck_stage_reserve(&stage, ck_stage_bytes(&plan), 0, &err), 0, "a little");
	memset(stage.memory, 7, 5000);
	parts[0].bytes = UINT64_C(1) << 61;
	is_int(ck_stage_reserve(&stage, ck_stage_bytes(&plan), 0, &err), CK_ENOMEM,
	       "it cannot grow");
	like(err.text, "bytes (2097152 are there)", "says what there is");
	is_int(stage.memory[4999], 7, "and it is still there");
	ck_stage_fini(&stage);
}

static void copier_fails(void)
{
	struct ck_stored block = stored_block("device", CK_U8, 1000, 0, 1000, memory);
	struct ck_plan plan = plan_of(&block, 1);
	struct ck_stage stage = {.memory = NULL};
	struct ck_error err = CK_ERROR_INIT;

	copier_answer = 5;
	is_int(ck_stage_copy(&stage, &plan, &registry, &err), CK_EARG, "a copier fails");
	like(err.text, "item 'device': the program's copier returned 5", "which, and how");
	copier_answer = 0;
	ck_plan_fini(&plan);
	ck_stage_fini(&stage);
}

/* Sizes that no share of a thread ends with. */
static void copies(void)
{
	static const struct {
		const char *name;
		size_t at, bytes;
		unsigned char mask;
	} rows[] = {
		{"large", 1, 23 * MIB + 1, 0}, {"tiny", 3 * MIB, 1, 0},
		{"device", 64, 1000, 0xff},    {"odd", 5 * MIB + 3, 9 * MIB + 4097, 0},
		{"page", 4096, 4096, 0},       {"short", 77, 255, 0},
		{"longer", 78, 256, 0},
	};
	struct ck_stored blocks[7];
	struct ck_stage stage = {.memory = NULL};
	struct ck_plan plan;

	for (size_t i = 0; i < 7; i++)
		blocks[i] = stored_block(rows[i].name, CK_U8, rows[i].bytes, 0, rows[i].bytes,
					 memory + rows[i].at);
	plan = plan_of(blocks, 7);
	is_int(ck_stage_copy(&stage, &plan, &registry, NULL), 0, "copy");
	ok(plan.parts[0].image == stage.memory, "the first file begins the buffer");
	is_int(memcmp(stage.memory, plan.parts[0].header.data, plan.parts[0].header.len), 0,
	       "with its header");
	for (size_t b = 0; b < plan.parts[0].nblocks; b++) {
		const struct ck_stored *block = &plan.parts[0].blocks[b];
		size_t i = 0;

		while (strcmp(rows[i].name, block->name) != 0)
			i++;
		ok(block->data == stage.memory + block->offset, "%s: at its place", block->name);
		is_u64(differs(block->data, rows[i].at, rows[i].bytes, rows[i].mask), ~(size_t)0,
		       "%s: byte for byte", block->name);
	}
	ck_plan_fini(&plan);
	ck_stage_fini(&stage);
}

/* KiB of the buffer in huge pages; -1: this machine does not give any, or does not tell. */
static long huge_kib(const void *buffer)
{
	FILE *maps = fopen("/proc/self/smaps", "r");
	FILE *enabled = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
	char line[512], mode[64] = "[never]";
	unsigned long begin = 0, end = 0, from, to;
	long kib = 0, kib_here;

	if (enabled && !fgets(mode, sizeof(mode), enabled))
		strcpy(mode, "[never]");
	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			begin = from, end = to;
		else if (begin <= (unsigned long)buffer && (unsigned long)buffer < end &&
			 sscanf(line, "AnonHugePages: %ld", &kib_here) == 1)
			kib += kib_here;
	}
	if (maps)
		fclose(maps);
	if (enabled)
		fclose(enabled);
	return !maps || strstr(mode, "[never]") ? -1 : kib;
}

static void grows_once(void)
{
	struct ck_stored small = stored_block("state", CK_U8, 16 * MIB, 0, 16 * MIB, memory);
	struct ck_stored more = stored_block("state", CK_U8, 17 * MIB, 0, 17 * MIB, memory);
	struct ck_stored most = stored_block("state", CK_U8, 40 * MIB, 0, 40 * MIB, memory);
	struct ck_plan plans[3] = {plan_of(&small, 1), plan_of(&more, 1), plan_of(&most, 1)};
	struct ck_stage stage = {.memory = NULL};
	const unsigned char *was;
	size_t bytes;
	long kib;

	is_int(ck_stage_reserve(&stage, ck_stage_bytes(&plans[0]), 0, NULL), 0, "reserve");
	was = stage.memory;
	bytes = stage.bytes;
	is_int(ck_stage_copy(&stage, &plans[0], &registry, NULL), 0, "a save");
	is_int(ck_stage_copy(&stage, &plans[1], &registry, NULL), 0, "one with a little more");
	ok(stage.memory == was && stage.bytes == bytes, "the same buffer");
	kib = huge_kib(stage.memory);
	if (kib < 0)
		skip("no transparent huge pages here");
	else
		ok(kib >= 12 * 1024, "in huge pages: %ld KiB", kib);
	is_int(ck_stage_copy(&stage, &plans[2], &registry, NULL), 0, "one with much more");
	ok(stage.bytes >= 40 * MIB, "it has grown");
	is_u64(differs(plans[2].parts[0].blocks[0].data, 0, 40 * MIB, 0), ~(size_t)0,
	       "and is right");
	for (size_t i = 0; i < 3; i++)
		ck_plan_fini(&plans[i]);
	ck_stage_fini(&stage);
	ok(!stage.memory && !stage.bytes, "given back");
}

int main(void)
{
	const struct ckpt_copier copier = {.struct_size = sizeof(copier),
					   .read = invert,
					   .write = no_write};

	memory = malloc(40 * MIB);
	for (size_t i = 0; i < 40 * MIB; i++)
		memory[i] = value(i);
	register_bytes("large", 23 * MIB + 1, memory);
	register_bytes("device", 1000, memory);
	is_int(ck_registry_set_copier(&registry, "device", &copier, NULL), 0, "a copier");
	failures();
	copier_fails();
	copies();
	grows_once();
	ck_registry_fini(&registry);
	free(memory);
	return done_testing();
}
