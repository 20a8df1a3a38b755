#include "comm_cases.h"

#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "random.h"

#define MIB ((uint64_t)1 << 20)

int comm_expect(struct comm_report *report, int cond, const char *fmt, ...)
{
	va_list args;

	if (cond || report->why[0])
		return cond;
	va_start(args, fmt);
	vsnprintf(report->why, sizeof(report->why), fmt, args);
	va_end(args);
	return 0;
}

#define expect(cond, ...) comm_expect(report, (cond), __VA_ARGS__)

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/*
 * The bytes of stream `id`: neighbours differ, and so do pieces and streams. Each block of 256 counts up by 7 from
 * a first byte of its own, so it is a piece of one long count: copied and compared as a whole, since many MiB
 * byte by byte are most of a test's time under a sanitizer.
 */
#define BLOCK 256

struct count {
	unsigned char bytes[2 * BLOCK];
};

static void count_init(struct count *count)
{
	for (size_t i = 0; i < sizeof(count->bytes); i++)
		count->bytes[i] = (unsigned char)(i * 7);
}

static const unsigned char *block_at(const struct count *count, uint64_t id, uint64_t begin)
{
	uint64_t first = (begin >> 8) * 13 + (begin >> 20) * 29 + id * 101 + 1;

	return count->bytes + first * 183 % BLOCK; /* 183 * 7 is 1, modulo 256 */
}

static size_t block_bytes(uint64_t begin, uint64_t end)
{
	return end - begin < BLOCK ? (size_t)(end - begin) : BLOCK;
}

static void fill(unsigned char *data, uint64_t id, uint64_t bytes)
{
	struct count count;

	count_init(&count);
	for (uint64_t i = 0; i < bytes; i += BLOCK)
		memcpy(data + i, block_at(&count, id, i), block_bytes(i, bytes));
}

static unsigned char *stream(uint64_t id, uint64_t bytes)
{
	unsigned char *data = malloc((size_t)bytes + 1);

	if (data)
		fill(data, id, bytes);
	return data;
}

static int is_stream(const void *data, uint64_t id, uint64_t bytes)
{
	const unsigned char *got = data;
	struct count count;

	count_init(&count);
	for (uint64_t i = 0; i < bytes; i += BLOCK)
		if (memcmp(got + i, block_at(&count, id, i), block_bytes(i, bytes)) != 0)
			return 0;
	return 1;
}

/* ---- checked collectives; `id` tells one call from another ---- */

static void try_barrier(struct ck_comm *comm, struct comm_report *report)
{
	uint64_t entered = now_us(), left;
	struct ck_error err = CK_ERROR_INIT;
	int rc = ck_comm_barrier(comm, &err);

	left = now_us();
	expect(rc == 0, "barrier: %d: %s", rc, err.text);
	rc = ck_comm_allreduce_max(comm, &entered, 1, &err);
	expect(rc == 0 && left >= entered,
	       "barrier: %d: left at %" PRIu64 ", last came at %" PRIu64, rc, left, entered);
}

static void try_maximum(struct ck_comm *comm, int n, uint64_t id, struct comm_report *report)
{
	uint64_t *values = calloc((size_t)n, sizeof(*values)), size = (uint64_t)comm->table.size;
	struct ck_error err = CK_ERROR_INIT;
	int rc;

	/* The winner moves from rank to rank; the largest value is in use too. */
	for (int i = 0; i < n; i++)
		values[i] =
			UINT64_MAX - id - ((uint64_t)comm->table.rank + (uint64_t)i + id) % size;
	rc = ck_comm_allreduce_max(comm, values, n, &err);
	expect(rc == 0, "maximum of %d: %d: %s", n, rc, err.text);
	for (int i = 0; rc == 0 && i < n; i++)
		expect(values[i] == UINT64_MAX - id, "maximum of %d: value %d is %" PRIu64, n, i,
		       values[i]);
	free(values);
}

static void try_bcast(struct ck_comm *comm, int root, uint64_t bytes, uint64_t id,
		      struct comm_report *report)
{
	unsigned char *data = stream(id + (comm->table.rank != root), bytes);
	struct ck_error err = CK_ERROR_INIT;
	int rc = ck_comm_bcast(comm, root, data, bytes, &err);

	expect(rc == 0, "broadcast of %" PRIu64 " from %d: %d: %s", bytes, root, rc, err.text);
	expect(is_stream(data, id, bytes), "broadcast of %" PRIu64 " from %d: wrong bytes", bytes,
	       root);
	free(data);
}

