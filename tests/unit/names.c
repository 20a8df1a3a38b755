#include "names.h"

#include <stdio.h>
#include <string.h>

#include "tap.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

/* One kind of "<prefix><step>.g<generation>" with its printer and parser. */
static const struct kind {
	const char *prefix;
	char *(*print)(struct ck_step_id id, char out[static CK_NAME_MAX]);
	bool (*parse)(const char *name, struct ck_step_id *id);
} kinds[] = {
	{"step-", ck_name_step, ck_is_step},
	{".saving-", ck_name_saving, ck_is_saving},
	{".deleting-", ck_name_deleting, ck_is_deleting},
	{".salvage-", ck_name_salvage, ck_is_salvage},
};

/* What follows the prefix; each kind refuses all of them. */
static const char *const bad_ids[] = {
	"",
	"1",
	"100.bak",
	"0000000100",
	"0000000100.backup",
	"0000000100.g",
	"0000000100.g1 ",
	"0000000100.g1\n",
	"0000000100.g1x",
	"0000000100.g1.tmp",
	"0000000100.g1.tmp-0123456789abcdef",
	"0000000100.g1~",
	"0000000100.g1/",
	"0000000100.g1.",
	"0000000100.g1.g2",
	"0000000100.g0",
	"0000000100.g00",
	"0000000100.g01",
	"0000000100.g-1",
	"0000000100.g+1",
	"0000000100.g 1",
	"0000000100.G1",
	"0000000100.1",
	"0000000100g1",
	"0000000100-g1",
	"0000000100..g1",
	"1.g1",
	"000000100.g1",
	"00000000100.g1",
	"010000000000.g1",
	"-000000100.g1",
	"+000000100.g1",
	" 000000100.g1",
	"000000010a.g1",
	"0x00000100.g1",
	".g1",
	"9007199254740992.g1",
	"18446744073709551617.g1",
	"99999999999999999999999999999.g1",
	"0000000100.g9007199254740992",
	"0000000100.g18446744073709551617",
	"0000000100.g99999999999999999999999999999",
	"best",
	"latest",
};

static void test_look_alikes(const struct kind *kind)
{
	char name[256];

	for (size_t i = 0; i < ROWS(bad_ids); i++) {
		struct ck_step_id id = {7, 8};

		snprintf(name, sizeof(name), "%s%s", kind->prefix, bad_ids[i]);
		ok(!kind->parse(name, &id), "'%s' is a stranger", name);
		ok(id.step == 7 && id.generation == 8, "'%s': output untouched", name);
	}
}

/* Whole names that begin otherwise. */
static void test_other_prefixes(const struct kind *kind)
{
	static const char *const names[] = {
		"",
		"0000000100.g1",
		"step_0000000100.g1",
		"step0000000100.g1",
		"Step-0000000100.g1",
		"xstep-0000000100.g1",
		" step-0000000100.g1",
		"./step-0000000100.g1",
		"steps-0000000100.g1",
		"saving-0000000100.g1",
		".step-0000000100.g1",
		".saving-step-0000000100.g1",
		"..saving-0000000100.g1",
		".trash-0000000100.g1",
	};
	struct ck_step_id id;

	for (size_t i = 0; i < ROWS(names); i++)
		ok(!kind->parse(names[i], &id), "'%s' does not begin with '%s'", names[i],
		   kind->prefix);
}

static void test_each_kind_knows_only_its_own(void)
{
	char name[CK_NAME_MAX];
	struct ck_step_id id;

	for (size_t i = 0; i < ROWS(kinds); i++) {
		for (size_t j = 0; j < ROWS(kinds); j++)
			is_int(kinds[j].parse(kinds[i].print((struct ck_step_id){5, 6}, name), &id),
			       i == j, "'%s' as '%s…'", name, kinds[j].prefix);
	}
}

static void test_ids(const struct kind *kind)
{
	static const struct {
		struct ck_step_id id;
		const char *want;
	} rows[] = {
		{{0, 1}, "0000000000.g1"},
		{{1234, 3}, "0000001234.g3"},
		{{UINT64_C(9999999999), 10}, "9999999999.g10"},
		{{UINT64_C(10000000000), 1}, "10000000000.g1"},
		{{CK_STEP_MAX, CK_STEP_MAX}, "9007199254740991.g9007199254740991"},
	};
	char name[CK_NAME_MAX], want[CK_NAME_MAX];

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct ck_step_id id = {7, 8};

		snprintf(want, sizeof(want), "%s%s", kind->prefix, rows[i].want);
		is_str(kind->print(rows[i].id, name), want, "'%s' printed", want);
		ok(kind->parse(want, &id), "'%s' recognised", want);
		ok(id.step == rows[i].id.step && id.generation == rows[i].id.generation,
		   "'%s': step and generation", want);
	}
	is_u64(strlen(kind->print((struct ck_step_id){UINT64_MAX, UINT64_MAX}, name)),
	       strlen(kind->prefix) + 42, "'%s': the largest numbers fit", name);
}

