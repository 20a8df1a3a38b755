#include "comm.h"

#include <assert.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm_roll.h"

/* Leak checkers report what nobody meant. */
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#define LEAK_ON_PURPOSE(memory) __lsan_ignore_object(memory)
#else
#define LEAK_ON_PURPOSE(memory) ((void)(memory))
#endif

#define NS_PER_MS UINT64_C(1000000)
#define SPIN_POLLS 16
#define YIELD_NS (2 * NS_PER_MS)
#define NAP_MIN_NS UINT64_C(20000)
#define NAP_MAX_NS UINT64_C(200000)
#define NAP_LATE_NS UINT64_C(2000000)
#define IDLE_NS (50 * NS_PER_MS)
/* A gap between two polls that is longer was not waiting: this process stood still. */
#define GAP_MAX_NS (1000 * NS_PER_MS)
/* However long the gaps: nobody gives up before having looked this often. */
#define LOOKS_MIN 32
#define LISTEN_NS (10 * NS_PER_MS)
/* After this part of its limit a wait is long: time to ask who is there. */
#define ASK_PART 8
#define NAMES_BYTES 256

static int check_functions(const struct ckpt_comm *table, struct ck_error *err)
{
	const struct {
		const char *name;
		int present;
	} functions[] = {
		{"iallreduce_max", table->iallreduce_max != NULL},
		{"isend", table->isend != NULL},
		{"irecv", table->irecv != NULL},
		{"test", table->test != NULL},
		{"cancel_recv", table->cancel_recv != NULL},
		{"abort", table->abort != NULL},
	};

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (!functions[i].present)
			return ck_fail(err, CK_EARG, "struct ckpt_comm: %s is NULL",
				       functions[i].name);
	return 0;
}

int ck_comm_init(struct ck_comm *comm, const struct ckpt_comm *table, uint64_t timeout_ms,
		 struct ck_error *err)
{
	int rc;

	assert(timeout_ms >= 1);
	if (table->struct_size != sizeof(*table))
		return ck_fail(
			err, CK_EARG,
			"struct ckpt_comm: struct_size is %zu, this library wants %zu: set it to "
			"sizeof(struct ckpt_comm) and compile with the <ckpt.h> of this library",
			table->struct_size, sizeof(*table));
	if (table->size < 1)
		return ck_fail(err, CK_EARG, "struct ckpt_comm: size is %d, it must be at least 1",
			       table->size);
	if (table->rank < 0 || table->rank >= table->size)
		return ck_fail(err, CK_EARG, "struct ckpt_comm: rank is %d, it must be in [0, %d)",
			       table->rank, table->size);
	rc = check_functions(table, err);
	if (rc)
		return rc;
	memset(comm, 0, sizeof(*comm));
	comm->table = *table;
	comm->timeout_ms = timeout_ms;
	return ck_roll_init(comm, err);
}

int ck_comm_check(const struct ck_comm *comm, struct ck_error *err)
{
	return comm->dead.code ? ck_fail(err, CK_EPEER, "%s", comm->dead.text) : 0;
}

int ck_comm_die(struct ck_comm *comm, struct ck_error *err, const char *fmt, ...)
{
	char text[CK_ERROR_TEXT];
	va_list args;

	if (comm->dead.code)
		return ck_comm_check(comm, err);
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	ck_fail(&comm->dead, CK_EPEER, "%s", text);
	ck_roll_tell(comm, NULL, 0);
	return ck_comm_check(comm, err);
}

/* ---- patience ---- */

uint64_t ck_comm_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 * NS_PER_MS + (uint64_t)now.tv_nsec;
}

void ck_wait_begin(struct ck_wait *wait, uint64_t limit_ms)
{
	uint64_t now = ck_comm_clock_ns();

	*wait = (struct ck_wait){
		.limit_ns = limit_ms < UINT64_MAX / NS_PER_MS ? limit_ms * NS_PER_MS : UINT64_MAX,
		.last_ns = now,
		.idle_ns = now + IDLE_NS,
		.nap_ns = NAP_MIN_NS,
	};
}

/* Most answers come within microseconds; after that, whoever is to give it may need this core. */
static void rest(struct ck_wait *wait)
{
	struct timespec nap = {.tv_nsec = (long)wait->nap_ns};
	uint64_t most;

	if (wait->polls++ < SPIN_POLLS)
		return;
	if (wait->waited_ns < YIELD_NS) {
		sched_yield();
		return;
	}
	nanosleep(&nap, NULL);
	/* A thousandth of the time spent is not noticed; minutes then cost next to nothing. */
	most = wait->waited_ns / 1000 > NAP_MAX_NS ? wait->waited_ns / 1000 : NAP_MAX_NS;
	most = most < NAP_LATE_NS ? most : NAP_LATE_NS;
	wait->nap_ns = wait->nap_ns * 2 < most ? wait->nap_ns * 2 : most;
}

static int listen_when_due(struct ck_comm *comm, uint64_t now, struct ck_error *err)
{
	if (now < comm->listen_ns)
		return 0;
	comm->listen_ns = now + LISTEN_NS;
	return ck_roll_listen(comm, err);
}

