#include "buf.h"

#include <stdlib.h>
#include <string.h>

#include "tap.h"

static void test_failure_is_remembered(void)
{
	struct ck_buf buf = CK_BUF_INIT;
	struct ck_error err = CK_ERROR_INIT;

	ck_buf_add_str(&buf, "abc");
	ok(ck_buf_reserve(&buf, SIZE_MAX) == NULL, "the whole address space cannot be reserved");
	ok(buf.failed, "which is remembered");
	ck_buf_add_str(&buf, "def");
	ck_buf_addf(&buf, "%d", 1);
	ck_buf_add_u64(&buf, 1);
	ok(ck_buf_reserve(&buf, 1) == NULL, "and later additions fail");
	is_str(buf.data, "abc", "the content is as before");
	is_int(ck_buf_check(&buf, &err), CK_ENOMEM, "ck_buf_check tells");
	like(err.text, "out of memory: a buffer of 3 bytes", "with the number");
	is_int(ck_buf_check(&buf, NULL), CK_ENOMEM, "ck_buf_check without a struct");

	ck_buf_clear(&buf);
	ck_buf_add_str(&buf, "x");
	is_int(ck_buf_check(&buf, &err), CK_OK, "ck_buf_clear forgets the failure");
	is_str(buf.data, "x", "and the content");
	ck_buf_fini(&buf);
	ok(buf.data == NULL && buf.len == 0 && buf.capacity == 0, "ck_buf_fini leaves it empty");
	ck_buf_fini(&buf);
}

static void test_sizes_that_overflow(void)
{
	static const size_t sizes[] = {SIZE_MAX - 1, SIZE_MAX - 2, SIZE_MAX / 2, (size_t)1 << 46};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct ck_buf buf = CK_BUF_INIT;

		ck_buf_add_str(&buf, "ab");
		ok(ck_buf_reserve(&buf, sizes[i]) == NULL, "%zu bytes are refused", sizes[i]);
		ck_buf_fini(&buf);
	}
}

static void test_empty(void)
{
	struct ck_buf buf = CK_BUF_INIT;

	ok(buf.data == NULL, "nothing added: no memory");
	is_int(ck_buf_check(&buf, NULL), CK_OK, "and no failure");
	ck_buf_clear(&buf);
	ck_buf_add(&buf, NULL, 0);
	is_str(buf.data, "", "adding nothing makes an empty text");
	ok(ck_buf_reserve(&buf, 0) == buf.data, "room for nothing is the end");
	ck_buf_fini(&buf);
}

static void test_growth(void)
{
	struct ck_buf buf = CK_BUF_INIT;
	bool terminated = true, right = true;

	for (unsigned i = 0; i < 100000; i++) {
		ck_buf_add(&buf, &(const char){(char)('a' + i % 26)}, 1);
		terminated = terminated && buf.data[buf.len] == '\0';
	}
	for (unsigned i = 0; i < 100000; i++)
		right = right && buf.data[i] == (char)('a' + i % 26);
	is_u64(buf.len, 100000, "100000 single bytes");
	ok(terminated, "a NUL behind each of them");
	ok(right, "all are there");
	ok(buf.capacity > buf.len, "the NUL lies within the capacity");
	ck_buf_fini(&buf);
}

static void test_reserve(void)
{
	struct ck_buf buf = CK_BUF_INIT;
	char *room;

	ck_buf_add_str(&buf, "ab");
	room = ck_buf_reserve(&buf, 3);
	memcpy(room, "cde", 3);
	is_u64(buf.len, 2, "reserving does not add");
	buf.len += 3;
	is_str(buf.data, "abcde", "what was written is there, with its NUL");
	ck_buf_fini(&buf);
}

static void test_add(void)
{
	struct ck_buf buf = CK_BUF_INIT;
	char large[5000];

	memset(large, 'x', sizeof(large));
	large[sizeof(large) - 1] = '\0';
	ck_buf_add(&buf, "a\0b", 3);
	is_u64(buf.len, 3, "bytes may be NUL");
	ok(memcmp(buf.data, "a\0b", 4) == 0, "and are kept");
	ck_buf_clear(&buf);
	ck_buf_addf(&buf, "%s-%d-%s", "n", 42, large);
	is_u64(buf.len, 5 + sizeof(large) - 1, "a formatted text longer than the capacity");
	ok(strncmp(buf.data, "n-42-xxx", 8) == 0, "is right");
	ck_buf_clear(&buf);
	ck_buf_addf(&buf, "%s", "");
	is_str(buf.data, "", "an empty formatted text");
	ck_buf_fini(&buf);
}

