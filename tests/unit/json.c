#include "json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "golden.h"
#include "json_scan.h"
#include "random.h"
#include "tap.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static const struct golden golden[] = {
	{"duplicate-first-key-of-many", CK_EFORMAT, "duplicate key 'a'"},
	{"array-at-top", CK_EFORMAT, "not JSON: byte 0: '{' wanted"},
	{"array-closed-by-brace", CK_EFORMAT, "not JSON: byte 7: ',' or ']' wanted"},
	{"byte-order-mark", CK_EFORMAT, "not JSON: byte 0: byte order mark"},
	{"closed-by-bracket", CK_EFORMAT, "not JSON: byte 6: ',' or '}' wanted"},
	{"comma-first", CK_EFORMAT, "not JSON: byte 1: a key in quotes wanted"},
	{"comment", CK_EFORMAT, "not JSON: byte 6: ',' or '}' wanted"},
	{"cut-after-key", CK_EFORMAT, "not JSON: byte 4: the text ends early"},
	{"cut-after-minus", CK_EFORMAT, "not JSON: byte 6: the text ends early"},
	{"cut-in-array", CK_EFORMAT, "not JSON: byte 8: the text ends early"},
	{"cut-in-escape", CK_EFORMAT, "not JSON: byte 7: the text ends early"},
	{"cut-in-hex", CK_EFORMAT, "not JSON: byte 10: the text ends early"},
	{"cut-in-object", CK_EFORMAT, "not JSON: byte 6: the text ends early"},
	{"cut-in-string", CK_EFORMAT, "not JSON: byte 7: the text ends early"},
	{"cut-in-utf8", CK_EFORMAT, "not JSON: byte 6: not UTF-8"},
	{"cut-in-word", CK_EFORMAT, "not JSON: byte 5: a JSON value wanted"},
	{"depth-10000", CK_EFORMAT, "not JSON: byte 20: nested deeper than 16"},
	{"depth-17", CK_EFORMAT, "not JSON: byte 20: nested deeper than 16"},
	{"duplicate-empty-key", CK_EFORMAT, "duplicate key ''"},
	{"duplicate-key-deep", CK_EFORMAT, "duplicate key 'a'"},
	{"duplicate-key-escaped", CK_EFORMAT, "duplicate key 'ab'"},
	{"duplicate-key-of-many", CK_EFORMAT, "duplicate key 'k7'"},
	{"duplicate-key", CK_EFORMAT, "duplicate key 'a'"},
	{"empty", CK_EFORMAT, "not JSON: byte 0: the text ends early"},
	{"escape-hex-digit", CK_EFORMAT, "not JSON: byte 10: four hex digits wanted after \\u"},
	{"escape-nul-in-key", CK_EFORMAT, "not JSON: byte 9: \\u0000 in a string"},
	{"escape-nul", CK_EFORMAT, "not JSON: byte 13: \\u0000 in a string"},
	{"escape-unknown", CK_EFORMAT, "not JSON: byte 7: unknown escape in a string"},
	{"escape-upper-u", CK_EFORMAT, "not JSON: byte 7: unknown escape in a string"},
	{"form-feed-as-white-space", CK_EFORMAT, "not JSON: byte 1: a key in quotes wanted"},
	{"good-depth-16", 0, NULL},
	{"good-empty-object", 0, NULL},
	{"good-escapes", 0, NULL},
	{"good-every-kind-of-value", 0, NULL},
	{"good-integers-in-other-forms", 0, NULL},
	{"good-keys-that-differ-in-case", 0, NULL},
	{"good-utf8-of-each-length", 0, NULL},
	{"good-white-space-around", 0, NULL},
	{"key-in-single-quotes", CK_EFORMAT, "not JSON: byte 1: a key in quotes wanted"},
	{"key-without-quotes", CK_EFORMAT, "not JSON: byte 1: a key in quotes wanted"},
	{"line-comment", CK_EFORMAT, "not JSON: byte 7: ',' or '}' wanted"},
	{"missing-colon", CK_EFORMAT, "not JSON: byte 5: ':' wanted"},
	{"missing-comma", CK_EFORMAT, "not JSON: byte 7: ',' or '}' wanted"},
	{"missing-value", CK_EFORMAT, "not JSON: byte 5: a JSON value wanted"},
	{"newline-in-string", CK_EFORMAT, "not JSON: byte 7: control character in a string"},
	{"nul-between-values", CK_EFORMAT, "not JSON: byte 5: a JSON value wanted"},
	{"nul-in-string", CK_EFORMAT, "not JSON: byte 7: control character in a string"},
	{"null-at-top", CK_EFORMAT, "not JSON: byte 0: '{' wanted"},
	{"number-at-top", CK_EFORMAT, "not JSON: byte 0: '{' wanted"},
	{"number-dot-first", CK_EFORMAT, "not JSON: byte 5: a JSON value wanted"},
	{"number-dot-last", CK_EFORMAT, "not JSON: byte 7: a digit wanted"},
	{"number-empty-exponent", CK_EFORMAT, "not JSON: byte 7: a digit wanted"},
	{"number-exponent-sign-only", CK_EFORMAT, "not JSON: byte 8: a digit wanted"},
	{"number-hex", CK_EFORMAT, "not JSON: byte 6: ',' or '}' wanted"},
	{"number-infinity", CK_EFORMAT, "not JSON: byte 5: a JSON value wanted"},
	{"number-leading-zero", CK_EFORMAT, "not JSON: byte 6: number with a leading zero"},
	{"number-nan", CK_EFORMAT, "not JSON: byte 5: a JSON value wanted"},
	{"number-negative-leading-zero", CK_EFORMAT,
	 "not JSON: byte 7: number with a leading zero"},
	{"number-of-64-characters", CK_EFORMAT,
	 "not JSON: byte 69: number of more than 63 characters"},
	{"number-plus-sign", CK_EFORMAT, "not JSON: byte 5: a JSON value wanted"},
	{"number-two-dots", CK_EFORMAT, "not JSON: byte 8: ',' or '}' wanted"},
	{"number-two-minus-signs", CK_EFORMAT, "not JSON: byte 6: a digit wanted"},
	{"only-white-space", CK_EFORMAT, "not JSON: byte 2: the text ends early"},
	{"string-at-top", CK_EFORMAT, "not JSON: byte 0: '{' wanted"},
	{"surrogate-high-alone", CK_EFORMAT, "not JSON: byte 12: lone surrogate in a string"},
	{"surrogate-high-then-letter", CK_EFORMAT, "not JSON: byte 12: lone surrogate in a string"},
	{"surrogate-high-twice", CK_EFORMAT, "not JSON: byte 18: lone surrogate in a string"},
	{"surrogate-low-first", CK_EFORMAT, "not JSON: byte 12: lone surrogate in a string"},
	{"tab-in-string", CK_EFORMAT, "not JSON: byte 7: control character in a string"},
	{"trailing-comma-after-object", CK_EFORMAT,
	 "not JSON: byte 2: text after the end of the object"},
	{"trailing-comma-in-array", CK_EFORMAT, "not JSON: byte 8: a JSON value wanted"},
	{"trailing-comma-in-object", CK_EFORMAT, "not JSON: byte 7: a key in quotes wanted"},
	{"trailing-nul", CK_EFORMAT, "not JSON: byte 2: text after the end of the object"},
	{"trailing-object", CK_EFORMAT, "not JSON: byte 2: text after the end of the object"},
	{"utf16", CK_EFORMAT, "not JSON: byte 1: a key in quotes wanted"},
	{"utf8-bad-between-values", CK_EFORMAT, "not JSON: byte 5: a JSON value wanted"},
	{"utf8-beyond-10ffff", CK_EFORMAT, "not JSON: byte 6: not UTF-8"},
	{"utf8-byte-fe", CK_EFORMAT, "not JSON: byte 6: not UTF-8"},
	{"utf8-latin1", CK_EFORMAT, "not JSON: byte 9: not UTF-8"},
	{"utf8-lone-continuation", CK_EFORMAT, "not JSON: byte 6: not UTF-8"},
	{"utf8-overlong-four-bytes", CK_EFORMAT, "not JSON: byte 6: not UTF-8"},
	{"utf8-overlong-slash", CK_EFORMAT, "not JSON: byte 6: not UTF-8"},
	{"utf8-overlong-three-bytes", CK_EFORMAT, "not JSON: byte 6: not UTF-8"},
	{"utf8-surrogate", CK_EFORMAT, "not JSON: byte 6: not UTF-8"},
	{"word-upper-case", CK_EFORMAT, "not JSON: byte 5: a JSON value wanted"},
	{"word-with-a-tail", CK_EFORMAT, "not JSON: byte 9: ',' or '}' wanted"},
};

