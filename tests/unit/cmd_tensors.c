/*
 * `ckpt reshard`, `export` and `diff`: what they write is what was there, bit for bit, and what they
 * refuse. Also PyTorch's way of reading a step directory, by a reader of its own.
 */
#include <cjson/cJSON.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "catalog.h"
#include "command.h"
#include "rundir.h"
#include "safetensors.h"
#include "tap.h"
#include "tilings.h"
#include "written.h"

static const struct ck_step_id id = {.step = 40, .generation = 1};
static char place[PATH_MAX]; /* of each test */

static const char *at(const char *name)
{
	return in_dir(place, name);
}

static void fresh(void)
{
	snprintf(place, sizeof(place), "%s", test_tmpdir());
}

static void add_item(struct ck_item_list *table, const char *name, enum ck_kind kind,
		     enum ck_dtype dtype, int ndim, uint64_t first, uint64_t second)
{
	struct ck_item item = {.name = (char *)name,
			       .kind = kind,
			       .dtype = dtype,
			       .ndim = ndim,
			       .shape = {first, second}};

	if (ck_item_list_append(table, &item, NULL))
		abort();
}

/* Something of everything; with or without bytes of single ranks. */
static struct ck_item_list some_table(bool own)
{
	struct ck_item_list table = {.count = 0};

	add_item(&table, "model.bias", CK_SHARDED, CK_BF16, 1, 7, 0);
	add_item(&table, "model.big", CK_SHARDED, CK_F32, 2, 700, 301);
	add_item(&table, "model.flag", CK_SHARDED, CK_BOOL, 0, 0, 0);
	add_item(&table, "none", CK_SHARDED, CK_F32, 2, 0, 7);
	add_item(&table, "optim.flat", CK_SHARDED, CK_F32, 1, 1003, 0);
	if (own)
		add_item(&table, "rng", CK_PER_RANK, CK_U8, 0, 0, 0);
	table.flat = strdup("optim.flat");
	return table;
}

static void save(struct written *w, const char *run, bool own, uint32_t ranks, uint64_t seed)
{
	struct ck_item_list table = some_table(own);
	uint64_t state = 99;
	struct ck_layout layout = draw_layout(&state, &table, ranks, 0);

	written_make(w, run, id, &table, &layout, ranks, seed);
	ck_layout_fini(&layout);
	ck_item_list_fini(&table);
}

/* ---- reshard ---- */

static void reshards(void)
{
	static const char *const worlds[] = {"3", "8", "1", "4", "13"};
	struct written w;

	fresh();
	save(&w, at("src"), true, 4, 1);
	for (size_t i = 0; i < sizeof(worlds) / sizeof(*worlds); i++) {
		const char *from = at("src@latest"), *to = at(worlds[i]);
		bool same = strcmp(worlds[i], "4") == 0;
		struct said said = same ? ckpt_cmd("reshard", from, to, "--world", worlds[i])
					: ckpt_cmd("reshard", from, to, "--world", worlds[i],
						   "--per-rank=drop");

		is_int(said.exit_code, 0, "to %s ranks: %s", worlds[i], said.err);
		like(said.out, "step-0000000040.g1: ", "says what it wrote");
		said_fini(&said);
		said = ckpt_cmd("verify", to);
		is_int(said.exit_code, 0, "which verifies: %s", said.out);
		said_fini(&said);
		said = ckpt_cmd("diff", from, in_dir(to, "step-0000000040.g1"));
		is_int(said.exit_code, same ? 0 : 1, "diff with the source");
		like(said.out, same ? "6 items equal, 0 not" : "5 items equal, 1 not",
		     "every tensor is equal");
		if (!same)
			like(said.out, "rng: only-a: bytes of 4 ranks",
			     "what was left out is told");
		said_fini(&said);
	}
	written_free(&w);
}

static void reshards_within(void)
{
	struct written w;
	struct ck_manifest made;
	struct said said;

	fresh();
	save(&w, at("run"), false, 4, 2);
	said = ckpt_cmd("reshard", at("run@40"), at("run"), "--world=2", "--json");
	is_int(said.exit_code, 0, "into the same run: %s", said.err);
	like(said.out, "\"world_size\": 2", "JSON");
	like(said.out, "step-0000000040.g2\"", "names it");
	said_fini(&said);
	is_int(ck_step_load(&ck_io_posix, at("run"), (struct ck_step_id){40, 2}, &made, NULL), 0,
	       "the next generation");
	is_str(made.run_id, w.manifest.run_id, "same run");
	ok(strcmp(made.save_id, w.manifest.save_id) != 0, "new save");
	is_str(made.items.flat, "optim.flat", "the flat item is still named");
	is_u64(made.files[1].param_shard_offset, 502, "and cut in two: rank 1 from 502 on");
	is_u64(made.files[1].param_shard_numel, 501, "501 elements");
	ck_manifest_fini(&made);
	written_free(&w);
}

