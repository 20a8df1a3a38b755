/*
 * Strict JSON on top of cJSON, for every JSON that the project reads.
 *
 * cJSON is lenient, so the text is scanned before it (valid UTF-8, no BOM, no raw control
 * character but white space, no \u0000, numbers as RFC 8259 writes them, nesting) and the tree
 * after it (duplicate keys). Getters check type and range, and name file and key when they fail.
 */
#ifndef CK_JSON_H
#define CK_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

#define CK_JSON_MAX_BYTES (UINT64_C(256) << 20)
#define CK_JSON_MAX_DEPTH 16
#define CK_JSON_INT_MAX ((UINT64_C(1) << 53) - 1)

/*
 * Parse a whole text into a tree whose outermost value is an object.
 *   where  the file's path, for messages
 * Returns 0 (free the tree with cJSON_Delete); CK_EFORMAT with the byte offset; CK_ENOMEM.
 */
int ck_json_parse(const char *where, const char *text, size_t bytes, cJSON **tree,
		  struct ck_error *err);

/*
 * Members of an object. Missing or of another type or range: CK_EFORMAT "where: key: …", or
 * "key: …" with where NULL. Integers are judged by value: 1e3 and 5.0 are integers, 0.5 is not.
 */
int ck_json_u64(const char *where, const cJSON *object, const char *key, uint64_t max,
		uint64_t *out, struct ck_error *err);
int ck_json_double(const char *where, const cJSON *object, const char *key, double *out,
		   struct ck_error *err); /* >= 0, finite */
int ck_json_bool(const char *where, const cJSON *object, const char *key, bool *out,
		 struct ck_error *err);
/* The string stays the tree's. max_bytes without the NUL. */
int ck_json_string(const char *where, const cJSON *object, const char *key, size_t max_bytes,
		   const char **out, struct ck_error *err);
int ck_json_array(const char *where, const cJSON *object, const char *key, const cJSON **out,
		  struct ck_error *err);
int ck_json_object(const char *where, const cJSON *object, const char *key, const cJSON **out,
		   struct ck_error *err);
/*
 * An array of at most max_count integers of at most CK_JSON_INT_MAX, in order. `out` has room for
 * max_count and is unspecified after a failure.
 */
int ck_json_u64_array(const char *where, const cJSON *object, const char *key, size_t max_count,
		      uint64_t *out, size_t *count, struct ck_error *err);
/* True when the member exists and is not null. */
bool ck_json_has(const cJSON *object, const char *key);

/*
 * Check a program's own object (`user`): integers, which are written with digits alone, are below 2^53, other
 * numbers finite. 0 or CK_EFORMAT.
 *
 *   tree  parsed from `text`, with or without something around it that has no number
 */
int ck_json_check_user(const char *where, const cJSON *tree, const char *text,
		       struct ck_error *err);

#define CK_JSON_SHOW 256

/*
 * Text from outside made fit for a message: control characters and what is not UTF-8 as \xNN, cut
 * with "..." where it would be longer than CK_JSON_SHOW. Returns out.
 */
char *ck_json_show(char out[static CK_JSON_SHOW], const char *text);

#endif
