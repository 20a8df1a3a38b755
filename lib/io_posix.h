/*
 * Between io_posix.c and io_uring.c: the queue of the operating system, see struct ck_io_ops.
 */
#ifndef CK_IO_POSIX_H
#define CK_IO_POSIX_H

#include "io.h"

int ck_posix_queue_new(const struct ck_io *io, unsigned depth, struct ck_io_queue **queue);
int ck_posix_queue_submit(const struct ck_io *io, struct ck_io_queue *queue,
			  struct ck_io_transfer *transfer);
int ck_posix_queue_reap(const struct ck_io *io, struct ck_io_queue *queue,
			struct ck_io_transfer **ended);
void ck_posix_queue_free(const struct ck_io *io, struct ck_io_queue *queue);

#endif