static void try_bcast_new(struct ck_comm *comm, int root, uint64_t bytes, uint64_t id,
			  struct comm_report *report)
{
	int is_root = comm->table.rank == root, rc;
	void *data = is_root ? stream(id, bytes) : NULL;
	struct ck_error err = CK_ERROR_INIT;
	uint64_t got = is_root ? bytes : 0;

	rc = ck_comm_bcast_new(comm, root, &data, &got, &err);
	expect(rc == 0, "new broadcast of %" PRIu64 ": %d: %s", bytes, rc, err.text);
	expect(data && got == bytes && is_stream(data, id, bytes),
	       "new broadcast of %" PRIu64 " from %d: wrong bytes (%" PRIu64 ")", bytes, root, got);
	free(data);
}

/* Among the ranks that are not divisible by `hole`. */
static void try_group(struct ck_comm *comm, int hole, int root, uint64_t bytes, uint64_t id,
		      struct comm_report *report)
{
	int *ranks = calloc((size_t)comm->table.size, sizeof(*ranks)), n = 0, rc;
	struct ck_error err = CK_ERROR_INIT;
	unsigned char *data = NULL;

	for (int i = 0; i < comm->table.size; i++)
		if (i % hole)
			ranks[n++] = i;
	if (comm->table.rank % hole) {
		root %= n;
		data = stream(id + (comm->table.rank != ranks[root]), bytes);
		rc = ck_comm_bcast_group(comm, ranks, n, root, data, bytes, &err);
		expect(rc == 0, "group of %d: %d: %s", n, rc, err.text);
		expect(is_stream(data, id, bytes), "group of %d: wrong bytes", n);
	}
	free(data);
	free(ranks);
}

/* Sizes differ from rank to rank; some are empty. */
static uint64_t size_of(int rank, uint64_t unit)
{
	return rank % 3 == 1 ? 0 : unit * (uint64_t)(rank % 5 + 1) + (uint64_t)rank;
}

static void try_gather(struct ck_comm *comm, int root, uint64_t unit, uint64_t id,
		       struct comm_report *report)
{
	uint64_t bytes = size_of(comm->table.rank, unit);
	struct ck_per_rank all = CK_PER_RANK_INIT;
	struct ck_error err = CK_ERROR_INIT;
	unsigned char *data;
	int rc;

	data = bytes ? stream(id + (uint64_t)comm->table.rank, bytes) : NULL;
	rc = ck_comm_gather(comm, root, data, bytes, &all, &err);
	expect(rc == 0, "gather to %d: %d: %s", root, rc, err.text);
	expect(rc || (comm->table.rank == root) == (all.data != NULL), "gather: out is not root's");
	for (int i = 0; all.offsets && i < comm->table.size; i++) {
		uint64_t begin = all.offsets[i], size = all.offsets[i + 1] - begin;

		expect(size == size_of(i, unit), "gather to %d: rank %d: %" PRIu64 " bytes", root,
		       i, size);
		expect(is_stream(all.data + begin, id + (uint64_t)i, size),
		       "gather to %d: rank %d: wrong bytes", root, i);
	}
	ck_per_rank_fini(&all);
	free(data);
}

static struct ck_per_rank parts(int size, uint64_t unit, uint64_t id)
{
	struct ck_per_rank all = {.offsets = calloc((size_t)size + 1, sizeof(uint64_t))};

	for (int i = 0; i < size; i++)
		all.offsets[i + 1] = all.offsets[i] + size_of(i, unit);
	all.data = all.offsets[size] ? malloc((size_t)all.offsets[size]) : NULL;
	for (int i = 0; i < size; i++)
		if (size_of(i, unit))
			fill(all.data + all.offsets[i], id + (uint64_t)i, size_of(i, unit));
	return all;
}

static void try_scatter(struct ck_comm *comm, int root, uint64_t unit, uint64_t id,
			struct comm_report *report)
{
	struct ck_per_rank all = CK_PER_RANK_INIT;
	struct ck_error err = CK_ERROR_INIT;
	int me = comm->table.rank, rc;
	void *data = NULL;
	uint64_t bytes = 1;

	if (me == root)
		all = parts(comm->table.size, unit, id);
	rc = ck_comm_scatter(comm, root, &all, &data, &bytes, &err);
	expect(rc == 0, "scatter from %d: %d: %s", root, rc, err.text);
	expect(data && bytes == size_of(me, unit), "scatter from %d: %" PRIu64 " bytes", root,
	       bytes);
	expect(is_stream(data, id + (uint64_t)me, bytes), "scatter from %d: wrong bytes", root);
	free(data);
	ck_per_rank_fini(&all);
}

