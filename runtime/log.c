/* What the runtime says: one function, rank 0 only. */
#include "handle.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

double ck_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void emit(const ckpt *ck, const char *fmt, va_list args)
{
	char line[2 * CK_ERROR_TEXT] = "ckpt: ";

	vsnprintf(line + 6, sizeof(line) - 6, fmt, args);
	for (char *c = line; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127) /* a message stays one line */
			*c = ' ';
	if (ck->log)
		ck->log(ck->log_arg, line);
	else
		fprintf(stderr, "%s\n", line);
}

void ck_log(const ckpt *ck, const char *fmt, ...)
{
	va_list args;

	if (!ck_is_root(ck))
		return;
	va_start(args, fmt);
	emit(ck, fmt, args);
	va_end(args);
}

void ck_note(const ckpt *ck, const char *event, uint64_t step, const char *text)
{
	if (ck_is_root(ck) && ck->generation)
		ck_event_add(ck->io, ck->set.dir, ck->generation, event, step, text, NULL);
}

int ck_keep(ckpt *ck, int code, const struct ck_error *err)
{
	if (code < 0) {
		ck->error = *err;
		ck->error.code = code;
		if (!*ck->error.text)
			snprintf(ck->error.text, sizeof(ck->error.text), "%s", ck_code_name(code));
	}
	if (code == CK_EPEER || code == CK_EFENCED)
		ck->dead = code;
	return code;
}
