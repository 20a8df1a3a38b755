/*
 * What training waits for: the snapshot of an asynchronous save against memcpy of the same bytes, also
 * where metadata is slow; the memory that saves take; ckpt_step with nothing to do.
 *
 *	mpirun -n RANKS async DIRECTORY MIB ROUNDS
 *
 * MIB of state per rank. The seconds of a turn are those of its slowest rank.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "ckpt_mpi.h"
#include "env.h"
#include "parallel.h"
#include "process.h"

#define MIB ((size_t)1 << 20)
#define LAYERS 32
#define CALLS 2000
#define SHORT_STEPS 1000
#define INTERRUPTED 5 /* of these; a reduction is posted at ten, and ends at ten others */
/* Calls at each stage of a save, not all: it would take a minute. */
#define SLOW_METADATA "mkdir,rename:*:delay=500"

struct bench {
	const char *dir;
	int rank, ranks, rounds;
	size_t bytes; /* of this rank's state */
	char *state, *copy;
	unsigned threads;
	int saved; /* rank 0: saves that were committed */
};

static void say(void *arg, const char *line)
{
	struct bench *b = arg;

	if (strstr(line, ": saved step"))
		b->saved++;
	else if (!strstr(line, "starting afresh") && !strstr(line, "rehearsing"))
		fprintf(stderr, "%s\n", line);
}

static ckpt *open_run(struct bench *b, const char *name, const char *every)
{
	const uint64_t all = b->bytes / LAYERS * (uint64_t)b->ranks, mine = b->bytes / LAYERS;
	const uint64_t offset = mine * (uint64_t)b->rank;
	struct ckpt_options options = {
		.struct_size = sizeof(options), .every = every, .log = say, .log_arg = b};
	char dir[4096], item[32];
	uint64_t step;
	ckpt *ck;

	snprintf(dir, sizeof(dir), "%s/%s", b->dir, name);
	options.dir = dir;
	bench_need(ckpt_open_mpi(&ck, MPI_COMM_WORLD, &options) == 0, "%s", ckpt_error(ck));
	for (size_t i = 0; i < LAYERS; i++) {
		snprintf(item, sizeof(item), "layer.%zu", i);
		bench_need(ckpt_add_sharded(ck, item, CKPT_U8, 1, &all, &offset, &mine,
					    b->state + i * mine) == 0,
			   "%s", ckpt_error(ck));
	}
	bench_need(ckpt_restore(ck, &step) == CKPT_FRESH, "not fresh: %s", ckpt_error(ck));
	return ck;
}

static double slowest(double mine)
{
	double all;

	MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return all;
}

/* ---- the snapshot ---- */

static void copy_share(void *arg, size_t i)
{
	const struct bench *b = arg;
	size_t begin = b->bytes * i / b->threads, end = b->bytes * (i + 1) / b->threads;

	memcpy(b->copy + begin, b->state + begin, end - begin);
}

static double plain_copy(struct bench *b)
{
	double began;

	MPI_Barrier(MPI_COMM_WORLD);
	began = bench_now();
	ck_parallel(b->threads, copy_share, b);
	return slowest(bench_now() - began);
}

/* With --ckpt-every=1steps, and no save under way, each call begins one. */
static double snapshot(ckpt *ck, uint64_t step)
{
	double began, took;

	MPI_Barrier(MPI_COMM_WORLD);
	began = bench_now();
	bench_need(ckpt_step(ck, step) == 0, "%s", ckpt_error(ck));
	took = bench_now() - began;
	bench_need(ckpt_wait(ck) == 0, "%s", ckpt_error(ck));
	return slowest(took);
}

static void report(const struct bench *b, const char *name, const char *unit, const double *values,
		   const char *what)
{
	char full[96];

	snprintf(full, sizeof(full), "%s/%dx%zuMiB", name, b->ranks, b->bytes / MIB);
	if (b->rank == 0)
		bench_report(full, unit, values, b->rounds, "%s", what);
}

/* The first save makes the buffer; it does not count. */
static void measure_saves(struct bench *b, const char *name, const char *fault, double *extra_mib)
{
	double ratios[BENCH_ROUNDS_MAX], limits[BENCH_ROUNDS_MAX], before = bench_resident_mib();
	char what[96];
	ckpt *ck;

	if (fault)
		setenv(CK_ENV_IO_FAULT, fault, 1);
	b->saved = 0;
	ck = open_run(b, name, "1steps");
	unsetenv(CK_ENV_IO_FAULT);
	for (int i = -1; i < b->rounds; i++) {
		double limit = plain_copy(b), stall;

		bench_peak_reset();
		stall = snapshot(ck, (uint64_t)(i + 2));
		limit = (limit + plain_copy(b)) / 2;
		if (i < 0)
			continue;
		limits[i] = limit;
		ratios[i] = stall / limit;
		extra_mib[i] = slowest(bench_peak_mib() - before - (double)b->bytes / (double)MIB);
	}
	bench_need(b->rank || b->saved == b->rounds + 1, "%d saves instead of %d", b->saved,
		   b->rounds + 1);
	bench_need(ckpt_close(ck) == 0, "close");
	snprintf(what, sizeof(what), "%u threads each, limit %.1f GB/s", b->threads,
		 (double)b->bytes * b->ranks / 1e9 / bench_median(limits, b->rounds));
	report(b, name, "of limit", ratios, what);
}