static void dry_runs(void)
{
	struct written w;
	struct said said;

	fresh();
	save(&w, at("run"), false, 4, 2);
	said = ckpt_cmd("reshard", "-n", at("run@40"), at("to"), "--world=3");
	is_int(said.exit_code, 0, "a dry run: %s", said.err);
	like(said.out, "4 ranks -> ", "says from");
	like(said.out, ", 3 ranks", "and to");
	like(said.out, "to verify and 827 KiB to copy, writes 827 KiB", "what is read and written");
	like(said.out, "peak memory 32.3 MiB", "and how much memory");
	ok(!exists_in(place, "to"), "and makes nothing");
	said_fini(&said);
	written_free(&w);
}

static void reshard_refusals(void)
{
	struct written w, other;
	struct said said;

	fresh();
	save(&w, at("run"), true, 4, 2);
	save(&other, at("other"), true, 4, 2);
	said = ckpt_cmd("reshard", at("run@40"), at("to"), "--world=3");
	is_int(said.exit_code, 1, "bytes of single ranks");
	like(said.err, "item 'rng' belongs to one rank each, of 4 that saved: --per-rank=drop",
	     "how");
	said_fini(&said);
	said = ckpt_cmd("reshard", at("run@40"), at("to"));
	is_int(said.exit_code, 2, "no number of ranks");
	like(said.err, "--world: how many", "is asked for");
	said_fini(&said);
	said = ckpt_cmd("reshard", at("run"), at("to"), "--world=2");
	is_int(said.exit_code, 2, "a whole run");
	like(said.err, "name a checkpoint", "is not one");
	said_fini(&said);
	said = ckpt_cmd("reshard", at("run@40"), at("other"), "--world=4");
	is_int(said.exit_code, 1, "a directory of another run");
	like(said.err, "the checkpoint belongs to run", "is refused");
	said_fini(&said);
	put_file(at("run/.gen-1/claim.json"), "");
	said = ckpt_cmd("reshard", at("run@40"), at("run"), "--world=4");
	is_int(said.exit_code, 1, "a run of which nobody can tell who holds it");
	like(said.err, ".gen-1/claim.json: not JSON", "is refused");
	ok(!exists_in(at("run"), ".gen-2"), "and not claimed");
	said_fini(&said);
	flip_bit(in_dir(w.step, "rank-00001.0.safetensors"), 4096);
	said = ckpt_cmd("reshard", at("run@40"), at("to"), "--world=4");
	is_int(said.exit_code, 1, "a damaged source");
	like(said.err, "rank-00001.0.safetensors: chunk 0", "is told");
	ok(!exists_in(place, "to"), "and nothing is written");
	said_fini(&said);
	written_free(&w);
	written_free(&other);
}

/* A write that fails leaves no checkpoint and no staging directory. */
static void reshard_fails(void)
{
	struct manner manner = {.faults = "pwrite:rank-00001*:errno=ENOSPC"};
	struct written w;
	struct said said;

	fresh();
	save(&w, at("run"), false, 4, 2);
	said = ckpt_cmd_as(&manner, "reshard", at("run@40"), at("to"), "--world=3");
	is_int(said.exit_code, 3, "no space");
	like(said.err, "No space left on device", "is told");
	ok(!exists_in(at("to"), "step-0000000040.g1"), "no checkpoint");
	ok(!exists_in(at("to"), ".saving-0000000040.g1"), "nothing left");
	said_fini(&said);
	written_free(&w);
}

/* ---- export ---- */

