/*
 * The table over MPI, and the collectives over it: mpirun -n N comm_mpi, any N. Rank 0 prints for
 * all.
 */
#include "comm_mpi.h"

#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm.h"
#include "comm_cases.h"
#include "tap.h"

#define WATCHDOG_SECONDS 300
#define PATIENT_MS 60000
#define TAG 200

static int world_rank, world_size;

/* Bring the reports together; a case passes when no rank has anything to say. */
static void check_reports(const struct comm_report *mine, const char *name)
{
	struct comm_report *all = calloc((size_t)world_size, sizeof(*all));
	int bytes = (int)sizeof(*all), bad = -1;

	MPI_Gather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
	for (int i = world_size - 1; world_rank == 0 && i >= 0; i--)
		if (all[i].why[0])
			bad = i;
	if (world_rank == 0)
		ok(bad < 0, "%d processes: %s", world_size, name);
	if (bad >= 0)
		diag("rank %d: %s", bad, all[bad].why);
	free(all);
}

#define expect(cond, ...) comm_expect(report, (cond), __VA_ARGS__)

/* ---- the table ---- */

static int wait_for(struct ckpt_comm *table, void **request, struct ckpt_message *message)
{
	double begun = MPI_Wtime();
	int done = 0, rc = 0;

	while (!done && !rc && MPI_Wtime() - begun < 30)
		rc = table->test(table->ctx, request, &done, message);
	return rc ? rc : done ? 0 : 1;
}

/* Every rank with its neighbours in a ring. */
static void case_messages(struct ckpt_comm *table, struct comm_report *report)
{
	int to = (table->rank + 1) % table->size, out[2] = {table->rank, table->rank + 1000};
	int from = (table->rank + table->size - 1) % table->size, in[3] = {-1, -1, -1}, rc = 0;
	void *send[2], *recv[3];
	struct ckpt_message message = {.peer = -7, .bytes = 77};

	rc = table->irecv(table->ctx, &in[0], sizeof(int), CKPT_ANY_PEER, TAG, &recv[0]);
	rc = rc ? rc : table->irecv(table->ctx, &in[1], sizeof(int), from, TAG, &recv[1]);
	rc = rc ? rc : table->irecv(table->ctx, &in[2], sizeof(int), from, TAG + 1, &recv[2]);
	rc = rc ? rc : table->isend(table->ctx, &out[0], sizeof(int), to, TAG, &send[0]);
	rc = rc ? rc : table->isend(table->ctx, &out[1], sizeof(int), to, TAG, &send[1]);
	if (!expect(rc == 0, "starting: %d", rc))
		return;
	for (int i = 1; i >= 0; i--)
		expect(wait_for(table, &recv[i], &message) == 0 && !recv[i], "receive %d", i);
	expect(in[0] == from && in[1] == from + 1000, "out of order: %d %d", in[0], in[1]);
	expect(message.peer == from && message.bytes == sizeof(int), "message: from %d, %zu bytes",
	       message.peer, message.bytes);
	for (int i = 0; i < 2; i++)
		expect(wait_for(table, &send[i], NULL) == 0 && !send[i], "send %d", i);
	expect(table->cancel_recv(table->ctx, &recv[2]) == 0 && !recv[2], "cancel");
}

static void case_reductions(struct ckpt_comm *table, struct comm_report *report)
{
	uint64_t me = (uint64_t)table->rank, in[2] = {me, UINT64_MAX - me}, out[3][2] = {{0}};
	uint64_t last = (uint64_t)table->size - 1;
	void *request[3];

	for (int i = 0; i < 3; i++)
		expect(!table->iallreduce_max(table->ctx, in, out[i], 2, &request[i]), "start");
	for (int i = 2; i >= 0; i--)
		expect(wait_for(table, &request[i], NULL) == 0, "reduction %d", i);
	for (int i = 0; i < 3; i++)
		expect(out[i][0] == last && out[i][1] == UINT64_MAX, "reduction %d: wrong", i);
}