static void test_little_endian(void)
{
	static const unsigned char want[] = {0x04, 0x03, 0x02, 0xf1, 0x08, 0x07,
					     0x06, 0x05, 0x04, 0x03, 0x02, 0xf1};
	struct ck_buf buf = CK_BUF_INIT;
	struct ck_reader reader;

	ck_buf_add_u32(&buf, 0xf1020304u);
	ck_buf_add_u64(&buf, UINT64_C(0xf102030405060708));
	is_u64(buf.len, sizeof(want), "4 and 8 bytes");
	ok(memcmp(buf.data, want, sizeof(want)) == 0, "lowest byte first");

	reader = (struct ck_reader){.data = (const unsigned char *)buf.data, .len = buf.len};
	is_u64(ck_read_u32(&reader), 0xf1020304u, "u32 read back");
	is_u64(ck_read_u64(&reader), UINT64_C(0xf102030405060708), "u64 read back");
	is_u64(reader.pos, 12, "at the end");
	ok(!reader.failed, "without failure");
	ck_buf_fini(&buf);
}

static void test_reader_beyond_the_end(void)
{
	static const unsigned char data[] = {1, 2, 3, 4, 5, 6, 7};
	struct ck_reader reader = {.data = data, .len = sizeof(data)};

	ok(ck_read_bytes(&reader, SIZE_MAX) == NULL, "more bytes than there can be");
	ok(reader.failed, "is a failure");
	is_u64(reader.pos, 0, "that moves nothing");
	is_u64(ck_read_u32(&reader), 0, "and is remembered: u32 is 0");
	is_u64(ck_read_u64(&reader), 0, "u64 is 0");
	ok(ck_read_bytes(&reader, 0) == NULL, "no bytes are NULL");

	reader = (struct ck_reader){.data = data, .len = sizeof(data)};
	is_u64(ck_read_u64(&reader), 0, "8 of 7 bytes");
	ok(reader.failed, "fail");

	reader = (struct ck_reader){.data = data, .len = 3};
	is_u64(ck_read_u32(&reader), 0, "4 of 3 bytes");
	ok(reader.failed, "fail");

	reader = (struct ck_reader){.data = data, .len = sizeof(data)};
	ok(ck_read_bytes(&reader, 7) == data, "all bytes");
	ok(!reader.failed, "are fine");
	ok(ck_read_bytes(&reader, 0) == data + 7, "no bytes at the end too");
	ok(ck_read_bytes(&reader, 1) == NULL, "one more is not");

	reader = (struct ck_reader){.data = NULL, .len = 0};
	ok(ck_read_bytes(&reader, 0) == NULL && !reader.failed, "nothing of nothing");
	ok(ck_read_bytes(&reader, 1) == NULL && reader.failed, "something of nothing");
}

struct text_row {
	const char *text;
	const char *want;
};

static void test_json_string(void)
{
	static const struct text_row rows[] = {
		{"", "\"\""},
		{"plain", "\"plain\""},
		{"a\"b\\c", "\"a\\\"b\\\\c\""},
		{"/slash", "\"/slash\""},
		{"\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\""},
		{"\x01\x1b[31m\x1f\x7f", "\"\\u0001\\u001b[31m\\u001f\\u007f\""},
		{"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
		 "\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80\""},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ck_buf buf = CK_BUF_INIT;

		ck_buf_add_json_string(&buf, rows[i].text);
		is_str(buf.data, rows[i].want, "JSON string %zu", i);
		ck_buf_fini(&buf);
	}
}

static void test_escaped(void)
{
	static const struct text_row rows[] = {
		{"plain \\ \"text\"", "plain \\ \"text\""},
		{"\x1b[31mred\n", "\\x1b[31mred\\x0a"},
		{"\x7f", "\\x7f"},
		{"\xc3\xbc \xe2\x82\xac \xf0\x9f\x98\x80",
		 "\xc3\xbc \xe2\x82\xac \xf0\x9f\x98\x80"},
		{"C1 \xc2\x9b"
		 "31m",
		 "C1 \\xc2\\x9b31m"},
		{"\xc2\xa0", "\xc2\xa0"},
		{"lone \x80 \xff", "lone \\x80 \\xff"},
		{"overlong \xc0\xaf", "overlong \\xc0\\xaf"},
		{"surrogate \xed\xa0\x80", "surrogate \\xed\\xa0\\x80"},
		{"cut \xe2\x82", "cut \\xe2\\x82"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ck_buf buf = CK_BUF_INIT;

		ck_buf_add_escaped(&buf, rows[i].text);
		is_str(buf.data, rows[i].want, "text for people %zu", i);
		ck_buf_fini(&buf);
	}
}

int main(void)
{
	test_failure_is_remembered();
	test_sizes_that_overflow();
	test_empty();
	test_growth();
	test_reserve();
	test_add();
	test_little_endian();
	test_reader_beyond_the_end();
	test_json_string();
	test_escaped();
	return done_testing();
}
