/*
 * How the ranks of a run talk. Nothing here waits without a bound.
 *
 * A `struct ck_comm` holds a `struct ckpt_comm` (<ckpt.h>; none of its functions blocks) and
 * everything that is written once over it:
 *
 *	ck_wait      patience: how a loop that polls waits, and when it stops
 *	ck_parcel    memory that is on its way, together with its requests
 *	ck_comm_…    collectives: barrier, maximum, agreement, broadcast, gather, scatter
 *
 *	struct ck_comm comm;
 *	rc = ck_comm_init(&comm, table, 600000, err);
 *	code = read_my_file(..., err);                  a local failure is kept, ...
 *	rc = ck_comm_agree(&comm, code, err);           ... told to all, then all act alike
 *	ck_comm_fini(&comm);
 *
 * Time. `timeout_ms` is how long another rank may be silent: each wait for a message, a reduction,
 * or a piece of a longer transfer has that long. Ranks inside a wait, or in ck_comm_listen, answer
 * when they are asked whether they are there; whoever neither sends nor answers is named. A rank
 * that answers gets as much time again: it may be waiting for a silent one itself, and will tell.
 * So every wait ends within twice timeout_ms, and nearly all within once; but one that works, and
 * calls ck_comm_listen meanwhile, is waited for as long as it does. A process that was
 * stopped as a whole (SIGSTOP, a suspended job) does not count the time that it did not see.
 *
 * Death is final. When a rank is silent, the table reports a failure, ranks call different
 * collectives, or memory for a message is missing, the caller gets CK_EPEER and a text with the
 * ranks concerned, as far as it knows them; its neighbours in the collective and those who asked
 * for it are sent the same text; and `dead` is set: each later collective returns that code and
 * text at once. The ranks' fates differ: one may have finished the collective in which another
 * died; it learns of it in one of the next.
 *
 * Memory. What callers pass is theirs again when a call returns, failed or not: only the memory of
 * parcels is ever given to the communicator. After a death, receives are cancelled; sends and
 * reductions cannot be, so what they hold goes to `lost`, is looked at once more by ck_comm_fini,
 * and is leaked if the communicator still has it: a leak is harmless, a late write is not. A dead
 * ck_comm also leaves one receive behind, so that its communicator is not mistaken for a free one.
 *
 * A ck_comm belongs to one thread at a time. All ranks run machines of one byte order.
 */
#ifndef CK_COMM_H
#define CK_COMM_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "ckpt.h"
#include "error.h"

/* Who uses which tag. */
enum ck_tag {
	CK_TAG_COLLECTIVE = 0, /* the collectives below */
	CK_TAG_RECORD = 1,     /* save: a rank's record of what it wrote, to rank 0 */
	CK_TAG_ROLL_CALL = 2,  /* every wait: questions, answers, news of a death */
	CK_TAG_EXCHANGE = 3,   /* restore: pieces of items, to whoever holds them now */
	CK_TAG_TEST = 200,     /* from here on: tests */
	CK_TAG_LAST = 255
};

struct ck_parcel;
struct ck_roll;

struct ck_comm {
	struct ckpt_comm table; /* a copy; rank and size are read from here */
	uint64_t timeout_ms;    /* may be changed between calls, alike on all ranks */

	/*
	 * May be NULL. Called about each 50 ms inside every wait, so that a rank can do small
	 * things while it waits. It may use the table and parcels, no collective and no wait.
	 * Returns 0, or a negative code with *err filled: the wait ends, the ck_comm is dead with
	 * that text.
	 */
	int (*idle)(void *arg, struct ck_error *err);
	void *idle_arg;

	struct ck_error dead; /* code 0: alive. Read only */
	/* private */
	struct ck_parcel *lost;
	struct ck_roll *roll;
	uint64_t listen_ns; /* clock at which it is time to listen */
};

/*
 * Check and copy `table`; its ctx must outlive `comm`.
 *
 *   timeout_ms  at least 1
 *
 * Local. Returns 0, idle is NULL; CK_EARG naming the member of the table that is not right;
 * CK_ENOMEM. `comm` needs ck_comm_fini only after a success.
 */
int ck_comm_init(struct ck_comm *comm, const struct ckpt_comm *table, uint64_t timeout_ms,
		 struct ck_error *err);

/* Let go. No parcel is in use any more. Local, no message. What is leaked: see "Memory". */
void ck_comm_fini(struct ck_comm *comm);

/* Free what has come back of `lost`. Returns 1 when something has not, else 0. Local. */
int ck_comm_sweep(struct ck_comm *comm);