static void test_golden(void)
{
	golden_complete("json", golden, ROWS(golden), ".json");
	for (size_t i = 0; i < ROWS(golden); i++) {
		struct ck_buf text = golden_read("json", golden[i].name, ".json");
		struct ck_error err = CK_ERROR_INIT;
		cJSON *tree = NULL;

		is_int(ck_json_parse("f.json", text.data ? text.data : "", text.len, &tree, &err),
		       golden[i].code, "%s: code", golden[i].name);
		if (golden[i].says) {
			like(err.text, golden[i].says, "%s: text", golden[i].name);
			ok(strncmp(err.text, "f.json: ", 8) == 0, "%s: path", golden[i].name);
			ok(tree == NULL, "%s: output untouched", golden[i].name);
		} else {
			ok(cJSON_IsObject(tree), "%s: an object", golden[i].name);
		}
		cJSON_Delete(tree);
		ck_buf_fini(&text);
	}
}

/* Strings are looked at eight bytes at a time: a bad byte shows at any place. */
static void test_every_place(void)
{
	char text[] = "{\"k\":\"0123456789abcdefghijklmnopq\"}", says[64];
	const size_t begin = 6, end = sizeof(text) - 3;
	uint64_t wrong = 0, escapes = 0;

	for (size_t at = begin; at < end; at++) {
		char was;

		for (int byte = 0; byte < 256; byte++) {
			struct ck_error err = CK_ERROR_INIT;
			bool bad = byte < 0x20 || byte >= 0x80 || byte == '"';

			if (byte == '\\')
				continue;
			text[at] = (char)byte;
			snprintf(says, sizeof(says), "not JSON: byte %zu: ", at + (byte == '"'));
			wrong += ck_json_scan("f", text, sizeof(text) - 1, &err) !=
				 (bad ? CK_EFORMAT : 0);
			wrong += bad && !strstr(err.text, says);
		}
		text[at] = '\\';
		was = text[at + 1];
		text[at + 1] = '"';
		escapes += at + 1 < end && ck_json_scan("f", text, sizeof(text) - 1, NULL) == 0;
		text[at + 1] = was;
		text[at] = 'x';
	}
	is_u64(wrong, 0, "each byte at each place is accepted or refused, with its place");
	is_u64(escapes, end - begin - 1, "an escaped quote does not end a string, at any place");
}