/* Compare each tensor of a file with the original. Returns how many there were, or a negative. */
static int check_file(const struct written *w, const char *path, const char *prefix)
{
	struct ck_buf text = CK_BUF_INIT;
	struct ck_st_header header;
	uint64_t json;
	int wrong = 0, n;

	if (ck_io_read_file(&ck_io_posix, path, 1 << 24, &text, NULL) ||
	    ck_st_header_bytes(path, (const unsigned char *)text.data, text.len, &json, NULL) ||
	    ck_st_parse(path, text.data + 8, json, text.len, &header, NULL))
		return -1;
	is_str(ck_st_meta(&header, "format"), "pt", "%s: format", path + strlen(place));
	for (size_t t = 0; t < header.ntensors; t++) {
		const struct ck_st_tensor *tensor = &header.tensors[t];
		char name[128];
		size_t i = 0;

		snprintf(name, sizeof(name), "%s%s", prefix, tensor->name);
		while (i < w->manifest.items.count &&
		       strcmp(w->manifest.items.items[i].name, name) != 0)
			i++;
		wrong += i == w->manifest.items.count ||
			 memcmp(w->tensors[i], text.data + header.data_offset + tensor->begin,
				tensor->end - tensor->begin) != 0;
	}
	n = (int)header.ntensors;
	ck_st_fini(&header);
	ck_buf_fini(&text);
	return wrong ? -2 : n;
}

static void exports(void)
{
	struct written w;
	struct said said;

	fresh();
	save(&w, at("run"), true, 5, 7);
	said = ckpt_cmd("export", "--format", "hf", at("run@40"), at("hf"));
	is_int(said.exit_code, 0, "one file: %s", said.err);
	like(said.out, "5 tensors, 827 KiB, in 1 file", "says so");
	is_int(check_file(&w, at("hf/model.safetensors"), ""), 5, "all tensors, bit for bit");
	ok(!exists_in(at("hf"), "model.safetensors.index.json"), "no index");
	said_fini(&said);
	said = ckpt_cmd("export", at("run@40"), at("hf"));
	is_int(said.exit_code, 1, "again");
	like(said.err, "model.safetensors: is there already", "is refused");
	said_fini(&said);
	said = ckpt_cmd("export", "-i", "model.*", "--strip-prefix=model.", "--json", at("run@40"),
			at("part"));
	is_int(said.exit_code, 0, "a part, renamed: %s", said.err);
	is_int(check_file(&w, at("part/model.safetensors"), "model."), 3, "three tensors");
	like(said.out, "\"tensors\": 3", "JSON");
	said_fini(&said);
	written_free(&w);
}

static void exports_several(void)
{
	cJSON *tree, *map, *entry;
	struct written w;
	struct said said;
	char *text;
	int tensors = 0, found = 0;

	fresh();
	save(&w, at("run"), false, 2, 7);
	said = ckpt_cmd("export", "--max-shard-size=3KB", at("run@40"), at("hf"));
	is_int(said.exit_code, 0, "several files: %s", said.err);
	said_fini(&said);
	/* In the order of names: bias; big, too large for any; flag and none; flat. */
	for (int f = 1; f <= 4; f++) {
		char name[64];

		snprintf(name, sizeof(name), "hf/model-%05d-of-00004.safetensors", f);
		tensors += check_file(&w, at(name), "");
	}
	is_int(tensors, 5, "four files have all five tensors");
	text = content_of(at("hf/model.safetensors.index.json"));
	tree = cJSON_Parse(text ? text : "");
	map = cJSON_GetObjectItem(tree, "weight_map");
	cJSON_ArrayForEach(entry, map) found++;
	is_int(found, 5, "the index has all");
	is_str(cJSON_GetStringValue(cJSON_GetObjectItem(map, "model.big")),
	       "model-00002-of-00004.safetensors", "in the right file");
	is_int((long long)cJSON_GetNumberValue(
		       cJSON_GetObjectItem(cJSON_GetObjectItem(tree, "metadata"), "total_size")),
	       700 * 301 * 4 + 14 + 1 + 4012, "and the total");
	cJSON_Delete(tree);
	free(text);
	written_free(&w);
}

static void export_refusals(void)
{
	static const struct {
		const char *what, *option;
		int code;
		const char *text;
	} cases[] = {
		{"another format", "--format=pickle", 2, "--format: pickle: expected hf"},
		{"no size", "--max-shard-size=big", 2,
		 "--max-shard-size: big: not a size such as 512M"},
		{"items that are not there", "--items=nothing*", 1,
		 "no tensor is chosen by 'nothing*'"},
	};
	struct written w;

	fresh();
	save(&w, at("run"), true, 2, 7);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct said said = ckpt_cmd("export", cases[i].option, at("run@40"), at("hf"));

		is_int(said.exit_code, cases[i].code, "%s", cases[i].what);
		like(said.err, cases[i].text, "%s: text", cases[i].what);
		ok(!exists_in(place, "hf"), "%s: nothing is made", cases[i].what);
		said_fini(&said);
	}
	written_free(&w);
}

