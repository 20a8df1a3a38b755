/*
 * The program's own JSON object, `user` of manifest.json and save.json: carried, not understood.
 */
#ifndef CK_USER_H
#define CK_USER_H

#include <cjson/cJSON.h>

#include "buf.h"
#include "error.h"

/*
 * The member "user" as text, one line, malloc'ed; NULL when it is missing or null. The spelling of
 * values is kept (cJSON would print 2^53 - 1 with 15 digits), so it comes from the text that the
 * tree was parsed from. Returns 0; CK_EFORMAT; CK_ENOMEM.
 */
int ck_user_get(const char *where, const char *text, const cJSON *object, char **out,
		struct ck_error *err);
/* Is the text (NULL: none) one JSON object that a reader takes there? At most 16 MiB. */
int ck_user_check(const char *where, const char *user, struct ck_error *err);
/* Append `"user": {…}`; null for NULL. The text has passed ck_user_check. */
void ck_user_print(struct ck_buf *out, const char *user);

#endif
