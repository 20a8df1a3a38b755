#include "bench.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double bench_now(void)
{
	return seconds_of(CLOCK_MONOTONIC);
}

double bench_cpu(void)
{
	return seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

void bench_need(int good, const char *fmt, ...)
{
	va_list args;

	if (good)
		return;
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

void *bench_memory(size_t bytes)
{
	char *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t x = 88172645463325252u;

	bench_need(memory != MAP_FAILED, "no memory: %zu bytes", bytes);
	madvise(memory, bytes, MADV_HUGEPAGE);
	for (size_t at = 0; at + 8 <= bytes; at += 8) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy(memory + at, &x, 8);
	}
	return memory;
}

double bench_peak_mib(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[256];
	long kib = 0;

	bench_need(file != NULL, "/proc/self/status");
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "VmHWM: %ld", &kib) == 1)
			break;
	fclose(file);
	return (double)kib / 1024;
}

void bench_peak_reset(void)
{
	int fd = open("/proc/self/clear_refs", O_WRONLY);

	bench_need(fd >= 0 && write(fd, "5", 1) == 1, "/proc/self/clear_refs");
	close(fd);
}

void bench_forget(const char *path)
{
	int fd = open(path, O_RDONLY);

	bench_need(fd >= 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0, "%s", path);
	close(fd);
}

/* What the processes share. */
struct shared {
	pthread_barrier_t start, end;
	double began;
};

static struct shared *share(int ranks)
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_barrierattr_t attr;

	bench_need(shared != MAP_FAILED, "no shared memory");
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&shared->start, &attr, (unsigned)ranks + 1);
	pthread_barrier_init(&shared->end, &attr, (unsigned)ranks + 1);
	return shared;
}

void bench_ranks(int ranks, int times, void (*work)(void *arg, int rank, int time), void *arg,
		 double *seconds)
{
	struct shared *shared = share(ranks);
	int status;

	fflush(stdout);
	for (int rank = 0; rank < ranks; rank++) {
		pid_t pid = fork();

		bench_need(pid >= 0, "fork");
		if (pid)
			continue;
		for (int i = -1; i < times; i++) {
			pthread_barrier_wait(&shared->start);
			work(arg, rank, i);
			pthread_barrier_wait(&shared->end);
		}
		exit(0);
	}
	for (int i = -1; i < times; i++) {
		double began;

		pthread_barrier_wait(&shared->start);
		began = bench_now();
		pthread_barrier_wait(&shared->end);
		if (i >= 0)
			seconds[i] = bench_now() - began;
	}
	while (wait(&status) > 0)
		bench_need(status == 0, "a rank failed");
	munmap(shared, sizeof(*shared));
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double bench_median(const double *values, int n)
{
	double sorted[BENCH_ROUNDS_MAX];

	memcpy(sorted, values, (size_t)n * sizeof(*sorted));
	qsort(sorted, (size_t)n, sizeof(*sorted), compare);
	return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

void bench_report(const char *name, const char *unit, const double *ratios, int n, const char *fmt,
		  ...)
{
	double min = ratios[0], max = ratios[0];
	va_list args;

	for (int i = 1; i < n; i++) {
		min = ratios[i] < min ? ratios[i] : min;
		max = ratios[i] > max ? ratios[i] : max;
	}
	printf("%s\t%.4g\t%.4g\t%.4g\t%s\t%d\t", name, bench_median(ratios, n), min, max, unit, n);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}
