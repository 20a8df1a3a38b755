/* Patience, parcels and collectives, over ranks that are threads and over a process alone. */
#include "comm.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "comm_cases.h"
#include "comm_threads.h"
#include "tap.h"

/* Nothing here may hang; if something does, the program ends without a plan. */
#define WATCHDOG_SECONDS 600
#define PATIENT_MS 120000
/* Where the patience has to end: a rank that is late on a crowded machine must not be taken for silent. */
#define SHORT_MS 6000

/* ---- ranks as threads ---- */

struct world {
	struct ck_threads *threads;
	int size;
	size_t eager_bytes;
	uint64_t timeout_ms;
	const struct comm_case *test; /* NULL: comm_case_silent with the next two */
	int which;
	int silent;
	struct player *players;
};

struct player {
	struct world *world;
	int rank;
	pthread_t thread;
	struct ck_comm comm;
	struct comm_report report;
};

static void *play(void *arg)
{
	struct player *player = arg;
	struct world *world = player->world;
	struct ckpt_comm table;

	ck_threads_comm(world->threads, player->rank, &table);
	if (ck_comm_init(&player->comm, &table, world->timeout_ms, NULL))
		abort();
	if (world->test)
		world->test->run(&player->comm, &player->report);
	else
		comm_case_silent(&player->comm, world->which, world->silent, &player->report);
	ck_comm_fini(&player->comm);
	return NULL;
}

static void check_reports(const struct world *world, const char *name)
{
	char missing[32] = "";
	int bad = -1;

	for (int i = world->size - 1; i >= 0; i--)
		if (world->players[i].report.why[0])
			bad = i;
	if (world->silent >= 0)
		snprintf(missing, sizeof(missing), ", rank %d is silent", world->silent);
	ok(bad < 0, "%d ranks, eager %zd: %s%s", world->size, (ssize_t)world->eager_bytes, name,
	   missing);
	if (bad >= 0)
		diag("rank %d: %s", bad, world->players[bad].report.why);
}

static void run_world(struct world *world, const char *name)
{
	world->threads = ck_threads_new(world->size);
	world->players = calloc((size_t)world->size, sizeof(*world->players));
	ck_threads_set_eager(world->threads, world->eager_bytes);
	if (world->silent > 0)
		ck_threads_kill(world->threads, world->silent);
	for (int i = 0; i < world->size; i++) {
		struct player *player = &world->players[i];

		player->world = world;
		player->rank = i;
		if (i != world->silent && pthread_create(&player->thread, NULL, play, player))
			abort();
	}
	for (int i = 0; i < world->size; i++)
		if (i != world->silent)
			pthread_join(world->players[i].thread, NULL);
	check_reports(world, name);
	ck_threads_free(world->threads);
	free(world->players);
}

static void run_case(const struct comm_case *test, int size, size_t eager_bytes,
		     uint64_t timeout_ms)
{
	struct world world = {.size = size,
			      .eager_bytes = eager_bytes,
			      .timeout_ms = timeout_ms,
			      .test = test,
			      .silent = -1};

	run_world(&world, test->name);
}

static const size_t eager_sizes[] = {0, 4096, SIZE_MAX};

static void test_cases(void)
{
	static const int sizes[] = {1, 2, 3, 5, 8, 13, 33, 4, 7, 16, 64};

	for (size_t s = 0; s < rounds(sizeof(sizes) / sizeof(sizes[0]), 7, 6); s++)
		for (int i = 0; i < comm_ncases; i++)
			run_case(&comm_cases[i], sizes[s], eager_sizes[(s + (size_t)i) % 3],
				 PATIENT_MS);
}

static void test_mixed(void)
{
	static const struct comm_case mixed = {"1,000 collectives at random", comm_case_mixed};

	run_case(&mixed, 1, 4096, PATIENT_MS);
	run_case(&mixed, 2, 0, PATIENT_MS);
	run_case(&mixed, 7, SIZE_MAX, PATIENT_MS);
	run_case(&mixed, 12, 4096, PATIENT_MS);
}

static void test_busy(void)
{
	static const struct comm_case busy = {"a late rank that listens", comm_case_busy};

	run_case(&busy, 2, 0, SHORT_MS);
	run_case(&busy, 6, 4096, SHORT_MS);
}

static void test_misfits(void)
{
	static const int sizes[] = {2, 3, 8, 11};

	for (int i = 0; i < comm_nmisfits; i++)
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
			run_case(&comm_misfits[i], sizes[s], eager_sizes[s % 3], SHORT_MS);
}

struct silence {
	pthread_t thread;
	struct world world;
};

