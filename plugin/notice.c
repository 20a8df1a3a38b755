#include "notice.h"

#include <slurm/spank.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "buf.h"

static struct {
	bool later;
	struct ck_buf text;
} kept = {false, CK_BUF_INIT};

/* The job is submitted, and its id may still be in stdio's buffer. */
static void say_kept(int status, void *unused)
{
	(void)unused;
	if (status == 0 && kept.text.len && !kept.text.failed) {
		fflush(stdout);
		dprintf(STDERR_FILENO, "sbatch: ckpt: %.*s\n", (int)kept.text.len,
			(const char *)kept.text.data);
	}
	ck_buf_fini(&kept.text);
}

void ck_notice_init(bool parsed)
{
	kept.later = (parsed || !isatty(STDERR_FILENO)) && on_exit(say_kept, NULL) == 0;
}

void ck_notice(const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	if (text && kept.later) {
		ck_buf_add_str(&kept.text, kept.text.len ? "; " : "");
		ck_buf_add_str(&kept.text, text);
	} else if (text) {
		slurm_info("ckpt: %s", text);
	}
	free(text);
}
