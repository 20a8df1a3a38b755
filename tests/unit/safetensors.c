#include "safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "golden.h"
#include "random.h"
#include "tap.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static const struct golden golden[] = {
	{"data-cut", CK_EFORMAT, "tensor 'w': bytes [0, 4) end past the data (3)"},
	{"deeper-than-16", CK_EFORMAT, "header: not JSON: byte 20: nested deeper than 16"},
	{"dtype-in-lower-case", CK_EFORMAT, "tensor 'w': unknown dtype 'f32'"},
	{"dtype-is-a-number", CK_EFORMAT, "tensor 'w': dtype: a number, a string wanted"},
	{"dtype-missing", CK_EFORMAT, "tensor 'w': dtype: missing, a string wanted"},
	{"dtype-of-four-bits", CK_EFORMAT, "tensor 'w': unknown dtype 'F4'"},
	{"duplicate-field", CK_EFORMAT, "header: duplicate key 'dtype'"},
	{"duplicate-metadata-key", CK_EFORMAT, "header: duplicate key 'a'"},
	{"duplicate-metadata", CK_EFORMAT, "header: duplicate key '__metadata__'"},
	{"duplicate-name", CK_EFORMAT, "header: duplicate key 'w'"},
	{"empty-file", CK_EFORMAT, "0 bytes, too short for a safetensors file"},
	{"good-integers-in-other-forms", 0, NULL},
	{"good-metadata", 0, NULL},
	{"good-name-not-ascii", 0, NULL},
	{"good-ndim-32", 0, NULL},
	{"good-no-tensors", 0, NULL},
	{"good-not-in-order-of-offsets", 0, NULL},
	{"good-one-tensor", 0, NULL},
	{"good-padded", 0, NULL},
	{"good-scalar", 0, NULL},
	{"good-unknown-field", 0, NULL},
	{"good-zero-in-an-overflowing-shape", 0, NULL},
	{"good-zero-size", 0, NULL},
	{"header-cut", CK_EFORMAT, "header: not JSON: byte 41: the text ends early"},
	{"header-followed-by-text", CK_EFORMAT,
	 "header: not JSON: byte 2: text after the end of the object"},
	{"header-is-an-array", CK_EFORMAT, "header does not begin with '{'"},
	{"header-is-binary", CK_EFORMAT, "header does not begin with '{'"},
	{"header-longer-than-file", CK_EFORMAT, "header of 1000 bytes ends past the file (66)"},
	{"header-not-brace", CK_EFORMAT, "header does not begin with '{'"},
	{"header-of-no-bytes", CK_EFORMAT, "header does not begin with '{'"},
	{"header-one-byte-longer-than-file", CK_EFORMAT,
	 "header of 3 bytes ends past the file (10)"},
	{"header-padded-with-nul", CK_EFORMAT,
	 "header: not JSON: byte 2: text after the end of the object"},
	{"hole-at-the-front", CK_EFORMAT,
	 "tensor 'a': begins at 1, the data before it end at 0: a hole"},
	{"hole-between-tensors", CK_EFORMAT,
	 "tensor 'b': begins at 5, the data before it end at 4: a hole"},
	{"metadata-is-a-text", CK_EFORMAT, "__metadata__ is not an object"},
	{"metadata-is-null", CK_EFORMAT, "__metadata__ is not an object"},
	{"metadata-nested", CK_EFORMAT, "__metadata__: 'a' is not a string"},
	{"metadata-not-string", CK_EFORMAT, "__metadata__: 'a' is not a string"},
	{"n-all-ones", CK_EFORMAT, "header of 18446744073709551615 bytes, the limit is 100000000"},
	{"n-over-limit", CK_EFORMAT, "header of 100000001 bytes, the limit is 100000000"},
	{"ndim-33", CK_EFORMAT, "tensor 'w': shape: 33 values, the limit is 32"},
	{"not-utf8", CK_EFORMAT, "header: not JSON: byte 2: not UTF-8"},
	{"offsets-missing", CK_EFORMAT, "tensor 'w': data_offsets: missing, an array wanted"},
	{"offsets-negative", CK_EFORMAT,
	 "tensor 'w': data_offsets: -4, an integer from 0 to 9007199254740991 wanted"},
	{"offsets-of-one-value", CK_EFORMAT, "tensor 'w': data_offsets: 1 values, 2 wanted"},
	{"offsets-of-three-values", CK_EFORMAT,
	 "tensor 'w': data_offsets: 3 values, the limit is 2"},
	{"offsets-past-the-file", CK_EFORMAT, "tensor 'w': bytes [0, 8) end past the data (4)"},
	{"offsets-reversed", CK_EFORMAT, "tensor 'w': data_offsets: begin 4 is behind end 0"},
	{"overlap", CK_EFORMAT, "tensor 'b': begins at 2, the data before it end at 4: an overlap"},
	{"scalar-of-no-bytes", CK_EFORMAT,
	 "tensor 'w': bytes [0, 0) are 0, dtype and shape want 4"},
	{"seven-bytes", CK_EFORMAT, "7 bytes, too short for a safetensors file"},
	{"shape-2-to-53", CK_EFORMAT,
	 "tensor 'w': shape: 9007199254740992, an integer from 0 to 9007199254740991 wanted"},
	{"shape-fraction", CK_EFORMAT,
	 "tensor 'w': shape: 1.5, an integer from 0 to 9007199254740991 wanted"},
	{"shape-is-a-number", CK_EFORMAT, "tensor 'w': shape: a number, an array wanted"},
	{"shape-missing", CK_EFORMAT, "tensor 'w': shape: missing, an array wanted"},
	{"shape-negative", CK_EFORMAT,
	 "tensor 'w': shape: -1, an integer from 0 to 9007199254740991 wanted"},
	{"shape-of-texts", CK_EFORMAT, "tensor 'w': shape: a string, an integer wanted"},
	{"shape-overflow-in-bytes", CK_EFORMAT, "tensor 'w': shape: more than 2^63 bytes"},
	{"shape-overflow", CK_EFORMAT, "tensor 'w': shape: more than 2^63 bytes"},
	{"size-differs-from-shape", CK_EFORMAT,
	 "tensor 'w': bytes [0, 4) are 4, dtype and shape want 8"},
	{"tensor-is-not-an-object", CK_EFORMAT, "tensor 'w': not an object"},
	{"tensor-is-null", CK_EFORMAT, "tensor 'w': not an object"},
	{"the-same-bytes-twice", CK_EFORMAT,
	 "tensor 'b': begins at 0, the data before it end at 4: an overlap"},
	{"trailing-bytes-without-tensors", CK_EFORMAT,
	 "1 bytes of data, the tensors end at 0: trailing bytes"},
	{"trailing-bytes", CK_EFORMAT, "5 bytes of data, the tensors end at 4: trailing bytes"},
	{"unknown-dtype", CK_EFORMAT, "tensor 'w': unknown dtype 'F12'"},
};

