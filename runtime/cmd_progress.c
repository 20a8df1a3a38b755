/* How far it is, on a terminal, for whatever takes more than a second. */
#include "cmd.h"

#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "parse.h"

#define DRAW_AFTER 1.0
#define DRAW_EVERY 0.1

double ck_cmd_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

bool ck_cmd_progress_wanted(void)
{
	return isatty(STDERR_FILENO) == 1;
}

void ck_cmd_progress_begin(struct ck_cmd_progress *progress, const char *label, bool in_bytes,
			   uint64_t total)
{
	progress->on = ck_cmd_progress_wanted();
	progress->label = label;
	progress->in_bytes = in_bytes;
	progress->total = total;
	atomic_init(&progress->done, 0);
	progress->started = ck_cmd_clock();
	progress->drawn = 0;
	pthread_mutex_init(&progress->lock, NULL);
}

static unsigned terminal_columns(void)
{
	struct winsize size;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

static void add_bar(struct ck_buf *line, double share)
{
	const int width = 20;
	int full = (int)(share * width);

	ck_buf_add_str(line, " [");
	for (int i = 0; i < width; i++)
		ck_buf_add_str(line, i < full ? "#" : "-");
	ck_buf_addf(line, "] %3d%%", (int)(share * 100));
}

static void compose(const struct ck_cmd_progress *progress, double elapsed, struct ck_buf *line)
{
	double done = (double)progress->done, total = (double)progress->total;
	char text[3][16];

	ck_buf_add_str(line, progress->label);
	if (total > 0)
		add_bar(line, done < total ? done / total : 1);
	if (progress->in_bytes)
		ck_buf_addf(line, "  %s  %s/s", ck_format_bytes((uint64_t)done, text[0]),
			    ck_format_bytes((uint64_t)(done / elapsed), text[1]));
	else
		ck_buf_addf(line, "  %.0f files", done);
	if (total > done && done > 0)
		ck_buf_addf(line, "  %s left",
			    ck_format_seconds((total - done) * elapsed / done, text[2]));
}

/* The last column stays free: there some terminals wrap. */
static void draw(struct ck_cmd_progress *progress, double now)
{
	struct ck_buf line = CK_BUF_INIT;
	int columns = (int)terminal_columns();

	compose(progress, now - progress->started, &line);
	if (!ck_buf_check(&line, NULL))
		fprintf(stderr, "\r%.*s\033[K", columns - 1, line.data);
	fflush(stderr);
	ck_buf_fini(&line);
	progress->drawn = now;
}

/* Whoever finds the lock taken leaves the drawing to the one who has it. */
void ck_cmd_progress_add(void *arg, uint64_t amount)
{
	struct ck_cmd_progress *progress = arg;
	double now;

	atomic_fetch_add(&progress->done, amount);
	if (!progress->on || pthread_mutex_trylock(&progress->lock))
		return;
	now = ck_cmd_clock();
	if (now - progress->started > DRAW_AFTER && now - progress->drawn > DRAW_EVERY)
		draw(progress, now);
	pthread_mutex_unlock(&progress->lock);
}

void ck_cmd_progress_clear(struct ck_cmd_progress *progress)
{
	pthread_mutex_lock(&progress->lock);
	if (progress->drawn > 0)
		fputs("\r\033[K", stderr);
	fflush(stderr);
	progress->drawn = 0;
	pthread_mutex_unlock(&progress->lock);
}

void ck_cmd_progress_end(struct ck_cmd_progress *progress)
{
	ck_cmd_progress_clear(progress);
	pthread_mutex_destroy(&progress->lock);
}
