#include "queue.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scratch.h"
#include "tap.h"

#define PIECE 8192
#define PIECES 16

static const char *const kind_names[] = {"at once", "threads", "kernel"};

static struct ck_queue *queue_of(const struct ck_io *io, enum ck_queue_kind kind)
{
	struct ck_queue *queue = NULL;

	is_int(ck_queue_new(io, 4, kind, &queue, NULL), 0, "a queue: %s", kind_names[kind]);
	return queue;
}

/* Write or read `data` in pieces, four at a time; how many failed, and with what. */
static int move(struct ck_queue *queue, int fd, unsigned char *data, bool write)
{
	static struct ck_transfer transfers[PIECES];
	struct ck_transfer *done;
	size_t under_way = 0, ended = 0;
	int errnum = 0;

	for (size_t i = 0; ended < PIECES;) {
		if (i < PIECES && under_way < 4) {
			transfers[i] = (struct ck_transfer){.write = write,
							    .fd = fd,
							    .plain_fd = fd,
							    .data = data + i * PIECE,
							    .bytes = PIECE,
							    .offset = i * PIECE};
			ck_queue_submit(queue, &transfers[i++]);
			under_way++;
			continue;
		}
		done = ck_queue_reap(queue);
		under_way--;
		ended++;
		if (done->errnum)
			errnum = done->errnum;
		else if (done->done != PIECE)
			ok(false, "a transfer of %zu bytes is over after %zu", done->bytes,
			   done->done);
	}
	ok(ck_queue_reap(queue) == NULL, "nothing is left");
	return errnum;
}

static void test_moves(enum ck_queue_kind kind)
{
	static const struct {
		const char *rules;
		int write, read;
	} rows[] = {
		{"", 0, 0},
		{"pwrite,pread:*:errno=EINTR:times=7", 0, 0},
		{"pwrite,pread:*:cut=4099", 0, 0},
		{"pwrite,pread:*:errno=EAGAIN:after=3:times=3", 0, 0},
		{"pwrite:*:errno=ENOSPC:after=9", ENOSPC, -1},
		{"pwrite:*:errno=EIO:done=1:after=9:times=1", EIO, 0},
		{"pread:*:errno=EIO:after=5:times=1", 0, EIO},
		{"pread:*:cut=0:after=5:times=1", 0, ENODATA},
		{"pwrite:*:cut=0:after=15", EAGAIN, -1},
		{"pwrite:*:errno=EINVAL:times=1", EINVAL, -1},
		{"submit:*:errno=ENOMEM:after=2:times=3", 0, 0},
		{"reap:*:errno=EIO:after=2:times=9", 0, 0},
	};
	struct scratch scratch = scratch_new();
	unsigned char *data = scratch_pattern(PIECE * PIECES), *got = malloc(PIECE * PIECES);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ck_io_fault *fault = scratch_fault(rows[i].rules);
		const struct ck_io *io = ck_io_fault_io(fault);
		struct ck_queue *queue = queue_of(io, kind);
		int fd = io->ops->open(io, scratch_path(&scratch, "file"),
				       O_RDWR | O_CREAT | O_TRUNC, 0600);

		memset(got, 0, PIECE * PIECES);
		is_int(move(queue, fd, data, true), rows[i].write, "%s, '%s': write",
		       kind_names[kind], rows[i].rules);
		if (rows[i].read >= 0)
			is_int(move(queue, fd, got, false), rows[i].read, "read");
		if (rows[i].read == 0)
			ok(memcmp(got, data, PIECE * PIECES) == 0, "the same bytes");
		ck_queue_free(queue);
		io->ops->close(io, fd);
		ck_io_fault_free(fault);
	}
	free(data);
	free(got);
}

