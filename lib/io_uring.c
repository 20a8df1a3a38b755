/* The queue of the operating system's ck_io: io_uring where it was there at build time. */
#include <errno.h>
#include <stdlib.h>

#include "io_posix.h"

#ifdef CK_HAVE_URING
#include <liburing.h>

struct ck_io_queue {
	struct io_uring ring;
	bool stuck; /* an entry that the kernel does not take would go with the next one */
};

int ck_posix_queue_new(const struct ck_io *io, unsigned depth, struct ck_io_queue **queue)
{
	struct ck_io_queue *made = calloc(1, sizeof(*made));
	int rc;

	(void)io;
	if (!made) {
		errno = ENOMEM;
		return -1;
	}
	rc = io_uring_queue_init(depth, &made->ring, 0);
	if (rc < 0) {
		free(made);
		errno = -rc;
		return -1;
	}
	*queue = made;
	return 0;
}

int ck_posix_queue_submit(const struct ck_io *io, struct ck_io_queue *queue,
			  struct ck_io_transfer *transfer)
{
	struct io_uring_sqe *sqe = queue->stuck ? NULL : io_uring_get_sqe(&queue->ring);
	unsigned stalls = 0;
	int rc;

	(void)io;
	if (!sqe) {
		errno = EBUSY;
		return -1;
	}
	if (transfer->write)
		io_uring_prep_write(sqe, transfer->fd, transfer->data, (unsigned)transfer->bytes,
				    transfer->offset);
	else
		io_uring_prep_read(sqe, transfer->fd, transfer->data, (unsigned)transfer->bytes,
				   transfer->offset);
	io_uring_sqe_set_data(sqe, transfer);
	do
		rc = io_uring_submit(&queue->ring);
	while (rc < 0 && ck_io_again(&stalls, rc == -EBUSY ? EAGAIN : -rc));
	if (rc >= 0)
		return 0;
	queue->stuck = true;
	errno = -rc;
	return -1;
}

int ck_posix_queue_reap(const struct ck_io *io, struct ck_io_queue *queue,
			struct ck_io_transfer **ended)
{
	struct io_uring_cqe *cqe = NULL;
	int rc;

	(void)io;
	do
		rc = io_uring_wait_cqe(&queue->ring, &cqe);
	while (rc == -EINTR);
	if (rc < 0) {
		errno = -rc;
		return -1;
	}
	*ended = io_uring_cqe_get_data(cqe);
	(*ended)->result = cqe->res;
	io_uring_cqe_seen(&queue->ring, cqe);
	return 0;
}

void ck_posix_queue_free(const struct ck_io *io, struct ck_io_queue *queue)
{
	(void)io;
	io_uring_queue_exit(&queue->ring);
	free(queue);
}
#else
int ck_posix_queue_new(const struct ck_io *io, unsigned depth, struct ck_io_queue **queue)
{
	(void)io;
	(void)depth;
	(void)queue;
	errno = ENOSYS;
	return -1;
}

int ck_posix_queue_submit(const struct ck_io *io, struct ck_io_queue *queue,
			  struct ck_io_transfer *transfer)
{
	(void)io;
	(void)queue;
	(void)transfer;
	errno = ENOSYS;
	return -1;
}

int ck_posix_queue_reap(const struct ck_io *io, struct ck_io_queue *queue,
			struct ck_io_transfer **ended)
{
	(void)io;
	(void)queue;
	(void)ended;
	errno = ENOSYS;
	return -1;
}

void ck_posix_queue_free(const struct ck_io *io, struct ck_io_queue *queue)
{
	(void)io;
	(void)queue;
}
#endif
