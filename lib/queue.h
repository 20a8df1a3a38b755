/*
 * Reads and writes that go on beside the caller: by the kernel (io_uring) where that can be had,
 * else by two helper threads, else at once. The caller submits, does something else (hashing), and
 * reaps. Short transfers, EINTR and EAGAIN are handled; where the file system refuses direct I/O, a
 * transfer goes through the page cache. A kernel that for about a second does not say how transfers
 * ended is given up: those fail, with its errno, and later ones are done at once.
 *
 * A queue is one thread's.
 */
#ifndef CK_QUEUE_H
#define CK_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "io.h"

struct ck_queue;

/*
 * Read or write exactly `bytes` bytes. The struct and its data stay where they are until it has been
 * reaped. For direct I/O, data, bytes and offset are multiples of 4096.
 */
struct ck_transfer {
	struct ck_io_transfer call; /* private: the call under way */
	bool write;
	int fd;       /* with O_DIRECT, or like plain_fd */
	int plain_fd; /* without */
	void *data;
	size_t bytes;
	uint64_t offset;
	/* Set when it is reaped: */
	int errnum;     /* 0: done; ENODATA: the file ends before; else why it failed */
	size_t done;    /* bytes */
	bool fell_back; /* direct I/O was refused */
	bool lost;      /* failed, and what became of it is not known: never free `data` */
	/* Private: */
	unsigned stalls;
	struct ck_transfer *next;
};

enum ck_queue_kind { CK_QUEUE_AT_ONCE, CK_QUEUE_THREADS, CK_QUEUE_KERNEL };

/*
 *   depth  at most so many transfers are under way
 *   best   the best kind to try; what it became is ck_queue_kind's to say
 * Returns 0 or CK_ENOMEM.
 */
int ck_queue_new(const struct ck_io *io, unsigned depth, enum ck_queue_kind best,
		 struct ck_queue **out, struct ck_error *err);
enum ck_queue_kind ck_queue_kind(const struct ck_queue *queue);

void ck_queue_submit(struct ck_queue *queue, struct ck_transfer *transfer);

/* Wait for the next one to end, in any order. NULL when none is under way. */
struct ck_transfer *ck_queue_reap(struct ck_queue *queue);

/* Waits for what is under way. NULL is fine. */
void ck_queue_free(struct ck_queue *queue);

#endif
