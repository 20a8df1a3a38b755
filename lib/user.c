#include "user.h"

#include <inttypes.h>
#include <string.h>

#include "json.h"

#define USER_MAX_BYTES (UINT64_C(16) << 20)

/* text[at] is the quote that opens a string of flawless JSON: where does it go on behind it? */
static size_t behind_string(const char *text, size_t at)
{
	for (at++; text[at] != '"'; at++)
		if (text[at] == '\\')
			at++;
	return at + 1;
}

/* The same for a value of any kind. */
static size_t behind_value(const char *text, size_t at)
{
	unsigned depth = 0;

	do {
		if (text[at] == '"') {
			at = behind_string(text, at);
			continue;
		}
		if (text[at] == '{' || text[at] == '[')
			depth++;
		if (text[at] == '}' || text[at] == ']')
			depth--;
		at++;
	} while (depth > 0 || !strchr(",}] \t\r\n", text[at]));
	return at;
}

/* Leave out white space between tokens. */
static void add_minified(struct ck_buf *out, const char *text, size_t bytes)
{
	for (size_t at = 0; at < bytes;) {
		size_t end = text[at] == '"' ? behind_string(text, at) : at + 1;

		if (!strchr(" \t\r\n", text[at]))
			ck_buf_add(out, text + at, end - at);
		at = end;
	}
}

/* Where a member of the outermost object has its value, 0 if its key is not in plain letters. */
static size_t find_value(const char *text, const char *key)
{
	size_t at = strcspn(text, "{") + 1, len = strlen(key), begin;

	for (;;) {
		at += strcspn(text + at, "\"}");
		if (text[at] == '}')
			return 0;
		begin = at + 1;
		at = behind_string(text, at);
		at += strcspn(text + at, ":") + 1;
		at += strspn(text + at, " \t\r\n");
		if (strncmp(text + begin, key, len) == 0 && text[begin + len] == '"')
			return at;
		at = behind_value(text, at);
	}
}

int ck_user_get(const char *where, const char *text, const cJSON *object, char **out,
		struct ck_error *err)
{
	struct ck_buf line = CK_BUF_INIT;
	const cJSON *user;
	size_t begin;
	int rc;

	*out = NULL;
	if (!ck_json_has(object, "user"))
		return 0;
	rc = ck_json_object(where, object, "user", &user, err);
	if (rc)
		return rc;
	begin = find_value(text, "user");
	if (begin == 0)
		return ck_fail(err, CK_EFORMAT, "%s: user: the key is written with escapes", where);
	add_minified(&line, text + begin, behind_value(text, begin) - begin);
	rc = ck_buf_check(&line, err);
	if (!rc)
		*out = line.data;
	else
		ck_buf_fini(&line);
	return rc;
}

/* Parsed inside of an object, as it will be in the file, so that it meets the limit on depth. */
int ck_user_check(const char *where, const char *user, struct ck_error *err)
{
	struct ck_buf wrapped = CK_BUF_INIT;
	cJSON *tree = NULL;
	int rc;

	if (!user)
		return 0;
	if (strlen(user) > USER_MAX_BYTES)
		return ck_fail(err, CK_EFORMAT, "%s: user: %zu bytes, at most %" PRIu64, where,
			       strlen(user), USER_MAX_BYTES);
	ck_buf_add_str(&wrapped, "{\"user\":");
	ck_buf_add_str(&wrapped, user);
	ck_buf_add_str(&wrapped, "}");
	rc = ck_buf_check(&wrapped, err);
	if (!rc)
		rc = ck_json_parse(where, wrapped.data, wrapped.len, &tree, err);
	if (!rc && (!cJSON_IsObject(tree->child) || tree->child->next))
		rc = ck_fail(err, CK_EFORMAT, "%s: user: not one JSON object", where);
	if (!rc)
		rc = ck_json_check_user(where, tree->child, user, err);
	cJSON_Delete(tree);
	ck_buf_fini(&wrapped);
	return rc;
}

void ck_user_print(struct ck_buf *out, const char *user)
{
	ck_buf_add_str(out, "\"user\": ");
	if (user)
		add_minified(out, user, strlen(user));
	else
		ck_buf_add_str(out, "null");
}
