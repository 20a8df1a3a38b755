/*
 * Ranks as threads of one process: a `struct ckpt_comm` for each of `size` threads. For tests, and
 * for a process alone (ck_self_new is a world of one).
 *
 *	t = ck_threads_new(4);
 *	ck_threads_comm(t, rank, &table);       in each thread: its own table
 *	ck_threads_free(t);                     when no thread uses a table any more
 *
 * It keeps to <ckpt.h> to the letter, and is as strict as MPI may be: a message of more than
 * `eager_bytes` (4 KiB at first, as common MPI libraries) has been sent when its receiver has taken
 * it, not before; a shorter one at once.
 *
 * All functions may be called from any thread at any time between new and free; each table only
 * from one thread at a time.
 */
#ifndef CK_COMM_THREADS_H
#define CK_COMM_THREADS_H

#include <stddef.h>

#include "ckpt.h"

struct ck_threads;

/* size >= 1. NULL: no memory. */
struct ck_threads *ck_threads_new(int size);

/*
 * NULL is fine. Requests that have not ended end here; nothing is read or written for them any
 * more.
 */
void ck_threads_free(struct ck_threads *threads);

/* The table of a rank; valid until ck_threads_free. */
void ck_threads_comm(struct ck_threads *threads, int rank, struct ckpt_comm *out);

/* The world that a table's ctx belongs to. */
struct ck_threads *ck_threads_of(void *ctx);

/* 0: every send waits for its receiver; SIZE_MAX: none does. For later sends. */
void ck_threads_set_eager(struct ck_threads *threads, size_t eager_bytes);

/*
 * The rank is gone: what it sent and nobody has received is dropped, nothing of it comes any more,
 * what is sent to it is never received, and each call with its table fails. What it gave to
 * reductions before stays given.
 */
void ck_threads_kill(struct ck_threads *threads, int rank);

/*
 * A table's `abort` kills all ranks, but does not end the process. Returns 1 and the first exit
 * code if it was called, else 0.
 */
int ck_threads_aborted(struct ck_threads *threads, int *exit_code);

#endif
