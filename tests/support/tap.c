#include "tap.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAME_MAX_BYTES 512
#define DETAIL_MAX_BYTES 4096

struct tmpdir {
	struct tmpdir *next;
	pid_t owner;
	char path[PATH_MAX];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned checks, failures, skips;
static struct tmpdir *tmpdirs;

/* A line break or a '#' within a name would end it, or begin a directive, for the TAP reader. */
static void print_flat(const char *text)
{
	for (; *text; text++) {
		if (*text == '#')
			fputs("\\#", stdout);
		else
			putchar(*text == '\n' || *text == '\r' ? ' ' : *text);
	}
}

static void print_comment(const char *text)
{
	fputs("# ", stdout);
	for (; *text; text++) {
		putchar(*text);
		if (*text == '\n' && text[1])
			fputs("# ", stdout);
	}
	putchar('\n');
}

/* Called with the lock held. */
static void print_result(bool good, const char *name)
{
	if (checks++ == 0)
		puts("TAP version 13");
	printf("%s %u - ", good ? "ok" : "not ok", checks);
	print_flat(name);
	putchar('\n');
}

/* Flushed line by line: a program that is killed has still told how far it came. */
static bool report(const char *file, int line, bool good, const char *detail, const char *name)
{
	char where[PATH_MAX + 32];
	int saved_errno = errno; /* a test may look at it after a check */

	pthread_mutex_lock(&lock);
	print_result(good, name);
	if (!good) {
		failures++;
		snprintf(where, sizeof(where), "  at %s:%d", file, line);
		print_comment(where);
		print_comment(detail);
	}
	fflush(stdout);
	pthread_mutex_unlock(&lock);
	errno = saved_errno;
	return good;
}

#define FORMAT_NAME(out, fmt)                             \
	do {                                              \
		va_list args;                             \
		va_start(args, fmt);                      \
		vsnprintf((out), sizeof(out), fmt, args); \
		va_end(args);                             \
	} while (0)

bool tap_ok(const char *file, int line, bool cond, const char *text, const char *fmt, ...)
{
	char name[NAME_MAX_BYTES], detail[DETAIL_MAX_BYTES];

	FORMAT_NAME(name, fmt);
	snprintf(detail, sizeof(detail), "  does not hold: %s", text);
	return report(file, line, cond, detail, name);
}

bool tap_is_int(const char *file, int line, long long got, long long want, const char *fmt, ...)
{
	char name[NAME_MAX_BYTES], detail[DETAIL_MAX_BYTES];

	FORMAT_NAME(name, fmt);
	snprintf(detail, sizeof(detail), "     got: %lld\n  wanted: %lld", got, want);
	return report(file, line, got == want, detail, name);
}

bool tap_is_u64(const char *file, int line, uint64_t got, uint64_t want, const char *fmt, ...)
{
	char name[NAME_MAX_BYTES], detail[DETAIL_MAX_BYTES];

	FORMAT_NAME(name, fmt);
	snprintf(detail, sizeof(detail), "     got: %" PRIu64 "\n  wanted: %" PRIu64, got, want);
	return report(file, line, got == want, detail, name);
}

bool tap_is_str(const char *file, int line, const char *got, const char *want, const char *fmt, ...)
{
	char name[NAME_MAX_BYTES], detail[DETAIL_MAX_BYTES];
	bool good = got && want ? strcmp(got, want) == 0 : got == want;

	FORMAT_NAME(name, fmt);
	snprintf(detail, sizeof(detail), "     got: %s\n  wanted: %s", got ? got : "(NULL)",
		 want ? want : "(NULL)");
	return report(file, line, good, detail, name);
}

bool tap_like(const char *file, int line, const char *text, const char *needle, bool wanted,
	      const char *fmt, ...)
{
	char name[NAME_MAX_BYTES], detail[DETAIL_MAX_BYTES];
	bool good = text && needle && (strstr(text, needle) != NULL) == wanted;

	FORMAT_NAME(name, fmt);
	snprintf(detail, sizeof(detail), "     got: %s\n  wanted: text with%s: %s",
		 text ? text : "(NULL)", wanted ? "" : "out", needle ? needle : "(NULL)");
	return report(file, line, good, detail, name);
}

void skip(const char *fmt, ...)
{
	char why[NAME_MAX_BYTES];

	FORMAT_NAME(why, fmt);
	pthread_mutex_lock(&lock);
	if (checks++ == 0)
		puts("TAP version 13");
	skips++;
	printf("ok %u # SKIP ", checks);
	print_flat(why);
	putchar('\n');
	fflush(stdout);
	pthread_mutex_unlock(&lock);
}

void diag(const char *fmt, ...)
{
	char text[DETAIL_MAX_BYTES];

	FORMAT_NAME(text, fmt);
	pthread_mutex_lock(&lock);
	print_comment(text);
	fflush(stdout);
	pthread_mutex_unlock(&lock);
}

int done_testing(void)
{
	int result;

	pthread_mutex_lock(&lock);
	printf("1..%u\n", checks);
	if (skips)
		printf("# %u skipped\n", skips);
	if (failures)
		printf("# %u of %u failed\n", failures, checks);
	if (checks == 0)
		puts("# no check was made");
	result = failures || checks == 0;
	fflush(stdout);
	pthread_mutex_unlock(&lock);
	return result;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)ftw;
	/* nftw visits children first, so a directory that a test made unreadable shows here. */
	if (type == FTW_DNR)
		chmod(path, 0700);
	if (remove(path) && errno != ENOENT)
		fprintf(stderr, "# cannot remove %s: %s\n", path, strerror(errno));
	return 0;
}

static void remove_tmpdirs(void)
{
	const char *keep = getenv("TEST_KEEP");
	struct tmpdir *dir;

	while ((dir = tmpdirs)) {
		tmpdirs = dir->next;
		/* A forked child that leaves by exit must not take its parent's directory along. */
		if (dir->owner == getpid()) {
			if (keep && strcmp(keep, "1") == 0)
				printf("# kept: %s\n", dir->path);
			else
				nftw(dir->path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
		}
		free(dir);
	}
}

static void bail_out(const char *what)
{
	printf("Bail out! test_tmpdir: %s: %s\n", what, strerror(errno));
	fflush(stdout);
	exit(1);
}

const char *test_tmpdir(void)
{
	const char *base = getenv("TEST_TMPDIR");
	struct tmpdir *dir = calloc(1, sizeof(*dir));

	if (!dir)
		bail_out("memory");
	snprintf(dir->path, sizeof(dir->path), "%s/ckpt-test-XXXXXX",
		 base && *base ? base : "/var/tmp");
	if (!mkdtemp(dir->path))
		bail_out(dir->path);
	dir->owner = getpid();
	pthread_mutex_lock(&lock);
	if (!tmpdirs)
		atexit(remove_tmpdirs);
	dir->next = tmpdirs;
	tmpdirs = dir;
	pthread_mutex_unlock(&lock);
	return dir->path;
}

static double read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

double seconds(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

double cpu_seconds(void)
{
	return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

#ifdef __SANITIZE_THREAD__
static const bool under_tsan = true;
#else
static const bool under_tsan = false;
#endif

size_t rounds(size_t full, size_t usual, size_t tsan)
{
	const char *wanted = getenv("CK_FULL");

	if (wanted && strcmp(wanted, "1") == 0)
		return full;
	return under_tsan ? tsan : usual;
}
