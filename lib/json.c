#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_scan.h"
#include "parse.h"

/* Up to this many members, comparing all pairs is cheaper than sorting. */
#define FEW_MEMBERS 12

static size_t members(const cJSON *object)
{
	size_t count = 0;

	for (const cJSON *node = object->child; node; node = node->next)
		count++;
	return count;
}

static int fail_duplicate(const char *where, const char *key, struct ck_error *err)
{
	char shown[CK_JSON_SHOW];

	return ck_fail(err, CK_EFORMAT, "%s: duplicate key '%s'", where, ck_json_show(shown, key));
}

static int check_few_keys(const char *where, const cJSON *object, struct ck_error *err)
{
	for (const cJSON *a = object->child; a; a = a->next)
		for (const cJSON *b = a->next; b; b = b->next)
			if (strcmp(a->string, b->string) == 0)
				return fail_duplicate(where, a->string, err);
	return 0;
}

static int compare_keys(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int check_many_keys(const char *where, const cJSON *object, size_t count,
			   struct ck_error *err)
{
	const char **keys = calloc(count, sizeof(*keys));
	size_t i = 0;
	int rc = 0;

	if (!keys)
		return ck_fail_nomem(err, count * sizeof(*keys));
	for (const cJSON *node = object->child; node; node = node->next)
		keys[i++] = node->string;
	qsort(keys, count, sizeof(*keys), compare_keys);
	for (i = 1; i < count && rc == 0; i++)
		if (strcmp(keys[i - 1], keys[i]) == 0)
			rc = fail_duplicate(where, keys[i], err);
	free(keys);
	return rc;
}

/* Recursion is bounded: the scan has checked the depth. */
static int check_keys(const char *where, const cJSON *tree, struct ck_error *err)
{
	int rc = 0;

	if (cJSON_IsObject(tree)) {
		size_t count = members(tree);

		rc = count <= FEW_MEMBERS ? check_few_keys(where, tree, err)
					  : check_many_keys(where, tree, count, err);
	}
	for (const cJSON *node = tree->child; node && rc == 0; node = node->next)
		if (node->child)
			rc = check_keys(where, node, err);
	return rc;
}

int ck_json_parse(const char *where, const char *text, size_t bytes, cJSON **tree,
		  struct ck_error *err)
{
	cJSON *parsed;
	int rc = ck_json_scan(where, text, bytes, err);

	if (rc)
		return rc;
	parsed = cJSON_ParseWithLength(text, bytes);
	/* The text is flawless, so what cJSON lacked was memory. */
	if (!parsed)
		return ck_fail(err, CK_ENOMEM, "%s: out of memory for %zu bytes of JSON", where,
			       bytes);
	rc = check_keys(where, parsed, err);
	if (rc)
		cJSON_Delete(parsed);
	else
		*tree = parsed;
	return rc;
}

/* "where: key: text", or "key: text" when the caller puts its own words in front. */
static int bad(const char *where, const char *key, struct ck_error *err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static int bad(const char *where, const char *key, struct ck_error *err, const char *fmt, ...)
{
	char text[CK_JSON_SHOW + 128];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return ck_fail(err, CK_EFORMAT, "%s%s%s: %s", where ? where : "", where ? ": " : "", key,
		       text);
}

static const char *type_name(const cJSON *node)
{
	if (cJSON_IsObject(node))
		return "an object";
	if (cJSON_IsArray(node))
		return "an array";
	if (cJSON_IsString(node))
		return "a string";
	if (cJSON_IsNumber(node))
		return "a number";
	return cJSON_IsNull(node) ? "null" : "a boolean";
}

typedef cJSON_bool (*is_type)(const cJSON *node);

static int member(const char *where, const cJSON *object, const char *key, is_type is,
		  const char *wanted, const cJSON **out, struct ck_error *err)
{
	const cJSON *node = cJSON_GetObjectItemCaseSensitive(object, key);

	if (!node)
		return bad(where, key, err, "missing, %s wanted", wanted);
	if (!is(node))
		return bad(where, key, err, "%s, %s wanted", type_name(node), wanted);
	*out = node;
	return 0;
}

static int integer_of(const char *where, const char *key, const cJSON *node, uint64_t max,
		      uint64_t *out, struct ck_error *err)
{
	double value;

	if (!cJSON_IsNumber(node))
		return bad(where, key, err, "%s, an integer wanted", type_name(node));
	value = node->valuedouble;
	if (max > CK_JSON_INT_MAX)
		max = CK_JSON_INT_MAX;
	if (!(value >= 0 && value <= (double)max) || value != (double)(uint64_t)value)
		return bad(where, key, err, "%.17g, an integer from 0 to %" PRIu64 " wanted", value,
			   max);
	*out = (uint64_t)value;
	return 0;
}

int ck_json_u64(const char *where, const cJSON *object, const char *key, uint64_t max,
		uint64_t *out, struct ck_error *err)
{
	const cJSON *node = NULL;
	int rc = member(where, object, key, cJSON_IsNumber, "an integer", &node, err);

	return rc ? rc : integer_of(where, key, node, max, out, err);
}

int ck_json_double(const char *where, const cJSON *object, const char *key, double *out,
		   struct ck_error *err)
{
	const cJSON *node = NULL;
	int rc = member(where, object, key, cJSON_IsNumber, "a number", &node, err);

	if (rc)
		return rc;
	if (!(node->valuedouble >= 0) || !isfinite(node->valuedouble))
		return bad(where, key, err, "%g, a finite number from 0 wanted", node->valuedouble);
	*out = node->valuedouble;
	return 0;
}

int ck_json_bool(const char *where, const cJSON *object, const char *key, bool *out,
		 struct ck_error *err)
{
	const cJSON *node = NULL;
	int rc = member(where, object, key, cJSON_IsBool, "a boolean", &node, err);

	if (rc == 0)
		*out = cJSON_IsTrue(node);
	return rc;
}

int ck_json_string(const char *where, const cJSON *object, const char *key, size_t max_bytes,
		   const char **out, struct ck_error *err)
{
	const cJSON *node = NULL;
	size_t bytes;
	int rc = member(where, object, key, cJSON_IsString, "a string", &node, err);

	if (rc)
		return rc;
	bytes = strlen(node->valuestring);
	if (bytes > max_bytes)
		return bad(where, key, err, "a string of %zu bytes, the limit is %zu", bytes,
			   max_bytes);
	*out = node->valuestring;
	return 0;
}

int ck_json_array(const char *where, const cJSON *object, const char *key, const cJSON **out,
		  struct ck_error *err)
{
	return member(where, object, key, cJSON_IsArray, "an array", out, err);
}

int ck_json_object(const char *where, const cJSON *object, const char *key, const cJSON **out,
		   struct ck_error *err)
{
	return member(where, object, key, cJSON_IsObject, "an object", out, err);
}

int ck_json_u64_array(const char *where, const cJSON *object, const char *key, size_t max_count,
		      uint64_t *out, size_t *count, struct ck_error *err)
{
	const cJSON *array = NULL, *node;
	size_t n, i = 0;
	int rc = ck_json_array(where, object, key, &array, err);

	if (rc)
		return rc;
	n = members(array);
	if (n > max_count)
		return bad(where, key, err, "%zu values, the limit is %zu", n, max_count);
	for (node = array->child; node && rc == 0; node = node->next)
		rc = integer_of(where, key, node, CK_JSON_INT_MAX, &out[i++], err);
	if (rc == 0)
		*count = n;
	return rc;
}

bool ck_json_has(const cJSON *object, const char *key)
{
	const cJSON *node = cJSON_GetObjectItemCaseSensitive(object, key);

	return node && !cJSON_IsNull(node);
}

/* The next number of flawless JSON, strings left out; "" if there is none. */
static const char *find_number(const char *at)
{
	for (; *at && *at != '-' && (*at < '0' || *at > '9'); at++)
		if (*at == '"')
			for (at++; *at && *at != '"'; at++)
				at += *at == '\\' && at[1];
	return at;
}

/* 64-bit seeds lose digits in readers that have doubles alone; a fraction or an exponent is a double anyway. */
static int check_number(const char *where, const cJSON *node, const char *spelling,
			struct ck_error *err)
{
	const char *key;
	char shown[CK_JSON_SHOW];
	bool integer = !strchr(".eE", spelling[strspn(spelling, "-0123456789")]);

	if (isfinite(node->valuedouble) &&
	    (!integer || fabs(node->valuedouble) <= (double)CK_JSON_INT_MAX))
		return 0;
	key = node->string ? ck_json_show(shown, node->string) : "array";
	if (!integer)
		return bad(where, key, err, "%g is beyond the numbers that JSON readers hold",
			   node->valuedouble);
	return bad(where, key, err,
		   "%.17g is beyond 2^53, where JSON readers lose digits: store it as text",
		   node->valuedouble);
}

/* The tree's numbers come in the order of the text; `*at` goes along. */
static int check_numbers(const char *where, const cJSON *tree, const char **at,
			 struct ck_error *err)
{
	int rc = 0;

	if (cJSON_IsNumber(tree)) {
		*at = find_number(*at);
		rc = check_number(where, tree, *at, err);
		*at += strspn(*at, "+-.0123456789eE");
	}
	for (const cJSON *node = tree->child; node && rc == 0; node = node->next)
		rc = check_numbers(where, node, at, err);
	return rc;
}

int ck_json_check_user(const char *where, const cJSON *tree, const char *text, struct ck_error *err)
{
	return check_numbers(where, tree, &text, err);
}

/* Is a valid sequence a control character: C0, DEL or C1? */
static bool is_control(const unsigned char *sequence)
{
	return sequence[0] < 0x20 || sequence[0] == 0x7f ||
	       (sequence[0] == 0xc2 && sequence[1] < 0xa0);
}

char *ck_json_show(char out[static CK_JSON_SHOW], const char *text)
{
	const unsigned char *next = (const unsigned char *)text;
	size_t len = 0;

	while (*next) {
		int length = ck_utf8_sequence(next, strnlen((const char *)next, 4));
		bool escape = length <= 0 || is_control(next);

		/* Room for the longest of one sequence, then "..." and the NUL. */
		if (len + 4 + 4 > CK_JSON_SHOW) {
			memcpy(out + len, "...", 3);
			len += 3;
			break;
		}
		if (escape) {
			len += (size_t)snprintf(out + len, 5, "\\x%02x", *next++);
			continue;
		}
		memcpy(out + len, next, (size_t)length);
		len += (size_t)length;
		next += length;
	}
	out[len] = '\0';
	return out;
}
