/* The cases of comm_cases.h in which the ck_comm dies, or nearly. */
#include "comm_cases.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define expect(cond, ...) comm_expect(report, (cond), __VA_ARGS__)

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* A rank that a failure did not touch meets it in one of the next collectives. */
static int until_death(struct ck_comm *comm, int rc, struct ck_error *err)
{
	for (int i = 0; rc == 0 && i < 5; i++)
		rc = ck_comm_barrier(comm, err);
	return rc;
}

/* Once dead, everything says so at once, in the same words, and writes no output. */
static void expect_dead(struct ck_comm *comm, const char *text, struct comm_report *report)
{
	int rc, ranks[] = {comm->table.rank};
	struct ck_error err = CK_ERROR_INIT;
	struct ck_per_rank all = CK_PER_RANK_INIT;
	uint64_t value = 1, bytes = 1, begun;
	void *data = &value;

	comm->timeout_ms = 600000; /* whoever waits now, waits for ten minutes */
	begun = now_ms();
	rc = ck_comm_barrier(comm, &err);
	expect(rc == CK_EPEER && strcmp(err.text, text) == 0, "dead: barrier: %d: %s", rc,
	       err.text);
	rc = ck_comm_agree(comm, 0, &err);
	expect(rc == CK_EPEER && strcmp(err.text, text) == 0, "dead: agree: %d: %s", rc, err.text);
	rc = ck_comm_allreduce_max(comm, &value, 1, &err);
	expect(rc == CK_EPEER, "dead: allreduce_max: %d", rc);
	rc = ck_comm_bcast(comm, 0, &value, sizeof(value), &err);
	expect(rc == CK_EPEER, "dead: bcast: %d", rc);
	rc = ck_comm_bcast_new(comm, 0, &data, &bytes, &err);
	expect(rc == CK_EPEER && data == &value && bytes == 1, "dead: bcast_new: %d", rc);
	rc = ck_comm_bcast_group(comm, ranks, 1, 0, &value, sizeof(value), &err);
	expect(rc == CK_EPEER, "dead: bcast_group: %d", rc);
	rc = ck_comm_gather(comm, 0, &value, sizeof(value), &all, &err);
	expect(rc == CK_EPEER && !all.data && !all.offsets, "dead: gather: %d", rc);
	rc = ck_comm_scatter(comm, 0, &all, &data, &bytes, &err);
	expect(rc == CK_EPEER && data == &value && bytes == 1, "dead: scatter: %d", rc);
	expect(strcmp(err.text, text) == 0, "dead: scatter: %s", err.text);
	expect(ck_comm_check(comm, NULL) == CK_EPEER, "dead: check says it lives");
	expect(now_ms() - begun < 60000, "dead: the calls took %" PRIu64 " ms", now_ms() - begun);
}

/* ---- late, but there ---- */

void comm_case_busy(struct ck_comm *comm, struct comm_report *report)
{
	uint64_t until = now_ms() + comm->timeout_ms * 7 / 2;
	struct timespec nap = {.tv_nsec = 1000000};
	struct ck_error err = CK_ERROR_INIT;
	int rc = 0;

	if (comm->table.rank == comm->table.size - 1)
		while (rc == 0 && now_ms() < until) {
			nanosleep(&nap, NULL);
			rc = ck_comm_listen(comm, &err);
		}
	expect(rc == 0, "busy: listening: %d: %s", rc, err.text);
	rc = ck_comm_barrier(comm, &err);
	expect(rc == 0, "busy: %d: %s", rc, err.text);
	rc = ck_comm_bcast(comm, comm->table.size - 1, &until, sizeof(until), &err);
	expect(rc == 0 && now_ms() >= until, "busy: %d: nobody waited for the busy rank", rc);
}

/* ---- misfits ---- */

static void case_order(struct ck_comm *comm, struct comm_report *report)
{
	struct ck_error err = CK_ERROR_INIT;
	unsigned char data[100] = {0};
	int rc;

	if (comm->table.rank == comm->table.size - 1)
		rc = ck_comm_barrier(comm, &err);
	else
		rc = ck_comm_bcast(comm, 0, data, sizeof(data), &err);
	rc = until_death(comm, rc, &err);
	expect(rc == CK_EPEER && strstr(err.text, "different order"), "order: %d: %s", rc,
	       err.text);
	expect_dead(comm, err.text, report);
}

static void case_sizes(struct ck_comm *comm, struct comm_report *report)
{
	struct ck_error err = CK_ERROR_INIT;
	unsigned char data[101] = {0};
	int rc;

	rc = ck_comm_bcast(comm, 0, data, comm->table.rank ? 101 : 100, &err);
	rc = until_death(comm, rc, &err);
	expect(rc == CK_EPEER && strstr(err.text, "different sizes") &&
		       strstr(err.text, "rank 0 sends 100 bytes") &&
		       strstr(err.text, "expects 101"),
	       "sizes: %d: %s", rc, err.text);
	expect_dead(comm, err.text, report);
}

