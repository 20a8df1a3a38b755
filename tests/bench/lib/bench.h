/*
 * For the measuring programs: ranks as processes, rounds in which the variants take turns, ratios of
 * one round each, and a line per result for tests/bench/run:
 *
 *	name <tab> median <tab> min <tab> max <tab> unit <tab> n <tab> what was measured
 */
#ifndef BENCH_H
#define BENCH_H

#include <stddef.h>
#include <stdint.h>

#define BENCH_ROUNDS_MAX 64

double bench_now(void); /* seconds, monotonic */
double bench_cpu(void); /* seconds of CPU of this thread */

/* What does not work out ends the program. */
void bench_need(int good, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Memory in huge pages where they can be had, every page touched. */
void *bench_memory(size_t bytes);

/* Peak resident memory of this process in MiB, and its beginning anew. */
double bench_peak_mib(void);
void bench_peak_reset(void);

/* Drop the page cache's copy of a file. */
void bench_forget(const char *path);

/*
 * Fork `ranks` processes which all call work(arg, rank) after a common start, `times` times.
 * seconds[i]: from the i-th start to the last one's end.
 */
void bench_ranks(int ranks, int times, void (*work)(void *arg, int rank, int time), void *arg,
		 double *seconds);

/* Print the line of ratios[0 … n). */
void bench_report(const char *name, const char *unit, const double *ratios, int n, const char *fmt,
		  ...) __attribute__((format(printf, 5, 6)));

double bench_median(const double *values, int n);

#endif
