#include "buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"

#define CAPACITY_MIN 64
/* Far below PTRDIFF_MAX, so that neither doubling nor pointer differences overflow. */
#define CAPACITY_MAX ((size_t)1 << 46)

void ck_buf_fini(struct ck_buf *buf)
{
	free(buf->data);
	*buf = (struct ck_buf)CK_BUF_INIT;
}

void ck_buf_clear(struct ck_buf *buf)
{
	buf->len = 0;
	buf->failed = false;
	if (buf->data)
		buf->data[0] = '\0';
}

static bool grow(struct ck_buf *buf, size_t wanted)
{
	size_t capacity = buf->capacity ? buf->capacity : CAPACITY_MIN;
	char *data;

	while (capacity < wanted)
		capacity *= 2;
	data = realloc(buf->data, capacity);
	if (!data)
		return false;
	buf->data = data;
	buf->capacity = capacity;
	return true;
}

void *ck_buf_reserve(struct ck_buf *buf, size_t bytes)
{
	if (buf->failed)
		return NULL;
	if (bytes >= CAPACITY_MAX - buf->len ||
	    (buf->len + bytes + 1 > buf->capacity && !grow(buf, buf->len + bytes + 1))) {
		buf->failed = true;
		return NULL;
	}
	buf->data[buf->len + bytes] = '\0';
	return buf->data + buf->len;
}

void ck_buf_add(struct ck_buf *buf, const void *data, size_t bytes)
{
	void *dst = ck_buf_reserve(buf, bytes);

	if (!dst || bytes == 0)
		return;
	memcpy(dst, data, bytes);
	buf->len += bytes;
}

void ck_buf_add_str(struct ck_buf *buf, const char *text)
{
	ck_buf_add(buf, text, strlen(text));
}

void ck_buf_addf(struct ck_buf *buf, const char *fmt, ...)
{
	va_list args;
	char *dst;
	int bytes;

	va_start(args, fmt);
	bytes = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	if (bytes < 0)
		buf->failed = true;
	dst = ck_buf_reserve(buf, bytes < 0 ? 0 : (size_t)bytes);
	if (!dst)
		return;
	va_start(args, fmt);
	vsnprintf(dst, (size_t)bytes + 1, fmt, args);
	va_end(args);
	buf->len += (size_t)bytes;
}

void ck_buf_add_u32(struct ck_buf *buf, uint32_t value)
{
	unsigned char bytes[4];

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(value >> (8 * i));
	ck_buf_add(buf, bytes, sizeof(bytes));
}

void ck_buf_add_u64(struct ck_buf *buf, uint64_t value)
{
	ck_buf_add_u32(buf, (uint32_t)value);
	ck_buf_add_u32(buf, (uint32_t)(value >> 32));
}

static void add_json_char(struct ck_buf *buf, unsigned char c)
{
	static const char letters[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* character, escape letter */
	const char *found = NULL;

	for (const char *pair = letters; *pair && !found; pair += 2)
		found = (unsigned char)*pair == c ? pair : NULL;
	if (found)
		ck_buf_addf(buf, "\\%c", found[1]);
	else
		ck_buf_addf(buf, "\\u%04x", c);
}

void ck_buf_add_json_string(struct ck_buf *buf, const char *text)
{
	const char *plain = text;

	ck_buf_add(buf, "\"", 1);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c >= 0x20 && c != 0x7f && c != '"' && c != '\\')
			continue;
		ck_buf_add(buf, plain, (size_t)(text - plain));
		add_json_char(buf, c);
		plain = text + 1;
	}
	ck_buf_add(buf, plain, (size_t)(text - plain));
	ck_buf_add(buf, "\"", 1);
}

/* C1 controls (U+0080 to U+009F) steer some terminals as well as the C0 ones do. */
static bool is_printable(const unsigned char *text, int bytes)
{
	if (bytes == 1)
		return text[0] >= 0x20 && text[0] != 0x7f;
	return bytes > 1 && !(text[0] == 0xc2 && text[1] < 0xa0);
}

void ck_buf_add_escaped(struct ck_buf *buf, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t left = strlen(text);

	while (left) {
		int bytes = ck_utf8_sequence(p, left);

		if (is_printable(p, bytes)) {
			ck_buf_add(buf, p, (size_t)bytes);
		} else {
			bytes = 1;
			ck_buf_addf(buf, "\\x%02x", p[0]);
		}
		p += bytes;
		left -= (size_t)bytes;
	}
}

int ck_buf_check(const struct ck_buf *buf, struct ck_error *err)
{
	if (!buf->failed)
		return CK_OK;
	return ck_fail(err, CK_ENOMEM, "out of memory: a buffer of %zu bytes cannot grow",
		       buf->len);
}

const void *ck_read_bytes(struct ck_reader *reader, size_t bytes)
{
	const void *p;

	if (reader->failed || bytes > reader->len - reader->pos) {
		reader->failed = true;
		return NULL;
	}
	p = reader->data ? reader->data + reader->pos : NULL;
	reader->pos += bytes;
	return p;
}

uint32_t ck_read_u32(struct ck_reader *reader)
{
	const unsigned char *p = ck_read_bytes(reader, 4);

	if (!p)
		return 0;
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint64_t ck_read_u64(struct ck_reader *reader)
{
	const unsigned char *p = ck_read_bytes(reader, 8);
	uint64_t value = 0;

	for (int i = 7; p && i >= 0; i--)
		value = value << 8 | p[i];
	return value;
}
