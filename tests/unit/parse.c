#include "parse.h"

#include <math.h>
#include <string.h>

#include "tap.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static const char *shown(const char *text)
{
	return text ? text : "(NULL)";
}

static void test_bytes(void)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{NULL, "--staging: no value: a size such as"},
		{"", "--staging: empty: a size such as"},
		{"512", "--staging: 512: a number needs a unit: 512M or 512G"},
		{"0M", "--staging: 0M: not between 1B and"},
		{"M", "--staging: M: not a size such as 512M, 2G"},
		{"-1M", "--staging: -1M: not a size"},
		{"1.5G", "not a size"},
		{"2 G", "not a size"},
		{"2Gb", "not a size"},
		{"2g", "not a size"},
		{"2GiBs", "not a size"},
		{"2P", "not a size"},
		{"2\n", "--staging: 2?: not a size"},
		{"8192T", "--staging: 8192T: not between"},
		{"99999999999999999999B", "not between 1B and 9007199254740991B"},
	};
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{"1B", 1},
		{"4k", 4096},
		{"4K", 4096},
		{"512M", 536870912},
		{"2G", 2147483648},
		{"2GiB", 2147483648},
		{"5GB", 5000000000},
		{"500MB", 500000000},
		{"3kB", 3000},
		{"3KB", 3000},
		{"8191T", UINT64_C(8191) << 40},
		{"9007199254740991B", (UINT64_C(1) << 53) - 1},
	};

	for (size_t i = 0; i < ROWS(bad); i++) {
		struct ck_error err = CK_ERROR_INIT;
		uint64_t bytes = 7;

		is_int(ck_parse_bytes("--staging", bad[i].text, &bytes, &err), CK_EARG, "bytes: %s",
		       shown(bad[i].text));
		like(err.text, bad[i].says, "... and told why");
		is_u64(bytes, 7, "... and nothing is changed");
	}
	for (size_t i = 0; i < ROWS(good); i++) {
		uint64_t bytes = 0;

		is_int(ck_parse_bytes("--staging", good[i].text, &bytes, NULL), 0, "bytes: %s",
		       good[i].text);
		is_u64(bytes, good[i].bytes, "... as many");
	}
}

static void test_u64_refused(void)
{
	static const struct {
		const char *text;
		uint64_t min, max;
		const char *says;
	} rows[] = {
		{NULL, 0, 9, "--keep: no value: a whole number is wanted"},
		{"", 0, 9, "--keep: empty: a whole number is wanted"},
		{"-1", 0, 9, "--keep: -1: not a whole number"},
		{"+1", 0, 9, "--keep: +1: not a whole number"},
		{" 1", 0, 9, "not a whole number"},
		{"1 ", 0, 9, "not a whole number"},
		{"1.5", 0, 9, "not a whole number"},
		{"0x10", 0, 99, "not a whole number"},
		{"1e3", 0, 9999, "not a whole number"},
		{"three", 0, 9, "--keep: three: not a whole number"},
		{"0", 1, 9, "--keep: 0: not between 1 and 9"},
		{"10", 1, 9, "--keep: 10: not between 1 and 9"},
		{"18446744073709551616", 0, UINT64_MAX, "larger than 18446744073709551615"},
		{"99999999999999999999999", 0, 9, "larger than 9"},
		{"18446744073709551615", 0, 9, "not between 0 and 9"},
		{"\x1b[31m7", 0, 9, "--keep: ?[31m7: not a whole number"},
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct ck_error err = CK_ERROR_INIT;
		uint64_t value = 77;

		is_int(ck_parse_u64("--keep", rows[i].text, rows[i].min, rows[i].max, &value, &err),
		       CK_EARG, "number '%s' is refused", shown(rows[i].text));
		like(err.text, rows[i].says, "number '%s': text", shown(rows[i].text));
		is_u64(value, 77, "number '%s': output untouched", shown(rows[i].text));
	}
}

