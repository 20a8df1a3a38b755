/*
 * Between the files of io_fault.h.
 */
#ifndef CK_IO_FAULT_IMPL_H
#define CK_IO_FAULT_IMPL_H

#include "io.h"
#include "io_fault_rules.h"

const struct ck_io *ck_fault_below(const struct ck_io *io);

/* Decide on an operation on descriptor `fd` (-1: none, the path is ""), wait and raise for it. */
struct ck_fault_action ck_fault_begin(const struct ck_io *io, enum ck_fault_op op, int fd);

/* See struct ck_io_ops. */
int ck_fault_queue_new(const struct ck_io *io, unsigned depth, struct ck_io_queue **queue);
int ck_fault_queue_submit(const struct ck_io *io, struct ck_io_queue *queue,
			  struct ck_io_transfer *transfer);
int ck_fault_queue_reap(const struct ck_io *io, struct ck_io_queue *queue,
			struct ck_io_transfer **ended);
void ck_fault_queue_free(const struct ck_io *io, struct ck_io_queue *queue);

#endif
