#include "parse.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Below 2^53, so that any JSON reader holds it. */
#define STEPS_MAX ((UINT64_C(1) << 53) - 1)
#define SIZE_MAX_BYTES STEPS_MAX
#define RUN_NAME_MAX 128

#define SIZE_FORMS "a size such as 512M, 2G, 2GiB or 5GB"
#define DURATION_FORMS "a duration such as 900s, 15min, 2h, 1d or 1:00:00"

/* A value as it is shown in a message: short, and without control characters. */
struct shown {
	char text[84];
};

static struct shown show(const char *text)
{
	struct shown shown;
	size_t n = 0;

	for (; text[n] && n < 80; n++)
		shown.text[n] = text[n] >= 0x20 && text[n] < 0x7f ? text[n] : '?';
	strcpy(shown.text + n, text[n] ? "..." : "");
	return shown;
}

/* Whatever is wrong, NULL and "" are told first. True when there is something to look at. */
static bool has_value(const char *what, const char *text, int code, const char *wanted,
		      struct ck_error *err)
{
	if (text && *text)
		return true;
	ck_fail(err, code, "%s: %s: %s is wanted", what, text ? "empty" : "no value", wanted);
	return false;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool has_blank(const char *text)
{
	return strpbrk(text, " \t\r\n\v\f") != NULL;
}

/*
 * Read the digits at the front. Returns how many there are; a value that does not fit becomes
 * UINT64_MAX, which every caller's limit refuses.
 */
static size_t read_digits(const char *text, uint64_t *value)
{
	size_t n;

	*value = 0;
	for (n = 0; is_digit(text[n]); n++) {
		unsigned digit = (unsigned)(text[n] - '0');

		if (*value > (UINT64_MAX - digit) / 10)
			*value = UINT64_MAX;
		else
			*value = *value * 10 + digit;
	}
	return n;
}

int ck_parse_u64(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *out,
		 struct ck_error *err)
{
	uint64_t value;
	size_t n;

	if (!has_value(what, text, CK_EARG, "a whole number", err))
		return CK_EARG;
	n = read_digits(text, &value);
	if (n == 0 || text[n])
		return ck_fail(err, CK_EARG, "%s: %s: not a whole number (digits only)", what,
			       show(text).text);
	/* The largest value of all could be one that did not fit: compare it by its digits. */
	if (value == UINT64_MAX && strcmp(text + strspn(text, "0"), "18446744073709551615") != 0)
		return ck_fail(err, CK_EARG, "%s: %s: larger than %" PRIu64, what, show(text).text,
			       max);
	if (value < min || value > max)
		return ck_fail(err, CK_EARG, "%s: %s: not between %" PRIu64 " and %" PRIu64, what,
			       show(text).text, min, max);
	*out = value;
	return CK_OK;
}

/* Seconds of a unit, 0 if it is none. */
static uint64_t unit_seconds(const char *unit)
{
	static const struct {
		const char *name;
		uint64_t seconds;
	} units[] = {
		{"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}, {"d", 86400},
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(unit, units[i].name) == 0)
			return units[i].seconds;
	}
	return 0;
}

static int fail_too_long(const char *what, const char *text, struct ck_error *err)
{
	return ck_fail(err, CK_EARG, "%s: %s: longer than %" PRIu64 "s", what, show(text).text,
		       CK_SECONDS_MAX);
}

/* "h:m:s" or "m:s", of which `lead` and its colon are read and `rest` is not. */
static int parse_clock(const char *what, const char *text, uint64_t lead, const char *rest,
		       uint64_t *seconds, struct ck_error *err)
{
	uint64_t total = lead, field;
	int fields = 1;

	while (fields < 3 && is_digit(rest[0]) && rest[0] < '6' && is_digit(rest[1])) {
		read_digits((const char[]){rest[0], rest[1], '\0'}, &field);
		if (total > CK_SECONDS_MAX)
			return fail_too_long(what, text, err);
		total = total * 60 + field;
		fields++;
		rest += 2;
		if (*rest != ':')
			break;
		rest++;
	}
	if (fields == 1 || *rest || rest[-1] == ':')
		return ck_fail(err, CK_EARG,
			       "%s: %s: a clock is h:mm:ss or m:ss, minutes and seconds below 60",
			       what, show(text).text);
	if (total > CK_SECONDS_MAX)
		return fail_too_long(what, text, err);
	*seconds = total;
	return CK_OK;
}

/* A number that nothing follows: show what it may have meant, since guessing would be dear. */
static int fail_bare(const char *what, const char *text, bool steps_too, struct ck_error *err)
{
	struct shown n = show(text);

	if (steps_too)
		return ck_fail(err, CK_EARG, "%s: %s: a number needs a unit: %ss, %smin or %ssteps",
			       what, n.text, n.text, n.text, n.text);
	return ck_fail(err, CK_EARG, "%s: %s: a number needs a unit: %ss or %smin", what, n.text,
		       n.text, n.text);
}

static int fail_duration(const char *what, const char *text, bool steps_too, struct ck_error *err)
{
	const char *wrong = "not";

	if (text[0] == '-')
		wrong = "negative; wanted is";
	else if (has_blank(text))
		wrong = "has a blank; wanted is";
	return ck_fail(err, CK_EARG, "%s: %s: %s " DURATION_FORMS "%s", what, show(text).text,
		       wrong, steps_too ? ", or 500steps" : "");
}

int ck_parse_seconds(const char *what, const char *text, bool steps_too, uint64_t *seconds,
		     struct ck_error *err)
{
	uint64_t value, unit;
	size_t n;