/* Both steps of reading a header, as for a file of these bytes. */
static int parse_file(const char *data, size_t bytes, struct ck_st_header *out,
		      struct ck_error *err)
{
	unsigned char prefix[8] = {0};
	uint64_t json_bytes = 0;
	int rc;

	if (bytes)
		memcpy(prefix, data, bytes < 8 ? bytes : 8);
	rc = ck_st_header_bytes("f", prefix, bytes, &json_bytes, err);
	return rc ? rc : ck_st_parse("f", data + 8, json_bytes, bytes, out, err);
}

static void test_golden(void)
{
	golden_complete("safetensors", golden, ROWS(golden), ".safetensors");
	for (size_t i = 0; i < ROWS(golden); i++) {
		struct ck_buf file = golden_read("safetensors", golden[i].name, ".safetensors");
		struct ck_st_header header = {.ntensors = 77};
		struct ck_error err = CK_ERROR_INIT;
		int rc = parse_file(file.data, file.len, &header, &err);

		is_int(rc, golden[i].code, "%s: code", golden[i].name);
		if (golden[i].says) {
			like(err.text, golden[i].says, "%s: text", golden[i].name);
			ok(strncmp(err.text, "f: ", 3) == 0, "%s: path", golden[i].name);
			is_u64(header.ntensors, 77, "%s: output untouched", golden[i].name);
		}
		if (rc == 0)
			ck_st_fini(&header);
		ck_buf_fini(&file);
	}
}

