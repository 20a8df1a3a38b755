#include "tensor.h"

#include <string.h>

#include "tap.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static void test_dtypes(void)
{
	static const struct {
		int dtype;
		const char *name;
		size_t bytes;
	} rows[] = {
		{CK_BOOL, "BOOL", 1},
		{CK_U8, "U8", 1},
		{CK_I8, "I8", 1},
		{CK_I16, "I16", 2},
		{CK_I32, "I32", 4},
		{CK_I64, "I64", 8},
		{CK_F16, "F16", 2},
		{CK_BF16, "BF16", 2},
		{CK_F32, "F32", 4},
		{CK_F64, "F64", 8},
		{CK_U16, "U16", 2},
		{CK_U32, "U32", 4},
		{CK_U64, "U64", 8},
		{CK_C64, "C64", 8},
		{CK_F8_E4M3, "F8_E4M3", 1},
		{CK_F8_E5M2, "F8_E5M2", 1},
		{CK_F8_E8M0, "F8_E8M0", 1},
		{CK_F8_E4M3FNUZ, "F8_E4M3FNUZ", 1},
		{CK_F8_E5M2FNUZ, "F8_E5M2FNUZ", 1},
	};
	static const char *const unknown[] = {"",        "f32",  "F32 ",    "F4",    "F128",
					      "float32", "C128", "F6_E2M3", "\x1bX", "I4"};
	struct ck_error err = CK_ERROR_INIT;
	enum ck_dtype dtype;

	is_int(ROWS(rows), CK_DTYPES, "a row for every dtype");
	for (size_t i = 0; i < ROWS(rows); i++) {
		is_int(rows[i].dtype, (int)i, "%s: value as in ckpt.h", rows[i].name);
		is_str(ck_dtype_name(rows[i].dtype), rows[i].name, "%s: name", rows[i].name);
		is_u64(ck_dtype_size(rows[i].dtype), rows[i].bytes, "%s: size", rows[i].name);
		dtype = (enum ck_dtype)((i + 1) % CK_DTYPES);
		is_int(ck_dtype_parse(rows[i].name, &dtype, &err), 0, "%s: parses", rows[i].name);
		is_int(dtype, rows[i].dtype, "%s: to itself", rows[i].name);
	}
	for (size_t i = 0; i < ROWS(unknown); i++)
		is_int(ck_dtype_parse(unknown[i], &dtype, &err), CK_EFORMAT, "'%s' is no dtype",
		       i == 8 ? "control" : unknown[i]);
	is_str(err.text, "unknown dtype 'I4'", "text");
	is_int(ck_dtype_parse("\x1bX", &dtype, &err), CK_EFORMAT, "control character");
	is_str(err.text, "unknown dtype '\\x1bX'", "is shown escaped");
	is_u64(ck_dtype_size(-1), 0, "-1 has no size");
	is_u64(ck_dtype_size(CK_DTYPES), 0, "nor has the number behind the last");
	ok(ck_dtype_name(-1) == NULL && ck_dtype_name(CK_DTYPES) == NULL, "nor a name");
}

static void test_arithmetic(void)
{
	uint64_t out = 77;

	ok(!ck_mul_u64(UINT64_C(1) << 32, UINT64_C(1) << 32, &out), "2^32 * 2^32 overflows");
	ok(!ck_add_u64(UINT64_MAX, 1, &out), "2^64 - 1 + 1 overflows");
	is_u64(out, 77, "output untouched");
	ok(ck_mul_u64(UINT64_C(1) << 32, (UINT64_C(1) << 32) - 1, &out), "just below fits");
	is_u64(out, UINT64_MAX - UINT32_MAX, "product");
	ok(ck_add_u64(UINT64_MAX, 0, &out), "sum fits");
	is_u64(out, UINT64_MAX, "sum");
}

