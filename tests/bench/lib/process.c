#include "process.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

double bench_resident_mib(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long size, pages;

	bench_need(file && fscanf(file, "%ld %ld", &size, &pages) == 2, "/proc/self/statm");
	fclose(file);
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

void bench_child(void (*work)(const void *arg, double *out), const void *arg, double *out,
		 size_t count)
{
	int ends[2], status;
	pid_t pid;

	bench_need(pipe(ends) == 0, "pipe");
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		bench_peak_reset();
		work(arg, out);
		_exit(write(ends[1], out, count * sizeof(*out)) < 0);
	}
	close(ends[1]); /* so that reading ends when the child does */
	bench_need(read(ends[0], out, count * sizeof(*out)) > 0 && wait(&status) == pid &&
			   status == 0,
		   "a child failed");
	close(ends[0]);
}
