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

/* "schema_version" is the one we know; another one is an error that names both. */
int ck_field_version(const char *where, const cJSON *object, struct ck_error *err);

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

/* For writers: the rules of ck_field_text and ck_field_hex. 0 or CK_EFORMAT. */
int ck_text_check(const char *where, const char *key, const char *text, struct ck_error *err);
int ck_hex_check(const char *where, const char *key, const char *text, size_t digits,
		 struct ck_error *err);

/* Two names of one Slurm job step in one of its starts (nodes are not compared). */
bool ck_job_equal(const struct ck_job *a, const struct ck_job *b);

#endif
