#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io_fault.h"
#include "scratch.h"
#include "tap.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))
#define MIB ((size_t)1 << 20)

static int create_untouched(const struct ck_io *io, const char *path, struct ck_error *err)
{
	int fd = -7, rc = ck_io_create(io, path, &fd, err);

	is_int(fd, -7, "create: output untouched");
	return rc;
}

static void test_create_refused(void)
{
	static const struct scratch_refusal rows[] = {
		{"", "file", CK_EEXIST, "/file: create: File exists"},
		{"", "dir", CK_EEXIST, "/dir: create: File exists"},
		{"", "fifo", CK_EEXIST, "/fifo: create: File exists"},
		{"", "link", CK_EEXIST, "/link: create: File exists"},
		{"", "dangling", CK_EEXIST, "/dangling: create: File exists"},
		{"", "nodir/file", CK_ENOENT, "/nodir/file: create: No such file"},
		{"", "file/below", CK_EIO, "/file/below: create: Not a directory"},
		{"open:new:errno=ENOSPC", "new", CK_EIO, "/new: create: No space left on device"},
		{"open:new:errno=EDQUOT", "new", CK_EIO, "/new: create: Disk quota exceeded"},
		{"open:new:errno=EROFS", "new", CK_EIO, "/new: create: Read-only file system"},
	};
	struct scratch files = scratch_new();
	char text[SCRATCH_TEXT];

	scratch_strangers(&files);
	scratch_refused(&files, "create", rows, ROWS(rows), create_untouched);
	is_str(scratch_get(scratch_path(&files, "file"), text), "content",
	       "what a link points to is untouched");
	ok(!scratch_exists(scratch_path(&files, "nowhere")),
	   "nothing was made behind a dangling link");
}

static void test_create(void)
{
	struct scratch files = scratch_new();
	mode_t old = umask(027);
	struct stat st;
	int fd = -1;

	is_int(ck_io_create(&ck_io_posix, scratch_path(&files, "new"), &fd, NULL), CK_OK, "create");
	umask(old);
	ok(fstat(fd, &st) == 0 && (st.st_mode & 07777) == 0640, "its mode is 0666 & ~umask");
	is_int(write(fd, "x", 1), 1, "it can be written");
	ck_io_close(&ck_io_posix, &fd);
}

/* Rules that disturb, but that reading and writing gets over. */
static const char *const survivable[] = {
	"pread,pwrite:*:errno=EINTR:times=7",
	"pread,pwrite:*:errno=EAGAIN:times=3",
	"pread,pwrite:*:cut=4096",
	"pread,pwrite:*:cut=4097",
	"pread,pwrite:*:cut=12345",
	"pread,pwrite:*:cut=1:times=100",
	"pread,pwrite:*:cut=4095:times=10;pread,pwrite:*:errno=EINTR:times=2",
	"pwrite:*:cut=0:times=3",
};

static void test_transfers_that_are_disturbed(void)
{
	const size_t bytes = MIB + 777;
	unsigned char *data = scratch_pattern(bytes), *back = calloc(1, bytes);
	struct scratch files = scratch_new();

	for (size_t i = 0; i < ROWS(survivable); i++) {
		struct ck_io_fault *fault = scratch_fault(survivable[i]);
		const struct ck_io *io = ck_io_fault_io(fault);
		uint64_t size = 0;
		int fd = -1;

		unlink(scratch_path(&files, "file"));
		ck_io_create(io, scratch_path(&files, "file"), &fd, NULL);
		is_int(ck_io_pwrite_full(io, fd, files.path, data, bytes, 3, NULL), CK_OK,
		       "pwrite with %s", survivable[i]);
		ck_io_close(io, &fd);
		memset(back, 0, bytes);
		ck_io_open_read(io, files.path, &fd, &size, NULL);
		is_u64(size, bytes + 3, "pwrite with %s: size", survivable[i]);
		is_int(ck_io_pread_full(io, fd, files.path, back, bytes, 3, NULL), CK_OK,
		       "pread with %s", survivable[i]);
		ok(memcmp(data, back, bytes) == 0, "with %s: the same bytes", survivable[i]);
		ck_io_close(io, &fd);
		ck_io_fault_free(fault);
	}
	free(data);
	free(back);
}

