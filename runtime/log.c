/* What the runtime says: one function, rank 0 only; and what becomes of a handle that fails. */
#include "handle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

/* An event on its way to the background thread. */
struct note {
	const ckpt *ck;
	uint64_t generation, step;
	const char *event; /* a literal */
	char text[CK_ERROR_TEXT];
};

static void write_note(void *arg)
{
	struct note *note = arg;

	ck_event_add(note->ck->io, note->ck->set.dir, note->generation, note->event, note->step,
		     note->text, NULL);
	free(note);
}

void ck_note(const ckpt *ck, const char *event, uint64_t step, const char *text)
{
	struct note *note;

	if (!ck_is_root(ck) || !ck->background || !(note = malloc(sizeof(*note))))
		return;
	*note = (struct note){.ck = ck, .generation = ck->generation, .step = step, .event = event};
	snprintf(note->text, sizeof(note->text), "%s", text);
	if (ck_background_post(ck->background, write_note, note, NULL))
		free(note);
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

/* Its memory is its own: the handle of the parent stays as it is. */
static void disown(ckpt *ck)
{
	struct ck_error err = CK_ERROR_INIT;

	ck->dead = ck_keep(ck,
			   ck_fail(&err, CK_EREFUSED,
				   "process %d has opened the handle, this is process %d, forked "
				   "from it: only the one that opened may use it",
				   (int)ck->pid, (int)getpid()),
			   &err);
}

bool ck_is_idle(ckpt *ck, int *answer)
{
	if (ck && !ck->off && !ck->dead && ck->pid != getpid())
		disown(ck);
	*answer = ck ? ck->dead : CK_EARG;
	return *answer || ck->off;
}