static void test_generations(void)
{
	static const char *const bad[] = {
		"",
		".gen-",
		".gen-0",
		".gen-01",
		".gen-1 ",
		".gen-1.tmp",
		".gen-x",
		".gen--1",
		".gen-+1",
		"gen-1",
		".gen1",
		".gen_1",
		".Gen-1",
		".gen-1x",
		".gen-1/",
		".gen-9007199254740992",
		".gen-18446744073709551617",
		".generation-1",
	};
	static const uint64_t good[] = {1, 9, 10, 12345, CK_STEP_MAX};
	char name[CK_NAME_MAX];
	uint64_t generation = 7;

	for (size_t i = 0; i < ROWS(bad); i++) {
		ok(!ck_is_generation(bad[i], &generation), "'%s' is no generation", bad[i]);
		is_u64(generation, 7, "'%s': output untouched", bad[i]);
	}
	for (size_t i = 0; i < ROWS(good); i++) {
		ok(ck_is_generation(ck_name_generation(good[i], name), &generation), "'%s'", name);
		is_u64(generation, good[i], "'%s': its number", name);
	}
	is_str(ck_name_generation(3, name), ".gen-3", "without leading zeros");
}

static void test_shards(void)
{
	static const char *const bad[] = {
		"",
		"rank-",
		"rank-0.0.safetensors",
		"rank-0000.0.safetensors",
		"rank-000000.0.safetensors",
		"rank-012345.0.safetensors",
		"rank-00000.00.safetensors",
		"rank-00000.01.safetensors",
		"rank-00000..safetensors",
		"rank-00000.safetensors",
		"rank-00000.0.safetensor",
		"rank-00000.0.safetensors.tmp",
		"rank-00000.0.safetensors.bak",
		"rank-00000.0.safetensors ",
		"rank-00000.0.SAFETENSORS",
		"rank-00000.0-safetensors",
		"rank-00000-0.safetensors",
		"rank-00000.-1.safetensors",
		"rank--0001.0.safetensors",
		"rank-0000x.0.safetensors",
		"rank_00000.0.safetensors",
		"Rank-00000.0.safetensors",
		"rank-1048576.0.safetensors",
		"rank-4294967296.0.safetensors",
		"rank-18446744073709551616.0.safetensors",
		"rank-00000.4096.safetensors",
		"rank-00000.4294967296.safetensors",
		"rank-00000.0.0.safetensors",
		"./rank-00000.0.safetensors",
		"model.safetensors",
	};
	static const struct {
		uint32_t rank, part;
		const char *name;
	} good[] = {
		{0, 0, "rank-00000.0.safetensors"},
		{12, 1, "rank-00012.1.safetensors"},
		{99999, 10, "rank-99999.10.safetensors"},
		{100000, 0, "rank-100000.0.safetensors"},
		{CK_WORLD_MAX - 1, CK_PARTS_MAX - 1, "rank-1048575.4095.safetensors"},
	};
	char name[CK_NAME_MAX];
	uint32_t rank = 7, part = 8;

	for (size_t i = 0; i < ROWS(bad); i++) {
		ok(!ck_is_shard(bad[i], &rank, &part), "'%s' is no shard", bad[i]);
		ok(rank == 7 && part == 8, "'%s': output untouched", bad[i]);
	}
	for (size_t i = 0; i < ROWS(good); i++) {
		is_str(ck_name_shard(good[i].rank, good[i].part, name), good[i].name,
		       "'%s' printed", good[i].name);
		ok(ck_is_shard(good[i].name, &rank, &part), "'%s' recognised", good[i].name);
		ok(rank == good[i].rank && part == good[i].part, "'%s': rank and part",
		   good[i].name);
	}
}

static void test_records(void)
{
	char name[CK_NAME_MAX];

	is_str(ck_name_records(1234, name), "records-0000001234", "records of a step");
	is_str(ck_name_records(CK_STEP_MAX, name), "records-9007199254740991", "of the last one");
	is_str(ck_name_record(12, name), "rank-00012.json", "record of a rank");
	is_str(ck_name_record(CK_WORLD_MAX - 1, name), "rank-1048575.json", "of the last one");
}

static void test_order(void)
{
	/* Oldest first. */
	static const struct ck_step_id ids[] = {
		{0, 1}, {1, 1}, {CK_STEP_MAX, 1}, {0, 2}, {500, 2}, {499, 10}, {500, 10},
	};

	for (size_t i = 0; i < ROWS(ids); i++) {
		for (size_t j = 0; j < ROWS(ids); j++) {
			int order = ck_step_id_cmp(&ids[i], &ids[j]);

			is_int((order > 0) - (order < 0), (i > j) - (i < j), "order of %zu and %zu",
			       i, j);
		}
	}
}

static void test_paths(void)
{
	char out[PATH_MAX], dir[PATH_MAX];

	memset(dir, 'd', sizeof(dir));
	dir[PATH_MAX - 3] = '\0';
	ok(ck_path_join(out, dir, "n"), "a path that just fits");
	is_u64(strlen(out), PATH_MAX - 1, "is whole");
	ok(!ck_path_join(out, dir, "nn"), "one byte more does not fit");
	is_str(out, "", "and leaves nothing");
	ok(!ck_path_join(out, "", "n"), "an empty directory would be the root");
	is_str(out, "", "and leaves nothing");
	ok(!ck_path_join(out, "d", ""), "an empty name is none");
	ok(ck_path_join(out, "/run", "step-0000000001.g1"), "a usual one");
	is_str(out, "/run/step-0000000001.g1", "is right");
}

int main(void)
{
	for (size_t i = 0; i < ROWS(kinds); i++) {
		test_look_alikes(&kinds[i]);
		test_other_prefixes(&kinds[i]);
		test_ids(&kinds[i]);
	}
	test_each_kind_knows_only_its_own();
	test_generations();
	test_shards();
	test_records();
	test_order();
	test_paths();
	return done_testing();
}
