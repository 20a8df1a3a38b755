/* The records of manifest.h. */
#include <stdlib.h>
#include <string.h>

#include "manifest.h"
#include "tap.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

#define FILE0                                                                               \
	"{\"rank\": 3, \"path\": \"rank-00003.0.safetensors\", \"sha256\": "                \
	"\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\", "            \
	"\"param_shard_offset\": 5, \"param_shard_numel\": 6, \"bytes\": 4100, \"crc32\": " \
	"\"00ff00ff\", \"chunk_bytes\": 4096, \"chunk_crc32\": \"deadbeef00000001\"}"
#define HEAD                                                                          \
	"{\"schema_version\": 1, \"save_id\": \"0123456789abcdef0123456789abcdef\", " \
	"\"rank\": 3, \"step\": 12, "

static const struct {
	const char *name;
	const char *text;
	const char *says;
} refusals[] = {
	{"not JSON", "{", "r: not JSON: byte 1"},
	{"no version", "{}", "r: schema_version: missing"},
	{"version 9", "{\"schema_version\": 9}", "r: schema_version is 9, this program reads 1"},
	{"no save id", "{\"schema_version\": 1}", "r: save_id: missing"},
	{"save id of 31 digits",
	 "{\"schema_version\": 1, \"save_id\": \"0123456789abcdef0123456789abcde\"}",
	 "r: save_id: 31 hex digits, must be 32"},
	{"no files", HEAD "\"shards\": []}", "r: shards: rank 3 has no file"},
	{"no shards", HEAD "\"files\": []}", "r: shards: missing"},
	{"a file twice", HEAD "\"shards\": [" FILE0 ", " FILE0 "]}",
	 "r: shards[1]: path 'rank-00003.0.safetensors' stands here twice"},
	{"another rank",
	 "{\"schema_version\": 1, \"save_id\": \"0123456789abcdef0123456789abcdef\", "
	 "\"rank\": 4, \"step\": 12, \"shards\": [" FILE0 "]}",
	 "r: shards[0]: rank 3 is not in [4, 5)"},
	{"a rank beyond all",
	 "{\"schema_version\": 1, \"save_id\": \"0123456789abcdef0123456789abcdef\", "
	 "\"rank\": 1048576, \"step\": 12, \"shards\": [" FILE0 "]}",
	 "r: rank 1048576 is not below 1048576"},
};

static void test_refusals(void)
{
	for (size_t i = 0; i < ROWS(refusals); i++) {
		struct ck_record record = {.step = 99};
		struct ck_error err = CK_ERROR_INIT;

		is_int(ck_record_parse("r", refusals[i].text, strlen(refusals[i].text), &record,
				       &err),
		       CK_EFORMAT, "%s is refused", refusals[i].name);
		like(err.text, refusals[i].says, "%s: the text", refusals[i].name);
		is_u64(record.step, 99, "%s: the output is untouched", refusals[i].name);
	}
}

static void test_round(void)
{
	static const char text[] = HEAD "\"later\": 1, \"shards\": [" FILE0 "]}";
	struct ck_record record, again;
	struct ck_error err = CK_ERROR_INIT;
	struct ck_buf first = CK_BUF_INIT, second = CK_BUF_INIT;

	is_int(ck_record_parse("r", text, strlen(text), &record, &err), 0, "reads: %s", err.text);
	is_str(record.save_id, "0123456789abcdef0123456789abcdef", "save id");
	is_u64(record.rank, 3, "rank");
	is_u64(record.step, 12, "step");
	is_u64(record.files[0].bytes, 4100, "bytes");
	is_u64(record.files[0].chunk_crc32[0], 0xdeadbeef, "CRC of the first chunk");
	is_u64(record.files[0].param_shard_numel, 6, "range");
	is_int(ck_record_print(&record, &first, &err), 0, "prints: %s", err.text);
	is_int(ck_record_parse("r", first.data, first.len, &again, &err), 0, "reads again: %s",
	       err.text);
	is_int(ck_record_print(&again, &second, &err), 0, "prints again");
	is_str(second.data, first.data, "the same text");
	ck_buf_clear(&second);

	again.step = CK_STEP_MAX + 1;
	is_int(ck_record_print(&again, &second, &err), CK_EFORMAT, "a step of 2^53 is refused");
	like(err.text, "record: step 9007199254740992 is not below 2^53", "the text");
	again.step = 1;
	again.save_id[5] = '\0';
	is_int(ck_record_print(&again, &second, &err), CK_EFORMAT, "a short save id is refused");
	is_u64(second.len, 0, "nothing printed");
	ck_record_fini(&record);
	ck_record_fini(&again);
	ck_buf_fini(&first);
	ck_buf_fini(&second);
}

int main(void)
{
	test_refusals();
	test_round();
	return done_testing();
}