static void test_u64(void)
{
	static const struct {
		const char *text;
		uint64_t want;
	} rows[] = {
		{"0", 0},
		{"7", 7},
		{"007", 7},
		{"9007199254740991", UINT64_C(9007199254740991)},
		{"18446744073709551615", UINT64_MAX},
		{"00018446744073709551615", UINT64_MAX},
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		uint64_t value = 77;

		is_int(ck_parse_u64("n", rows[i].text, 0, UINT64_MAX, &value, NULL), CK_OK,
		       "number '%s'", rows[i].text);
		is_u64(value, rows[i].want, "number '%s': value", rows[i].text);
	}
}

static void test_long_value_is_cut_in_the_text(void)
{
	struct ck_error err = CK_ERROR_INIT;
	char text[500];
	uint64_t value;

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	is_int(ck_parse_u64("--keep", text, 0, 9, &value, &err), CK_EARG, "500 characters");
	like(err.text, "xxx...: not a whole number", "are cut in the text");
	ok(strlen(err.text) < 160, "which stays short (%zu)", strlen(err.text));
}

static void test_run_names_refused(void)
{
	static const struct {
		const char *text;
		const char *says;
	} rows[] = {
		{NULL, "--ckpt-name: no value: a name of letters, digits, '.', '_' and '-'"},
		{"", "--ckpt-name: empty: a name of letters"},
		{".", "--ckpt-name: .: a name does not begin with '.'"},
		{"..", "does not begin with '.'"},
		{".hidden", "does not begin with '.'"},
		{"-rf", "--ckpt-name: -rf: a name does not begin with '-'"},
		{"a/b", "--ckpt-name: a/b: byte 0x2f at position 2"},
		{"../x", "does not begin with '.'"},
		{"a b", "byte 0x20 at position 2: a name has only letters, digits"},
		{"a\nb", "--ckpt-name: a?b: byte 0x0a at position 2"},
		{"a%j", "byte 0x25"},
		{"r\xc3\xbcn", "--ckpt-name: r??n: byte 0xc3 at position 2"},
		{"a\\b", "byte 0x5c"},
		{"a:b", "byte 0x3a"},
		{"a*", "byte 0x2a"},
	};
	char long_name[130];
	struct ck_error err = CK_ERROR_INIT;

	for (size_t i = 0; i < ROWS(rows); i++) {
		is_int(ck_parse_run_name("--ckpt-name", rows[i].text, &err), CK_EARG,
		       "name '%s' is refused", shown(rows[i].text));
		like(err.text, rows[i].says, "name '%s': text", shown(rows[i].text));
	}
	memset(long_name, 'n', 129);
	long_name[129] = '\0';
	is_int(ck_parse_run_name("--ckpt-name", long_name, &err), CK_EARG, "129 characters");
	like(err.text, "129 characters, at most 128 are allowed", "are too many");
	long_name[128] = '\0';
	is_int(ck_parse_run_name("--ckpt-name", long_name, &err), CK_OK, "128 are not");
}

static void test_run_names(void)
{
	static const char *const rows[] = {"a", "7", "_", "big-run.2", "cluster-123_4", "A.-_z"};

	for (size_t i = 0; i < ROWS(rows); i++)
		is_int(ck_parse_run_name("name", rows[i], NULL), CK_OK, "name '%s'", rows[i]);
}

