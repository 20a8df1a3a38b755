/*
 * A byte string that grows. A failed allocation is remembered (`failed`) and later additions do
 * nothing, so that callers check once, at the end, with ck_buf_check.
 */
#ifndef CK_BUF_H
#define CK_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

struct ck_buf {
	char *data; /* len bytes, then a NUL; NULL while nothing was added */
	size_t len;
	size_t capacity;
	bool failed;
};

/* clang-format off */ /* its releases differ on a body in braces */
#define CK_BUF_INIT {.data = NULL, .len = 0, .capacity = 0, .failed = false}
/* clang-format on */

/* Free the memory; the buffer is as after CK_BUF_INIT. */
void ck_buf_fini(struct ck_buf *buf);
/* Forget the content and a failure, keep the memory. */
void ck_buf_clear(struct ck_buf *buf);
/*
 * Room for `bytes` more; returns where to write them (then add to len), or NULL. A NUL stands
 * behind the room: who writes fewer bytes puts one behind them. No addition in between.
 */
void *ck_buf_reserve(struct ck_buf *buf, size_t bytes);
/* `data` does not lie within the buffer; it may be NULL when bytes is 0. */
void ck_buf_add(struct ck_buf *buf, const void *data, size_t bytes);
void ck_buf_add_str(struct ck_buf *buf, const char *text);
void ck_buf_addf(struct ck_buf *buf, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Little endian, for binary records. */
void ck_buf_add_u32(struct ck_buf *buf, uint32_t value);
void ck_buf_add_u64(struct ck_buf *buf, uint64_t value);
/* Text as a JSON string, quotes included; control characters escaped. `text` is valid UTF-8. */
void ck_buf_add_json_string(struct ck_buf *buf, const char *text);
/* Text for people: control characters (C1 too) and bytes beyond valid UTF-8 as \xNN. */
void ck_buf_add_escaped(struct ck_buf *buf, const char *text);
/* 0, or CK_ENOMEM when an addition failed. */
int ck_buf_check(const struct ck_buf *buf, struct ck_error *err);

/*
 * Reading binary records: a cursor that never leaves [data, data + len). Failure is remembered:
 * from then on numbers are 0, pointers NULL, and pos stays where it was.
 */
struct ck_reader {
	const unsigned char *data;
	size_t len;
	size_t pos;
	bool failed;
};

/* Little endian. */
uint32_t ck_read_u32(struct ck_reader *reader);
uint64_t ck_read_u64(struct ck_reader *reader);
/* Pointer to the next `bytes` bytes, or NULL. */
const void *ck_read_bytes(struct ck_reader *reader, size_t bytes);

#endif
