#include "sums.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "digest.h"
#include "dirfile.h"
#include "json.h"
#include "names.h"

static size_t line_length(const char *text)
{
	return strcspn(text, "\n");
}

/* Both texts differ: say in which line. */
static int fail_different(const char *path, const char *got, const char *want, struct ck_error *err)
{
	char shown[CK_JSON_SHOW], line[CK_JSON_SHOW];
	size_t number = 1;

	while (*got && *want && line_length(got) == line_length(want) &&
	       strncmp(got, want, line_length(got) + 1) == 0) {
		got += line_length(got) + 1;
		want += line_length(want) + 1;
		number++;
	}
	snprintf(line, sizeof(line), "%.*s", (int)line_length(got), got);
	ck_json_show(shown, line);
	if (!*want)
		return ck_fail(err, CK_EFORMAT,
			       "%s: line %zu is '%s', by the manifest there is none", path, number,
			       shown);
	return ck_fail(err, CK_EFORMAT, "%s: line %zu is %s%s%s, by the manifest it is '%.*s'",
		       path, number, *got ? "'" : "", *got ? shown : "missing", *got ? "'" : "",
		       (int)line_length(want), want);
}

int ck_sums_check(const struct ck_io *io, const char *step, const struct ck_manifest *manifest,
		  const struct ck_buf *text, struct ck_error *err)
{
	struct ck_buf want = CK_BUF_INIT, got = CK_BUF_INIT;
	char sha256[CK_SHA256_HEX + 1], path[PATH_MAX];
	int rc;

	rc = ck_sha256_hex(text->data, text->len, sha256, err);
	if (!rc)
		rc = ck_sums_print(manifest, sha256, &want, err);
	if (!rc)
		rc = ck_dirfile_read(io, step, CK_SUMS_FILE, CK_JSON_MAX_BYTES, path, &got, err);
	if (!rc && strlen(got.data) != got.len)
		rc = ck_fail(err, CK_EFORMAT, "%s: a NUL byte at byte %zu", path, strlen(got.data));
	else if (!rc && strcmp(got.data, want.data) != 0)
		rc = fail_different(path, got.data, want.data, err);
	ck_buf_fini(&got);
	ck_buf_fini(&want);
	return rc;
}