/* What MPI refuses comes back as a negative code; the program goes on. */
static void case_refusals(struct ckpt_comm *table, struct comm_report *report)
{
	size_t too_many = (size_t)INT_MAX + 1;
	void *send = NULL, *recv = NULL;
	char data[8] = "", longer[64] = "";
	int rc;

	expect(table->isend(table->ctx, data, too_many, 0, TAG, &send) < 0 && !send, "2 GiB sent");
	expect(table->irecv(table->ctx, data, too_many, 0, TAG, &recv) < 0 && !recv, "2 GiB");
	expect(table->isend(table->ctx, data, 8, table->size, TAG, &send) < 0 && !send, "no rank");
	expect(table->irecv(table->ctx, data, 8, table->size, TAG, &recv) < 0 && !recv, "no rank");
	/* Open MPI 4.1 cuts a long message to oneself without a word; we never send one. */
	if (table->size == 1)
		return;
	rc = table->irecv(table->ctx, data, 8, CKPT_ANY_PEER, TAG, &recv);
	rc = rc ? rc
		: table->isend(table->ctx, longer, 64, (table->rank + 1) % table->size, TAG, &send);
	expect(rc == 0, "to the neighbour: %d", rc);
	rc = wait_for(table, &recv, NULL);
	expect(rc == -MPI_ERR_TRUNCATE && !recv, "64 bytes into 8: %d", rc);
	expect(wait_for(table, &send, NULL) == 0, "64 bytes sent");
}

/* Messages of the program do not meet ours. */
static void case_own_world(struct ckpt_comm *table, struct comm_report *report)
{
	int theirs = -1, mine = table->rank, in = -1, flag = 0;
	MPI_Request any;
	void *send, *recv;

	MPI_Irecv(&theirs, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &any);
	table->irecv(table->ctx, &in, sizeof(in), table->rank, TAG, &recv);
	table->isend(table->ctx, &mine, sizeof(mine), table->rank, TAG, &send);
	expect(wait_for(table, &recv, NULL) == 0 && in == mine, "to itself: %d", in);
	expect(wait_for(table, &send, NULL) == 0, "to itself");
	MPI_Test(&any, &flag, MPI_STATUS_IGNORE);
	expect(!flag && theirs == -1, "the program received our message");
	MPI_Cancel(&any);
	MPI_Wait(&any, MPI_STATUS_IGNORE);
}

static const struct {
	const char *name;
	void (*run)(struct ckpt_comm *table, struct comm_report *report);
} table_cases[] = {
	{"messages: order, any source, cancel", case_messages},
	{"reductions side by side", case_reductions},
	{"refusals", case_refusals},
	{"apart from the program's messages", case_own_world},
};

static void test_table(void)
{
	for (size_t i = 0; i < sizeof(table_cases) / sizeof(table_cases[0]); i++) {
		struct comm_report report = {.why = ""};
		struct ckpt_comm table;

		if (ck_mpi_comm_new(MPI_COMM_WORLD, &table, NULL))
			MPI_Abort(MPI_COMM_WORLD, 1);
		table_cases[i].run(&table, &report);
		check_reports(&report, table_cases[i].name);
		ck_mpi_comm_free(table.ctx);
	}
}

/* ---- the collectives ---- */

static void run_case(const struct comm_case *test, uint64_t timeout_ms)
{
	struct comm_report report = {.why = ""};
	struct ckpt_comm table;
	struct ck_comm comm;

	if (ck_mpi_comm_new(MPI_COMM_WORLD, &table, NULL) ||
	    ck_comm_init(&comm, &table, timeout_ms, NULL))
		MPI_Abort(MPI_COMM_WORLD, 1);
	test->run(&comm, &report);
	ck_comm_fini(&comm);
	check_reports(&report, test->name);
	ck_mpi_comm_free(table.ctx);
}

/* The silent rank is in MPI, but not with us. */
static void run_silent(int which, int silent)
{
	struct comm_report report = {.why = ""};
	struct ckpt_comm table;
	struct ck_comm comm;
	char name[128];

	snprintf(name, sizeof(name), "%s, rank %d is silent", comm_silent_name(which), silent);
	if (ck_mpi_comm_new(MPI_COMM_WORLD, &table, NULL) ||
	    ck_comm_init(&comm, &table, 1000, NULL))
		MPI_Abort(MPI_COMM_WORLD, 1);
	if (world_rank != silent)
		comm_case_silent(&comm, which, silent, &report);
	ck_comm_fini(&comm);
	check_reports(&report, name);
	ck_mpi_comm_free(table.ctx);
}