static void *run_silence(void *arg)
{
	struct silence *silence = arg;

	run_world(&silence->world, comm_silent_name(silence->world.which));
	return NULL;
}

/* Every kind of waiting, in worlds side by side: they do little but wait. */
static void test_silent(int size, int silent, size_t eager_bytes)
{
	struct silence *all = calloc((size_t)comm_nsilent, sizeof(*all));

	for (int i = 0; i < comm_nsilent; i++) {
		all[i].world = (struct world){.size = size,
					      .eager_bytes = eager_bytes,
					      .timeout_ms = SHORT_MS,
					      .which = i,
					      .silent = silent};
		if (pthread_create(&all[i].thread, NULL, run_silence, &all[i]))
			abort();
	}
	for (int i = 0; i < comm_nsilent; i++)
		pthread_join(all[i].thread, NULL);
	free(all);
}

/* ---- bad tables ---- */

static void *const broken_request = (void *)1;

static int refuse_send(void *ctx, const void *data, size_t bytes, int peer, int tag, void **request)
{
	(void)ctx, (void)data, (void)bytes, (void)peer, (void)tag, (void)request;
	return -42;
}

static int refuse_recv(void *ctx, void *data, size_t bytes, int peer, int tag, void **request)
{
	(void)ctx, (void)data, (void)bytes, (void)peer, (void)tag, (void)request;
	return -43;
}

static int refuse_reduce(void *ctx, const uint64_t *in, uint64_t *out, int count, void **request)
{
	(void)ctx, (void)in, (void)out, (void)count, (void)request;
	return -44;
}

static int take_send(void *ctx, const void *data, size_t bytes, int peer, int tag, void **request)
{
	(void)ctx, (void)data, (void)bytes, (void)peer, (void)tag;
	*request = broken_request;
	return 0;
}

static int fail_test(void *ctx, void **request, int *done, struct ckpt_message *message)
{
	(void)ctx, (void)request, (void)message;
	*done = 0;
	return -45;
}

static void test_bad_tables(void)
{
	struct ckpt_comm good, table;
	struct ck_error err = CK_ERROR_INIT;
	struct ck_comm comm;
	const struct {
		size_t offset;
		size_t bytes;
		int value; /* of an int, or of the low bytes of anything else */
		const char *text;
	} rows[] = {
		{offsetof(struct ckpt_comm, struct_size), sizeof(size_t), 0, "struct_size is 0"},
		{offsetof(struct ckpt_comm, struct_size), sizeof(size_t), 4096, "is 4096"},
		{offsetof(struct ckpt_comm, size), sizeof(int), 0, "size is 0"},
		{offsetof(struct ckpt_comm, size), sizeof(int), -1, "size is -1"},
		{offsetof(struct ckpt_comm, rank), sizeof(int), -1, "rank is -1"},
		{offsetof(struct ckpt_comm, rank), sizeof(int), 1,
		 "rank is 1, it must be in [0, 1)"},
		{offsetof(struct ckpt_comm, iallreduce_max), sizeof(void *), 0,
		 "iallreduce_max is"},
		{offsetof(struct ckpt_comm, isend), sizeof(void *), 0, "isend is NULL"},
		{offsetof(struct ckpt_comm, irecv), sizeof(void *), 0, "irecv is NULL"},
		{offsetof(struct ckpt_comm, test), sizeof(void *), 0, "test is NULL"},
		{offsetof(struct ckpt_comm, cancel_recv), sizeof(void *), 0, "cancel_recv is NULL"},
		{offsetof(struct ckpt_comm, abort), sizeof(void *), 0, "abort is NULL"},
	};

	is_int(ck_self_new(&good, &err), 0, "a table to spoil");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		table = good;
		memset((char *)&table + rows[i].offset, 0, rows[i].bytes);
		memcpy((char *)&table + rows[i].offset, &rows[i].value, sizeof(int));
		is_int(ck_comm_init(&comm, &table, 1000, &err), CK_EARG, "refused: %s",
		       rows[i].text);
		like(err.text, rows[i].text, "text: %s", rows[i].text);
	}
	ck_self_free(good.ctx);
}

