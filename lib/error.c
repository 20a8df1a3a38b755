#include "error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Mark a text that did not fit, so that nobody takes a cut path for a whole one. */
static void mark_cut(char *text, int wanted)
{
	if (wanted >= CK_ERROR_TEXT)
		memcpy(text + CK_ERROR_TEXT - 4, "...", 4);
}

void ck_error_set(struct ck_error *err, int code, int errnum, const char *fmt, ...)
{
	char text[CK_ERROR_TEXT], cause[64];
	va_list args;
	int wanted;

	if (!err)
		return;
	va_start(args, fmt);
	wanted = vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (errnum && wanted >= 0 && wanted < CK_ERROR_TEXT)
		wanted += snprintf(text + wanted, sizeof(text) - (size_t)wanted, ": %s",
				   strerror_r(errnum, cause, sizeof(cause)));
	mark_cut(text, wanted);
	err->code = code;
	memcpy(err->text, text, sizeof(text));
}

int ck_errno_code(int errnum)
{
	switch (errnum) {
	case ENOENT:
		return CK_ENOENT;
	case EEXIST:
		return CK_EEXIST;
	case ENOMEM:
		return CK_ENOMEM;
	default:
		return CK_EIO;
	}
}

void ck_error_prefix(struct ck_error *err, const char *fmt, ...)
{
	char prefix[CK_ERROR_TEXT], whole[2 * CK_ERROR_TEXT + 2];
	va_list args;
	int wanted;

	if (!err || err->code == CK_OK)
		return;
	va_start(args, fmt);
	vsnprintf(prefix, sizeof(prefix), fmt, args);
	va_end(args);
	wanted = snprintf(whole, sizeof(whole), "%s: %s", prefix, err->text);
	memcpy(err->text, whole, sizeof(err->text) - 1);
	err->text[sizeof(err->text) - 1] = '\0';
	mark_cut(err->text, wanted);
}

bool ck_error_is_space(const struct ck_error *err)
{
	static const int causes[] = {ENOSPC, EDQUOT};
	char cause[64];

	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
		if (strstr(err->text, strerror_r(causes[i], cause, sizeof(cause))))
			return true;
	return false;
}

const char *ck_code_name(int code)
{
	static const char *const names[] = {
		"ok",         "bad argument",    "input/output error", "out of memory",
		"bad format", "digest mismatch", "not found",          "exists already",
		"fenced",     "peer failure",    "another world size", "items differ",
		"refused",
	};
	const int count = (int)(sizeof(names) / sizeof(names[0]));

	return code <= 0 && code > -count ? names[-code] : "unknown error";
}