static void test_too_large(void)
{
	struct ck_error err = CK_ERROR_INIT;
	cJSON *tree = NULL;

	/* The size is looked at before the text is. */
	is_int(ck_json_parse("f.json", "{}", CK_JSON_MAX_BYTES + 1, &tree, &err), CK_EFORMAT,
	       "more than 256 MiB are refused");
	like(err.text, "f.json: 268435457 bytes of JSON, the limit is 268435456",
	     "with both sizes");
	is_int(ck_json_parse("f.json", "[", 1, &tree, NULL), CK_EFORMAT, "err may be NULL");
}

static void test_many_keys(void)
{
	struct ck_buf text = CK_BUF_INIT;
	struct ck_error err = CK_ERROR_INIT;
	double begin = cpu_seconds();
	cJSON *tree = NULL;

	ck_buf_add_str(&text, "{\"a\":0");
	for (int i = 0; i < 100000; i++)
		ck_buf_addf(&text, ",\"layer.%d\":0", i);
	ck_buf_add_str(&text, "}");
	is_int(ck_json_parse("f.json", text.data, text.len, &tree, &err), 0, "100,000 keys");
	cJSON_Delete(tree);
	tree = NULL;
	text.data[text.len - 1] = ',';
	ck_buf_add_str(&text, "\"layer.4711\":0}");
	is_int(ck_json_parse("f.json", text.data, text.len, &tree, &err), CK_EFORMAT,
	       "100,000 keys, one of them twice");
	like(err.text, "duplicate key 'layer.4711'", "and it is named");
	ok(cpu_seconds() - begin < 5, "in %.2f s, far from quadratic", cpu_seconds() - begin);
	ck_buf_fini(&text);
}