	if (!has_value(what, text, CK_EARG, DURATION_FORMS, err))
		return CK_EARG;
	n = read_digits(text, &value);
	if (n == 0)
		return fail_duration(what, text, steps_too, err);
	if (!text[n])
		return fail_bare(what, text, steps_too, err);
	if (text[n] == ':')
		return parse_clock(what, text, value, text + n + 1, seconds, err);
	unit = unit_seconds(text + n);
	if (!unit)
		return fail_duration(what, text, steps_too, err);
	if (value > CK_SECONDS_MAX / unit)
		return fail_too_long(what, text, err);
	*seconds = value * unit;
	return CK_OK;
}

int ck_parse_interval(const char *what, const char *text, struct ck_interval *out,
		      struct ck_error *err)
{
	struct ck_interval interval = {0, 0};
	size_t n;
	int rc;

	if (!has_value(what, text, CK_EARG, DURATION_FORMS ", or 500steps,", err))
		return CK_EARG;
	n = read_digits(text, &interval.steps);
	if (n && (strcmp(text + n, "steps") == 0 || strcmp(text + n, "step") == 0)) {
		if (interval.steps > STEPS_MAX)
			return ck_fail(err, CK_EARG, "%s: %s: more than %" PRIu64 " steps", what,
				       show(text).text, STEPS_MAX);
	} else {
		interval.steps = 0;
		rc = ck_parse_seconds(what, text, true, &interval.seconds, err);
		if (rc)
			return rc;
	}
	if (interval.steps == 0 && interval.seconds == 0)
		return ck_fail(err, CK_EARG, "%s: %s: more than 0 is wanted", what,
			       show(text).text);
	*out = interval;
	return CK_OK;
}

static bool is_name_char(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
	       c == '_' || c == '-';
}

int ck_parse_run_name(const char *what, const char *text, struct ck_error *err)
{
	size_t n = 0;

	if (!has_value(what, text, CK_EARG, "a name of letters, digits, '.', '_' and '-'", err))
		return CK_EARG;
	if (*text == '.' || *text == '-')
		return ck_fail(err, CK_EARG, "%s: %s: a name does not begin with '%c'", what,
			       show(text).text, *text);
	while (is_name_char(text[n]))
		n++;
	if (text[n])
		return ck_fail(err, CK_EARG,
			       "%s: %s: byte 0x%02x at position %zu: a name has only letters, "
			       "digits, '.', '_' and '-'",
			       what, show(text).text, (unsigned char)text[n], n + 1);
	if (n > RUN_NAME_MAX)
		return ck_fail(err, CK_EARG, "%s: %s: %zu characters, at most %d are allowed", what,
			       show(text).text, n, RUN_NAME_MAX);
	return CK_OK;
}

/* Table 3-7 of the Unicode standard: what may be the second byte depends on the first. */
int ck_utf8_sequence(const unsigned char *text, uint64_t bytes)
{
	unsigned char low = 0x80, high = 0xbf;
	int length;

	if (bytes == 0)
		return 0;
	if (text[0] < 0x80)
		return 1;
	if (text[0] < 0xc2 || text[0] > 0xf4)
		return 0;
	length = text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
	if (bytes < (uint64_t)length)
		return 0;
	if (text[0] == 0xe0)
		low = 0xa0; /* shorter forms exist */
	else if (text[0] == 0xed)
		high = 0x9f; /* surrogates */
	else if (text[0] == 0xf0)
		low = 0x90;
	else if (text[0] == 0xf4)
		high = 0x8f; /* beyond U+10FFFF */
	if (text[1] < low || text[1] > high)
		return 0;
	for (int i = 2; i < length; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	}
	return length;
}

/* Bytes of a unit, 0 if it is none. */
static uint64_t unit_bytes(const char *unit)
{
	static const char letters[] = "KMGT";
	const char *letter = *unit == 'k' ? letters : *unit ? strchr(letters, *unit) : NULL;
	uint64_t base = strcmp(unit + 1, "B") == 0 ? 1000 : 1024, bytes = 1;

	if (strcmp(unit, "B") == 0)
		return 1;
	if (!letter || (unit[1] && strcmp(unit + 1, "B") != 0 && strcmp(unit + 1, "iB") != 0))
		return 0;
	for (const char *l = letters; l <= letter; l++)
		bytes *= base;
	return bytes;
}

int ck_parse_bytes(const char *what, const char *text, uint64_t *bytes, struct ck_error *err)
{
	uint64_t value, unit;
	size_t n;

	if (!has_value(what, text, CK_EARG, SIZE_FORMS, err))
		return CK_EARG;
	n = read_digits(text, &value);
	if (n && !text[n])
		return ck_fail(err, CK_EARG, "%s: %s: a number needs a unit: %sM or %sG", what,
			       show(text).text, show(text).text, show(text).text);
	unit = n ? unit_bytes(text + n) : 0;
	if (!unit)
		return ck_fail(err, CK_EARG, "%s: %s: not " SIZE_FORMS, what, show(text).text);
	if (value == 0 || value > SIZE_MAX_BYTES / unit)
		return ck_fail(err, CK_EARG, "%s: %s: not between 1B and %" PRIu64 "B", what,
			       show(text).text, SIZE_MAX_BYTES);
	*bytes = value * unit;
	return CK_OK;
}

char *ck_first_host(const char *list, char *out, size_t size)
{
	size_t prefix = strcspn(list, "[,"), number = 0;
	const char *inside = list + prefix + 1;

	if (list[prefix] == '[')
		number = strcspn(inside, "-,]");
	snprintf(out, size, "%.*s%.*s", (int)prefix, list, (int)number, list[prefix] ? inside : "");
	return out;
}

char *ck_format_bytes(uint64_t bytes, char out[static 16])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	unsigned tenths;
	int unit = 0;