int ck_comm_listen(struct ck_comm *comm, struct ck_error *err)
{
	int rc = ck_comm_check(comm, err);

	if (rc)
		return rc;
	ck_roll_at_work(comm, true);
	rc = listen_when_due(comm, ck_comm_clock_ns(), err);
	ck_roll_at_work(comm, false);
	return rc;
}

static int call_idle(struct ck_comm *comm, struct ck_error *err)
{
	struct ck_error why = CK_ERROR_INIT;

	if (!comm->idle || comm->dead.code || comm->idle(comm->idle_arg, &why) == 0)
		return 0;
	return ck_comm_die(comm, err, "%s", why.text);
}

int ck_wait_pause(struct ck_wait *wait, struct ck_comm *comm, struct ck_error *err)
{
	uint64_t now, gap, most;
	int rc;

	rest(wait);
	now = ck_comm_clock_ns();
	gap = now - wait->last_ns;
	most = wait->limit_ns / LOOKS_MIN + 1;
	most = most < GAP_MAX_NS ? most : GAP_MAX_NS;
	wait->waited_ns += gap < most ? gap : most;
	wait->last_ns = now;
	rc = listen_when_due(comm, now, err);
	if (rc)
		return rc;
	if (wait->waited_ns >= wait->limit_ns)
		return 1;
	if (now < wait->idle_ns)
		return 0;
	wait->idle_ns = now + IDLE_NS;
	return call_idle(comm, err);
}

/* ---- parcels ---- */

struct ck_parcel *ck_parcel_new(size_t capacity)
{
	struct ck_parcel *parcel;

	if (capacity > PTRDIFF_MAX - sizeof(*parcel))
		return NULL;
	parcel = malloc(sizeof(*parcel) + capacity);
	if (!parcel)
		return NULL;
	memset(parcel, 0, sizeof(*parcel));
	parcel->capacity = capacity;
	return parcel;
}

static int started(struct ck_parcel *parcel, void *request, int peer)
{
	parcel->peers[parcel->pending] = peer;
	parcel->requests[parcel->pending++] = request;
	return 0;
}

int ck_parcel_send(struct ck_comm *comm, struct ck_parcel *parcel, size_t bytes, int peer, int tag,
		   struct ck_error *err)
{
	void *request = NULL;
	int rc;

	assert(bytes <= parcel->capacity && parcel->pending < CK_PARCEL_REQUESTS);
	assert(!parcel->pending || !parcel->receiving);
	rc = comm->table.isend(comm->table.ctx, parcel->data, bytes, peer, tag, &request);
	if (rc)
		return ck_comm_die(comm, err,
				   "a message of %zu bytes to rank %d: the communicator refuses it "
				   "(code %d)",
				   bytes, peer, rc);
	parcel->receiving = 0;
	return started(parcel, request, peer);
}

int ck_parcel_recv(struct ck_comm *comm, struct ck_parcel *parcel, int peer, int tag,
		   struct ck_error *err)
{
	void *request = NULL;
	int rc;

	assert(!parcel->pending);
	rc = comm->table.irecv(comm->table.ctx, parcel->data, parcel->capacity, peer, tag,
			       &request);
	if (rc)
		return ck_comm_die(comm, err,
				   "receiving up to %zu bytes from rank %d: the communicator "
				   "refuses (code %d)",
				   parcel->capacity, peer, rc);
	parcel->receiving = 1;
	return started(parcel, request, peer);
}

int ck_parcel_reduce(struct ck_comm *comm, struct ck_parcel *parcel, int count,
		     struct ck_error *err)
{
	uint64_t *values = (void *)parcel->data;
	void *request = NULL;
	int rc;

	assert(!parcel->pending && count >= 1);
	assert((size_t)count <= parcel->capacity / (2 * sizeof(*values)));
	rc = comm->table.iallreduce_max(comm->table.ctx, values, values + count, count, &request);
	if (rc)
		return ck_comm_die(
			comm, err,
			"a reduction of %d values: the communicator refuses it (code %d)", count,
			rc);
	parcel->receiving = 0;
	return started(parcel, request, CKPT_ANY_PEER);
}

static int failed(struct ck_comm *comm, int peer, int code, struct ck_error *err)
{
	if (peer < 0)
		return ck_comm_die(comm, err,
				   "a reduction, or a message from some rank: the communicator "
				   "failed (code %d)",
				   code);
	return ck_comm_die(comm, err,
			   "a message from or to rank %d: the communicator failed (code %d)", peer,
			   code);
}

/* Look at request i; when it has ended, the last one takes its place. Returns test's code. */
static int look(struct ck_comm *comm, struct ck_parcel *parcel, int i)
{
	struct ckpt_message message = {.peer = CKPT_ANY_PEER, .bytes = 0};
	int done = 0, rc;

	rc = comm->table.test(comm->table.ctx, &parcel->requests[i], &done, &message);
	/* A failed request that is gone needs its memory no more; one that is not may still. */
	if (rc ? parcel->requests[i] != NULL : !done)
		return rc;
	if (!rc && parcel->receiving)
		parcel->message = message;
	parcel->pending--;
	parcel->requests[i] = parcel->requests[parcel->pending];
	parcel->peers[i] = parcel->peers[parcel->pending];
	return rc;
}