static void test_header_bytes(void)
{
	static const unsigned char limit[8] = {0x00, 0xe1, 0xf5, 0x05};
	struct ck_error err = CK_ERROR_INIT;
	uint64_t bytes = 77;

	is_int(ck_st_header_bytes("f", limit, CK_ST_HEADER_MAX + 7, &bytes, &err), CK_EFORMAT,
	       "a header of 100,000,000 bytes in a file one byte too short");
	is_u64(bytes, 77, "output untouched");
	is_int(ck_st_header_bytes("f", limit, CK_ST_HEADER_MAX + 8, &bytes, &err), 0,
	       "in a file just long enough");
	is_u64(bytes, CK_ST_HEADER_MAX, "length");
	is_int(ck_st_parse("f", "{}", CK_ST_HEADER_MAX + 1, UINT64_MAX, NULL, &err), CK_EFORMAT,
	       "parsing looks at the limit itself");
	is_int(ck_st_parse("f", "{}", 2, 9, NULL, &err), CK_EFORMAT, "and at the file's size");
	is_str(err.text, "f: header of 2 bytes in a file of 9 bytes", "text");
}

static void test_fields(void)
{
	static const char json[] =
		"{\"b\":{\"dtype\":\"BF16\",\"shape\":[3,1],\"data_offsets\":[8,14]},"
		"\"__metadata__\":{\"format\":\"pt\",\"k\":\"v\\\"w\"},"
		"\"z\":{\"dtype\":\"U8\",\"shape\":[0,9],\"data_offsets\":[8,8]},"
		"\"a\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]}}";
	struct ck_error err = CK_ERROR_INIT;
	struct ck_st_header h = {0};
	size_t bytes = sizeof(json) - 1;

	if (!is_int(ck_st_parse("f", json, bytes, 8 + bytes + 14, &h, &err), 0, "parses: %s",
		    err.text))
		return;
	is_u64(h.data_offset, 8 + bytes, "data offset");
	is_u64(h.ntensors, 3, "three tensors");
	is_str(h.tensors[0].name, "a", "in order of begin");
	is_int(h.tensors[0].dtype, CK_F64, "dtype");
	is_int(h.tensors[0].ndim, 0, "a scalar");
	is_str(h.tensors[1].name, "z", "nothing comes before what begins at the same byte");
	is_u64(h.tensors[1].shape[1], 9, "shape");
	is_str(h.tensors[2].name, "b", "last");
	is_int(h.tensors[2].ndim, 2, "dimensions");
	is_u64(h.tensors[2].shape[0], 3, "shape");
	is_u64(h.tensors[2].begin, 8, "begin");
	is_u64(h.tensors[2].end, 14, "end");
	is_u64(h.nmeta, 2, "metadata");
	is_str(h.meta[1].key, "k", "in file order");
	is_str(ck_st_meta(&h, "k"), "v\"w", "a value");
	is_str(ck_st_meta(&h, "format"), "pt", "another");
	ok(ck_st_meta(&h, "x") == NULL, "no such key");
	ck_st_fini(&h);
	ok(h.tensors == NULL && h.ntensors == 0, "fini leaves nothing");
	ck_st_fini(&h);
}