/* ---- nothing to do ---- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double middle(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), compare);
	return values[n / 2];
}

/* What ckpt_step cannot do without. */
static void reduce(void)
{
	uint64_t in[5] = {0}, out[5];
	MPI_Request request;

	MPI_Iallreduce(in, out, 5, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Long steps: each call agrees at once. ckpt_wait forgets how long the last one took. */
static double idle_call(ckpt *ck)
{
	static double took[CALLS];

	for (int i = 0; i < CALLS; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		took[i] = bench_now();
		if (ck)
			bench_need(ckpt_step(ck, 1) == 0, "%s", ckpt_error(ck));
		else
			reduce();
		took[i] = bench_now() - took[i];
		if (ck)
			bench_need(ckpt_wait(ck) == 0, "%s", ckpt_error(ck));
	}
	return slowest(middle(took, CALLS));
}

static void measure_idle(struct bench *b, ckpt *ck)
{
	double own[BENCH_ROUNDS_MAX], plain[BENCH_ROUNDS_MAX];
	char what[96];

	for (int i = -1; i < b->rounds; i++) {
		double limit = idle_call(NULL), call = idle_call(ck);

		if (i < 0)
			continue;
		plain[i] = limit * 1e6;
		own[i] = (call - limit) * 1e6;
	}
	snprintf(what, sizeof(what), "beyond a reduction of %.2f us",
		 bench_median(plain, b->rounds));
	if (b->rank == 0)
		bench_report("step_idle_us", "us", own, b->rounds, "%s", what);
}

static void compute(double seconds)
{
	double end = bench_now() + seconds;

	while (bench_now() < end)
		;
}

/*
 * The mean by the clock around each call: differences of whole loops are smaller than their noise. The
 * longest calls are left out: what interrupts a call may interrupt the step as well.
 */
static double short_steps(ckpt *ck, uint64_t *step)
{
	static double took[SHORT_STEPS];
	double total = 0;

	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < SHORT_STEPS; i++) {
		compute(1e-3);
		took[i] = bench_now();
		bench_need(ckpt_step(ck, ++*step) == 0, "%s", ckpt_error(ck));
		took[i] = bench_now() - took[i];
	}
	qsort(took, SHORT_STEPS, sizeof(*took), compare);
	for (int i = 0; i < SHORT_STEPS - INTERRUPTED; i++)
		total += took[i];
	return total / (SHORT_STEPS - INTERRUPTED);
}

static void measure_overhead(struct bench *b, ckpt *ck)
{
	double percent[BENCH_ROUNDS_MAX];
	uint64_t step = 1;

	for (int i = -1; i < b->rounds; i++) {
		double mean = slowest(short_steps(ck, &step));

		if (i >= 0)
			percent[i] = mean / 1e-3 * 100;
	}
	if (b->rank == 0)
		bench_report("step_overhead_1ms", "%", percent, b->rounds,
			     "mean, without the longest %d of %d", INTERRUPTED, SHORT_STEPS);
}

static void init(struct bench *b, int argc, char **argv)
{
	bench_need(argc == 4, "usage: async DIRECTORY MIB ROUNDS");
	MPI_Comm_rank(MPI_COMM_WORLD, &b->rank);
	MPI_Comm_size(MPI_COMM_WORLD, &b->ranks);
	b->dir = argv[1];
	b->bytes = strtoull(argv[2], NULL, 10) * MIB;
	b->rounds = atoi(argv[3]);
	bench_need(b->bytes > 0 && b->rounds > 0 && b->rounds <= BENCH_ROUNDS_MAX,
		   "some MiB, 1 to %d rounds", BENCH_ROUNDS_MAX);
	b->threads = ck_parallel_cpus();
	b->state = bench_memory(b->bytes);
	b->copy = bench_memory(b->bytes);
}

int main(int argc, char **argv)
{
	double mib[BENCH_ROUNDS_MAX];
	struct bench b = {.saved = 0};
	ckpt *ck;

	MPI_Init(&argc, &argv);
	init(&b, argc, argv);
	measure_saves(&b, "stall_vs_memcpy", NULL, mib);
	report(&b, "memory_async", "MiB", mib, "peak beyond the state and its copy");
	measure_saves(&b, "stall_slow_metadata_vs_memcpy", SLOW_METADATA, mib);
	if (b.ranks > 1) {
		ck = open_run(&b, "idle", "1d");
		measure_idle(&b, ck);
		measure_overhead(&b, ck);
		bench_need(ckpt_close(ck) == 0, "close");
	}
	MPI_Finalize();
	return 0;
}