static void test_collectives(void)
{
	static const struct comm_case mixed = {"1,000 collectives at random", comm_case_mixed};
	static const struct comm_case busy = {"a late rank that listens", comm_case_busy};

	for (int i = 0; i < comm_ncases; i++)
		run_case(&comm_cases[i], PATIENT_MS);
	run_case(&mixed, PATIENT_MS);
	run_case(&busy, 1500);
	for (int i = 0; world_size > 1 && i < comm_nmisfits; i++)
		run_case(&comm_misfits[i], PATIENT_MS);
	for (int i = 0; world_size > 1 && i < comm_nsilent; i++)
		run_silent(i, (i + 1) % world_size);
}

/* ---- when there is no MPI, or no communicator ---- */

static void note(struct comm_report *report, int rc, const struct ck_error *err, const char *needle)
{
	expect(rc == CK_EARG && strstr(err->text, needle), "%d: '%s' instead of '%s'", rc,
	       err->text, needle);
}

static void test_no_communicator(void)
{
	struct comm_report report = {.why = ""};
	struct ck_error err = CK_ERROR_INIT;
	struct ckpt_comm table;
	MPI_Comm half, inter;

	note(&report, ck_mpi_comm_new(MPI_COMM_NULL, &table, &err), &err, "MPI_COMM_NULL");
	check_reports(&report, "no communicator");
	if (world_size < 2)
		return;
	MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, world_rank, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - world_rank % 2, 7, &inter);
	note(&report, ck_mpi_comm_new(inter, &table, &err), &err, "inter-communicator");
	check_reports(&report, "an inter-communicator");
	MPI_Comm_free(&inter);
	MPI_Comm_free(&half);
}

/* The table outlives MPI: everything is refused, and what is left can be freed. */
static void test_after_finalize(struct ckpt_comm *table, void *pending)
{
	struct ck_error err = CK_ERROR_INIT;
	struct ckpt_comm again;
	void *request = NULL;
	uint64_t value = 1, result;
	int done;

	is_int(ck_mpi_comm_new(MPI_COMM_WORLD, &again, &err), CK_EARG, "after MPI_Finalize");
	like(err.text, "MPI is finalised", "and why");
	ok(table->isend(table->ctx, &value, 8, 0, TAG, &request) < 0, "isend is refused");
	ok(table->irecv(table->ctx, &value, 8, 0, TAG, &request) < 0, "irecv is refused");
	ok(table->iallreduce_max(table->ctx, &value, &result, 1, &request) < 0,
	   "iallreduce_max is refused");
	ok(table->test(table->ctx, &pending, &done, NULL) < 0, "test is refused");
	ok(table->cancel_recv(table->ctx, &pending) < 0, "cancel_recv is refused");
	ok(request == NULL && pending != NULL, "no request came or went");
	table->abort(table->ctx, 1);
	ck_mpi_comm_free(table->ctx);
	ck_mpi_comm_free(NULL);
}

int main(int argc, char **argv)
{
	struct comm_report before = {.why = ""};
	struct ck_error err = CK_ERROR_INIT;
	struct ckpt_comm table;
	void *pending = NULL;
	char data[8];

	alarm(WATCHDOG_SECONDS);
	note(&before, ck_mpi_comm_new(MPI_COMM_WORLD, &table, &err), &err, "not initialised");
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &world_size);
	check_reports(&before, "before MPI_Init");
	test_no_communicator();
	test_table();
	test_collectives();
	if (ck_mpi_comm_new(MPI_COMM_WORLD, &table, &err) ||
	    table.irecv(table.ctx, data, 8, world_rank, TAG, &pending))
		MPI_Abort(MPI_COMM_WORLD, 1);
	MPI_Finalize();
	if (world_rank)
		return 0;
	test_after_finalize(&table, pending);
	return done_testing();
}
