/*
 * A job that saves and loads through <ckpt.h> when told, for tests/bench/run-peers.
 *
 *	job DIRECTORY RANKS MIB
 *
 * Ranks are threads, with MIB of float32 each in 16 tensors. It says "ready", reads commands, one a
 * line, and answers with three times of CLOCK_MONOTONIC: begin, when the program may go on, end.
 *
 *	save NAME      a save in DIRECTORY/NAME from where the state lies, as --ckpt-staging=off has it
 *	async NAME     one that copies the state aside first, until it is committed
 *	load NAME      ckpt_restore with SHA-256; the state is checked afterwards
 */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "ckpt.h"
#include "comm_threads.h"
#include "names.h"

#define TENSORS 16
#define RANKS_MAX 16

struct rank {
	struct ckpt_comm comm;
	int ranks;
	ckpt *ck;
	float *state;
	size_t bytes;
	const char *command;
	char dir[PATH_MAX];
	double begin, go_on, end;
	pthread_t thread;
};

static void need(const struct rank *r, int good, const char *what)
{
	bench_need(good, "rank %d: %s: %s", r->comm.rank, what, ckpt_error(r->ck));
}

static void say_nothing(void *arg, const char *line)
{
	(void)arg;
	(void)line;
}

static void open_run(struct rank *r, const char *staging)
{
	struct ckpt_options options = {.struct_size = sizeof(options),
				       .dir = r->dir,
				       .every = "1d",
				       .verify = "sha256",
				       .staging = staging,
				       .log = say_nothing};
	uint64_t count = r->bytes / TENSORS / sizeof(float), all = count * (uint64_t)r->ranks;
	uint64_t offset = count * (uint64_t)r->comm.rank;

	need(r, ckpt_open(&r->ck, &r->comm, &options) == 0, "open");
	for (uint64_t i = 0; i < TENSORS; i++) {
		char name[32];

		snprintf(name, sizeof(name), "layer.%d", (int)i);
		need(r,
		     ckpt_add_sharded(r->ck, name, CKPT_F32, 1, &all, &offset, &count,
				      r->state + i * count) == 0,
		     name);
	}
}

/* Each save begins a run of its own. */
static void begin_run(struct rank *r, const char *staging)
{
	uint64_t step;

	open_run(r, staging);
	need(r, ckpt_restore(r->ck, &step) == CKPT_FRESH, "restore");
}

/* The memory for staging is there, as it is for all saves of a run but the first. */
static void save(struct rank *r, const char *staging)
{
	begin_run(r, staging);
	need(r, ckpt_prepare(r->ck) == 0, "prepare");
	r->begin = bench_now();
	need(r, ckpt_save(r->ck, 1) == 0, "save");
	r->go_on = bench_now();
	need(r, ckpt_wait(r->ck) == 0, "wait");
	r->end = bench_now();
}

static uint64_t sum(const struct rank *r)
{
	const uint64_t *words = (const uint64_t *)r->state;
	uint64_t sum = 0;

	for (size_t i = 0; i < r->bytes / sizeof(*words); i++)
		sum = sum * 3 + words[i];
	return sum;
}

static void load(struct rank *r)
{
	uint64_t step, before = sum(r);

	open_run(r, "auto");
	memset(r->state, 0, r->bytes);
	r->begin = bench_now();
	need(r, ckpt_restore(r->ck, &step) > 0, "restore");
	r->go_on = r->end = bench_now();
	bench_need(sum(r) == before, "rank %d: another state was loaded", r->comm.rank);
}

static void *run_rank(void *arg)
{
	struct rank *r = arg;

	if (strcmp(r->command, "save") == 0)
		save(r, "off");
	else if (strcmp(r->command, "async") == 0)
		save(r, "auto");
	else
		load(r);
	ckpt_close(r->ck);
	return NULL;
}

static void run(struct rank *ranks, const char *command, const char *base, const char *name)
{
	double begin = 0, go_on = 0, end = 0;
	int n = ranks[0].ranks;

	for (int i = 0; i < n; i++) {
		ranks[i].command = command;
		ck_path_join(ranks[i].dir, base, name);
		bench_need(pthread_create(&ranks[i].thread, NULL, run_rank, &ranks[i]) == 0,
			   "no thread");
	}
	for (int i = 0; i < n; i++) {
		pthread_join(ranks[i].thread, NULL);
		begin = i && begin < ranks[i].begin ? begin : ranks[i].begin;
		go_on = go_on > ranks[i].go_on ? go_on : ranks[i].go_on;
		end = end > ranks[i].end ? end : ranks[i].end;
	}
	printf("%.6f %.6f %.6f\n", begin, go_on, end);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	int n = argc == 4 ? atoi(argv[2]) : 0, mib = argc == 4 ? atoi(argv[3]) : 0;
	char command[16], name[64];
	static struct rank ranks[RANKS_MAX];
	struct ck_threads *threads;

	bench_need(n > 0 && n <= RANKS_MAX && mib > 0 && mib % 4 == 0,
		   "usage: job DIRECTORY RANKS MIB; up to %d ranks, MIB in fours", RANKS_MAX);
	threads = ck_threads_new(n);
	bench_need(threads != NULL, "no memory");
	for (int i = 0; i < n; i++) {
		ck_threads_comm(threads, i, &ranks[i].comm);
		ranks[i].ranks = n;
		ranks[i].bytes = (size_t)mib << 20;
		ranks[i].state = bench_memory(ranks[i].bytes);
	}
	puts("ready");
	fflush(stdout);
	while (scanf("%15s %63s", command, name) == 2)
		run(ranks, command, argv[1], name);
	ck_threads_free(threads);
	return 0;
}
