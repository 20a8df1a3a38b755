/*
 * The plugin reads and writes small files, and loads nothing into Slurm's daemons that it can do
 * without: so its copy of the file-system seam has no queue, and brings no liburing.
 */
#include <errno.h>

#include "io_posix.h"

int ck_posix_queue_new(const struct ck_io *io, unsigned depth, struct ck_io_queue **queue)
{
	(void)io, (void)depth, (void)queue;
	errno = ENOSYS;
	return -1;
}

int ck_posix_queue_submit(const struct ck_io *io, struct ck_io_queue *queue,
			  struct ck_io_transfer *transfer)
{
	(void)io, (void)queue, (void)transfer;
	errno = ENOSYS;
	return -1;
}

int ck_posix_queue_reap(const struct ck_io *io, struct ck_io_queue *queue,
			struct ck_io_transfer **ended)
{
	(void)io, (void)queue, (void)ended;
	errno = ENOSYS;
	return -1;
}

void ck_posix_queue_free(const struct ck_io *io, struct ck_io_queue *queue)
{
	(void)io, (void)queue;
}
