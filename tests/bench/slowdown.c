/*
 * How much slower training steps are while a save is being written: one rank computes on one CPU, the
 * save has what the others leave.
 *
 *	slowdown DIRECTORY MIB ROUNDS
 *
 * A step multiplies matrices that stay in the cache and updates 8 MiB that do not, for some 5 ms.
 */
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "ckpt.h"

#define MIB ((size_t)1 << 20)
#define N 192
#define MULTIPLIED 4
#define UPDATED (4 * MIB / sizeof(float)) /* of each of two arrays */
#define STEPS_MIN 20

struct bench {
	char run[PATH_MAX];
	ckpt *ck;
	uint64_t step;
	size_t updated; /* where the next update begins */
	float *state, *gradient;
	size_t count; /* of the state's elements */
};

static void say(void *arg, const char *line)
{
	(void)arg;
	if (strstr(line, "failed") || strstr(line, "warning"))
		fprintf(stderr, "%s\n", line);
}

static void multiply(void)
{
	static float a[N][N], b[N][N], c[N][N];

	for (int i = 0; i < N; i++)
		for (int k = 0; k < N; k++)
			for (int j = 0; j < N; j++)
				c[i][j] += a[i][k] * b[k][j];
	a[0][0] = c[N - 1][N - 1];
}

static void compute(struct bench *b)
{
	float *weights = b->state + b->updated;

	for (int i = 0; i < MULTIPLIED; i++)
		multiply();
	for (size_t i = 0; i < UPDATED; i++)
		weights[i] -= 1e-3f * b->gradient[i];
	b->updated = (b->updated + UPDATED) % b->count;
}

/* Seconds of a step, its call of ckpt_step included. */
static double one_step(struct bench *b)
{
	double began = bench_now();

	compute(b);
	bench_need(ckpt_step(b->ck, ++b->step) == 0, "%s", ckpt_error(b->ck));
	return bench_now() - began;
}

static int is_committed(const struct bench *b, uint64_t step)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/step-%010llu.g1", b->run, (unsigned long long)step);
	return access(path, F_OK) == 0;
}

/* Mean step while a save is being written; *steps: how many that were. */
static double while_saving(struct bench *b, int *steps)
{
	const uint64_t saved = b->step;
	double total = 0;

	bench_need(ckpt_save(b->ck, saved) == 0, "%s", ckpt_error(b->ck));
	for (*steps = 0; !is_committed(b, saved); ++*steps)
		total += one_step(b);
	bench_need(ckpt_wait(b->ck) == 0, "%s", ckpt_error(b->ck));
	bench_need(*steps >= STEPS_MIN, "%d steps are too few: give more MiB", *steps);
	return total / *steps;
}

static double undisturbed(struct bench *b, int steps)
{
	double total = 0;

	for (int i = 0; i < steps; i++)
		total += one_step(b);
	return total / steps;
}

static void open_run(struct bench *b, const char *dir)
{
	struct ckpt_options options = {
		.struct_size = sizeof(options), .dir = b->run, .every = "1d", .log = say};
	uint64_t count = b->count;

	snprintf(b->run, sizeof(b->run), "%s/run", dir);
	bench_need(ckpt_open(&b->ck, NULL, &options) == 0, "%s", ckpt_error(b->ck));
	bench_need(ckpt_add_replicated(b->ck, "state", CKPT_F32, 1, &count, b->state) == 0 &&
			   ckpt_prepare(b->ck) == 0,
		   "%s", ckpt_error(b->ck));
}

/* After ckpt_open: its thread may use the other CPUs. */
static void stay_on_one_cpu(void)
{
	cpu_set_t one;
	int cpu = sched_getcpu();

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	bench_need(cpu >= 0 && sched_setaffinity(0, sizeof(one), &one) == 0, "affinity");
}

int main(int argc, char **argv)
{
	double percent[BENCH_ROUNDS_MAX], plain[BENCH_ROUNDS_MAX];
	struct bench b = {.step = 1};
	int rounds, steps = 0;

	bench_need(argc == 4, "usage: slowdown DIRECTORY MIB ROUNDS");
	b.count = strtoull(argv[2], NULL, 10) * MIB / sizeof(float);
	rounds = atoi(argv[3]);
	bench_need(b.count > 0 && b.count % UPDATED == 0 && rounds > 0 &&
			   rounds <= BENCH_ROUNDS_MAX,
		   "MiB in fours, 1 to %d rounds", BENCH_ROUNDS_MAX);
	b.state = bench_memory(b.count * sizeof(float));
	b.gradient = bench_memory(UPDATED * sizeof(float));
	memset(b.gradient, 0, UPDATED * sizeof(float));
	memset(b.state, 0, b.count * sizeof(float));
	open_run(&b, argv[1]);
	stay_on_one_cpu();
	for (int i = -1; i < rounds; i++) {
		double slow = while_saving(&b, &steps), fast = undisturbed(&b, steps);

		if (i < 0)
			continue;
		percent[i] = (slow / fast - 1) * 100;
		plain[i] = fast * 1e3;
	}
	bench_need(ckpt_close(b.ck) == 0, "close");
	bench_report("train_slowdown", "%", percent, rounds, "steps of %.1f ms, %d during a save",
		     bench_median(plain, rounds), steps);
	return 0;
}