static void test_broken_table(void)
{
	struct ck_parcel *parcel = ck_parcel_new(64);
	struct ck_error err = CK_ERROR_INIT;
	struct ckpt_comm table;
	struct ck_comm comm;

	ok(ck_parcel_new(SIZE_MAX) == NULL, "a parcel of SIZE_MAX bytes is refused");
	is_int(ck_self_new(&table, &err), 0, "a table to break");
	ck_comm_init(&comm, &table, 1000, &err);
	comm.table.isend = refuse_send;
	is_int(ck_parcel_send(&comm, parcel, 64, 0, CK_TAG_TEST, &err), CK_EPEER, "send");
	like(err.text, "64 bytes to rank 0: the communicator refuses it (code -42)", "and why");
	ck_comm_fini(&comm);

	ck_comm_init(&comm, &table, 1000, &err);
	comm.table.irecv = refuse_recv;
	is_int(ck_parcel_recv(&comm, parcel, 0, CK_TAG_TEST, &err), CK_EPEER, "receive");
	like(err.text, "from rank 0: the communicator refuses (code -43)", "and why");
	ck_comm_fini(&comm);

	ck_comm_init(&comm, &table, 1000, &err);
	comm.table.iallreduce_max = refuse_reduce;
	is_int(ck_parcel_reduce(&comm, parcel, 4, &err), CK_EPEER, "reduction");
	like(err.text, "4 values: the communicator refuses it (code -44)", "and why");
	ck_comm_fini(&comm);

	ck_comm_init(&comm, &table, 1000, &err);
	comm.table.isend = take_send;
	comm.table.test = fail_test;
	is_int(ck_parcel_send(&comm, parcel, 64, 0, CK_TAG_TEST, &err), 0, "a send that will fail");
	is_int(ck_parcel_test(&comm, parcel, &err), CK_EPEER, "test");
	like(err.text, "rank 0: the communicator failed (code -45)", "and why");
	ck_parcel_free(&comm, parcel);
	ok(comm.lost == parcel, "memory that the communicator did not give back is not freed");
	ck_comm_fini(&comm);
	ok(comm.lost == parcel, "nor when everything ends: a late write must hit nobody else's");
	ck_self_free(table.ctx);
}

/* ---- patience ---- */

static int count_idle(void *arg, struct ck_error *err)
{
	int *calls = arg;

	if (++*calls < 3)
		return 0;
	return ck_fail(err, CK_EPEER, "the roll call misses rank 7");
}

static void test_patience(void)
{
	struct ck_parcel *parcel = ck_parcel_new(8);
	struct ck_error err = CK_ERROR_INIT;
	struct timespec begun, ended, cpu;
	struct ckpt_comm table;
	struct ck_comm comm;
	int calls = 0;
	double wall;

	is_int(ck_self_new(&table, &err), 0, "a process alone");
	ck_comm_init(&comm, &table, 300, &err);
	ck_parcel_recv(&comm, parcel, CKPT_ANY_PEER, CK_TAG_TEST, &err);
	clock_gettime(CLOCK_MONOTONIC, &begun);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
	is_int(ck_parcels_wait(&comm, &parcel, 1, 300, "tea", &err), CK_EPEER, "the time is up");
	is_str(err.text, "tea: no answer from anybody within 0.3 s", "and the text says so");
	clock_gettime(CLOCK_MONOTONIC, &ended);
	wall = (double)(ended.tv_sec - begun.tv_sec) +
	       1e-9 * (double)(ended.tv_nsec - begun.tv_nsec);
	ok(wall >= 0.3, "not before: %.3f s", wall);
	begun = cpu;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ended);
	wall = (double)(ended.tv_sec - begun.tv_sec) +
	       1e-9 * (double)(ended.tv_nsec - begun.tv_nsec);
	ok(wall < 0.15, "a wait of 0.3 s takes %.3f s of a core", wall);
	ck_comm_fini(&comm);

	ck_comm_init(&comm, &table, 100000, &err);
	comm.idle = count_idle;
	comm.idle_arg = &calls;
	is_int(ck_parcels_wait(&comm, &parcel, 1, 100000, "tea", &err), CK_EPEER,
	       "idle ends a wait");
	is_str(err.text, "the roll call misses rank 7", "with its text");
	is_int(calls, 3, "at its third call");
	is_int(ck_comm_check(&comm, &err), CK_EPEER, "then all is over");
	ck_parcel_free(&comm, parcel);
	ok(comm.lost == NULL, "a receive is cancelled");
	ck_comm_fini(&comm);
	ck_self_free(table.ctx);
}

/* A process that was stopped has not waited. */
static void test_suspended(void)
{
	struct ck_error err = CK_ERROR_INIT;
	struct ck_wait wait;
	struct ckpt_comm table;
	struct ck_comm comm;

	is_int(ck_self_new(&table, &err), 0, "a process alone");
	ck_comm_init(&comm, &table, 1000, &err);
	ck_wait_begin(&wait, 600000);
	wait.last_ns -= UINT64_C(3600) * 1000000000;
	is_int(ck_wait_pause(&wait, &comm, &err), 0, "stopped for an hour: goes on waiting");
	ok(wait.waited_ns <= 1000000000, "and has waited for a second at most");
	ck_wait_begin(&wait, 320);
	wait.last_ns -= UINT64_C(3600) * 1000000000;
	is_int(ck_wait_pause(&wait, &comm, &err), 0, "a short wait looks again too");
	ck_comm_fini(&comm);
	ck_self_free(table.ctx);
}

