#include "json_scan.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "json.h"
#include "parse.h"

/* cJSON copies a number into a buffer of 64 bytes; what is longer it would misread. */
#define NUMBER_MAX 63

struct scan {
	const unsigned char *text;
	size_t bytes;
	size_t pos;
	int depth;
	const char *problem; /* what is wrong at pos */
};

_Static_assert(CK_JSON_MAX_DEPTH == 16, "the text of scan_container says 16");

static bool scan_value(struct scan *s);

static bool wrong(struct scan *s, const char *problem)
{
	s->problem = problem;
	return false;
}

/* The byte at pos; 0 at the end of the text, where a NUL in the text is as wrong as the end. */
static unsigned char peek(const struct scan *s)
{
	return s->pos < s->bytes ? s->text[s->pos] : 0;
}

static void skip_white(struct scan *s)
{
	for (;; s->pos++) {
		unsigned char c = peek(s);

		if (c != ' ' && c != '\n' && c != '\r' && c != '\t')
			return;
	}
}

static bool take(struct scan *s, char c)
{
	if (peek(s) != (unsigned char)c)
		return false;
	s->pos++;
	return true;
}

/* Something else than a byte of the grammar stands at pos. */
static bool unexpected(struct scan *s, const char *wanted)
{
	return wrong(s, s->pos >= s->bytes ? "the text ends early" : wanted);
}

static bool scan_hex4(struct scan *s, unsigned *unit)
{
	*unit = 0;
	for (int i = 0; i < 4; i++, s->pos++) {
		unsigned char c = peek(s);
		unsigned digit;

		if (c >= '0' && c <= '9')
			digit = c - '0';
		else if ((c | 32) >= 'a' && (c | 32) <= 'f')
			digit = (c | 32) - 'a' + 10u;
		else
			return unexpected(s, "four hex digits wanted after \\u");
		*unit = *unit << 4 | digit;
	}
	return true;
}

/* Behind "\u". A code unit of a surrogate pair needs the other one. */
static bool scan_unicode(struct scan *s)
{
	unsigned unit, low;

	if (!scan_hex4(s, &unit))
		return false;
	if (unit == 0)
		return wrong(s, "\\u0000 in a string");
	if (unit < 0xd800 || unit > 0xdfff)
		return true;
	if (unit > 0xdbff || !take(s, '\\') || !take(s, 'u'))
		return wrong(s, "lone surrogate in a string");
	if (!scan_hex4(s, &low))
		return false;
	return (low >= 0xdc00 && low <= 0xdfff) || wrong(s, "lone surrogate in a string");
}

static bool scan_escape(struct scan *s)
{
	unsigned char c = peek(s);

	if (c == 'u') {
		s->pos++;
		return scan_unicode(s);
	}
	if (c == 0 || !strchr("\"\\/bfnrt", c))
		return unexpected(s, "unknown escape in a string");
	s->pos++;
	return true;
}

/* Eight bytes that need no look: printable ASCII, neither quote nor backslash. */
static bool plain8(const unsigned char *text)
{
	const uint64_t ones = UINT64_C(0x0101010101010101), high = ones << 7;
	uint64_t word, quote, backslash;

	memcpy(&word, text, sizeof(word));
	quote = word ^ (ones * '"');
	backslash = word ^ (ones * '\\');
	return !((word | (word - ones * 0x20) | ((quote - ones) & ~quote) |
		  ((backslash - ones) & ~backslash)) &
		 high);
}

/* At the opening quote. */
static bool scan_string(struct scan *s)
{
	s->pos++;
	for (;;) {
		unsigned char c;
		int length;

		while (s->bytes - s->pos >= 8 && plain8(s->text + s->pos))
			s->pos += 8;
		c = peek(s);
		if (take(s, '"'))
			return true;
		if (c < 0x20)
			return unexpected(s, "control character in a string");
		if (take(s, '\\')) {
			if (!scan_escape(s))
				return false;
			continue;
		}
		length = ck_utf8_sequence(s->text + s->pos, s->bytes - s->pos);
		if (length <= 0)
			return wrong(s, "not UTF-8");
		s->pos += (size_t)length;
	}
}

