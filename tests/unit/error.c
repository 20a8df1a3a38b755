#include "error.h"

#include <errno.h>
#include <string.h>

#include "ckpt.h"
#include "tap.h"

static void test_texts_that_do_not_fit(void)
{
	struct ck_error err = CK_ERROR_INIT;
	char longest[CK_ERROR_TEXT + 1];

	memset(longest, 'a', sizeof(longest));
	longest[CK_ERROR_TEXT - 1] = '\0';
	is_int(ck_fail(&err, CK_EIO, "%s", longest), CK_EIO, "a text that just fits");
	is_str(err.text, longest, "is kept whole");

	longest[CK_ERROR_TEXT - 1] = 'a';
	longest[CK_ERROR_TEXT] = '\0';
	ck_fail(&err, CK_EIO, "%s", longest);
	is_int((long)strlen(err.text), CK_ERROR_TEXT - 1, "one byte more: cut");
	is_str(err.text + CK_ERROR_TEXT - 5, "a...", "and marked");

	ck_fail_errno(&err, ENOSPC, "%s", longest);
	is_str(err.text + CK_ERROR_TEXT - 5, "a...", "ck_fail_errno: cut and marked");

	ck_fail(&err, CK_EIO, "cause");
	ck_error_prefix(&err, "%s", longest);
	is_str(err.text + CK_ERROR_TEXT - 5, "a...", "ck_error_prefix: cut and marked");
	is_int(err.code, CK_EIO, "and the code stays");
}

static void test_no_error_struct(void)
{
	is_int(ck_fail(NULL, CK_EARG, "x"), CK_EARG, "ck_fail without a struct");
	is_int(ck_fail_errno(NULL, ENOENT, "x"), CK_ENOENT, "ck_fail_errno without a struct");
	is_int(ck_fail_nomem(NULL, 1), CK_ENOMEM, "ck_fail_nomem without a struct");
	ck_error_prefix(NULL, "rank %d", 3);
	ok(true, "ck_error_prefix without a struct does not crash");
}

static void test_errno(void)
{
	static const struct {
		int errnum;
		int code;
		const char *text;
	} rows[] = {
		{ENOENT, CK_ENOENT, "/run/x: open: No such file or directory"},
		{EEXIST, CK_EEXIST, "/run/x: open: File exists"},
		{ENOMEM, CK_ENOMEM, "/run/x: open: Cannot allocate memory"},
		{ENOSPC, CK_EIO, "/run/x: open: No space left on device"},
		{EDQUOT, CK_EIO, "/run/x: open: Disk quota exceeded"},
		{99999, CK_EIO, "/run/x: open: Unknown error 99999"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ck_error err = CK_ERROR_INIT;

		is_int(ck_fail_errno(&err, rows[i].errnum, "%s: open", "/run/x"), rows[i].code,
		       "errno %d: returned", rows[i].errnum);
		is_int(err.code, rows[i].code, "errno %d: stored", rows[i].errnum);
		is_str(err.text, rows[i].text, "errno %d: text", rows[i].errnum);
	}
}

static void test_nomem(void)
{
	struct ck_error err = CK_ERROR_INIT;

	is_int(ck_fail_nomem(&err, 123456), CK_ENOMEM, "ck_fail_nomem");
	like(err.text, "123456 bytes", "says how many bytes");
}

static void test_prefix(void)
{
	struct ck_error err = CK_ERROR_INIT;

	ck_error_prefix(&err, "step %d", 7);
	is_str(err.text, "", "no error: nothing to prefix");
	ck_fail(&err, CK_EDIGEST, "a: crc32 differs");
	ck_error_prefix(&err, "rank %d", 3);
	ck_error_prefix(&err, "step %d", 7);
	is_str(err.text, "step 7: rank 3: a: crc32 differs", "outermost first");
	is_int(err.code, CK_EDIGEST, "the code stays");
}

static void test_own_text_as_argument(void)
{
	struct ck_error err = CK_ERROR_INIT;

	ck_fail(&err, CK_EIO, "first");
	ck_fail(&err, CK_EFORMAT, "second, after %s", err.text);
	is_str(err.text, "second, after first", "the old text may be an argument of the new one");
	is_int(err.code, CK_EFORMAT, "with the new code");
}

static void test_code_names(void)
{
	static const struct {
		int code;
		int public_code;
		const char *name;
	} rows[] = {
		{CK_OK, 0, "ok"},
		{CK_EARG, CKPT_EARG, "bad argument"},
		{CK_EIO, CKPT_EIO, "input/output error"},
		{CK_ENOMEM, CKPT_ENOMEM, "out of memory"},
		{CK_EFORMAT, CKPT_EFORMAT, "bad format"},
		{CK_EDIGEST, CKPT_EDIGEST, "digest mismatch"},
		{CK_ENOENT, CKPT_ENOENT, "not found"},
		{CK_EEXIST, CKPT_EEXIST, "exists already"},
		{CK_EFENCED, CKPT_EFENCED, "fenced"},
		{CK_EPEER, CKPT_EPEER, "peer failure"},
		{CK_EWORLD, CKPT_EWORLD, "another world size"},
		{CK_EITEM, CKPT_EITEM, "items differ"},
		{CK_EREFUSED, CKPT_EREFUSED, "refused"},
	};

	is_str(ck_code_name(1), "unknown error", "a positive number is no code");
	is_str(ck_code_name(CK_EREFUSED - 1), "unknown error", "nor is one behind the last");
	is_str(ck_code_name(-2147483647 - 1), "unknown error", "nor the smallest int");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		is_str(ck_code_name(rows[i].code), rows[i].name, "code %d", rows[i].code);
		is_int(rows[i].code, rows[i].public_code, "code %d equals that of ckpt.h",
		       rows[i].code);
	}
}

int main(void)
{
	test_texts_that_do_not_fit();
	test_no_error_struct();
	test_errno();
	test_nomem();
	test_prefix();
	test_own_text_as_argument();
	test_code_names();
	return done_testing();
}
