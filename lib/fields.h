/*
 * Fields that several of our JSON files share: version, short texts, ids, times, jobs.
 *
 * Readers return 0 or CK_EFORMAT with "where: key: …" and leave the output untouched when they
 * fail. Texts are UTF-8 without control characters, so that whatever shows them is safe.
 */
#ifndef CK_FIELDS_H
#define CK_FIELDS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "error.h"
#include "manifest.h"

/*
 * Parse a file of ours (ck_json_parse). "schema_version" must be the one we know; another one is an error that
 * names both. *tree is to be deleted whatever the answer. Returns CK_ENOMEM as well.
 */
int ck_field_parse(const char *where, const char *text, size_t bytes, cJSON **tree,
		   struct ck_error *err);

/* A text of less than `size` bytes, copied to dst[size]. */
int ck_field_text(const char *where, const cJSON *object, const char *key, char *dst, size_t size,
		  struct ck_error *err);

/* Exactly `digits` lower-case hex digits, copied to dst[digits + 1]. */
int ck_field_hex(const char *where, const cJSON *object, const char *key, size_t digits, char *dst,
		 struct ck_error *err);

int ck_field_u32(const char *where, const cJSON *object, const char *key, uint32_t max,
		 uint32_t *out, struct ck_error *err);

/* RFC 3339 in UTC, whole seconds. */
int ck_field_time(const char *where, const cJSON *object, const char *key, int64_t *out,
		  struct ck_error *err);
/* The same, or null for 0: unknown. */
int ck_field_time_or_null(const char *where, const cJSON *object, const char *key, int64_t *out,
			  struct ck_error *err);

/* The member "job"; its "nodes" may be missing. */
int ck_field_job(const char *where, const cJSON *object, struct ck_job *out, struct ck_error *err);

/* Append `"key": "text"`, without a comma. */
void ck_field_print_text(struct ck_buf *out, const char *key, const char *text);
/* Append `"key": "2026-11-29T20:37:50Z"`. */
void ck_field_print_time(struct ck_buf *out, const char *key, int64_t epoch);
/* The same, and null for 0. */
void ck_field_print_time_or_null(struct ck_buf *out, const char *key, int64_t epoch);
/* Append `"job": {…}`. */
void ck_field_print_job(struct ck_buf *out, const struct ck_job *job, bool with_nodes);

/*
 * The end of a writer: what it has printed goes behind `out`, unless rc says that it is not to be. Returns rc, or
 * CK_ENOMEM. `text` is freed.
 */
int ck_field_finish(struct ck_buf *out, struct ck_buf *text, int rc, struct ck_error *err);

/* For writers: the rules of ck_field_text and ck_field_hex. 0 or CK_EFORMAT. */
int ck_text_check(const char *where, const char *key, const char *text, struct ck_error *err);
int ck_hex_check(const char *where, const char *key, const char *text, size_t digits,
		 struct ck_error *err);

/* Two names of one Slurm job step in one of its starts (nodes are not compared). */
bool ck_job_equal(const struct ck_job *a, const struct ck_job *b);

#endif
