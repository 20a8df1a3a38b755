#include "counted.h"

static void count(const struct ck_io *io, ssize_t result)
{
	struct counted *counted = io->ctx;

	if (result > 0)
		atomic_fetch_add(&counted->bytes, (uint64_t)result);
}

static ssize_t counted_pread(const struct ck_io *io, int fd, void *dst, size_t bytes, off_t offset)
{
	ssize_t result = ck_io_posix.ops->pread(&ck_io_posix, fd, dst, bytes, offset);

	count(io, result);
	return result;
}

static int counted_reap(const struct ck_io *io, struct ck_io_queue *queue,
			struct ck_io_transfer **ended)
{
	int rc = ck_io_posix.ops->queue_reap(&ck_io_posix, queue, ended);

	if (!rc && !(*ended)->write)
		count(io, (*ended)->result);
	return rc;
}

void counted_init(struct counted *counted)
{
	counted->ops = *ck_io_posix.ops;
	counted->ops.pread = counted_pread;
	counted->ops.queue_reap = counted_reap;
	counted->io = (struct ck_io){.ops = &counted->ops, .ctx = counted};
	atomic_init(&counted->bytes, 0);
}
