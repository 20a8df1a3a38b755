/* The writer refuses what the reader would refuse: ck_manifest_print of manifest.h. */
#include <stdlib.h>
#include <string.h>

#include "manifest.h"
#include "manifests.h"
#include "tap.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static void world_size_0(struct ck_manifest *m)
{
	m->world_size = 0;
}

static void world_size_beyond(struct ck_manifest *m)
{
	m->world_size = CK_WORLD_MAX + 1;
}

static void step_beyond(struct ck_manifest *m)
{
	m->id.step = CK_STEP_MAX + 1;
}

static void generation_0(struct ck_manifest *m)
{
	m->id.generation = 0;
}

static void wall_clock_nan(struct ck_manifest *m)
{
	m->wall_clock_seconds = __builtin_nan("");
}

static void created_year_10000(struct ck_manifest *m)
{
	m->created = INT64_C(253402300800);
}

static void created_before_1970(struct ck_manifest *m)
{
	m->created = -1;
}

static void restart_beyond(struct ck_manifest *m)
{
	m->job.restart_count = UINT64_MAX;
}

static void run_id_empty(struct ck_manifest *m)
{
	m->run_id[0] = '\0';
}

static void save_id_upper(struct ck_manifest *m)
{
	m->save_id[0] = 'F';
}

static void run_not_utf8(struct ck_manifest *m)
{
	strcpy(m->run, "caf\xe9");
}

static void nodes_newline(struct ck_manifest *m)
{
	strcpy(m->job.nodes, "n1\nn2");
}

static void user_not_json(struct ck_manifest *m)
{
	strcpy(m->user, "{lr}");
}

static void user_array(struct ck_manifest *m)
{
	strcpy(m->user, "[1]");
}

static void user_smuggles(struct ck_manifest *m)
{
	strcpy(m->user, "{}, \"step\": {}");
}

static void user_beyond(struct ck_manifest *m)
{
	strcpy(m->user, "{\"seed\": -9007199254740992}");
}

static void user_too_deep(struct ck_manifest *m)
{
	strcpy(m->user, "{\"a\":[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]}");
}

static void user_too_long(struct ck_manifest *m)
{
	size_t bytes = (size_t)17 << 20;

	free(m->user);
	m->user = malloc(bytes + 16);
	memset(m->user, 'x', bytes);
	memcpy(m->user, "{\"a\":\"", 6);
	strcpy(m->user + bytes, "\"}");
}

static void item_unsorted(struct ck_manifest *m)
{
	m->items.items[0].name[0] = 'z';
	m->items.flat[0] = 'z';
}

static void item_reserved(struct ck_manifest *m)
{
	free(m->items.items[1].name);
	m->items.items[1].name = strdup("rank-0/rng");
}

static void item_dtype(struct ck_manifest *m)
{
	m->items.items[0].dtype = CK_DTYPES;
}

static void item_kind(struct ck_manifest *m)
{
	m->items.items[0].kind = (enum ck_kind)7;
}

static void item_dimensions(struct ck_manifest *m)
{
	m->items.items[2].ndim = CK_MAX_NDIM + 1;
}

static void item_extent(struct ck_manifest *m)
{
	m->items.items[0].shape[0] = CK_STEP_MAX + 1;
}

static void item_overflow(struct ck_manifest *m)
{
	m->items.items[2].ndim = 2;
	m->items.items[2].shape[0] = m->items.items[2].shape[1] = UINT64_C(1) << 31;
}

static void per_rank_dtype(struct ck_manifest *m)
{
	m->items.items[1].dtype = CK_F32;
}

static void flat_unknown(struct ck_manifest *m)
{
	m->items.flat[0] = 'q';
}

static void flat_scalar(struct ck_manifest *m)
{
	free(m->items.flat);
	m->items.flat = strdup("scale");
}

static void path_of_another(struct ck_manifest *m)
{
	ck_name_shard(0, 1, m->files[0].path);
}

static void part_gap(struct ck_manifest *m)
{
	m->files[2].part = 2;
	ck_name_shard(1, 2, m->files[2].path);
}

static void part_beyond(struct ck_manifest *m)
{
	m->files[2].part = CK_PARTS_MAX;
}

static void sha256_short(struct ck_manifest *m)
{
	m->files[0].sha256[63] = '\0';
}

static void bytes_beyond(struct ck_manifest *m)
{
	m->files[0].bytes = CK_STEP_MAX + 1;
	m->files[0].chunk_bytes = UINT64_C(1) << 50;
}

static void chunk_bytes_odd(struct ck_manifest *m)
{
	m->files[0].chunk_bytes--;
}

static void param_beyond(struct ck_manifest *m)
{
	m->files[1].param_shard_numel++;
}