/* The ranks from `first` on, every `every`-th, fail with a text and code of their own. */
static void try_agree(struct ck_comm *comm, int first, int every, struct comm_report *report)
{
	int size = comm->table.size, me = comm->table.rank, failed = 0, code = 0, rc;
	struct ck_error err = CK_ERROR_INIT;
	char want[64] = "";

	for (int i = first; i < size; i += every)
		failed++;
	if (me >= first && (me - first) % every == 0)
		code = ck_fail(&err, me % 2 ? CK_EIO : CK_EDIGEST, "disk of %d is full", me);
	if (failed && size == 1)
		snprintf(want, sizeof(want), "disk of 0 is full");
	else if (failed == 1)
		snprintf(want, sizeof(want), "rank %d: disk of %d is full", first, first);
	else if (failed)
		snprintf(want, sizeof(want), "rank %d (and %d more): disk of %d is full", first,
			 failed - 1, first);
	rc = ck_comm_agree(comm, code, &err);
	expect(rc == (!failed ? 0 : first % 2 ? CK_EIO : CK_EDIGEST), "agreement: code is %d", rc);
	expect(strcmp(err.text, want) == 0, "agreement: '%s' instead of '%s'", err.text, want);
	expect(err.code == rc, "agreement: err->code is %d, not %d", err.code, rc);
}

/* ---- cases ---- */

static void case_barrier(struct ck_comm *comm, struct comm_report *report)
{
	for (int i = 0; i < 5; i++)
		try_barrier(comm, report);
}

static void case_maximum(struct ck_comm *comm, struct comm_report *report)
{
	try_maximum(comm, 1, 0, report);
	try_maximum(comm, 7, 3, report);
	try_maximum(comm, 1000, 5, report);
	try_maximum(comm, CK_COMM_REDUCE_MAX, 1, report);
}

static void case_agree(struct ck_comm *comm, struct comm_report *report)
{
	for (int first = 0; first <= comm->table.size; first++)
		try_agree(comm, first, comm->table.size, report);
	try_agree(comm, 0, 1, report);
	try_agree(comm, comm->table.size / 3, 2, report);
}

/* A failure without a text, one with the longest text, and a caller without an error. */
static void case_agree_texts(struct ck_comm *comm, struct comm_report *report)
{
	int last = comm->table.size - 1, code = comm->table.rank == last ? CK_ENOENT : 0, rc;
	struct ck_error err = CK_ERROR_INIT;
	char text[2 * CK_ERROR_TEXT];

	rc = ck_comm_agree(comm, code, NULL);
	expect(rc == CK_ENOENT, "agreement without err: code is %d", rc);
	rc = ck_comm_agree(comm, code, &err);
	expect(rc == CK_ENOENT && strstr(err.text, ck_code_name(CK_ENOENT)),
	       "agreement without a text: %d: %s", rc, err.text);
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	if (code)
		ck_fail(&err, code, "%s", text);
	rc = ck_comm_agree(comm, code, &err);
	expect(rc == CK_ENOENT && strlen(err.text) == CK_ERROR_TEXT - 1, "a long text: %zu bytes",
	       strlen(err.text));
}

static void case_bcast(struct ck_comm *comm, struct comm_report *report)
{
	static const uint64_t sizes[] = {0, 1, 4096, 65537};

	for (int i = 0; i < 4; i++)
		for (int root = 0; root < comm->table.size; root += comm->table.size / 7 + 1)
			try_bcast(comm, root, sizes[i], (uint64_t)root, report);
}

static void case_bcast_long(struct ck_comm *comm, struct comm_report *report)
{
	int last = comm->table.size - 1;

	try_bcast(comm, last / 2, MIB + 1, 1, report);
	if (comm->table.size > COMM_RANKS_OF_MUCH)
		return;
	try_bcast(comm, 0, MIB - 1, 2, report);
	try_bcast(comm, last, MIB, 3, report);
	try_bcast(comm, last / 3, 9 * MIB, 4, report);
}

static void case_bcast_new(struct ck_comm *comm, struct comm_report *report)
{
	try_bcast_new(comm, 0, 0, 1, report);
	try_bcast_new(comm, comm->table.size - 1, 1, 2, report);
	try_bcast_new(comm, comm->table.size / 2, 3 * MIB + 5, 3, report);
}

static void case_group(struct ck_comm *comm, struct comm_report *report)
{
	for (int root = 0; root < 5; root++) {
		try_group(comm, 2, root, 100, 1, report);
		try_group(comm, 3, root, MIB + 3, 2, report);
		try_group(comm, comm->table.size + 1, root, 5000, 3, report);
	}
}