static cJSON *parse(const char *text)
{
	struct ck_error err = CK_ERROR_INIT;
	cJSON *tree = NULL;

	is_int(ck_json_parse("f", text, strlen(text), &tree, &err), 0, "parses: %s%s", text,
	       err.text);
	return tree;
}

static void test_integers(void)
{
	static const struct {
		const char *text;
		uint64_t max;
		const char *says; /* NULL: accepted */
		uint64_t want;
	} rows[] = {
		{"{}", 9, "f: k: missing, an integer wanted", 0},
		{"{\"K\":1}", 9, "f: k: missing", 0},
		{"{\"k\":null}", 9, "f: k: null, an integer wanted", 0},
		{"{\"k\":\"1\"}", 9, "f: k: a string, an integer wanted", 0},
		{"{\"k\":true}", 9, "f: k: a boolean, an integer wanted", 0},
		{"{\"k\":[1]}", 9, "f: k: an array, an integer wanted", 0},
		{"{\"k\":{}}", 9, "f: k: an object, an integer wanted", 0},
		{"{\"k\":-1}", 9, "f: k: -1, an integer from 0 to 9 wanted", 0},
		{"{\"k\":0.5}", 9, "f: k: 0.5, an integer from 0 to 9 wanted", 0},
		{"{\"k\":10}", 9, "f: k: 10, an integer from 0 to 9 wanted", 0},
		{"{\"k\":1e999}", UINT64_MAX, "f: k: inf, an integer from 0 to 9007199254740991",
		 0},
		{"{\"k\":9007199254740992}", UINT64_MAX, "f: k: 9007199254740992, an integer", 0},
		{"{\"k\":9007199254740993}", UINT64_MAX, "to 9007199254740991 wanted", 0},
		{"{\"k\":18446744073709551616}", UINT64_MAX, "f: k: 1.8446744073709552e+19", 0},
		{"{\"k\":9007199254740991}", UINT64_MAX, NULL, UINT64_C(9007199254740991)},
		{"{\"k\":9007199254740990}", UINT64_MAX, NULL, UINT64_C(9007199254740990)},
		{"{\"k\":0}", 0, NULL, 0},
		{"{\"k\":-0}", 9, NULL, 0},
		{"{\"k\":9}", 9, NULL, 9},
		{"{\"k\":5.0}", 9, NULL, 5},
		{"{\"k\":1e3}", 1000, NULL, 1000},
		{"{\"k\":120e-1}", 99, NULL, 12},
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct ck_error err = CK_ERROR_INIT;
		cJSON *tree = parse(rows[i].text);
		uint64_t value = 77;

		is_int(ck_json_u64("f", tree, "k", rows[i].max, &value, &err),
		       rows[i].says ? CK_EFORMAT : 0, "integer %s: code", rows[i].text);
		like(err.text, rows[i].says ? rows[i].says : "", "integer %s: text", rows[i].text);
		is_u64(value, rows[i].says ? 77 : rows[i].want, "integer %s: value", rows[i].text);
		cJSON_Delete(tree);
	}
}

static void test_doubles(void)
{
	static const struct {
		const char *text;
		const char *says;
		double want;
	} rows[] = {
		{"{}", "f: k: missing, a number wanted", 0},
		{"{\"k\":\"1\"}", "f: k: a string, a number wanted", 0},
		{"{\"k\":-0.5}", "f: k: -0.5, a finite number from 0 wanted", 0},
		{"{\"k\":1e999}", "f: k: inf, a finite number", 0},
		{"{\"k\":1.5}", NULL, 1.5},
		{"{\"k\":0}", NULL, 0},
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct ck_error err = CK_ERROR_INIT;
		cJSON *tree = parse(rows[i].text);
		double value = 77;

		is_int(ck_json_double("f", tree, "k", &value, &err), rows[i].says ? CK_EFORMAT : 0,
		       "number %s: code", rows[i].text);
		like(err.text, rows[i].says ? rows[i].says : "", "number %s: text", rows[i].text);
		ok(value == (rows[i].says ? 77 : rows[i].want), "number %s: value", rows[i].text);
		cJSON_Delete(tree);
	}
}