/* Returns 0, or CK_EPEER with the text of its death in *err. Local. */
int ck_comm_check(const struct ck_comm *comm, struct ck_error *err);

/*
 * Tell those who ask that this rank is there, and at work: for long work between collectives, at least
 * twice in timeout_ms. Local, cheap, may be called often. Returns 0, or CK_EPEER when another rank has
 * told that it gave up.
 */
int ck_comm_listen(struct ck_comm *comm, struct ck_error *err);

/*
 * Declare the communicator dead and tell those who asked. The first text stays. Returns CK_EPEER
 * with that text in *err.
 */
int ck_comm_die(struct ck_comm *comm, struct ck_error *err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- patience ---- */

/* CLOCK_MONOTONIC. */
uint64_t ck_comm_clock_ns(void);

/*
 * For loops that poll several things: look, ck_wait_pause, look again. It spins briefly, then
 * yields the core, then sleeps for up to 200 us (2 ms in waits of seconds), so that crowded ranks
 * get on and a wait of minutes costs little.
 */
struct ck_wait {
	uint64_t limit_ns;  /* how long */
	uint64_t waited_ns; /* of that */
	uint64_t last_ns;   /* clock at the last pause */
	uint64_t idle_ns;   /* clock at which `idle` is due */
	uint64_t nap_ns;    /* next sleep */
	unsigned polls;
};

void ck_wait_begin(struct ck_wait *wait, uint64_t limit_ms);

/*
 * Returns 0: look again; 1: the time is up; negative: `idle` or another rank gave up, comm is dead,
 * *err says why.
 */
int ck_wait_pause(struct ck_wait *wait, struct ck_comm *comm, struct ck_error *err);

/* ---- parcels ---- */

#define CK_PARCEL_REQUESTS 32

/*
 * Memory and the requests it belongs to: one receive, or one reduction, or up to CK_PARCEL_REQUESTS
 * sends. Fill `data`, start, test or wait until all have ended, then use it again. Works on a dead
 * ck_comm too, as long as the table does.
 */
struct ck_parcel {
	struct ckpt_message message; /* who sent the last receive that ended, and how much */
	size_t capacity;             /* bytes of data */
	/* private */
	struct ck_parcel *next;
	int receiving; /* the request is a receive: it can be cancelled */
	int pending;
	int peers[CK_PARCEL_REQUESTS]; /* -1: not known */
	void *requests[CK_PARCEL_REQUESTS];
	unsigned char data[] __attribute__((aligned(16)));
};

/* NULL: no memory. */
struct ck_parcel *ck_parcel_new(size_t capacity);

/*
 * Local and at once: cancels a receive; memory that the communicator still needs goes to
 * comm->lost.
 */
void ck_parcel_free(struct ck_comm *comm, struct ck_parcel *parcel);

/* Start sending the first `bytes` bytes of data. Returns 0 or CK_EPEER. */
int ck_parcel_send(struct ck_comm *comm, struct ck_parcel *parcel, size_t bytes, int peer, int tag,
		   struct ck_error *err);

/* Start receiving up to `capacity` bytes from `peer` or CKPT_ANY_PEER. Returns 0 or CK_EPEER. */
int ck_parcel_recv(struct ck_comm *comm, struct ck_parcel *parcel, int peer, int tag,
		   struct ck_error *err);

/*
 * Start a reduction of `count` values over all ranks: data holds uint64_t in[count], then, when it
 * has ended, out[count], the largest of each. Ranks post reductions in the same order. Returns 0 or
 * CK_EPEER.
 */
int ck_parcel_reduce(struct ck_comm *comm, struct ck_parcel *parcel, int count,
		     struct ck_error *err);

/* Returns 1: all requests have ended (also when there are none); 0: not yet; CK_EPEER. */
int ck_parcel_test(struct ck_comm *comm, struct ck_parcel *parcel, struct ck_error *err);

/*
 * Wait until all requests of all n parcels have ended (NULL is skipped). limit_ms: as timeout_ms,
 * see "Time". Returns 0; CK_EPEER: "<what>: no answer from rank 3 within 600 s".
 */
int ck_parcels_wait(struct ck_comm *comm, struct ck_parcel *const *parcels, int n,
		    uint64_t limit_ms, const char *what, struct ck_error *err);

/*
 * Wait until one of the parcels that have requests (at least one has) ends its last, for as long as those
 * it is waited for answer: they may be busy, reading a large file. Returns 0; CK_EPEER: one does not.
 */
int ck_parcels_wait_any(struct ck_comm *comm, struct ck_parcel *const *parcels, int n,
			uint64_t limit_ms, const char *what, struct ck_error *err);

/* ---- collectives: all ranks, in the same order ---- */

/* Leaves when all have come. Returns 0 or CK_EPEER. */
int ck_comm_barrier(struct ck_comm *comm, struct ck_error *err);

#define CK_COMM_REDUCE_MAX 65536

/*
 * values[i] = the largest of all ranks'. n in [1, CK_COMM_REDUCE_MAX], alike everywhere. Returns 0;
 * CK_EPEER: values are undefined.
 */
int ck_comm_allreduce_max(struct ck_comm *comm, uint64_t *values, int n, struct ck_error *err);

/*
 * Make one answer of everybody's.
 *
 *   code  0, or the negative code of this rank's failure
 *   err   in: the text of that failure (when err->code == code). Out: the agreed one
 *
 * Returns 0 when all gave 0. Otherwise, on all ranks alike, code and text of the lowest rank that
 * failed: "rank 3: <text>", "rank 3 (and 2 more): <text>"; without the "rank" when there is only
 * one rank. CK_EPEER also when ranks are silent.
 */
int ck_comm_agree(struct ck_comm *comm, int code, struct ck_error *err);

/*
 * Copy root's `data` to everybody's; `bytes` is alike everywhere. Returns 0; CK_EPEER: data is
 * undefined, except root's.
 */
int ck_comm_bcast(struct ck_comm *comm, int root, void *data, uint64_t bytes, struct ck_error *err);

/*
 * The same for a size that only root knows.
 *
 *   data, bytes  root: in. Elsewhere: out; free(*data), never NULL. Untouched after a failure
 *
 * Returns 0; CK_ENOMEM on all ranks when one lacks the memory; CK_EPEER.
 */
int ck_comm_bcast_new(struct ck_comm *comm, int root, void **data, uint64_t *bytes,
		      struct ck_error *err);

/*
 * ck_comm_bcast among some ranks; only they call it.
 *
 *   ranks  n ranks, ascending, the caller among them, alike on all of them
 *   root   index into `ranks`
 *
 * Two groups may overlap if the ranks they share call in the same order. Returns as ck_comm_bcast.
 */
int ck_comm_bcast_group(struct ck_comm *comm, const int *ranks, int n, int root, void *data,
			uint64_t bytes, struct ck_error *err);

/* A byte string of each rank, end to end; rank r's is data[offsets[r], offsets[r + 1]). */
struct ck_per_rank {
	unsigned char *data;
	uint64_t *offsets; /* size + 1 values, the first is 0 */
};

/* clang-format off */ /* its releases differ on a body in braces */
#define CK_PER_RANK_INIT {.data = NULL, .offsets = NULL}
/* clang-format on */

void ck_per_rank_fini(struct ck_per_rank *per_rank);

/*
 * Of what add(arg, rank, text) appends for each rank in turn. Local. Returns 0; CK_ENOMEM; what add returned. End
 * it with ck_per_rank_fini, whatever the answer.
 */
int ck_per_rank_make(struct ck_per_rank *out, uint32_t size,
		     int (*add)(const void *arg, uint32_t rank, struct ck_buf *text,
				struct ck_error *err),
		     const void *arg, struct ck_error *err);

/*
 * Bring a byte string of each rank to root, along a tree: a rank holds for a while what the ranks
 * below it gave, up to half of everything; nobody ever has more than a few MiB of messages under
 * way.
 *
 *   out  root: filled on success, ends with ck_per_rank_fini. Elsewhere untouched, may be NULL
 *
 * Returns 0; CK_ENOMEM on all ranks when one lacks the memory; CK_EPEER.
 */
int ck_comm_gather(struct ck_comm *comm, int root, const void *data, uint64_t bytes,
		   struct ck_per_rank *out, struct ck_error *err);

/*
 * The reverse: give each rank its part of `in`, which counts at root only and stays root's.
 *
 *   data, bytes  out: this rank's part; free(*data), never NULL. Untouched after a failure
 *
 * Returns and memory as for ck_comm_gather.
 */
int ck_comm_scatter(struct ck_comm *comm, int root, const struct ck_per_rank *in, void **data,
		    uint64_t *bytes, struct ck_error *err);

/* ---- one process alone ---- */

/*
 * A table of one rank, for a process that has no others; it can send to itself.
 * ck_self_free(out->ctx) ends it. Local. Returns 0 or CK_ENOMEM.
 */
int ck_self_new(struct ckpt_comm *out, struct ck_error *err);
void ck_self_free(void *ctx);

#endif