	/* Step on before the rounding below would print 1024. */
	while (unit < 6 && value >= (unit == 0 ? 1024 : 1023.5)) {
		value /= 1024;
		unit++;
	}
	tenths = (unsigned)(value * 10 + 0.5) % 100000;
	/* Not by %.1f, which has the locale's decimal comma. */
	if (tenths >= 1000 || tenths % 10 == 0)
		snprintf(out, 16, "%.0f %.3s", value, units[unit]);
	else
		snprintf(out, 16, "%u.%u %.3s", tenths / 10, tenths % 10, units[unit]);
	return out;
}

/* "2h 05m": two units, the smaller one of sixty to the larger. */
static void format_pair(uint64_t value, const char *sign, char large, char small, char *out)
{
	snprintf(out, 16, "%s%u%c %02u%c", sign, (unsigned)(value / 60 % 1000000000), large,
		 (unsigned)(value % 60), small);
}

/* Each range ends where rounding would print the next unit's first value. */
char *ck_format_seconds(double seconds, char out[static 16])
{
	double size = seconds < 0 ? -seconds : seconds;
	const char *sign = seconds < 0 ? "-" : "";
	unsigned tenths = size < 60 ? (unsigned)(size * 10 + 0.5) % 1000 : 0;

	if (isnan(seconds) || size >= 1e12)
		snprintf(out, 16, "%s", isnan(seconds) ? "unknown" : "for ever");
	else if (size < 0.9995)
		snprintf(out, 16, "%s%.0f ms", sign, size * 1000);
	else if (size < 59.95)
		snprintf(out, 16, "%s%u.%u s", sign, tenths / 10, tenths % 10);
	else if (size < 3599.5)
		format_pair((uint64_t)(size + 0.5), sign, 'm', 's', out);
	else
		format_pair((uint64_t)(size / 60 + 0.5), sign, 'h', 'm', out);
	return out;
}

char *ck_format_time(int64_t epoch, char out[static 32])
{
	const int64_t first = -INT64_C(62167219200), last = INT64_C(253402300799);
	time_t t = epoch < first ? first : epoch > last ? last : epoch;
	char text[80] = ""; /* what the compiler thinks that six ints may need */
	struct tm tm;

	gmtime_r(&t, &tm);
	snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02dZ", tm.tm_year + 1900,
		 tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
	memcpy(out, text, 32);
	return out;
}

static int two_digits(const char *text)
{
	return (text[0] - '0') * 10 + (text[1] - '0');
}

static bool has_time_shape(const char *text)
{
	const char *shape = "dddd-dd-ddTdd:dd:ddZ";

	for (; *shape && *text; shape++, text++) {
		if (*shape == 'd' ? !is_digit(*text) : *text != *shape)
			return false;
	}
	return *shape == *text;
}

int ck_parse_time(const char *what, const char *text, int64_t *epoch, struct ck_error *err)
{
	char again[32];
	struct tm tm = {0};
	int64_t value;

	if (!has_value(what, text, CK_EFORMAT, "a time such as 2026-11-29T20:37:50Z", err))
		return CK_EFORMAT;
	if (!has_time_shape(text))
		return ck_fail(err, CK_EFORMAT, "%s: %s: not a time such as 2026-11-29T20:37:50Z",
			       what, show(text).text);
	tm.tm_year = two_digits(text) * 100 + two_digits(text + 2) - 1900;
	tm.tm_mon = two_digits(text + 5) - 1;
	tm.tm_mday = two_digits(text + 8);
	tm.tm_hour = two_digits(text + 11);
	tm.tm_min = two_digits(text + 14);
	tm.tm_sec = two_digits(text + 17);
	value = timegm(&tm);
	/* timegm carries a 31st of February over into March; then the text differs. */
	if (strcmp(ck_format_time(value, again), text) != 0)
		return ck_fail(err, CK_EFORMAT, "%s: %s: no such day or time of day", what,
			       show(text).text);
	*epoch = value;
	return CK_OK;
}