static void test_volume(void)
{
	static const struct {
		int ndim;
		uint64_t shape[4];
		bool fits;
		uint64_t want;
	} rows[] = {
		{1, {UINT64_C(1) << 63}, false, 0},
		{1, {UINT64_MAX}, false, 0},
		{2, {UINT64_C(1) << 32, UINT64_C(1) << 31}, false, 0},
		{2, {UINT64_C(1) << 32, UINT64_C(1) << 32}, false, 0},
		{3, {UINT64_C(1) << 40, UINT64_C(1) << 40, 1}, false, 0},
		{0, {0}, true, 1},
		{1, {INT64_MAX}, true, INT64_MAX},
		{2, {UINT64_C(1) << 31, UINT64_C(1) << 31}, true, UINT64_C(1) << 62},
		{3, {UINT64_MAX, UINT64_MAX, 0}, true, 0},
		{3, {0, UINT64_MAX, UINT64_MAX}, true, 0},
		{4, {2, 3, 5, 7}, true, 210},
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		uint64_t volume = 77;

		ok(ck_volume(rows[i].ndim, rows[i].shape, &volume) == rows[i].fits,
		   "volume %zu: fits or not", i);
		is_u64(volume, rows[i].fits ? rows[i].want : 77, "volume %zu: value", i);
	}
}

static struct ck_box box1(uint64_t offset, uint64_t extent)
{
	return (struct ck_box){.ndim = 1, .offset = {offset}, .extent = {extent}};
}

static struct ck_box box2(uint64_t y, uint64_t x, uint64_t h, uint64_t w)
{
	return (struct ck_box){.ndim = 2, .offset = {y, x}, .extent = {h, w}};
}

static void test_boxes(void)
{
	struct ck_box scalar = {.ndim = 0}, a = box2(0, 4, 2, 4), b = box2(1, 7, 5, 5);
	struct ck_box high = box1(UINT64_MAX - 1, 1);

	is_u64(ck_box_volume(&scalar), 1, "a scalar has one element");
	is_u64(ck_box_volume(&a), 8, "volume");
	ok(!ck_box_empty(&scalar) && !ck_box_empty(&a), "not empty");
	ok(ck_box_empty(&(struct ck_box){.ndim = 2, .extent = {3, 0}}), "empty");

	ok(ck_box_overlap(&scalar, &scalar), "scalars overlap");
	ok(ck_box_overlap(&a, &b) && ck_box_overlap(&b, &a), "overlap in one element");
	b.offset[1] = 8;
	ok(!ck_box_overlap(&a, &b) && !ck_box_overlap(&b, &a), "touching is not overlapping");
	b = box2(2, 4, 1, 1);
	ok(!ck_box_overlap(&a, &b), "below it");
	b = box2(0, 4, 0, 4);
	ok(!ck_box_overlap(&a, &b) && !ck_box_overlap(&b, &b), "an empty box overlaps nothing");
	ok(ck_box_overlap(&high, &high), "no wrap at the end of the range");
	b = box1(0, UINT64_MAX);
	ok(ck_box_overlap(&high, &b), "nor here");

	ok(ck_box_equal(&a, &a), "equal");
	b = a;
	b.extent[1]++;
	ok(!ck_box_equal(&a, &b), "extents differ");
	ok(ck_box_cmp(&a, &b) < 0 && ck_box_cmp(&b, &a) > 0, "order by extent, last");
	b = a;
	b.offset[0]++;
	b.extent[0] = 0;
	ok(ck_box_cmp(&a, &b) < 0 && ck_box_cmp(&b, &a) > 0, "order by offset, first");
	ok(ck_box_cmp(&scalar, &a) < 0, "fewer dimensions come first");
}

static void test_inside(void)
{
	static const uint64_t shape[] = {4, 8};
	struct ck_box scalar = {.ndim = 0}, box = box2(0, 0, 4, 8);

	ok(ck_box_inside(&scalar, NULL), "a scalar is inside");
	ok(ck_box_inside(&box, shape), "the whole is inside");
	box = box2(3, 7, 1, 1);
	ok(ck_box_inside(&box, shape), "the last element is");
	box = box2(4, 8, 0, 0);
	ok(ck_box_inside(&box, shape), "nothing, at the end, is");
	box = box2(3, 7, 2, 1);
	ok(!ck_box_inside(&box, shape), "one row too many is not");
	box = box2(5, 0, 0, 8);
	ok(!ck_box_inside(&box, shape), "nothing, behind the end, is not");
	box = box2(1, 0, UINT64_MAX, 8);
	ok(!ck_box_inside(&box, shape), "offset + extent = 2^64 is not");
	box = box2(0, UINT64_MAX, 4, 2);
	ok(!ck_box_inside(&box, shape), "a large offset is not");
}