static void case_gather(struct ck_comm *comm, struct comm_report *report)
{
	for (int root = 0; root < comm->table.size; root += comm->table.size / 5 + 1) {
		try_gather(comm, root, 0, 1, report);
		try_gather(comm, root, 1000, 2, report);
	}
	try_gather(comm, comm->table.size / 2,
		   comm->table.size <= COMM_RANKS_OF_MUCH ? MIB / 2 : 20000, 3, report);
}

static void case_scatter(struct ck_comm *comm, struct comm_report *report)
{
	for (int root = 0; root < comm->table.size; root += comm->table.size / 5 + 1) {
		try_scatter(comm, root, 0, 1, report);
		try_scatter(comm, root, 1000, 2, report);
	}
	try_scatter(comm, comm->table.size / 2,
		    comm->table.size <= COMM_RANKS_OF_MUCH ? MIB / 2 : 20000, 3, report);
}

/* What no memory can hold is refused on all ranks, and the ck_comm lives on. */
static void case_no_memory(struct ck_comm *comm, struct comm_report *report)
{
	int me = comm->table.rank, size = comm->table.size, rc;
	uint64_t *offsets = calloc((size_t)size + 1, sizeof(*offsets));
	struct ck_per_rank all = {.offsets = offsets};
	struct ck_error err = CK_ERROR_INIT;
	uint64_t bytes = UINT64_MAX - 7;
	void *data = NULL;

	rc = size > 1 ? ck_comm_bcast_new(comm, 0, &data, &bytes, &err) : CK_ENOMEM;
	expect(rc == CK_ENOMEM && (size == 1 || strstr(err.text, "rank 1")),
	       "a new broadcast of 2^64 - 8: %d: %s", rc, err.text);
	for (int i = 0; i < size; i++)
		offsets[i + 1] = UINT64_MAX / 2 + 2;
	data = report;
	rc = ck_comm_scatter(comm, 0, &all, &data, &bytes, &err);
	expect(rc == CK_ENOMEM && strstr(err.text, "out of memory"),
	       "a scatter of 2^63 + 1: %d: %s", rc, err.text);
	expect(data == report, "a scatter that failed wrote its output");
	rc = ck_comm_gather(comm, 0, "", me ? 0 : UINT64_MAX / 2 + 2, &all, &err);
	expect(rc == CK_ENOMEM && strstr(err.text, "out of memory"), "a gather of 2^63 + 1: %d: %s",
	       rc, err.text);
	expect(all.offsets == offsets, "a gather that failed wrote its output");
	free(offsets);
	try_barrier(comm, report);
}

const struct comm_case comm_cases[] = {
	{"barrier: nobody leaves before all have come", case_barrier},
	{"maximum of 1 to 65,536 values", case_maximum},
	{"agreement: code and text of the lowest rank that failed", case_agree},
	{"agreement: no text, no error, a long text", case_agree_texts},
	{"broadcast of nothing to 64 KiB", case_bcast},
	{"broadcast of 1 to 9 MiB", case_bcast_long},
	{"broadcast of a size that only the root knows", case_bcast_new},
	{"broadcast in groups", case_group},
	{"gather", case_gather},
	{"scatter", case_scatter},
	{"what no memory can hold", case_no_memory},
};
const int comm_ncases = sizeof(comm_cases) / sizeof(comm_cases[0]);

/* Most ranks are nearly together, now and then one is late. */
static void dawdle(uint64_t *random)
{
	uint64_t dice = draw(random, 1000);
	struct timespec nap = {.tv_nsec = 2000000};

	if (dice < 5)
		nanosleep(&nap, NULL);
	else if (dice < 300)
		sched_yield();
}

void comm_case_mixed(struct ck_comm *comm, struct comm_report *report)
{
	uint64_t shared = 88172645463325252, own = shared + 7 * (uint64_t)comm->table.rank + 1;
	int size = comm->table.size;

	for (uint64_t id = 0; id < 1000 && !report->why[0]; id++) {
		uint64_t op = draw(&shared, 8), bytes = draw(&shared, 20000);
		int root = (int)draw(&shared, (uint64_t)size);

		dawdle(&own);
		if (op == 0)
			try_barrier(comm, report);
		else if (op == 1)
			try_maximum(comm, (int)(bytes % 100) + 1, id, report);
		else if (op == 2)
			try_agree(comm, root + (int)(bytes % 3), root + 1, report);
		else if (op == 3)
			try_bcast(comm, root, bytes, id, report);
		else if (op == 4)
			try_bcast_new(comm, root, bytes, id, report);
		else if (op == 5)
			try_group(comm, 2 + (int)(bytes % 3), root, bytes, id, report);
		else if (op == 6)
			try_gather(comm, root, bytes % 3000, id, report);
		else
			try_scatter(comm, root, bytes % 3000, id, report);
	}
}
