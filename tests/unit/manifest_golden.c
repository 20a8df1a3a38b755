/* Replays tests/golden/manifest: each name is the defect; made by make_manifest.py. */
#include "manifest.h"

#include <stdlib.h>
#include <string.h>

#include "golden.h"
#include "tap.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static const struct golden golden[] = {
	{"array-at-top", CK_EFORMAT, "not JSON: byte 0: '{' wanted"},
	{"bytes-2-to-53", CK_EFORMAT,
	 "shards[0]: bytes: 9007199254740992, an integer from 0 to 9007199254740991 wanted"},
	{"bytes-negative", CK_EFORMAT,
	 "shards[0]: bytes: -4496, an integer from 0 to 9007199254740991 wanted"},
	{"chunk-bytes-0", CK_EFORMAT, "shards[0]: chunk_bytes 0 is no power of two from 4096 on"},
	{"chunk-bytes-2048", CK_EFORMAT,
	 "shards[0]: chunk_bytes 2048 is no power of two from 4096 on"},
	{"chunk-bytes-no-power-of-two", CK_EFORMAT,
	 "shards[0]: chunk_bytes 16781312 is no power of two from 4096 on"},
	{"chunk-crc32-array", CK_EFORMAT, "shards[0]: chunk_crc32: an array, a string wanted"},
	{"chunk-crc32-long", CK_EFORMAT,
	 "shards[1]: chunk_crc32: 40 digits, 50331649 bytes in chunks of 16777216 need 4 times 8"},
	{"chunk-crc32-odd", CK_EFORMAT,
	 "shards[1]: chunk_crc32: 31 digits, 50331649 bytes in chunks of 16777216 need 4 times 8"},
	{"chunk-crc32-short", CK_EFORMAT,
	 "shards[1]: chunk_crc32: 24 digits, 50331649 bytes in chunks of 16777216 need 4 times 8"},
	{"chunk-crc32-upper-case", CK_EFORMAT,
	 "shards[1]: chunk_crc32: chunk 0 is not 8 lower-case hex digits"},
	{"crc32-number", CK_EFORMAT, "shards[0]: crc32: a number, a string wanted"},
	{"crc32-short", CK_EFORMAT, "shards[0]: crc32: 7 hex digits, must be 8"},
	{"crc32-upper-case", CK_EFORMAT,
	 "shards[0]: crc32: character 2 is no lower-case hex digit"},
	{"created-february-30", CK_EFORMAT,
	 "created: 2026-02-30T20:37:50Z: no such day or time of day"},
	{"created-fraction", CK_EFORMAT,
	 "created: 2026-11-29T20:37:50.5Z: not a time such as 2026-11-29T20:37:50Z"},
	{"created-number", CK_EFORMAT, "created: a number, a string wanted"},
	{"created-offset", CK_EFORMAT,
	 "created: 2026-11-29T20:37:50+01:00: not a time such as 2026-11-29T20:37:50Z"},
	{"created-without-z", CK_EFORMAT,
	 "created: 2026-11-29T20:37:50: not a time such as 2026-11-29T20:37:50Z"},
	{"cut", CK_EFORMAT, "not JSON: byte 1697: the text ends early"},
	{"duplicate-key-in-shard", CK_EFORMAT, "duplicate key 'rank'"},
	{"duplicate-key-in-user", CK_EFORMAT, "duplicate key 'lr'"},
	{"duplicate-key", CK_EFORMAT, "duplicate key 'step'"},
	{"empty", CK_EFORMAT, "not JSON: byte 0: the text ends early"},
	{"flat-number", CK_EFORMAT, "flat: a number, a string wanted"},
	{"flat-per-rank", CK_EFORMAT, "flat: item 'rng' is not sharded with one dimension"},
	{"flat-scalar", CK_EFORMAT, "flat: item 'scale' is not sharded with one dimension"},
	{"flat-unknown", CK_EFORMAT, "flat: it names no item of items[]"},
	{"generation-0", CK_EFORMAT, "generation 0 is not in [1, 2^53)"},
	{"generation-2-to-53", CK_EFORMAT,
	 "generation: 9007199254740992, an integer from 0 to 9007199254740991 wanted"},
	{"good-base", 0, NULL},
	{"good-chunks-of-4096", 0, NULL},
	{"good-largest-integers", 0, NULL},
	{"good-step-0", 0, NULL},
	{"good-unknown-members", 0, NULL},
	{"good-user-depth-15", 0, NULL},
	{"good-user-null", 0, NULL},
	{"good-without-flat", 0, NULL},
	{"good-without-user", 0, NULL},
	{"good-without-white-space", 0, NULL},
	{"item-dtype-4-bit", CK_EFORMAT, "items[0]: unknown dtype 'F4'"},
	{"item-dtype-unknown", CK_EFORMAT, "items[0]: unknown dtype 'F33'"},
	{"item-kind-unknown", CK_EFORMAT, "items[0]: unknown kind 'replicated'"},
	{"item-missing-dtype", CK_EFORMAT, "items[0]: dtype: missing, a string wanted"},
	{"item-missing-global-shape", CK_EFORMAT,
	 "items[0]: global_shape: missing, an array wanted"},
	{"item-missing-kind", CK_EFORMAT, "items[0]: kind: missing, a string wanted"},
	{"item-missing-name", CK_EFORMAT, "items[0]: name: missing, a string wanted"},
	{"item-name-control", CK_EFORMAT, "items: item name '\\x0a': byte 0: a control character"},
	{"item-name-empty", CK_EFORMAT, "items: item name is empty"},
	{"item-name-metadata", CK_EFORMAT,
	 "items: item name '__metadata__' is reserved by safetensors"},
	{"item-name-reserved", CK_EFORMAT,
	 "items: item name 'rank-3/rng': names of the form rank-<number>/... are reserved"},
	{"item-name-too-long", CK_EFORMAT,
	 "items[2]: name: a string of 1025 bytes, the limit is 1024"},
	{"item-not-an-object", CK_EFORMAT, "items[0]: not an object"},
	{"item-shape-2-to-53", CK_EFORMAT,
	 "items[0]: global_shape: 9007199254740992, an integer from 0 to 9007199254740991 wanted"},
	{"item-shape-33-dimensions", CK_EFORMAT,
	 "items[2]: global_shape: 33 values, the limit is 32"},
	{"item-shape-negative", CK_EFORMAT,
	 "items[0]: global_shape: -1, an integer from 0 to 9007199254740991 wanted"},
	{"item-shape-null", CK_EFORMAT, "items[0]: global_shape: null, an array wanted"},
	{"item-shape-overflow", CK_EFORMAT, "item 'z': its global shape has 2^53 bytes or more"},
	{"item-shape-text", CK_EFORMAT, "items[0]: global_shape: a string, an integer wanted"},
	{"item-twice", CK_EFORMAT, "items: 'params' stands there twice"},
	{"item-unsorted", CK_EFORMAT, "items: 'params' is not sorted by name"},
	{"job-id-number", CK_EFORMAT, "job: id: a number, a string wanted"},
	{"job-nodes-c1-control", CK_EFORMAT, "job: nodes: byte 2 is a control character (0x9b)"},
	{"job-text", CK_EFORMAT, "job: a string, an object wanted"},
	{"last-rank-without-file", CK_EFORMAT, "shards: rank 2 has no file"},
	{"missing-created", CK_EFORMAT, "created: missing, a string wanted"},
	{"missing-generation", CK_EFORMAT, "generation: missing, an integer wanted"},
	{"missing-items", CK_EFORMAT, "items: missing, an array wanted"},
	{"missing-job-cluster", CK_EFORMAT, "job: cluster: missing, a string wanted"},
	{"missing-job-id", CK_EFORMAT, "job: id: missing, a string wanted"},
	{"missing-job-restart-count", CK_EFORMAT, "job: restart_count: missing, an integer wanted"},
	{"missing-job-step-id", CK_EFORMAT, "job: step_id: missing, a string wanted"},
	{"missing-job", CK_EFORMAT, "job: missing, an object wanted"},
	{"missing-run-id", CK_EFORMAT, "run_id: missing, a string wanted"},
	{"missing-run", CK_EFORMAT, "run: missing, a string wanted"},
	{"missing-save-id", CK_EFORMAT, "save_id: missing, a string wanted"},
	{"missing-schema-version", CK_EFORMAT, "schema_version: missing, an integer wanted"},
	{"missing-shards", CK_EFORMAT, "shards: missing, an array wanted"},
	{"missing-step", CK_EFORMAT, "step: missing, an integer wanted"},
	{"missing-wall-clock-seconds", CK_EFORMAT, "wall_clock_seconds: missing, a number wanted"},
	{"missing-world-size", CK_EFORMAT, "world_size: missing, an integer wanted"},
	{"missing-writer", CK_EFORMAT, "writer: missing, a string wanted"},
	{"not-utf8", CK_EFORMAT, "not JSON: byte 150: not UTF-8"},
	{"param-shard-beyond-flat", CK_EFORMAT,
	 "shards[2]: param_shard_offset 90, numel 11: the flat item has 100 elements"},
	{"param-shard-numel-fraction", CK_EFORMAT,
	 "shards[0]: param_shard_numel: 0.5, an integer from 0 to 9007199254740991 wanted"},
	{"param-shard-offset-2-to-53", CK_EFORMAT,
	 "shards[0]: param_shard_offset: 9007199254740992, an integer from 0 to 9007199254740991 "
	 "wanted"},
	{"param-shard-offset-alone", CK_EFORMAT,
	 "shards[2]: param_shard_offset 90 without elements must be 0"},
	{"param-shard-without-flat", CK_EFORMAT,
	 "shards[0]: param_shard_offset 0, numel 60: no item is flat, so it has 0 elements"},
	{"part-0-missing", CK_EFORMAT, "shards[1]: part 0 of rank 1 is missing"},
	{"part-0-of-rank-0-missing", CK_EFORMAT, "shards[0]: part 0 of rank 0 is missing"},
	{"part-gap", CK_EFORMAT, "shards[2]: part 1 of rank 1 is missing"},
	{"parts-unordered", CK_EFORMAT, "shards[1]: part 0 of rank 1 is missing"},
	{"path-absolute", CK_EFORMAT,
	 "shards[0]: path '/etc/rank-00000.0.safetensors' leaves the checkpoint's directory"},
	{"path-control-character", CK_EFORMAT,
	 "shards[0]: path: byte 24 is a control character (0x07)"},
	{"path-dot-dot", CK_EFORMAT, "shards[0]: path '..' leaves the checkpoint's directory"},
	{"path-dot", CK_EFORMAT, "shards[0]: path '.' leaves the checkpoint's directory"},
	{"path-empty", CK_EFORMAT,
	 "shards[0]: path '' is no shard file's name (rank-<r>.<p>.safetensors)"},
	{"path-few-digits", CK_EFORMAT,
	 "shards[0]: path 'rank-0.0.safetensors' is no shard file's name "
	 "(rank-<r>.<p>.safetensors)"},
	{"path-of-another-rank", CK_EFORMAT,
	 "shards[1]: path 'rank-00000.0.safetensors' is of rank 0, not of rank 1"},
	{"path-other-suffix", CK_EFORMAT,
	 "shards[0]: path 'rank-00000.0.bin' is no shard file's name (rank-<r>.<p>.safetensors)"},
	{"path-too-long", CK_EFORMAT, "shards[0]: path: a string of 65 bytes, the limit is 63"},
	{"path-twice", CK_EFORMAT, "shards[2]: path 'rank-00001.0.safetensors' stands here twice"},
	{"path-up", CK_EFORMAT,
	 "shards[0]: path '../rank-00000.0.safetensors' leaves the checkpoint's directory"},
	{"path-with-slash", CK_EFORMAT,
	 "shards[0]: path 'a/rank-00000.0.safetensors' leaves the checkpoint's directory"},
	{"per-rank-f32", CK_EFORMAT, "item 'rng': a per-rank item has dtype U8, not F32"},
	{"per-rank-with-shape", CK_EFORMAT,
	 "items[1]: global_shape: of a per-rank item it is null"},
	{"rank-0-without-file", CK_EFORMAT, "shards[0]: rank 0 has no file"},
	{"rank-1-without-file", CK_EFORMAT, "shards[1]: rank 1 has no file"},
	{"rank-negative", CK_EFORMAT,
	 "shards[0]: rank: -1, an integer from 0 to 4294967295 wanted"},
	{"rank-out-of-range", CK_EFORMAT, "shards[1]: rank 1 is not in [0, 1)"},
	{"rank-text", CK_EFORMAT, "shards[0]: rank: a string, an integer wanted"},
	{"ranks-unordered-later", CK_EFORMAT,
	 "shards[2]: 'rank-00000.0.safetensors' is out of order, it follows "
	 "'rank-00001.0.safetensors'"},
	{"ranks-unordered", CK_EFORMAT, "shards[0]: rank 0 has no file"},
	{"run-control-character", CK_EFORMAT, "run: byte 1 is a control character (0x1b)"},
	{"run-id-short", CK_EFORMAT, "run_id: 16 hex digits, must be 32"},
	{"run-id-upper-case", CK_EFORMAT, "run_id: character 10 is no lower-case hex digit"},
	{"run-too-long", CK_EFORMAT, "run: a string of 192 bytes, the limit is 191"},
	{"save-id-long", CK_EFORMAT, "save_id: a string of 33 bytes, the limit is 32"},
	{"schema-version-0", CK_EFORMAT, "schema_version is 0, this program reads 1"},
	{"schema-version-2", CK_EFORMAT, "schema_version is 2, this program reads 1"},
	{"schema-version-text", CK_EFORMAT, "schema_version: a string, an integer wanted"},
	{"sha256-no-hex", CK_EFORMAT, "shards[0]: sha256: character 0 is no lower-case hex digit"},
	{"sha256-short", CK_EFORMAT, "shards[0]: sha256: 62 hex digits, must be 64"},
	{"sha256-upper-case", CK_EFORMAT,
	 "shards[0]: sha256: character 0 is no lower-case hex digit"},
	{"shard-missing-bytes", CK_EFORMAT, "shards[0]: bytes: missing, an integer wanted"},
	{"shard-missing-chunk-bytes", CK_EFORMAT,
	 "shards[0]: chunk_bytes: missing, an integer wanted"},
	{"shard-missing-chunk-crc32", CK_EFORMAT,
	 "shards[0]: chunk_crc32: missing, a string wanted"},
	{"shard-missing-crc32", CK_EFORMAT, "shards[0]: crc32: missing, a string wanted"},
	{"shard-missing-param-shard-numel", CK_EFORMAT,
	 "shards[0]: param_shard_numel: missing, an integer wanted"},
	{"shard-missing-param-shard-offset", CK_EFORMAT,
	 "shards[0]: param_shard_offset: missing, an integer wanted"},
	{"shard-missing-path", CK_EFORMAT, "shards[0]: path: missing, a string wanted"},
	{"shard-missing-rank", CK_EFORMAT, "shards[0]: rank: missing, an integer wanted"},
	{"shard-missing-sha256", CK_EFORMAT, "shards[0]: sha256: missing, a string wanted"},
	{"shard-not-an-object", CK_EFORMAT, "shards[0]: not an object"},
	{"shards-empty", CK_EFORMAT, "shards: rank 0 has no file"},
	{"shards-object", CK_EFORMAT, "shards: an object, an array wanted"},
	{"step-2-to-53", CK_EFORMAT,
	 "step: 9007199254740992, an integer from 0 to 9007199254740991 wanted"},
	{"step-fraction", CK_EFORMAT, "step: 1.5, an integer from 0 to 9007199254740991 wanted"},
	{"step-negative", CK_EFORMAT, "step: -1, an integer from 0 to 9007199254740991 wanted"},
	{"step-null", CK_EFORMAT, "step: null, an integer wanted"},
	{"step-text", CK_EFORMAT, "step: a string, an integer wanted"},
	{"two-manifests", CK_EFORMAT, "not JSON: byte 1717: text after the end of the object"},
	{"user-array", CK_EFORMAT, "user: an array, an object wanted"},
	{"user-depth-16", CK_EFORMAT, "not JSON: byte 652: nested deeper than 16"},
	{"user-integer-2-to-53", CK_EFORMAT,
	 "seed: 9007199254740992 is beyond 2^53, where JSON readers lose digits: store it as text"},
	{"user-key-with-escapes", CK_EFORMAT, "user: the key is written with escapes"},
	{"user-text", CK_EFORMAT, "user: a string, an object wanted"},
	{"wall-clock-beyond-2-to-53", CK_EFORMAT, "wall_clock_seconds 1e+16 is not in [0, 2^53)"},
	{"wall-clock-infinite", CK_EFORMAT,
	 "wall_clock_seconds: inf, a finite number from 0 wanted"},
	{"wall-clock-negative", CK_EFORMAT,
	 "wall_clock_seconds: -0.5, a finite number from 0 wanted"},
	{"wall-clock-text", CK_EFORMAT, "wall_clock_seconds: a string, a number wanted"},
	{"world-size-0", CK_EFORMAT, "world_size 0 is not in [1, 1048576]"},
	{"world-size-beyond-limit", CK_EFORMAT, "world_size 1048577 is not in [1, 1048576]"},
	{"world-size-text", CK_EFORMAT, "world_size: a string, an integer wanted"},
	{"writer-null", CK_EFORMAT, "writer: null, a string wanted"},
};