static struct ck_st_tensor f32(const char *name, uint64_t extent, uint64_t begin, uint64_t end)
{
	return (struct ck_st_tensor){.name = (char *)name,
				     .dtype = CK_F32,
				     .ndim = 1,
				     .shape = {extent},
				     .begin = begin,
				     .end = end};
}

static void test_print_refused(void)
{
	static const char *const says[] = {
		"tensor 'b': bytes [5, 9) do not follow",
		"tensor 'b': bytes [3, 7) do not follow",
		"tensor 'b': bytes [4, 12) do not follow",
		"tensor 'b': bytes [4, 3) do not follow",
		"tensor 'a' twice",
	};
	struct ck_st_tensor tensors[][2] = {
		{f32("a", 1, 0, 4), f32("b", 1, 5, 9)},  {f32("a", 1, 0, 4), f32("b", 1, 3, 7)},
		{f32("a", 1, 0, 4), f32("b", 1, 4, 12)}, {f32("a", 1, 0, 4), f32("b", 1, 4, 3)},
		{f32("a", 1, 0, 4), f32("a", 1, 4, 8)},
	};

	for (size_t i = 0; i < ROWS(says); i++) {
		struct ck_st_header header = {.tensors = tensors[i], .ntensors = 2};
		struct ck_error err = CK_ERROR_INIT;
		struct ck_buf out = CK_BUF_INIT;

		ck_buf_add_str(&out, "before");
		is_int(ck_st_print(&header, &out, &err), CK_EARG, "print: code %zu", i);
		like(err.text, says[i], "print: text %zu", i);
		is_str(out.data, "before", "print: output untouched %zu", i);
		ck_buf_fini(&out);
	}
}

static void test_print_too_large(void)
{
	char *value = malloc(CK_ST_HEADER_MAX + 1);
	struct ck_st_meta meta = {(char *)"k", value};
	struct ck_st_header header = {.meta = &meta, .nmeta = 1};
	struct ck_error err = CK_ERROR_INIT;
	struct ck_buf out = CK_BUF_INIT;

	memset(value, 'x', CK_ST_HEADER_MAX);
	value[CK_ST_HEADER_MAX] = '\0';
	is_int(ck_st_print(&header, &out, &err), CK_EARG, "the writer has the reader's limit");
	like(err.text, "bytes for 0 tensors: the limit is 100000000", "text");
	ck_buf_fini(&out);
	free(value);
}

/* Print and parse are inverse, and the data begin on a boundary, for headers of many lengths. */
static void check_round_trip(size_t ntensors, size_t pad)
{
	struct ck_st_tensor *tensors = calloc(ntensors + 1, sizeof(*tensors));
	char names[40][80], value[600];
	struct ck_st_meta meta[] = {{(char *)"format", (char *)"pt"},
				    {(char *)"\"\\\xc3\xa9", value}};
	struct ck_st_header header = {
		.tensors = tensors, .ntensors = ntensors, .meta = meta, .nmeta = 2};
	struct ck_st_header back = {0};
	struct ck_error err = CK_ERROR_INIT;
	struct ck_buf out = CK_BUF_INIT;
	bool same = true;

	memset(value, 'v', sizeof(value));
	value[pad] = '\0';
	for (size_t i = 0; i < ntensors; i++) {
		memset(names[i], 'n', sizeof(names[i]));
		memcpy(names[i], "\"w\\/", 4);
		names[i][10 + i] = '\0';
		tensors[i] = f32(names[i], i, i ? tensors[i - 1].end : 0, 0);
		tensors[i].end = tensors[i].begin + 4 * i;
	}
	is_int(ck_st_print(&header, &out, &err), 0, "print %zu tensors: %s", ntensors, err.text);
	is_u64(out.len % CK_ST_ALIGN, 0, "%zu tensors: aligned", ntensors);
	ok(strncmp(out.data + 8, "{\"__metadata__\":", 16) == 0, "metadata come first");
	out.len += ntensors ? tensors[ntensors - 1].end : 0;
	is_int(parse_file(out.data, out.len, &back, &err), 0, "parses again: %s", err.text);
	same = back.ntensors == ntensors && back.nmeta == 2 &&
	       strcmp(back.meta[1].value, value) == 0 && strcmp(back.meta[1].key, meta[1].key) == 0;
	for (size_t i = 0; i < ntensors && same; i++)
		same = strcmp(back.tensors[i].name, names[i]) == 0 &&
		       back.tensors[i].shape[0] == i && back.tensors[i].end == tensors[i].end;
	ok(same, "%zu tensors, %zu more bytes: all came back", ntensors, pad);
	ck_st_fini(&back);
	ck_buf_fini(&out);
	free(tensors);
}