/* A killed rank meets its death as a failure of the communicator, and its memory is kept. */
static void test_killed_rank(void)
{
	struct ck_threads *threads = ck_threads_new(2);
	struct ck_parcel *parcel = ck_parcel_new(8);
	struct ck_error err = CK_ERROR_INIT;
	struct ckpt_comm table;
	struct ck_comm comm;

	ck_threads_comm(threads, 1, &table);
	ck_comm_init(&comm, &table, 300, &err);
	is_int(ck_parcel_recv(&comm, parcel, 0, CK_TAG_TEST, &err), 0, "a receive");
	ck_threads_kill(threads, 1);
	is_int(ck_comm_barrier(&comm, &err), CK_EPEER, "barrier of a killed rank");
	like(err.text, "to rank 0: the communicator refuses it", "and why");
	ck_parcel_free(&comm, parcel);
	ck_comm_fini(&comm);
	ck_threads_free(threads);
	ok(comm.lost == parcel, "a receive that could not be cancelled keeps its memory");
}

/* ---- parcels ---- */

/* Many at once, to the neighbour and from anybody; then reductions side by side. */
static void parcels_case(struct ck_comm *comm, struct comm_report *report)
{
	enum { MANY = 200 };
	struct ck_parcel *out[MANY], *in[MANY];
	int size = comm->table.size, to = (comm->table.rank + 1) % size;
	int from = (comm->table.rank + size - 1) % size, rc = 0;
	struct ck_error err = CK_ERROR_INIT;

	for (int i = 0; i < MANY && !rc; i++) {
		out[i] = ck_parcel_new(5000);
		in[i] = ck_parcel_new(5000);
		memcpy(out[i]->data, &i, sizeof(i));
		rc = ck_parcel_recv(comm, in[i], i % 3 ? from : CKPT_ANY_PEER, CK_TAG_TEST + i % 2,
				    &err);
		rc = rc ? rc
			: ck_parcel_send(comm, out[i], i % 7 ? sizeof(i) : 5000, to,
					 CK_TAG_TEST + i % 2, &err);
	}
	rc = rc ? rc : ck_parcels_wait(comm, in, MANY, comm->timeout_ms, "in", &err);
	rc = rc ? rc : ck_parcels_wait(comm, out, MANY, comm->timeout_ms, "out", &err);
	comm_expect(report, rc == 0, "parcels: %d: %s", rc, err.text);
	for (int i = 0; i < MANY && !rc; i++) {
		comm_expect(report, memcmp(in[i]->data, &i, sizeof(i)) == 0, "parcel %d is another",
			    i);
		comm_expect(report, in[i]->message.peer == from, "parcel %d: peer", i);
		comm_expect(report, in[i]->message.bytes == (i % 7 ? sizeof(i) : 5000),
			    "parcel %d: %zu bytes", i, in[i]->message.bytes);
		((uint64_t *)out[i]->data)[0] = (uint64_t)(comm->table.rank * 1000 + i);
		rc = ck_parcel_reduce(comm, out[i], 1, &err);
	}
	rc = rc ? rc : ck_parcels_wait(comm, out, MANY, comm->timeout_ms, "reduce", &err);
	comm_expect(report, rc == 0, "reductions: %d: %s", rc, err.text);
	for (int i = 0; i < MANY; i++) {
		comm_expect(report,
			    ((uint64_t *)out[i]->data)[1] == (uint64_t)((size - 1) * 1000 + i),
			    "reduction %d", i);
		ck_parcel_free(comm, in[i]);
		ck_parcel_free(comm, out[i]);
	}
}

static void test_parcels(void)
{
	static const struct comm_case parcels = {"parcels and reductions, 200 at once",
						 parcels_case};

	for (int size = 1; size <= 5; size++)
		run_case(&parcels, size, eager_sizes[size % 3], PATIENT_MS);
}

int main(void)
{
	alarm(WATCHDOG_SECONDS);
	test_bad_tables();
	test_broken_table();
	test_patience();
	test_suspended();
	test_killed_rank();
	test_parcels();
	test_busy();
	test_misfits();
	test_silent(2, 0, 0);
	test_silent(5, 4, SIZE_MAX);
	test_silent(8, 4, 0);
	test_silent(13, 6, 4096);
	test_silent(21, 0, 4096);
	test_cases();
	test_mixed();
	return done_testing();
}
