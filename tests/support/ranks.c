#include "ranks.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm_threads.h"

struct job {
	struct toy *toy;
	struct ck_threads *threads;
	const struct ckpt_options *options;
	int (*body)(struct toy *toy);
	struct toy_log *log;
};

static void keep_line(void *arg, const char *line)
{
	struct toy_log *log = arg;
	int n = snprintf(log->text + log->len, sizeof(log->text) - log->len, "%s\n", line);

	log->len += n > 0 && log->len + (size_t)n < sizeof(log->text) ? (size_t)n : 0;
	log->text[log->len] = '\0';
}

static size_t own_size(void *arg)
{
	return ((struct toy *)arg)->own_bytes;
}

static int own_get(void *arg, void *dst, size_t bytes)
{
	memcpy(dst, ((struct toy *)arg)->own, bytes);
	return 0;
}

static int own_set(void *arg, const void *src, size_t bytes)
{
	struct toy *toy = arg;

	if (bytes > sizeof(toy->own))
		return 7;
	toy->own_bytes = bytes;
	memcpy(toy->own, src, bytes);
	return 0;
}

static int own_reassign(void *arg, uint32_t old_world, const struct ckpt_rank_value *values)
{
	struct toy *toy = arg;
	const struct ckpt_rank_value *mine = &values[(uint32_t)toy->rank % old_world];

	toy->seen_world = old_world;
	for (uint32_t r = 0; r < old_world && r < TOY_RANKS_MAX; r++) {
		if (values[r].bytes > sizeof(toy->seen[r]) || (uintptr_t)values[r].data % 16)
			return 8;
		toy->seen_bytes[r] = values[r].bytes;
		memcpy(toy->seen[r], values[r].data, values[r].bytes);
	}
	return toy->refuse ? toy->refuse : own_set(arg, mine->data, mine->bytes);
}

static void enroll(struct toy *toy)
{
	static const uint64_t whole = TOY_ELEMENTS, shape[] = {2, 3};
	struct ckpt_rank_callbacks own = {.struct_size = sizeof(own),
					  .arg = toy,
					  .size = own_size,
					  .get = own_get,
					  .set = own_set,
					  .reassign = own_reassign};
	uint64_t share = (TOY_ELEMENTS + (uint64_t)toy->size - 1) / (uint64_t)toy->size;

	toy->offset = share * (uint64_t)toy->rank < whole ? share * (uint64_t)toy->rank : whole;
	toy->count = whole - toy->offset < share ? whole - toy->offset : share;
	toy->own_bytes = 8;
	ckpt_add_sharded(toy->ck, "flat", CKPT_F32, 1, &whole, &toy->offset, &toy->count,
			 toy->flat);
	ckpt_add_replicated(toy->ck, "matrix", CKPT_F64, 2, shape, toy->matrix);
	ckpt_add_rank(toy->ck, "own", &own);
	ckpt_set_flat(toy->ck, "flat");
	ckpt_set_user(toy->ck, "{\"toy\": true}");
}

static void *run_rank(void *arg)
{
	struct job *job = arg;
	struct ckpt_options options = *job->options;
	struct ckpt_comm comm;

	options.log = keep_line;
	options.log_arg = job->log;
	ck_threads_comm(job->threads, job->toy->rank, &comm);
	job->toy->code = ckpt_open(&job->toy->ck, &comm, &options);
	if (!job->toy->code) {
		enroll(job->toy);
		job->toy->code = job->body(job->toy);
	}
	ckpt_close(job->toy->ck);
	return NULL;
}

void toy_run(int size, const struct ckpt_options *options, int (*body)(struct toy *toy), void *arg,
	     struct toy *toys, struct toy_log *log)
{
	struct ck_threads *threads = ck_threads_new(size);
	struct job jobs[TOY_RANKS_MAX];
	pthread_t ids[TOY_RANKS_MAX];

	log->len = 0;
	log->text[0] = '\0';
	for (int r = 0; r < size; r++) {
		memset(&toys[r], 0, sizeof(toys[r]));
		toys[r].rank = r;
		toys[r].size = size;
		toys[r].arg = arg;
		jobs[r] = (struct job){&toys[r], threads, options, body, log};
		pthread_create(&ids[r], NULL, run_rank, &jobs[r]);
	}
	for (int r = 0; r < size; r++)
		pthread_join(ids[r], NULL);
	ck_threads_free(threads);
}

void toy_nap_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

void toy_train(struct toy *toy, uint64_t step)
{
	for (uint64_t i = 0; i < toy->count; i++)
		toy->flat[i] = (float)(step * 10000 + toy->offset + i);
	for (int i = 0; i < 6; i++)
		toy->matrix[i] = (double)step + i / 10.0;
	/* Grows and shrinks, to nothing as well. */
	toy->own_bytes = (step * 7 + (uint64_t)toy->rank) % (sizeof(toy->own) + 1);
	for (size_t i = 0; i < toy->own_bytes; i++)
		toy->own[i] = (unsigned char)(step + i * 3 + (uint64_t)toy->rank);
}

int toy_shares(const struct toy *toy, uint64_t step)
{
	struct toy want = {.offset = toy->offset, .count = toy->count};

	toy_train(&want, step);
	return memcmp(want.flat, toy->flat, want.count * sizeof(float)) == 0 &&
	       memcmp(want.matrix, toy->matrix, sizeof(want.matrix)) == 0;
}

int toy_saw(const struct toy *toy, int ranks, uint64_t step)
{
	for (int r = 0; r < ranks; r++) {
		struct toy want = {.rank = r};

		toy_train(&want, step);
		if (toy->seen_bytes[r] != want.own_bytes ||
		    memcmp(toy->seen[r], want.own, want.own_bytes) != 0)
			return 0;
	}
	return toy->seen_world == (uint32_t)ranks;
}

int toy_is(const struct toy *toy, uint64_t step)
{
	struct toy want = {
		.rank = toy->rank, .size = toy->size, .offset = toy->offset, .count = toy->count};

	toy_train(&want, step);
	return memcmp(want.flat, toy->flat, want.count * sizeof(float)) == 0 &&
	       memcmp(want.matrix, toy->matrix, sizeof(want.matrix)) == 0 &&
	       want.own_bytes == toy->own_bytes && memcmp(want.own, toy->own, want.own_bytes) == 0;
}

void toy_spoil(struct toy *toy)
{
	memset(toy->flat, 0xa5, sizeof(toy->flat));
	memset(toy->matrix, 0xa5, sizeof(toy->matrix));
	memset(toy->own, 0xa5, sizeof(toy->own));
	toy->own_bytes = 1;
}