static void test_other_getters(void)
{
	cJSON *tree = parse("{\"b\":true,\"s\":\"four\",\"a\":[1],\"o\":{},\"n\":null}");
	struct ck_error err = CK_ERROR_INIT;
	const cJSON *node = NULL;
	const char *text = NULL;
	bool flag = false;

	is_int(ck_json_bool("f", tree, "b", &flag, &err), 0, "boolean");
	ok(flag, "boolean: value");
	is_int(ck_json_bool("f", tree, "s", &flag, &err), CK_EFORMAT, "boolean: a string is none");
	is_str(err.text, "f: s: a string, a boolean wanted", "boolean: text");
	is_int(ck_json_string("f", tree, "s", 4, &text, &err), 0, "string of just the limit");
	is_str(text, "four", "string: value");
	text = NULL;
	is_int(ck_json_string("f", tree, "s", 3, &text, &err), CK_EFORMAT, "string too long");
	is_str(err.text, "f: s: a string of 4 bytes, the limit is 3", "string: text");
	ok(text == NULL, "string: output untouched");
	is_int(ck_json_string(NULL, tree, "a", 3, &text, &err), CK_EFORMAT, "an array is none");
	is_str(err.text, "a: an array, a string wanted", "without `where` the key comes first");
	is_int(ck_json_array("f", tree, "a", &node, &err), 0, "array");
	ok(cJSON_IsArray(node), "array: value");
	is_int(ck_json_array("f", tree, "o", &node, &err), CK_EFORMAT, "array: an object is none");
	is_int(ck_json_object("f", tree, "o", &node, &err), 0, "object");
	ok(cJSON_IsObject(node), "object: value");
	is_int(ck_json_object("f", tree, "x", &node, &err), CK_EFORMAT, "object: missing");
	is_str(err.text, "f: x: missing, an object wanted", "object: text");
	ok(ck_json_has(tree, "s"), "has: there");
	ok(!ck_json_has(tree, "n"), "has: null is not there");
	ok(!ck_json_has(tree, "x"), "has: missing");
	cJSON_Delete(tree);
}

static void test_arrays_of_integers(void)
{
	static const struct {
		const char *text, *says;
		size_t count;
	} rows[] = {
		{"{\"k\":1}", "k: a number, an array wanted", 0},
		{"{\"k\":[1,2,3,4]}", "k: 4 values, the limit is 3", 0},
		{"{\"k\":[1,\"2\"]}", "k: a string, an integer wanted", 0},
		{"{\"k\":[1,-2]}", "k: -2, an integer from 0", 0},
		{"{\"k\":[1.5]}", "k: 1.5, an integer from 0", 0},
		{"{\"k\":[[1]]}", "k: an array, an integer wanted", 0},
		{"{\"k\":[]}", NULL, 0},
		{"{\"k\":[7,8,9]}", NULL, 3},
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct ck_error err = CK_ERROR_INIT;
		cJSON *tree = parse(rows[i].text);
		uint64_t values[3] = {0};
		size_t count = 77;

		is_int(ck_json_u64_array(NULL, tree, "k", 3, values, &count, &err),
		       rows[i].says ? CK_EFORMAT : 0, "array %s: code", rows[i].text);
		like(err.text, rows[i].says ? rows[i].says : "", "array %s: text", rows[i].text);
		is_u64(count, rows[i].says ? 77 : rows[i].count, "array %s: count", rows[i].text);
		if (count == 3)
			ok(values[0] == 7 && values[1] == 8 && values[2] == 9, "array: values");
		cJSON_Delete(tree);
	}
}