static void test_utf8(void)
{
	static const struct {
		const char *text;
		uint64_t bytes;
		int want;
		const char *what;
	} rows[] = {
		{"", 0, 0, "nothing"},
		{"\x80", 1, 0, "a lone continuation byte"},
		{"\xbf\x80", 2, 0, "a continuation byte first"},
		{"\xc0\x80", 2, 0, "an overlong NUL"},
		{"\xc1\xbf", 2, 0, "an overlong DEL"},
		{"\xc3", 1, 0, "a 2-byte sequence cut"},
		{"\xc3\x28", 2, 0, "a 2-byte sequence ended by a letter"},
		{"\xe0\x9f\xbf", 3, 0, "an overlong U+07FF"},
		{"\xed\xa0\x80", 3, 0, "the first surrogate"},
		{"\xed\xbf\xbf", 3, 0, "the last surrogate"},
		{"\xe2\x82", 2, 0, "a 3-byte sequence cut"},
		{"\xe2\x82\x28", 3, 0, "a 3-byte sequence ended by a letter"},
		{"\xf0\x8f\xbf\xbf", 4, 0, "an overlong U+FFFF"},
		{"\xf4\x90\x80\x80", 4, 0, "U+110000"},
		{"\xf5\x80\x80\x80", 4, 0, "a first byte of 0xf5"},
		{"\xff", 1, 0, "a first byte of 0xff"},
		{"\xf0\x9f\x98", 3, 0, "a 4-byte sequence cut"},
		{"\xf0\x9f\x98\xc0", 4, 0, "a 4-byte sequence with a bad end"},
		{"\0", 1, 1, "NUL"},
		{"a", 1, 1, "a letter"},
		{"\x7f", 1, 1, "DEL"},
		{"\xc2\x80", 2, 2, "U+0080"},
		{"\xdf\xbf", 2, 2, "U+07FF"},
		{"\xe0\xa0\x80", 3, 3, "U+0800"},
		{"\xed\x9f\xbf", 3, 3, "U+D7FF"},
		{"\xee\x80\x80", 3, 3, "U+E000"},
		{"\xef\xbf\xbf", 3, 3, "U+FFFF"},
		{"\xf0\x90\x80\x80", 4, 4, "U+10000"},
		{"\xf4\x8f\xbf\xbf", 4, 4, "U+10FFFF"},
		{"\xc3\xbcx", 3, 2, "a sequence with more behind it"},
	};

	for (size_t i = 0; i < ROWS(rows); i++)
		is_int(ck_utf8_sequence((const unsigned char *)rows[i].text, rows[i].bytes),
		       rows[i].want, "UTF-8: %s", rows[i].what);
}

static void test_first_host(void)
{
	static const struct {
		const char *list, *host;
	} rows[] = {
		{"", ""},
		{"n1", "n1"},
		{"n1,n2", "n1"},
		{"n[1-4]", "n1"},
		{"n[01,03-05],m7", "n01"},
		{"n[7]", "n7"},
		{"n[", "n"},
		{"rack-a[10-12]", "rack-a10"},
		{",", ""},
	};
	char host[32], cut[3];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		is_str(ck_first_host(rows[i].list, host, sizeof(host)), rows[i].host,
		       "first host of '%s'", rows[i].list);
	is_str(ck_first_host("node1", cut, sizeof(cut)), "no", "cut to size");
}

static void test_format_bytes(void)
{
	static const struct {
		uint64_t bytes;
		const char *want;
	} rows[] = {
		{0, "0 B"},
		{512, "512 B"},
		{1023, "1023 B"},
		{1024, "1 KiB"},
		{1536, "1.5 KiB"},
		{37 * 1024, "37 KiB"},
		{102348, "99.9 KiB"},
		{102349, "100 KiB"},
		{1048063, "1023 KiB"},
		{1048064, "1 MiB"},
		{1048575, "1 MiB"},
		{UINT64_C(3) << 29, "1.5 GiB"},
		{UINT64_C(117) << 30, "117 GiB"},
		{UINT64_C(1) << 40, "1 TiB"},
		{UINT64_C(1) << 50, "1 PiB"},
		{UINT64_MAX, "16 EiB"},
	};
	char text[16];

	for (size_t i = 0; i < ROWS(rows); i++)
		is_str(ck_format_bytes(rows[i].bytes, text), rows[i].want, "%llu bytes",
		       (unsigned long long)rows[i].bytes);
}

static void test_format_seconds(void)
{
	static const struct {
		double seconds;
		const char *want;
	} rows[] = {
		{NAN, "unknown"},     {INFINITY, "for ever"},
		{1e300, "for ever"},  {-INFINITY, "for ever"},
		{-4.2, "-4.2 s"},     {-999999999999.0, "-277777777h 47m"},
		{0, "0 ms"},          {0.042, "42 ms"},
		{0.9994, "999 ms"},   {0.9996, "1.0 s"},
		{4.2, "4.2 s"},       {59.94, "59.9 s"},
		{59.96, "1m 00s"},    {930, "15m 30s"},
		{3599.4, "59m 59s"},  {3599.6, "1h 00m"},
		{7500, "2h 05m"},     {10799, "3h 00m"},
		{1e9, "277777h 47m"},
	};
	char text[16];

	for (size_t i = 0; i < ROWS(rows); i++)
		is_str(ck_format_seconds(rows[i].seconds, text), rows[i].want, "%g seconds",
		       rows[i].seconds);
}