/* Freed with transfers under way: they are waited for. */
static void test_free(enum ck_queue_kind kind)
{
	struct scratch scratch = scratch_new();
	unsigned char *data = scratch_pattern(4 * PIECE);
	struct ck_io_fault *fault = scratch_fault("pwrite:*:delay=20");
	const struct ck_io *io = ck_io_fault_io(fault);
	struct ck_queue *queue = queue_of(io, kind);
	struct ck_transfer transfers[4] = {0};
	int fd = io->ops->open(io, scratch_path(&scratch, "file"), O_WRONLY | O_CREAT, 0600);

	for (size_t i = 0; i < 4; i++) {
		transfers[i] = (struct ck_transfer){.write = true,
						    .fd = fd,
						    .plain_fd = fd,
						    .data = data + i * PIECE,
						    .bytes = i == 3 ? 0 : PIECE,
						    .offset = i * PIECE};
		ck_queue_submit(queue, &transfers[i]);
	}
	ck_queue_free(queue);
	for (size_t i = 0; i < 4; i++)
		is_u64(transfers[i].done, transfers[i].bytes, "%s: transfer %zu is over",
		       kind_names[kind], i);
	io->ops->close(io, fd);
	ck_io_fault_free(fault);
	free(data);
}

/* A kernel that has taken transfers, and then never says how they ended. */
static void test_silence(void)
{
	struct scratch scratch = scratch_new();
	unsigned char *data = scratch_pattern(4 * PIECE), *got = malloc(4 * PIECE);
	struct ck_io_fault *fault = scratch_fault("reap:*:errno=EBADF:after=1");
	const struct ck_io *io = ck_io_fault_io(fault);
	struct ck_queue *queue = queue_of(io, CK_QUEUE_KERNEL);
	struct ck_transfer transfers[4];
	struct ck_transfer *done;
	unsigned lost = 0;
	int fd;

	if (ck_queue_kind(queue) < CK_QUEUE_KERNEL) {
		skip("no io_uring here");
		goto out;
	}
	scratch_put(scratch_path(&scratch, "file"), data, 4 * PIECE);
	fd = io->ops->open(io, scratch.path, O_RDONLY, 0);
	for (size_t i = 0; i < 4; i++) {
		transfers[i] = (struct ck_transfer){.fd = fd,
						    .plain_fd = fd,
						    .data = got + i * PIECE,
						    .bytes = PIECE,
						    .offset = i * PIECE};
		ck_queue_submit(queue, &transfers[i]);
	}
	done = ck_queue_reap(queue);
	ok(done->errnum == 0 && !done->lost, "one has ended");
	while ((done = ck_queue_reap(queue)))
		lost += done->lost && done->errnum == EBADF;
	is_int((int)lost, 3, "the others fail with what the kernel said");
	is_u64(ck_io_fault_count(fault, 0), 1002, "after about a second of asking");
	transfers[0] = (struct ck_transfer){
		.fd = fd, .plain_fd = fd, .data = got, .bytes = PIECE, .offset = 3 * PIECE};
	ck_queue_submit(queue, &transfers[0]);
	done = ck_queue_reap(queue);
	ok(done == &transfers[0] && done->errnum == 0 && !done->lost &&
		   memcmp(got, data + 3 * PIECE, PIECE) == 0,
	   "what comes later is done without it");
	is_u64(ck_io_fault_count(fault, 0), 1002, "which is not asked again");
	io->ops->close(io, fd);
out:
	ck_queue_free(queue);
	ck_io_fault_free(fault);
	free(data);
	free(got);
}

static void test_kinds(void)
{
	struct ck_io_fault *fault = scratch_fault("queue:*:errno=ENOSYS");
	struct ck_queue *queue = queue_of(ck_io_fault_io(fault), CK_QUEUE_KERNEL);

	is_int(ck_queue_kind(queue), CK_QUEUE_THREADS, "a kernel without: threads");
	ck_queue_free(queue);
	is_u64(ck_io_fault_count(fault, 0), 1, "it was asked once");
	ck_io_fault_free(fault);
	queue = queue_of(&ck_io_posix, CK_QUEUE_AT_ONCE);
	is_int(ck_queue_kind(queue), CK_QUEUE_AT_ONCE, "none wanted");
	ck_queue_free(queue);
	queue = queue_of(&ck_io_posix, CK_QUEUE_KERNEL);
	diag("the best here: %s", kind_names[ck_queue_kind(queue)]);
	ck_queue_free(queue);
	ck_queue_free(NULL);
}

int main(void)
{
	test_kinds();
	test_silence();
	for (int kind = CK_QUEUE_AT_ONCE; kind <= CK_QUEUE_KERNEL; kind++) {
		test_moves((enum ck_queue_kind)kind);
		test_free((enum ck_queue_kind)kind);
	}
	return done_testing();
}