/* Longer than the receiver has room for: the communicator itself refuses it. */
static void case_too_long(struct ck_comm *comm, struct comm_report *report)
{
	struct ck_error err = CK_ERROR_INIT;
	unsigned char data[4000] = {0};
	int rc;

	rc = ck_comm_bcast(comm, 0, data, comm->table.rank ? 10 : 4000, &err);
	rc = until_death(comm, rc, &err);
	expect(rc == CK_EPEER && strstr(err.text, "the communicator failed (code -"),
	       "too long: %d: %s", rc, err.text);
	expect(strstr(err.text, "from or to rank 0") != NULL, "too long: %s", err.text);
	expect_dead(comm, err.text, report);
}

const struct comm_case comm_misfits[] = {
	{"collectives in different order", case_order},
	{"different sizes", case_sizes},
	{"a message longer than its room", case_too_long},
};
const int comm_nmisfits = sizeof(comm_misfits) / sizeof(comm_misfits[0]);

/* ---- a silent rank ---- */

static int silent_barrier(struct ck_comm *comm, struct ck_error *err)
{
	return ck_comm_barrier(comm, err);
}

static int silent_agree(struct ck_comm *comm, struct ck_error *err)
{
	int code = comm->table.rank == 0 ? ck_fail(err, CK_EIO, "no space") : 0;

	return ck_comm_agree(comm, code, err);
}

static int silent_maximum(struct ck_comm *comm, struct ck_error *err)
{
	uint64_t values[3] = {1, 2, 3};

	return ck_comm_allreduce_max(comm, values, 3, err);
}

/* The one that nobody can tell who is missing from, but by asking. */
static int silent_reduce(struct ck_comm *comm, struct ck_error *err)
{
	struct ck_parcel *parcel = ck_parcel_new(2 * sizeof(uint64_t));
	int rc;

	memset(parcel->data, 0, sizeof(uint64_t));
	rc = ck_parcel_reduce(comm, parcel, 1, err);
	rc = rc ? rc : ck_parcels_wait(comm, &parcel, 1, comm->timeout_ms, "reduction", err);
	ck_parcel_free(comm, parcel);
	return rc;
}

static int silent_bcast(struct ck_comm *comm, struct ck_error *err)
{
	int much = COMM_RANKS_OF_MUCH < 8 ? COMM_RANKS_OF_MUCH : 8;
	uint64_t bytes = comm->table.size <= much ? 9 << 20 : 1500000;
	void *data = calloc(1, bytes);
	int rc = ck_comm_bcast(comm, comm->table.size / 2, data, bytes, err);

	/* At once: nobody may still send or receive here. */
	free(data);
	return rc;
}

static int silent_gather(struct ck_comm *comm, struct ck_error *err)
{
	struct ck_per_rank all = CK_PER_RANK_INIT;
	void *data = calloc(1, 100000);
	int rc = ck_comm_gather(comm, comm->table.size / 3, data, 100000, &all, err);

	free(data);
	ck_per_rank_fini(&all);
	return rc;
}

static int silent_scatter(struct ck_comm *comm, struct ck_error *err)
{
	struct ck_per_rank all = {.data = calloc((size_t)comm->table.size, 5000),
				  .offsets =
					  calloc((size_t)comm->table.size + 1, sizeof(uint64_t))};
	uint64_t bytes;
	void *data = NULL;
	int rc;

	for (int i = 0; i < comm->table.size; i++)
		all.offsets[i + 1] = all.offsets[i] + 5000;
	rc = ck_comm_scatter(comm, 0, &all, &data, &bytes, err);
	free(data);
	ck_per_rank_fini(&all);
	return rc;
}

static const struct {
	const char *name;
	int (*call)(struct ck_comm *comm, struct ck_error *err);
} silent_calls[] = {
	{"barrier", silent_barrier}, {"reduction", silent_reduce},     {"agreement", silent_agree},
	{"maximum", silent_maximum}, {"long broadcast", silent_bcast}, {"gather", silent_gather},
	{"scatter", silent_scatter},
};
const int comm_nsilent = sizeof(silent_calls) / sizeof(silent_calls[0]);

const char *comm_silent_name(int which)
{
	return silent_calls[which].name;
}

void comm_case_silent(struct ck_comm *comm, int which, int silent, struct comm_report *report)
{
	uint64_t part = comm->timeout_ms / 20 * (uint64_t)(comm->table.rank % 5), begun, took;
	struct timespec late = {.tv_sec = (time_t)(part / 1000),
				.tv_nsec = (long)(part % 1000 * 1000000)};
	struct ck_error err = CK_ERROR_INIT;
	char name[32];
	int rc;

	/*
	 * Ranks come at different times: who waits for a late one must not take it for the silent.
	 */
	nanosleep(&late, NULL);
	begun = now_ms();
	rc = silent_calls[which].call(comm, &err);
	took = now_ms() - begun;
	expect(rc == 0 || rc == CK_EPEER, "silent rank: %d: %s", rc, err.text);
	/* Twice the timeout; the rest is for a crowded machine. Who is not cut off waits for ever. */
	expect(took < 2 * comm->timeout_ms + 60000, "silent rank: took %" PRIu64 " ms", took);
	rc = until_death(comm, rc, &err);
	snprintf(name, sizeof(name), "no answer from rank %d within", silent);
	expect(rc == CK_EPEER && strstr(err.text, name), "silent rank %d: %d: %s", silent, rc,
	       err.text);
	expect_dead(comm, err.text, report);
}