static void test_user(void)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"{\"seed\":18446744073709551615}",
		 "u: seed: 1.8446744073709552e+19 is beyond 2^53"},
		{"{\"a\":{\"b\":[1,{\"c\":9007199254740992}]}}",
		 "u: c: 9007199254740992 is beyond"},
		{"{\"a\":[-9007199254740992]}", "u: array: -9007199254740992 is beyond 2^53"},
		{"{\"a\":1e999}", "u: a: inf is beyond the numbers"},
		{"{\"a\":[-1e999]}", "u: array: -inf is beyond the numbers"},
		{"{\"a 1\\\"2\":[\"3\",{\"4\":-5.5e15}],\"c\":9007199254740992}",
		 "u: c: 9007199254740992 is beyond"},
		{"{\"a\":1e20,\"b\":[-1.5e300,1E+22,9007199254740993.0],\"c\": 1}", NULL},
		{"{\"a\":9007199254740991,\"b\":[-1.5,0.1,1e-300],\"c\":null,\"d\":\"1e99\"}",
		 NULL},
		{"{}", NULL},
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct ck_error err = CK_ERROR_INIT;
		cJSON *tree = parse(rows[i].text);

		is_int(ck_json_check_user("u", tree, rows[i].text, &err),
		       rows[i].says ? CK_EFORMAT : 0, "user %s: code", rows[i].text);
		like(err.text, rows[i].says ? rows[i].says : "", "user %s: text", rows[i].text);
		cJSON_Delete(tree);
	}
}

static void test_show(void)
{
	char out[CK_JSON_SHOW], longer[2000];

	is_str(ck_json_show(out, ""), "", "show: nothing");
	is_str(ck_json_show(out, "a\x1b[2J\nb\x7f"), "a\\x1b[2J\\x0ab\\x7f", "show: controls");
	is_str(ck_json_show(out, "\xc3\xa9\xf0\x9f\x98\x80"), "\xc3\xa9\xf0\x9f\x98\x80",
	       "show: UTF-8 stays");
	is_str(ck_json_show(out, "\xc3"), "\\xc3", "show: cut UTF-8");
	is_str(ck_json_show(out, "\xc2\x9b"), "\\xc2\\x9b", "show: C1 control");
	memset(longer, 'n', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	ck_json_show(out, longer);
	ok(strlen(out) < CK_JSON_SHOW, "show: bounded");
	is_str(out + strlen(out) - 4, "n...", "show: marked as cut");
	longer[249] = '\0';
	is_str(ck_json_show(out, longer), longer, "show: not cut when it fits");
}

/* Is an accepted tree what the contract promises? Looked at the simple way. */
static bool tree_is_sound(const cJSON *tree, int depth)
{
	bool container = cJSON_IsObject(tree) || cJSON_IsArray(tree);

	if (container && depth > CK_JSON_MAX_DEPTH)
		return false;
	for (const cJSON *a = tree->child; a; a = a->next) {
		for (const cJSON *b = a->next; b && cJSON_IsObject(tree); b = b->next)
			if (strcmp(a->string, b->string) == 0)
				return false;
		if (!tree_is_sound(a, depth + container))
			return false;
	}
	return true;
}

static void test_mutations(void)
{
	static const char valid[] = "{\"schema_version\":1,\"a\":[1,2.5e-3,[[]],{\"b\":"
				    "\"\\u00e9\\ud83d\\ude00\xc3\xa9\"}],"
				    "\"t\":true,\"n\":null,\"a2\":{\"x\":{\"y\":-0.0}}}";
	static const char bytes[] = "{}[]\",:\\u0123456789eE+-.tfnaxyb \xc3\xff\x01";
	uint64_t state = 4711, accepted = 0, unsound = 0;

	for (int i = 0; i < 20000; i++) {
		bool cut = draw(&state, 8) == 0;
		size_t length = cut ? draw(&state, sizeof(valid)) : sizeof(valid) - 1;
		char *text = malloc(length + !length);
		cJSON *tree = NULL;

		memcpy(text, valid, length);
		for (uint64_t k = draw(&state, 3) + 1; k > 0 && length; k--)
			text[draw(&state, length)] = bytes[draw(&state, sizeof(bytes) - 1)];
		/* No terminator behind the text: reading past the end shows under ASan. */
		if (ck_json_parse("f", text, length, &tree, NULL) == 0) {
			accepted++;
			unsound += !cJSON_IsObject(tree) || !tree_is_sound(tree, 1);
			cJSON_Delete(tree);
		}
		free(text);
	}
	ok(accepted > 100 && accepted < 15000, "%lu of 20,000 mutations accepted",
	   (unsigned long)accepted);
	is_u64(unsound, 0, "all of those are sound");
}

int main(void)
{
	test_golden();
	test_every_place();
	test_too_large();
	test_many_keys();
	test_integers();
	test_doubles();
	test_other_getters();
	test_arrays_of_integers();
	test_user();
	test_show();
	test_mutations();
	return done_testing();
}
