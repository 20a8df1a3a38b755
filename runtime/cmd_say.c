/* Lines for people, and what the command exits with. */
#include "cmd.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void print_line(FILE *stream, const char *prefix, const char *text, const char *suffix)
{
	struct ck_buf line = CK_BUF_INIT;

	ck_buf_add_escaped(&line, prefix);
	ck_buf_add_escaped(&line, text);
	ck_buf_add_escaped(&line, suffix);
	fprintf(stream, "%s\n",
		ck_buf_check(&line, NULL) ? "ckpt: out of memory"
		: line.data               ? line.data
					  : "");
	ck_buf_fini(&line);
}

static char *format(const char *fmt, va_list args)
{
	char *text;

	return vasprintf(&text, fmt, args) < 0 ? NULL : text;
}

void ck_cmd_line(FILE *stream, const char *fmt, ...)
{
	va_list args;
	char *text;

	va_start(args, fmt);
	text = format(fmt, args);
	va_end(args);
	print_line(stream, "", text ? text : "ckpt: out of memory", "");
	free(text);
}

/* "ckpt: ", "ckpt verify: " */
static void complain(const struct ck_cmd *cmd, const char *text, const char *suffix)
{
	char prefix[64];

	snprintf(prefix, sizeof(prefix), "ckpt%s%s: ", *cmd->verb ? " " : "", cmd->verb);
	fflush(stdout);
	print_line(stderr, prefix, text ? text : "out of memory", suffix);
}

void ck_cmd_complain(const struct ck_cmd *cmd, const char *fmt, ...)
{
	va_list args;
	char *text;

	va_start(args, fmt);
	text = format(fmt, args);
	va_end(args);
	complain(cmd, text, "");
	free(text);
}

int ck_cmd_usage(const struct ck_cmd *cmd, const char *fmt, ...)
{
	char suffix[64];
	va_list args;
	char *text;

	va_start(args, fmt);
	text = format(fmt, args);
	va_end(args);
	snprintf(suffix, sizeof(suffix), " (see 'ckpt help%s%s')", *cmd->verb ? " " : "",
		 cmd->verb);
	complain(cmd, text, suffix);
	free(text);
	return CK_CMD_USAGE;
}

enum ck_cmd_exit ck_cmd_tell(const struct ck_cmd *cmd, int code, const struct ck_error *err)
{
	if (code == CK_OK)
		return CK_CMD_FINE;
	if (ck_cmd_interrupted())
		return CK_CMD_INTERRUPTED;
	if (code == CK_EARG)
		return ck_cmd_usage(cmd, "%s", err->text);
	ck_cmd_complain(cmd, "%s", err->text);
	return ck_is_unseen(code) ? CK_CMD_UNCHECKED : CK_CMD_BAD;
}

/* Position in the order of ck_cmd_worse. */
static int weight(enum ck_cmd_exit code)
{
	static const enum ck_cmd_exit order[] = {CK_CMD_FINE, CK_CMD_UNCHECKED, CK_CMD_BAD,
						 CK_CMD_USAGE, CK_CMD_INTERRUPTED};
	int i = 0;

	while (order[i] != code)
		i++;
	return i;
}

enum ck_cmd_exit ck_cmd_worse(enum ck_cmd_exit a, enum ck_cmd_exit b)
{
	return weight(a) >= weight(b) ? a : b;
}

int ck_cmd_finish(const struct ck_cmd *cmd, int exit_code)
{
	bool failed = ferror(stdout);
	int errnum = fclose(stdout) ? errno : 0;

	if (errnum || failed) {
		ck_cmd_complain(cmd, "standard output: cannot be written%s%s", errnum ? ": " : "",
				errnum ? strerror(errnum) : "");
		return exit_code ? exit_code : CK_CMD_UNCHECKED;
	}
	return exit_code;
}