/* There it would make a checkpoint bad, or be taken for one. */
static void export_misplaced(void)
{
	struct written w, other;
	struct said said;
	size_t entries;

	fresh();
	save(&w, at("run"), false, 2, 7);
	save(&other, at("other"), false, 2, 7);
	entries = count_in(w.step);
	said = ckpt_cmd("export", at("other@40"), at("run"));
	is_int(said.exit_code, 1, "into a run directory");
	like(said.err, "/run: is a run directory: name another directory", "is refused");
	said_fini(&said);
	said = ckpt_cmd("export", at("run@40"), w.step);
	is_int(said.exit_code, 1, "into a checkpoint");
	like(said.err, "/step-0000000040.g1: is a checkpoint: name another directory", "too");
	is_u64(count_in(w.step), entries, "and nothing is written");
	said_fini(&said);
	unlink(in_dir(at("run"), "run.json"));
	said = ckpt_cmd("export", at("other@40"), at("run"));
	is_int(said.exit_code, 1, "checkpoints without run.json");
	ok(!exists_in(at("run"), "model.safetensors"), "are no place either");
	said_fini(&said);
	put_file(at("file"), "x");
	said = ckpt_cmd("export", at("other@40"), at("file"));
	is_int(said.exit_code, 1, "into a file");
	like(said.err, "/file: not a directory", "is told");
	said_fini(&said);
	written_free(&w);
	written_free(&other);
}

/* ---- diff ---- */

static void diffs(void)
{
	struct written a, b;
	struct said said;

	fresh();
	save(&a, at("a"), true, 3, 7);
	save(&b, at("b"), true, 5, 7);
	said = ckpt_cmd("diff", at("a@40"), at("a@latest"));
	is_int(said.exit_code, 0, "a checkpoint and itself");
	like(said.out, "6 items equal, 0 not", "are equal");
	said_fini(&said);
	said = ckpt_cmd("diff", at("a@40"), at("b@40"));
	is_int(said.exit_code, 1, "other ranks");
	like(said.out, "rng: other-shape: bytes of 3 ranks and bytes of 5 ranks", "are told");
	like(said.out, "5 items equal, 1 not", "the tensors are equal");
	said_fini(&said);
	said = ckpt_cmd("diff", "--items", "model.*", at("a@40"), at("b@40"));
	is_int(said.exit_code, 0, "only some: equal");
	said_fini(&said);
	written_free(&b);
	save(&b, at("c"), false, 2, 8);
	said = ckpt_cmd("diff", "--json", at("a@40"), at("c@40"));
	is_int(said.exit_code, 1, "another seed: different");
	like(said.out, "\"name\": \"model.big\"", "JSON");
	like(said.out, "\"state\": \"different\"", "with states");
	like(said.out, "\"elements\": 210700", "and numbers");
	said_fini(&said);
	said = ckpt_cmd("diff", at("a@40"), at("nowhere@40"));
	is_int(said.exit_code, 1, "one that is not there");
	said_fini(&said);
	written_free(&a);
	written_free(&b);
}

/* ---- PyTorch's algorithm ---- */

static void dcp(void)
{
	char line[3 * PATH_MAX], *said;
	struct written w;
	FILE *file;

	fresh();
	if (system("python3 -c 'import json' 2>/dev/null") != 0) {
		skip("no python3");
		return;
	}
	save(&w, at("run"), true, 8, 11);
	for (size_t i = 0; i < w.manifest.items.count; i++) {
		char name[64];
		const struct ck_item *item = &w.manifest.items.items[i];
		struct ck_box whole = {.ndim = item->ndim};

		if (item->kind == CK_PER_RANK)
			continue;
		memcpy(whole.extent, item->shape, sizeof(whole.extent));
		snprintf(name, sizeof(name), "want-%s", item->name);
		file = fopen(at(name), "wb");
		if (!file)
			abort();
		fwrite(w.tensors[i], ck_dtype_size((int)item->dtype), ck_box_volume(&whole), file);
		fclose(file);
	}
	snprintf(line, sizeof(line), "python3 tests/support/dcp_reader.py '%s' 3 '%s' >'%s'",
		 w.step, place, at("said"));
	is_int(system(line), 0, "HuggingFaceStorageReader's way: 8 ranks to 3");
	said = content_of(at("said"));
	like(said, "4 tensors, 3 ranks: equal", "bit for bit");
	free(said);
	written_free(&w);
}

int main(void)
{
	reshards();
	reshards_within();
	dry_runs();
	reshard_refusals();
	reshard_fails();
	exports();
	exports_several();
	export_refusals();
	export_misplaced();
	diffs();
	dcp();
	return done_testing();
}