static void test_times_refused(void)
{
	static const struct {
		const char *text;
		const char *says;
	} rows[] = {
		{NULL, "created: no value: a time such as 2026-11-29T20:37:50Z is wanted"},
		{"", "created: empty: a time such as"},
		{"yesterday", "created: yesterday: not a time such as 2026-11-29T20:37:50Z"},
		{"2026-11-29T20:37:50", "not a time such as"},
		{"2026-11-29T20:37:50z", "not a time such as"},
		{"2026-11-29t20:37:50Z", "not a time such as"},
		{"2026-11-29 20:37:50Z", "not a time such as"},
		{"2026-11-29T20:37:50Z ", "not a time such as"},
		{"2026-11-29T20:37:50ZZ", "not a time such as"},
		{"2026-11-29T20:37:50.5Z", "not a time such as"},
		{"2026-11-29T20:37:50+00:00", "not a time such as"},
		{"2026-11-29T20:37Z", "not a time such as"},
		{"26-11-29T20:37:50Z", "not a time such as"},
		{"12026-11-29T20:37:50Z", "not a time such as"},
		{"-026-11-29T20:37:50Z", "not a time such as"},
		{"2026-11-2", "not a time such as"},
		{"2026-02-29T00:00:00Z", "created: 2026-02-29T00:00:00Z: no such day"},
		{"2100-02-29T00:00:00Z", "no such day"},
		{"2026-04-31T00:00:00Z", "no such day"},
		{"2026-00-10T00:00:00Z", "no such day"},
		{"2026-13-10T00:00:00Z", "no such day"},
		{"2026-01-00T00:00:00Z", "no such day"},
		{"2026-01-32T00:00:00Z", "no such day"},
		{"2026-01-01T24:00:00Z", "no such day"},
		{"2026-01-01T00:60:00Z", "no such day"},
		{"2016-12-31T23:59:60Z", "no such day"},
		{"9999-12-31T24:00:00Z", "no such day"},
		{"0000-00-00T00:00:00Z", "no such day"},
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct ck_error err = CK_ERROR_INIT;
		int64_t epoch = 77;

		is_int(ck_parse_time("created", rows[i].text, &epoch, &err), CK_EFORMAT,
		       "time '%s' is refused", shown(rows[i].text));
		like(err.text, rows[i].says, "time '%s': text", shown(rows[i].text));
		is_int(epoch, 77, "time '%s': output untouched", shown(rows[i].text));
	}
}

static void test_times(void)
{
	static const struct {
		int64_t epoch;
		const char *text;
	} rows[] = {
		{0, "1970-01-01T00:00:00Z"},
		{-1, "1969-12-31T23:59:59Z"},
		{1795984670, "2026-11-29T20:37:50Z"},
		{1709164800, "2024-02-29T00:00:00Z"},
		{INT64_C(4294967296), "2106-02-07T06:28:16Z"},
		{-INT64_C(62167219200), "0000-01-01T00:00:00Z"},
		{INT64_C(253402300799), "9999-12-31T23:59:59Z"},
	};
	char text[32];

	for (size_t i = 0; i < ROWS(rows); i++) {
		int64_t epoch = 77;

		is_str(ck_format_time(rows[i].epoch, text), rows[i].text, "time %s printed",
		       rows[i].text);
		is_int(ck_parse_time("created", rows[i].text, &epoch, NULL), CK_OK, "time %s read",
		       rows[i].text);
		is_int(epoch, rows[i].epoch, "time %s: the same", rows[i].text);
	}
	is_str(ck_format_time(INT64_MAX, text), "9999-12-31T23:59:59Z", "the end of all times");
	is_str(ck_format_time(INT64_MIN, text), "0000-01-01T00:00:00Z", "and their beginning");
}

int main(void)
{
	test_bytes();
	test_u64_refused();
	test_u64();
	test_long_value_is_cut_in_the_text();
	test_run_names_refused();
	test_run_names();
	test_utf8();
	test_first_host();
	test_format_bytes();
	test_format_seconds();
	test_times_refused();
	test_times();
	return done_testing();
}