/* A copy of exactly its size: reading one byte further is found by the address sanitizer. */
static int parse_exactly(const struct ck_buf *text, struct ck_manifest *out, struct ck_error *err)
{
	char *copy = malloc(text->len ? text->len : 1);
	int rc;

	if (text->len)
		memcpy(copy, text->data, text->len);
	rc = ck_manifest_parse("m.json", copy, text->len, true, out, err);
	free(copy);
	return rc;
}

/* What was read prints to a text that reads and prints the same again. */
static void check_print(const char *name, const struct ck_manifest *manifest)
{
	struct ck_buf first = CK_BUF_INIT, second = CK_BUF_INIT;
	struct ck_error err = CK_ERROR_INIT;
	struct ck_manifest again;

	is_int(ck_manifest_print(manifest, true, &first, &err), 0, "%s prints: %s", name, err.text);
	if (is_int(parse_exactly(&first, &again, &err), 0, "%s, printed, reads: %s", name,
		   err.text)) {
		is_int(ck_manifest_print(&again, true, &second, &err), 0, "%s prints again", name);
		is_str(second.data, first.data, "%s: the same text", name);
		ck_manifest_fini(&again);
	}
	ck_buf_fini(&first);
	ck_buf_fini(&second);
}

static void replay(const struct golden *row)
{
	struct ck_buf text = golden_read("manifest", row->name, ".json");
	struct ck_manifest manifest = {.nfiles = 77};
	struct ck_error err = CK_ERROR_INIT;
	int rc;

	rc = parse_exactly(&text, &manifest, &err);
	is_int(rc, row->code, "%s", row->name);
	if (row->says) {
		like(err.text, row->says, "%s: the text", row->name);
		like(err.text, "m.json: ", "%s: the text names the file", row->name);
		ok(manifest.nfiles == 77, "%s: the output is untouched", row->name);
	}
	if (!rc) {
		check_print(row->name, &manifest);
		ck_manifest_fini(&manifest);
	}
	ck_buf_fini(&text);
}

int main(void)
{
	golden_complete("manifest", golden, ROWS(golden), ".json");
	for (size_t i = 0; i < ROWS(golden); i++)
		replay(&golden[i]);
	return done_testing();
}
