/* Output for programs: one JSON object, one member per line. */
#include "cmd.h"

#include <inttypes.h>
#include <string.h>

#include "parse.h"

/* Comma, line break, indent, key. */
static void begin_member(struct ck_cmd_json *json, const char *key)
{
	if (json->has_member)
		ck_buf_add_str(&json->text, ",");
	if (json->depth)
		ck_buf_add_str(&json->text, "\n");
	for (unsigned i = 0; i < json->depth; i++)
		ck_buf_add_str(&json->text, "\t");
	if (key) {
		ck_buf_add_json_string(&json->text, key);
		ck_buf_add_str(&json->text, ": ");
	}
	json->has_member = true;
}

void ck_cmd_json_open(struct ck_cmd_json *json, const char *key, char bracket)
{
	begin_member(json, key);
	ck_buf_add(&json->text, &bracket, 1);
	json->depth++;
	json->has_member = false;
}

void ck_cmd_json_close(struct ck_cmd_json *json, char bracket)
{
	json->depth--;
	if (json->has_member) {
		ck_buf_add_str(&json->text, "\n");
		for (unsigned i = 0; i < json->depth; i++)
			ck_buf_add_str(&json->text, "\t");
	}
	ck_buf_add(&json->text, &bracket, 1);
	json->has_member = true;
}

static bool is_utf8(const char *text)
{
	size_t left = strlen(text);

	while (left) {
		int bytes = ck_utf8_sequence((const unsigned char *)text, left);

		if (bytes == 0)
			return false;
		text += bytes;
		left -= (size_t)bytes;
	}
	return true;
}

/* JSON holds Unicode; a path of other bytes is given as it is shown to people. */
void ck_cmd_json_text(struct ck_cmd_json *json, const char *key, const char *text)
{
	struct ck_buf shown = CK_BUF_INIT;

	if (!text) {
		ck_cmd_json_null(json, key);
		return;
	}
	begin_member(json, key);
	if (!is_utf8(text)) {
		ck_buf_add_escaped(&shown, text);
		json->text.failed |= shown.failed;
		text = shown.data ? shown.data : "";
	}
	ck_buf_add_json_string(&json->text, text);
	ck_buf_fini(&shown);
}

void ck_cmd_json_number(struct ck_cmd_json *json, const char *key, uint64_t value)
{
	begin_member(json, key);
	ck_buf_addf(&json->text, "%" PRIu64, value);
}

void ck_cmd_json_seconds(struct ck_cmd_json *json, const char *key, double seconds)
{
	begin_member(json, key);
	ck_buf_addf(&json->text, "%.3f", seconds);
}

void ck_cmd_json_flag(struct ck_cmd_json *json, const char *key, bool value)
{
	begin_member(json, key);
	ck_buf_add_str(&json->text, value ? "true" : "false");
}

void ck_cmd_json_null(struct ck_cmd_json *json, const char *key)
{
	begin_member(json, key);
	ck_buf_add_str(&json->text, "null");
}

void ck_cmd_json_time(struct ck_cmd_json *json, const char *key, int64_t epoch)
{
	char text[32];

	ck_cmd_json_text(json, key, ck_format_time(epoch, text));
}

int ck_cmd_json_print(struct ck_cmd_json *json, FILE *stream, struct ck_error *err)
{
	int rc = ck_buf_check(&json->text, err);

	if (!rc)
		fprintf(stream, "%s\n", json->text.data);
	ck_buf_fini(&json->text);
	return rc;
}