static bool scan_digits(struct scan *s)
{
	size_t begin = s->pos;

	while (peek(s) >= '0' && peek(s) <= '9')
		s->pos++;
	return s->pos > begin || unexpected(s, "a digit wanted");
}

static bool scan_number(struct scan *s)
{
	size_t begin = s->pos;

	take(s, '-');
	if (!take(s, '0') && !scan_digits(s))
		return false;
	if (peek(s) >= '0' && peek(s) <= '9')
		return wrong(s, "number with a leading zero");
	if (take(s, '.') && !scan_digits(s))
		return false;
	if (take(s, 'e') || take(s, 'E')) {
		if (!take(s, '-'))
			take(s, '+');
		if (!scan_digits(s))
			return false;
	}
	return s->pos - begin <= NUMBER_MAX || wrong(s, "number of more than 63 characters");
}

static bool scan_word(struct scan *s, const char *word)
{
	size_t length = strlen(word);

	if (s->bytes - s->pos < length || memcmp(s->text + s->pos, word, length) != 0)
		return wrong(s, "a JSON value wanted");
	s->pos += length;
	return true;
}

/* Behind '{' or '['; `close` ends it. */
static bool scan_members(struct scan *s, bool object, char close)
{
	skip_white(s);
	if (take(s, close))
		return true;
	for (;;) {
		skip_white(s);
		if (object) {
			if (peek(s) != '"')
				return unexpected(s, "a key in quotes wanted");
			if (!scan_string(s))
				return false;
			skip_white(s);
			if (!take(s, ':'))
				return unexpected(s, "':' wanted");
		}
		if (!scan_value(s))
			return false;
		skip_white(s);
		if (take(s, close))
			return true;
		if (!take(s, ','))
			return unexpected(s, object ? "',' or '}' wanted" : "',' or ']' wanted");
	}
}

/* At '{' or '['. */
static bool scan_container(struct scan *s)
{
	bool object = peek(s) == '{', good;

	if (s->depth == CK_JSON_MAX_DEPTH)
		return wrong(s, "nested deeper than 16");
	s->pos++;
	s->depth++;
	good = scan_members(s, object, object ? '}' : ']');
	s->depth--;
	return good;
}

/* Recursion is bounded by CK_JSON_MAX_DEPTH. */
static bool scan_value(struct scan *s)
{
	skip_white(s);
	switch (peek(s)) {
	case '{':
	case '[':
		return scan_container(s);
	case '"':
		return scan_string(s);
	case 't':
		return scan_word(s, "true");
	case 'f':
		return scan_word(s, "false");
	case 'n':
		return scan_word(s, "null");
	case '-':
	case '0' ... '9':
		return scan_number(s);
	default:
		return unexpected(s, "a JSON value wanted");
	}
}

static bool scan_document(struct scan *s)
{
	if (s->bytes >= 3 && memcmp(s->text, "\xef\xbb\xbf", 3) == 0)
		return wrong(s, "byte order mark");
	skip_white(s);
	if (peek(s) != '{')
		return unexpected(s, "'{' wanted");
	if (!scan_value(s))
		return false;
	skip_white(s);
	return s->pos == s->bytes || wrong(s, "text after the end of the object");
}

int ck_json_scan(const char *where, const char *text, size_t bytes, struct ck_error *err)
{
	struct scan s = {.text = (const unsigned char *)text, .bytes = bytes};

	if (bytes > CK_JSON_MAX_BYTES)
		return ck_fail(err, CK_EFORMAT, "%s: %zu bytes of JSON, the limit is %" PRIu64,
			       where, bytes, CK_JSON_MAX_BYTES);
	if (!scan_document(&s))
		return ck_fail(err, CK_EFORMAT, "%s: not JSON: byte %zu: %s", where, s.pos,
			       s.problem);
	return 0;
}
