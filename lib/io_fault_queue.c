/* The queue of io_fault.h: transfers fail, are cut or answered wrongly as calls are. */
#include <errno.h>
#include <stdlib.h>

#include "io_fault_impl.h"

struct ck_io_queue {
	struct ck_io_queue *below;
	struct ck_io_transfer *failed; /* ended without having been begun */
};

int ck_fault_queue_new(const struct ck_io *io, unsigned depth, struct ck_io_queue **queue)
{
	const struct ck_io *below = ck_fault_below(io);
	struct ck_fault_action action = ck_fault_begin(io, CK_FAULT_QUEUE, -1);
	struct ck_io_queue *made;

	if (action.errnum || !below->ops->queue_new) {
		errno = action.errnum ? action.errnum : ENOSYS;
		return -1;
	}
	made = calloc(1, sizeof(*made));
	if (!made || below->ops->queue_new(below, depth, &made->below) < 0) {
		free(made);
		return -1;
	}
	*queue = made;
	return 0;
}

int ck_fault_queue_submit(const struct ck_io *io, struct ck_io_queue *queue,
			  struct ck_io_transfer *transfer)
{
	const struct ck_io *below = ck_fault_below(io);
	enum ck_fault_op op = transfer->write ? CK_FAULT_PWRITE : CK_FAULT_PREAD;
	struct ck_fault_action action = ck_fault_begin(io, CK_FAULT_SUBMIT, transfer->fd);

	if (action.errnum) {
		errno = action.errnum;
		return -1;
	}
	action = ck_fault_begin(io, op, transfer->fd);
	if (transfer->bytes > action.cut)
		transfer->bytes = (size_t)action.cut;
	transfer->fault = action.errnum;
	if ((action.errnum && !action.done) || transfer->bytes == 0) {
		transfer->result = -action.errnum;
		transfer->next = queue->failed;
		queue->failed = transfer;
		return 0;
	}
	return below->ops->queue_submit(below, queue->below, transfer);
}

int ck_fault_queue_reap(const struct ck_io *io, struct ck_io_queue *queue,
			struct ck_io_transfer **ended)
{
	const struct ck_io *below = ck_fault_below(io);
	struct ck_fault_action action = ck_fault_begin(io, CK_FAULT_REAP, -1);

	if (action.errnum) {
		errno = action.errnum;
		return -1;
	}
	if (queue->failed) {
		*ended = queue->failed;
		queue->failed = (*ended)->next;
		return 0;
	}
	if (below->ops->queue_reap(below, queue->below, ended) < 0)
		return -1;
	if ((*ended)->fault)
		(*ended)->result = -(*ended)->fault;
	return 0;
}

void ck_fault_queue_free(const struct ck_io *io, struct ck_io_queue *queue)
{
	const struct ck_io *below = ck_fault_below(io);

	below->ops->queue_free(below, queue->below);
	free(queue);
}