int ck_parcel_test(struct ck_comm *comm, struct ck_parcel *parcel, struct ck_error *err)
{
	for (int i = parcel->pending - 1; i >= 0; i--) {
		int peer = parcel->peers[i], rc = look(comm, parcel, i);

		if (rc)
			return failed(comm, peer, rc, err);
	}
	return parcel->pending == 0;
}

void ck_parcel_free(struct ck_comm *comm, struct ck_parcel *parcel)
{
	if (!parcel)
		return;
	for (int i = parcel->pending - 1; i >= 0; i--)
		if (!parcel->receiving)
			look(comm, parcel, i);
		else if (comm->table.cancel_recv(comm->table.ctx, &parcel->requests[i]) == 0)
			parcel->pending--;
	if (parcel->pending) {
		parcel->next = comm->lost;
		comm->lost = parcel;
		return;
	}
	free(parcel);
}

int ck_comm_sweep(struct ck_comm *comm)
{
	struct ck_parcel *parcel = comm->lost, *next;

	comm->lost = NULL;
	for (; parcel; parcel = next) {
		next = parcel->next;
		ck_parcel_free(comm, parcel);
	}
	return comm->lost != NULL;
}

void ck_comm_fini(struct ck_comm *comm)
{
	ck_comm_sweep(comm);
	ck_roll_fini(comm);
	for (struct ck_parcel *parcel = comm->lost; parcel; parcel = parcel->next)
		LEAK_ON_PURPOSE(parcel);
}

/* How many of the parcels wait for something, CK_EPEER. */
static int count_pending(struct ck_comm *comm, struct ck_parcel *const *parcels, int n,
			 struct ck_error *err)
{
	int pending = 0;

	for (int i = 0; i < n; i++) {
		int rc = parcels[i] ? ck_parcel_test(comm, parcels[i], err) : 1;

		if (rc < 0)
			return rc;
		pending += rc == 0;
	}
	return pending;
}

/* Returns 0: no more than `enough` are left; 1: the time is up; negative: dead. */
static int wait_round(struct ck_comm *comm, struct ck_parcel *const *parcels, int n, int enough,
		      uint64_t limit_ms, struct ck_error *err)
{
	struct ck_wait wait;
	uint64_t asked = 0;

	ck_wait_begin(&wait, limit_ms);
	for (;;) {
		int rc = count_pending(comm, parcels, n, err);

		if (rc <= enough)
			return rc < 0 ? rc : 0;
		rc = ck_wait_pause(&wait, comm, err);
		if (rc)
			return rc;
		if (wait.waited_ns / (2 * asked + 1) >= wait.limit_ns / ASK_PART)
			ck_roll_ask(comm, parcels, n, asked++ > 0);
	}
}

/*
 * Returns 0; CK_EPEER; 1 when all answered, and time was up so many times, not counting when one of them was
 * at work; `who` names them.
 */
static int wait_rounds(struct ck_comm *comm, struct ck_parcel *const *parcels, int n, int enough,
		       uint64_t limit_ms, unsigned rounds, const char *what,
		       char who[static NAMES_BYTES], struct ck_error *err)
{
	while (rounds) {
		int rc = wait_round(comm, parcels, n, enough, limit_ms, err);

		if (rc <= 0)
			return rc;
		if (ck_roll_missing(comm, parcels, n, who, NAMES_BYTES))
			return ck_comm_die(comm, err, "%s: no answer from %s within %g s", what,
					   who, (double)limit_ms / 1000);
		if (!ck_roll_works(comm, limit_ms))
			rounds--;
	}
	return 1;
}

int ck_parcels_wait(struct ck_comm *comm, struct ck_parcel *const *parcels, int n,
		    uint64_t limit_ms, const char *what, struct ck_error *err)
{
	char who[NAMES_BYTES];
	/* The second time is for those who answer: they may wait for a silent one themselves. */
	int rc = wait_rounds(comm, parcels, n, 0, limit_ms, 2, what, who, err);

	if (rc <= 0)
		return rc;
	return ck_comm_die(comm, err,
			   "%s: %s waits too, but sends nothing within %g s: do the ranks call in "
			   "different order?",
			   what, who, (double)limit_ms / 500);
}

int ck_parcels_wait_any(struct ck_comm *comm, struct ck_parcel *const *parcels, int n,
			uint64_t limit_ms, const char *what, struct ck_error *err)
{
	char who[NAMES_BYTES];
	int pending = 0, rc = 1;

	for (int i = 0; i < n; i++)
		pending += parcels[i] && parcels[i]->pending;
	while (rc == 1)
		rc = wait_rounds(comm, parcels, n, pending - 1, limit_ms, 1, what, who, err);
	return rc;
}