/* A file opened with O_DIRECT as the kernel treats it, whose transfers stop at odd places. */
struct direct {
	unsigned calls;
	size_t largest; /* bytes asked for */
};

static bool direct_refuses(const struct ck_io *io, const void *memory, size_t bytes, off_t offset)
{
	struct direct *direct = io->ctx;

	direct->calls++;
	direct->largest = bytes > direct->largest ? bytes : direct->largest;
	errno = EINVAL;
	return (uintptr_t)memory % 4096 || bytes % 4096 || offset % 4096;
}

/* Every other transfer is cut short. */
static size_t direct_cut(const struct ck_io *io, size_t bytes)
{
	const struct direct *direct = io->ctx;

	return direct->calls % 2 && bytes > 5000 ? bytes - 4999 : bytes;
}

static ssize_t direct_pread(const struct ck_io *io, int fd, void *dst, size_t bytes, off_t offset)
{
	if (direct_refuses(io, dst, bytes, offset))
		return -1;
	return pread(fd, dst, direct_cut(io, bytes), offset);
}

static ssize_t direct_pwrite(const struct ck_io *io, int fd, const void *src, size_t bytes,
			     off_t offset)
{
	if (direct_refuses(io, src, bytes, offset))
		return -1;
	return pwrite(fd, src, direct_cut(io, bytes), offset);
}

static void test_short_transfers_with_o_direct(void)
{
	const size_t bytes = 9 * MIB;
	struct ck_io_ops ops = *ck_io_posix.ops;
	struct direct direct = {0, 0};
	const struct ck_io io = {.ops = &ops, .ctx = &direct};
	struct scratch files = scratch_new();
	unsigned char *data = aligned_alloc(4096, bytes), *want = scratch_pattern(bytes);
	struct ck_error err = CK_ERROR_INIT;
	int fd = open(scratch_path(&files, "file"), O_RDWR | O_CREAT, 0666);

	ops.pread = direct_pread;
	ops.pwrite = direct_pwrite;
	memcpy(data, want, bytes);
	is_int(ck_io_pwrite_full(&io, fd, files.path, data, bytes, 8192, &err), CK_OK,
	       "cut writes go on at a block: '%s'", err.text);
	ok(direct.largest <= 4 * MIB, "pieces of at most 4 MiB (%zu)", direct.largest);
	direct = (struct direct){0, 0};
	memset(data, 0, bytes);
	is_int(ck_io_pread_full(&io, fd, files.path, data, bytes, 8192, &err), CK_OK,
	       "cut reads too: '%s'", err.text);
	ok(direct.largest <= 4 * MIB, "pieces of at most 4 MiB (%zu)", direct.largest);
	ok(memcmp(data, want, bytes) == 0, "the same bytes");
	close(fd);
	free(data);
	free(want);
}

static void test_large_transfers_go_in_pieces(void)
{
	const size_t bytes = 9 * MIB;
	struct scratch files = scratch_new();
	struct ck_io_fault *fault = scratch_fault("pwrite:*;pread:*");
	const struct ck_io *io = ck_io_fault_io(fault);
	unsigned char *data = scratch_pattern(bytes);
	uint64_t size;
	int fd = -1;

	ck_io_create(io, scratch_path(&files, "file"), &fd, NULL);
	ck_io_pwrite_full(io, fd, files.path, data, bytes, 0, NULL);
	is_u64(ck_io_fault_count(fault, 0), 3, "9 MiB are written in three pieces");
	is_int(ck_io_sync_close(io, &fd, files.path, NULL), CK_OK, "sync and close");
	is_int(fd, -1, "the descriptor is forgotten");
	ck_io_open_read(io, files.path, &fd, &size, NULL);
	ck_io_pread_full(io, fd, files.path, data, bytes, 0, NULL);
	is_u64(ck_io_fault_count(fault, 1), 3, "and read in three");
	ck_io_close(io, &fd);
	ck_io_fault_free(fault);
	free(data);
}