static void param_overflow(struct ck_manifest *m)
{
	m->files[1].param_shard_offset = UINT64_MAX;
}

static void param_offset_alone(struct ck_manifest *m)
{
	m->files[2].param_shard_offset = 1;
}

static const struct {
	const char *name;
	void (*spoil)(struct ck_manifest *m);
	const char *says;
} refusals[] = {
	{"world size 0", world_size_0, "world_size 0 is not in [1, 1048576]"},
	{"world size too large", world_size_beyond, "world_size 1048577 is not in"},
	{"step of 2^53", step_beyond, "step 9007199254740992 is not below 2^53"},
	{"generation 0", generation_0, "generation 0 is not in [1, 2^53)"},
	{"wall clock not a number", wall_clock_nan, "wall_clock_seconds nan is not in [0, 2^53)"},
	{"created after 9999", created_year_10000, "created: 253402300800 is not in the years"},
	{"created before 1970", created_before_1970, "created: -1 is not in the years"},
	{"restart count of 2^64 - 1", restart_beyond, "restart_count 18446744073709551615 is not"},
	{"no run id", run_id_empty, "run_id: 0 hex digits, must be 32"},
	{"save id in upper case", save_id_upper, "save_id: character 0 is no lower-case hex"},
	{"name not UTF-8", run_not_utf8, "run: byte 3 is not UTF-8"},
	{"node list of two lines", nodes_newline, "job: nodes: byte 2 is a control character"},
	{"user not JSON", user_not_json, "byte 9: a key in quotes wanted"},
	{"user an array", user_array, "user: not one JSON object"},
	{"user with a member of ours", user_smuggles, "user: not one JSON object"},
	{"user with -2^53", user_beyond, "seed: -9007199254740992 is beyond 2^53"},
	{"user too deep", user_too_deep, "nested deeper than 16"},
	{"user too long", user_too_long, "user: 17825794 bytes, at most 16777216"},
	{"items unsorted", item_unsorted, "items: 'rng' is not sorted by name"},
	{"item name reserved", item_reserved, "'rank-0/rng': names of the form rank-<number>/"},
	{"dtype unknown", item_dtype, "item 'params': dtype 19 is none"},
	{"kind unknown", item_kind, "item 'params': kind 7 is none"},
	{"33 dimensions", item_dimensions, "item 'scale': 33 dimensions, at most 32"},
	{"extent of 2^53", item_extent, "item 'params': extent 9007199254740992 is not below"},
	{"item of 2^65 bytes", item_overflow, "item 'scale': its global shape has 2^53 bytes"},
	{"per-rank item not U8", per_rank_dtype,
	 "item 'rng': a per-rank item has dtype U8, not F32"},
	{"flat names nothing", flat_unknown, "flat: it names no item"},
	{"flat a scalar", flat_scalar, "flat: item 'scale' is not sharded with one dimension"},
	{"no files", manifest_drop_files, "shards: rank 0 has no file"},
	{"path of another part", path_of_another,
	 "path 'rank-00000.1.safetensors' is not 'rank-00000.0.safetensors'"},
	{"parts with a gap", part_gap, "shards[2]: part 1 of rank 1 is missing"},
	{"part too large", part_beyond, "shards[2]: part 4096 is not below 4096"},
	{"sha256 short", sha256_short, "shards[0]: sha256: 63 hex digits, must be 64"},
	{"file of 2^53 bytes", bytes_beyond, "shards[0]: bytes 9007199254740992 is not below 2^53"},
	{"chunks of 2^24 - 1", chunk_bytes_odd, "chunk_bytes 16777215 is no power of two"},
	{"range beyond the flat item", param_beyond,
	 "shards[1]: param_shard_offset 60, numel 41: the flat item has 100 elements"},
	{"range that overflows", param_overflow, "shards[1]: param_shard_offset + numel is not"},
	{"offset without elements", param_offset_alone,
	 "shards[2]: param_shard_offset 1 without elements must be 0"},
};

static void test_refusals(void)
{
	for (size_t i = 0; i < ROWS(refusals); i++) {
		struct ck_manifest m = manifest_valid();
		struct ck_error err = CK_ERROR_INIT;
		struct ck_buf out = CK_BUF_INIT;

		refusals[i].spoil(&m);
		is_int(ck_manifest_print(&m, true, &out, &err), CK_EFORMAT, "%s is refused",
		       refusals[i].name);
		like(err.text, refusals[i].says, "%s: the text", refusals[i].name);
		is_u64(out.len, 0, "%s: nothing printed", refusals[i].name);
		ck_manifest_fini(&m);
		ck_buf_fini(&out);
	}
}

int main(void)
{
	test_refusals();
	return done_testing();
}
