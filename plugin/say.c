#include "say.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "buf.h"

void ck_say(const char *fmt, ...)
{
	struct ck_buf line = CK_BUF_INIT;
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	if (!text)
		return;
	ck_buf_add_str(&line, "ckpt: ");
	ck_buf_add_escaped(&line, text);
	ck_buf_add_str(&line, "\n");
	if (!line.failed && write(STDERR_FILENO, line.data, line.len) < 0)
		line.failed = true; /* nobody is left to read it */
	ck_buf_fini(&line);
	free(text);
}
