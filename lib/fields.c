#include "fields.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "parse.h"

static int check_version(const char *where, const cJSON *object, struct ck_error *err)
{
	uint64_t version;
	int rc;

	rc = ck_json_u64(where, object, "schema_version", CK_JSON_INT_MAX, &version, err);
	if (rc)
		return rc;
	if (version != CK_SCHEMA_VERSION)
		return ck_fail(err, CK_EFORMAT,
			       "%s: schema_version is %" PRIu64 ", this program reads %d", where,
			       version, CK_SCHEMA_VERSION);
	return 0;
}

int ck_field_parse(const char *where, const char *text, size_t bytes, cJSON **tree,
		   struct ck_error *err)
{
	int rc;

	*tree = NULL;
	rc = ck_json_parse(where, text, bytes, tree, err);
	return rc ? rc : check_version(where, *tree, err);
}

int ck_field_finish(struct ck_buf *out, struct ck_buf *text, int rc, struct ck_error *err)
{
	if (!rc)
		ck_buf_add(out, text->data, text->len);
	if (!rc)
		rc = ck_buf_check(out, err);
	ck_buf_fini(text);
	return rc;
}

/* Of a valid UTF-8 sequence: C0, DEL or C1, which terminals obey. */
static bool is_control(const unsigned char *at)
{
	return at[0] < 0x20 || at[0] == 0x7f || (at[0] == 0xc2 && at[1] < 0xa0);
}

int ck_text_check(const char *where, const char *key, const char *text, struct ck_error *err)
{
	const unsigned char *begin = (const unsigned char *)text, *at = begin;
	uint64_t left = strlen(text);

	while (left) {
		int bytes = ck_utf8_sequence(at, left);

		if (!bytes)
			return ck_fail(err, CK_EFORMAT, "%s: %s: byte %td is not UTF-8", where, key,
				       at - begin);
		if (is_control(at))
			return ck_fail(err, CK_EFORMAT,
				       "%s: %s: byte %td is a control character (0x%02x)", where,
				       key, at - begin, at[bytes - 1]);
		at += bytes;
		left -= (uint64_t)bytes;
	}
	return 0;
}

int ck_hex_check(const char *where, const char *key, const char *text, size_t digits,
		 struct ck_error *err)
{
	size_t len = strspn(text, "0123456789abcdef");

	if (text[len])
		return ck_fail(err, CK_EFORMAT, "%s: %s: character %zu is no lower-case hex digit",
			       where, key, len);
	if (len != digits)
		return ck_fail(err, CK_EFORMAT, "%s: %s: %zu hex digits, must be %zu", where, key,
			       len, digits);
	return 0;
}

int ck_field_text(const char *where, const cJSON *object, const char *key, char *dst, size_t size,
		  struct ck_error *err)
{
	const char *text;
	int rc;

	rc = ck_json_string(where, object, key, size - 1, &text, err);
	if (!rc)
		rc = ck_text_check(where, key, text, err);
	if (!rc)
		memcpy(dst, text, strlen(text) + 1);
	return rc;
}

int ck_field_hex(const char *where, const cJSON *object, const char *key, size_t digits, char *dst,
		 struct ck_error *err)
{
	const char *text;
	int rc;

	rc = ck_json_string(where, object, key, digits, &text, err);
	if (!rc)
		rc = ck_hex_check(where, key, text, digits, err);
	if (!rc)
		memcpy(dst, text, digits + 1);
	return rc;
}

int ck_field_u32(const char *where, const cJSON *object, const char *key, uint32_t max,
		 uint32_t *out, struct ck_error *err)
{
	uint64_t value;
	int rc;

	rc = ck_json_u64(where, object, key, max, &value, err);
	if (!rc)
		*out = (uint32_t)value;
	return rc;
}

int ck_field_time(const char *where, const cJSON *object, const char *key, int64_t *out,
		  struct ck_error *err)
{
	const char *text;
	int rc;

	rc = ck_json_string(where, object, key, 31, &text, err);
	if (rc)
		return rc;
	rc = ck_parse_time(key, text, out, err);
	if (rc)
		ck_error_prefix(err, "%s", where);
	return rc;
}

int ck_field_time_or_null(const char *where, const cJSON *object, const char *key, int64_t *out,
			  struct ck_error *err)
{
	if (cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(object, key))) {
		*out = 0;
		return 0;
	}
	return ck_field_time(where, object, key, out, err);
}

int ck_field_job(const char *where, const cJSON *object, struct ck_job *out, struct ck_error *err)
{
	struct ck_job job = {.cluster = ""};
	char at[PATH_MAX + 8];
	const cJSON *tree;
	int rc;

	snprintf(at, sizeof(at), "%s: job", where);
	rc = ck_json_object(where, object, "job", &tree, err);
	if (!rc)
		rc = ck_field_text(at, tree, "cluster", job.cluster, sizeof(job.cluster), err);
	if (!rc)
		rc = ck_field_text(at, tree, "id", job.job_id, sizeof(job.job_id), err);
	if (!rc)
		rc = ck_json_u64(at, tree, "restart_count", CK_JSON_INT_MAX, &job.restart_count,
				 err);
	if (!rc)
		rc = ck_field_text(at, tree, "step_id", job.step_id, sizeof(job.step_id), err);
	if (!rc && ck_json_has(tree, "nodes"))
		rc = ck_field_text(at, tree, "nodes", job.nodes, sizeof(job.nodes), err);
	if (!rc)
		*out = job;
	return rc;
}

void ck_field_print_text(struct ck_buf *out, const char *key, const char *text)
{
	ck_buf_addf(out, "\"%s\": ", key);
	ck_buf_add_json_string(out, text);
}

void ck_field_print_time(struct ck_buf *out, const char *key, int64_t epoch)
{
	char text[32];

	ck_buf_addf(out, "\"%s\": \"%s\"", key, ck_format_time(epoch, text));
}

void ck_field_print_time_or_null(struct ck_buf *out, const char *key, int64_t epoch)
{
	if (epoch)
		ck_field_print_time(out, key, epoch);
	else
		ck_buf_addf(out, "\"%s\": null", key);
}

void ck_field_print_job(struct ck_buf *out, const struct ck_job *job, bool with_nodes)
{
	ck_buf_add_str(out, "\"job\": {");
	ck_field_print_text(out, "cluster", job->cluster);
	ck_buf_add_str(out, ", ");
	ck_field_print_text(out, "id", job->job_id);
	ck_buf_addf(out, ", \"restart_count\": %" PRIu64 ", ", job->restart_count);
	ck_field_print_text(out, "step_id", job->step_id);
	if (with_nodes) {
		ck_buf_add_str(out, ", ");
		ck_field_print_text(out, "nodes", job->nodes);
	}
	ck_buf_add_str(out, "}");
}

bool ck_job_equal(const struct ck_job *a, const struct ck_job *b)
{
	return strcmp(a->cluster, b->cluster) == 0 && strcmp(a->job_id, b->job_id) == 0 &&
	       a->restart_count == b->restart_count && strcmp(a->step_id, b->step_id) == 0;
}