static void test_print(void)
{
	static const uint64_t shape[] = {4, 16, 0};
	struct ck_box box = box2(0, 8, 4, 8), scalar = {.ndim = 0};
	struct ck_buf text = CK_BUF_INIT;

	ck_box_print(&text, &box);
	ck_box_print(&text, &scalar);
	ck_shape_print(&text, 3, shape);
	ck_shape_print(&text, 0, NULL);
	is_str(text.data, "[0:4, 8:16][][4, 16, 0][]", "boxes and shapes");
	ck_buf_fini(&text);
}

static void test_names_refused(void)
{
	static const struct {
		const char *name, *says;
	} rows[] = {
		{"", "item name is empty"},
		{"a\nb", "item name 'a\\x0ab': byte 1: a control character"},
		{"a\x7f", "byte 1: a control character"},
		{"abc\xc2\x85", "byte 3: a control character"},
		{"\xff", "item name '\\xff': byte 0: not UTF-8"},
		{"ab\xed\xa0\x80", "byte 2: not UTF-8"},
		{"ab\xc3", "byte 2: not UTF-8"},
		{"__metadata__", "item name '__metadata__' is reserved by safetensors"},
		{"rank-0/w", "item name 'rank-0/w': names of the form rank-<number>/..."},
		{"rank-00012/", "are reserved"},
		{"rank-99999999999999999999/w", "are reserved"},
	};
	struct ck_error err = CK_ERROR_INIT;
	char name[CK_ITEM_NAME_MAX + 2];

	for (size_t i = 0; i < ROWS(rows); i++) {
		is_int(ck_item_name_check(rows[i].name, &err), CK_EARG, "name %zu is refused", i);
		like(err.text, rows[i].says, "name %zu: text", i);
	}
	memset(name, 'n', sizeof(name));
	name[CK_ITEM_NAME_MAX + 1] = '\0';
	is_int(ck_item_name_check(name, &err), CK_EARG, "1,025 bytes are refused");
	like(err.text, "...': 1025 bytes, the limit is 1024", "text");
	name[CK_ITEM_NAME_MAX] = '\0';
	is_int(ck_item_name_check(name, &err), 0, "1,024 bytes are fine");
}

static void test_names(void)
{
	static const char *const names[] = {
		"w",       "layers.0.weight", "a b/c:d\"\\", "\xc3\xa9\xe2\x82\xac",
		"rank-/w", "rank-0",          "rank-0x/w",   "rank-a/w",
		"Rank-0/", "xrank-0/w",       "__metadata",  "\xf0\x9f\x98\x80",
		"rank-1",
	};

	for (size_t i = 0; i < ROWS(names); i++)
		is_int(ck_item_name_check(names[i], NULL), 0, "name '%s' is fine", names[i]);
}

static void test_box_run(void)
{
	static const struct {
		struct ck_box inner;
		bool run;
		uint64_t at;
	} rows[] = {
		{{3, {1, 10, 20}, {1, 4, 5}}, true, 0},  {{3, {1, 12, 20}, {1, 2, 5}}, true, 10},
		{{3, {2, 11, 22}, {1, 1, 3}}, true, 27}, {{3, {1, 10, 20}, {2, 4, 5}}, true, 0},
		{{3, {1, 10, 20}, {1, 4, 4}}, false, 0}, {{3, {1, 10, 20}, {2, 3, 5}}, false, 0},
		{{3, {0, 10, 20}, {1, 4, 5}}, false, 0}, {{3, {1, 12, 20}, {1, 3, 5}}, false, 0},
		{{3, {1, 15, 20}, {1, 1, 5}}, false, 0}, {{2, {1, 10}, {1, 4}}, false, 0},
		{{3, {2, 13, 24}, {1, 1, 1}}, true, 39},
	};
	const struct ck_box outer = {3, {1, 10, 20}, {2, 4, 5}}, scalar = {0};
	uint64_t at = 77;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		at = 77;
		is_int(ck_box_run(&outer, &rows[i].inner, &at), rows[i].run, "run %zu", i);
		is_u64(at, rows[i].run ? rows[i].at : 77, "run %zu: begins there", i);
	}
	ok(ck_box_run(&scalar, &scalar, &at) && at == 0, "a scalar in itself");
}

int main(void)
{
	test_box_run();
	test_dtypes();
	test_arithmetic();
	test_volume();
	test_boxes();
	test_inside();
	test_print();
	test_names_refused();
	test_names();
	return done_testing();
}
