/*
 * A cold resume on fewer and on more ranks than saved, against one on as many: the same bytes from the
 * same files.
 *
 *	resume DIRECTORY MIB ROUNDS
 *
 * MIB of state in all. Ranks are threads of this process: eight of them share its CPUs as they come.
 */
#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "ckpt.h"
#include "comm_threads.h"
#include "parallel.h"

#define SAVED_BY 4
#define RANKS_MAX 8
#define TENSORS 24

struct bench {
	char run[PATH_MAX];
	struct ck_threads *threads;
	int ranks;
	uint64_t rows; /* of each tensor, all ranks together */
	uint32_t *state;
	pthread_barrier_t start;
	double seconds[RANKS_MAX]; /* of each rank's restore */
};

static void say(void *arg, const char *line)
{
	(void)arg;
	if (strstr(line, "cannot") || strstr(line, "failed"))
		fprintf(stderr, "%s\n", line);
}

/* Every value says where it stands, so that a wrong one is seen. */
static uint32_t value(uint64_t i)
{
	return (uint32_t)i * 2654435761u;
}

/* Each tensor is cut along its rows; a rank's block of it lies in the state where it belongs. */
static void add_state(struct bench *b, ckpt *ck, int rank)
{
	uint64_t ranks = (uint64_t)b->ranks, first = b->rows * (uint64_t)rank / ranks;
	uint64_t count = b->rows * (uint64_t)(rank + 1) / ranks - first;
	char name[32];

	for (uint64_t t = 0; t < TENSORS; t++) {
		snprintf(name, sizeof(name), "layer.%02d", (int)t);
		bench_need(ckpt_add_sharded(ck, name, CKPT_U32, 1, &b->rows, &first, &count,
					    b->state + t * b->rows + first) == 0,
			   "%s", ckpt_error(ck));
	}
}

static void run_rank(void *arg, size_t rank)
{
	struct bench *b = arg;
	struct ckpt_options options = {.struct_size = sizeof(options),
				       .dir = b->run,
				       .every = "1d",
				       .verify = "sha256",
				       .log = say};
	struct ckpt_comm comm;
	uint64_t step = 0;
	ckpt *ck;
	int rc;

	ck_threads_comm(b->threads, (int)rank, &comm);
	bench_need(ckpt_open(&ck, &comm, &options) == 0, "%s", ckpt_error(ck));
	add_state(b, ck, (int)rank);
	pthread_barrier_wait(&b->start);
	b->seconds[rank] = bench_now();
	rc = ckpt_restore(ck, &step);
	b->seconds[rank] = bench_now() - b->seconds[rank];
	if (rc == CKPT_FRESH)
		bench_need(ckpt_save(ck, 1) == 0 && ckpt_wait(ck) == 0, "%s", ckpt_error(ck));
	else
		bench_need(rc == CKPT_RESUMED, "%s", ckpt_error(ck));
	bench_need(ckpt_close(ck) == 0, "close");
}

/* Seconds of the slowest rank. */
static double run(struct bench *b, int ranks)
{
	double slowest = 0;

	b->ranks = ranks;
	b->threads = ck_threads_new(ranks);
	pthread_barrier_init(&b->start, NULL, (unsigned)ranks);
	ck_parallel((size_t)ranks, run_rank, b);
	for (int i = 0; i < ranks; i++)
		slowest = b->seconds[i] > slowest ? b->seconds[i] : slowest;
	pthread_barrier_destroy(&b->start);
	ck_threads_free(b->threads);
	return slowest;
}

static void forget_all(const struct bench *b)
{
	char step[PATH_MAX + 32], path[PATH_MAX + 300];
	struct dirent *entry;
	DIR *dir;

	snprintf(step, sizeof(step), "%s/step-0000000001.g1", b->run);
	dir = opendir(step);
	bench_need(dir != NULL, "%s", step);
	while ((entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", step, entry->d_name);
		if (strstr(entry->d_name, ".safetensors"))
			bench_forget(path);
	}
	closedir(dir);
}

/* A cold resume into spoilt memory, checked afterwards. */
static double resume(struct bench *b, int ranks)
{
	double seconds;

	memset(b->state, 0, TENSORS * b->rows * sizeof(*b->state));
	forget_all(b);
	seconds = run(b, ranks);
	for (uint64_t i = 0; i < TENSORS * b->rows; i++)
		bench_need(b->state[i] == value(i), "on %d ranks: element %llu is wrong", ranks,
			   (unsigned long long)i);
	return seconds;
}

int main(int argc, char **argv)
{
	double plain[BENCH_ROUNDS_MAX], fewer[BENCH_ROUNDS_MAX], more[BENCH_ROUNDS_MAX];
	static struct bench b;
	double bytes;
	int rounds;

	bench_need(argc == 4, "usage: resume DIRECTORY MIB ROUNDS");
	snprintf(b.run, sizeof(b.run), "%s/run", argv[1]);
	b.rows = strtoull(argv[2], NULL, 10) * (1 << 18) / TENSORS;
	rounds = atoi(argv[3]);
	bench_need(b.rows > 0 && rounds > 0 && rounds <= BENCH_ROUNDS_MAX,
		   "some MiB, 1 to %d rounds", BENCH_ROUNDS_MAX);
	bytes = (double)(TENSORS * b.rows * sizeof(*b.state));
	b.state = bench_memory((size_t)bytes);
	for (uint64_t i = 0; i < TENSORS * b.rows; i++)
		b.state[i] = value(i);
	run(&b, SAVED_BY);
	for (int i = -1; i < rounds; i++) {
		double seconds = resume(&b, SAVED_BY);
		double on_three = resume(&b, 3), on_eight = resume(&b, 8);

		if (i < 0)
			continue;
		plain[i] = bytes / seconds / 1e9;
		fewer[i] = seconds / on_three;
		more[i] = seconds / on_eight;
	}
	bench_report("rebalance_4_to_3_vs_cold", "of plain", fewer, rounds,
		     "plain cold resume %.2f GB/s", bench_median(plain, rounds));
	bench_report("rebalance_4_to_8_vs_cold", "of plain", more, rounds, "the same");
	return 0;
}