static void test_pwrite_failures(void)
{
	static const struct {
		const char *rules;
		const char *says;
	} rows[] = {
		{"pwrite:*:errno=ENOSPC",
		 "write of 10000 bytes at byte 5: No space left on device"},
		{"pwrite:*:cut=100:times=1;pwrite:*:errno=ENOSPC",
		 "write of 9900 bytes at byte 105: No space left on device"},
		{"pwrite:*:cut=0", "write of 10000 bytes at byte 5: Resource temporarily"},
		{"pwrite:*:errno=EINTR", "write of 10000 bytes at byte 5: Interrupted"},
		{"pwrite:*:errno=EAGAIN", "write of 10000 bytes at byte 5: Resource temporarily"},
		{"pwrite:*:errno=EDQUOT", "write of 10000 bytes at byte 5: Disk quota exceeded"},
		{"pwrite:*:errno=EIO", "write of 10000 bytes at byte 5: Input/output error"},
	};
	struct scratch files = scratch_new();
	static const char data[10000];

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct ck_io_fault *fault = scratch_fault(rows[i].rules);
		const struct ck_io *io = ck_io_fault_io(fault);
		struct ck_error err = CK_ERROR_INIT;
		int fd = -1;

		unlink(scratch_path(&files, "file"));
		ck_io_create(io, files.path, &fd, NULL);
		is_int(ck_io_pwrite_full(io, fd, files.path, data, sizeof(data), 5, &err), CK_EIO,
		       "pwrite with %s", rows[i].rules);
		like(err.text, "/file: ", "pwrite with %s: names the file", rows[i].rules);
		like(err.text, rows[i].says, "pwrite with %s: text", rows[i].rules);
		ck_io_close(io, &fd);
		ck_io_fault_free(fault);
	}
}

static void test_sync_close(void)
{
	static const struct {
		const char *rules;
		int code;
		const char *says;
	} rows[] = {
		{"close:*;fsync:*:errno=EIO", CK_EIO, "/file: fsync: Input/output error"},
		{"close:*;fsync:*:errno=EDQUOT", CK_EIO, "/file: fsync: Disk quota exceeded"},
		{"close:*:errno=EIO", CK_EIO, "/file: close: Input/output error"},
		{"close:*:errno=ENOSPC", CK_EIO, "/file: close: No space left on device"},
		{"close:*:errno=EDQUOT;fsync:*:errno=EIO", CK_EIO, "/file: fsync: Input/output"},
		{"close:*;fsync:*:errno=EINTR", CK_EIO, "/file: fsync: Interrupted"},
		{"close:*:errno=EINTR", CK_OK, NULL},
		{"close:*;fsync:*:errno=EINTR:times=3", CK_OK, NULL},
	};
	struct scratch files = scratch_new();

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct ck_io_fault *fault = scratch_fault(rows[i].rules);
		const struct ck_io *io = ck_io_fault_io(fault);
		struct ck_error err = CK_ERROR_INIT;
		int fd = -1, number;

		unlink(scratch_path(&files, "file"));
		ck_io_create(io, files.path, &fd, NULL);
		number = fd;
		is_int(ck_io_sync_close(io, &fd, files.path, &err), rows[i].code,
		       "sync_close with %s", rows[i].rules);
		if (rows[i].says)
			like(err.text, rows[i].says, "sync_close with %s: text", rows[i].rules);
		else
			is_str(err.text, "", "sync_close with %s: no text", rows[i].rules);
		is_int(fd, -1, "sync_close with %s: forgotten", rows[i].rules);
		is_u64(ck_io_fault_count(fault, 0), 1, "sync_close with %s: closed once",
		       rows[i].rules);
		is_int(fcntl(number, F_GETFD), -1, "sync_close with %s: gone", rows[i].rules);
		ck_io_fault_free(fault);
	}
}

/* A call that blocks is a failure: the alarm ends the program. */
int main(void)
{
	alarm(120);
	test_create_refused();
	test_create();
	test_transfers_that_are_disturbed();
	test_short_transfers_with_o_direct();
	test_large_transfers_go_in_pieces();
	test_pwrite_failures();
	test_sync_close();
	return done_testing();
}