static void test_round_trips(void)
{
	struct ck_st_header none = {0};
	struct ck_buf out = CK_BUF_INIT;

	for (size_t n = 0; n < 40; n += 13)
		for (size_t pad = 500; pad < 517; pad++)
			check_round_trip(n, pad);
	is_int(ck_st_print(&none, &out, NULL), 0, "nothing at all");
	ok(strncmp(out.data + 8, "{} ", 3) == 0 && out.len == CK_ST_ALIGN, "is a header, too");
	ck_buf_fini(&out);
}

/* What the contract promises of an accepted header, computed the simple way. */
static bool is_sound(const struct ck_st_header *h, uint64_t file_bytes)
{
	uint64_t at = 0;

	for (size_t i = 0; i < h->ntensors; i++) {
		const struct ck_st_tensor *t = &h->tensors[i];
		unsigned __int128 bytes = ck_dtype_size(t->dtype);

		for (int d = 0; d < t->ndim; d++)
			bytes *= t->shape[d];
		if (t->begin != at || t->end < at || t->end - at != bytes)
			return false;
		for (size_t k = 0; k < i; k++)
			if (strcmp(t->name, h->tensors[k].name) == 0)
				return false;
		at = t->end;
	}
	return h->data_offset + at == file_bytes;
}

static void test_mutations(void)
{
	static const char json[] =
		"{\"__metadata__\":{\"a\":\"b\"},\"w\":{\"dtype\":\"U8\",\"shape\":[2,3],"
		"\"data_offsets\":[0,6]},\"v\":{\"dtype\":\"I8\",\"shape\":[4],\"data_offsets\":"
		"[6,10]},\"u\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[10,11]}} ";
	static const char bytes[] = "{}[]\",:0123456789e.- UIuvwx\\\xff";
	uint64_t state = 1234, accepted = 0, unsound = 0;

	for (int i = 0; i < 20000; i++) {
		size_t json_bytes = sizeof(json) - 1, file_bytes = 8 + json_bytes + 11;
		struct ck_st_header header = {0};
		char *copy = malloc(json_bytes);

		memcpy(copy, json, json_bytes);
		for (uint64_t k = draw(&state, 3) + 1; k > 0; k--)
			copy[draw(&state, json_bytes)] = bytes[draw(&state, sizeof(bytes) - 1)];
		if (draw(&state, 8) == 0)
			file_bytes += draw(&state, 9) - 4;
		if (ck_st_parse("f", copy, json_bytes, file_bytes, &header, NULL) == 0) {
			accepted++;
			unsound += !is_sound(&header, file_bytes);
			ck_st_fini(&header);
		}
		free(copy);
	}
	ok(accepted > 100 && accepted < 10000, "%lu of 20,000 mutations accepted",
	   (unsigned long)accepted);
	is_u64(unsound, 0, "all of those are sound");
}

int main(void)
{
	test_golden();
	test_header_bytes();
	test_fields();
	test_print_refused();
	test_print_too_large();
	test_round_trips();
	test_mutations();
	return done_testing();
}
