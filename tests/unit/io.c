#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io_fault.h"
#include "scratch.h"
#include "tap.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

/* What neither open_read nor read_file takes, and what each says. None of it blocks. */
static void test_only_regular_files_are_read(void)
{
	static const struct {
		const char *name;
		int code;
		const char *says;
	} rows[] = {
		{"missing", CK_ENOENT, "/missing: open: No such file"},
		{"nodir/file", CK_ENOENT, "/nodir/file: open: No such file"},
		{"file/below", CK_EIO, "/file/below: open: Not a directory"},
		{"dir", CK_EFORMAT, "/dir: is a directory, not a regular file"},
		{"fifo", CK_EFORMAT, "/fifo: is a FIFO, not a regular file"},
		{"socket", CK_EFORMAT, "/socket: is a socket, not a regular file"},
		{"link", CK_EFORMAT, "/link: is a symbolic link, not a regular file"},
		{"dirlink", CK_EFORMAT, "/dirlink: is a symbolic link"},
		{"dangling", CK_EFORMAT, "/dangling: is a symbolic link"},
		{"loop", CK_EFORMAT, "/loop: is a symbolic link"},
		{"loop/file", CK_EIO, "/loop/file: open: Too many levels of symbolic links"},
		{"../../../../../../dev/null", CK_EFORMAT, "/dev/null: is a device"},
		{"../../../../../../dev/zero", CK_EFORMAT, "/dev/zero: is a device"},
	};
	struct scratch files = scratch_new();

	scratch_strangers(&files);
	for (size_t i = 0; i < ROWS(rows); i++) {
		const char *path = scratch_path(&files, rows[i].name);
		struct ck_buf buf = CK_BUF_INIT;
		struct ck_error err = CK_ERROR_INIT;
		uint64_t size = 77;
		int fd = -7;

		is_int(ck_io_open_read(&ck_io_posix, path, &fd, &size, &err), rows[i].code,
		       "open_read: %s is refused", rows[i].name);
		like(err.text, rows[i].says, "open_read: %s: text", rows[i].name);
		ok(fd == -7 && size == 77, "open_read: %s: outputs untouched", rows[i].name);

		is_int(ck_io_read_file(&ck_io_posix, path, 100, &buf, &err), rows[i].code,
		       "read_file: %s is refused", rows[i].name);
		like(err.text, rows[i].says, "read_file: %s: text", rows[i].name);
		ok(buf.data == NULL && buf.len == 0, "read_file: %s: output untouched",
		   rows[i].name);
		ck_buf_fini(&buf);
	}
}

static void test_open_read_failures(void)
{
	static const struct {
		const char *rules;
		int code;
		const char *says;
		unsigned closes;
	} rows[] = {
		{"close:*;open:*:errno=EIO", CK_EIO, "/file: open: Input/output error", 0},
		{"close:*;open:*:errno=EMFILE", CK_EIO, "/file: open: Too many open files", 0},
		{"close:*;open:*:errno=ENOMEM", CK_ENOMEM, "/file: open: Cannot allocate", 0},
		{"close:*;open:*:errno=ENXIO", CK_EIO, "/file: open: No such device", 0},
		{"close:*;open:*:errno=EINTR", CK_EIO, "/file: open: Interrupted", 0},
		{"close:*;fstat:*:errno=ESTALE", CK_EIO, "/file: fstat: Stale file handle", 1},
	};
	struct scratch files = scratch_new();

	scratch_put_text(scratch_path(&files, "file"), "content");
	for (size_t i = 0; i < ROWS(rows); i++) {
		struct ck_io_fault *fault = scratch_fault(rows[i].rules);
		struct ck_error err = CK_ERROR_INIT;
		uint64_t size = 77;
		int fd = -7;

		is_int(ck_io_open_read(ck_io_fault_io(fault), scratch_path(&files, "file"), &fd,
				       &size, &err),
		       rows[i].code, "open_read with %s", rows[i].rules);
		like(err.text, rows[i].says, "open_read with %s: text", rows[i].rules);
		ok(fd == -7 && size == 77, "open_read with %s: outputs untouched", rows[i].rules);
		is_u64(ck_io_fault_count(fault, 0), rows[i].closes,
		       "open_read with %s: nothing stays open", rows[i].rules);
		ck_io_fault_free(fault);
	}
}

static void test_open_read(void)
{
	struct scratch files = scratch_new();
	struct ck_io_fault *fault = scratch_fault("open:*:errno=EINTR:times=5");
	uint64_t size = 77;
	int fd = -7;

	scratch_put_text(scratch_path(&files, "file"), "content");
	is_int(ck_io_open_read(ck_io_fault_io(fault), scratch_path(&files, "file"), &fd, &size,
			       NULL),
	       CK_OK, "open_read, interrupted five times");
	is_u64(size, 7, "its size");
	ok(fd >= 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC), "the descriptor is not inherited");
	ck_io_close(ck_io_fault_io(fault), &fd);
	is_int(fd, -1, "ck_io_close forgets the descriptor");
	ck_io_close(ck_io_fault_io(fault), &fd);
	is_int(fd, -1, "and takes one that is closed");
	ck_io_fault_free(fault);
}

/* Reads of 10000 bytes at byte 5 that fail for good. */
static void test_pread_failures(void)
{
	static const struct {
		const char *rules;
		const char *says;
	} rows[] = {
		{"pread:*:errno=EIO", "/file: read of 10000 bytes at byte 5: Input/output error"},
		{"pread:*:cut=100:times=1;pread:*:errno=EIO",
		 "/file: read of 9900 bytes at byte 105: Input/output error"},
		{"pread:*:cut=0",
		 "/file: read at byte 5: the file ends there, 10000 more bytes are wanted"},
		{"pread:*:cut=100:times=1;pread:*:cut=0",
		 "/file: read at byte 105: the file ends there, 9900 more bytes are wanted"},
		{"pread:*:errno=EINTR", "/file: read of 10000 bytes at byte 5: Interrupted"},
		{"pread:*:errno=EAGAIN", "/file: read of 10000 bytes at byte 5: Resource temp"},
		{"pread:*:errno=ESTALE", "/file: read of 10000 bytes at byte 5: Stale"},
	};
	struct scratch files = scratch_new();
	char data[10005] = "", dst[10000];

	scratch_put(scratch_path(&files, "file"), data, sizeof(data));
	for (size_t i = 0; i < ROWS(rows); i++) {
		struct ck_io_fault *fault = scratch_fault(rows[i].rules);
		const struct ck_io *io = ck_io_fault_io(fault);
		struct ck_error err = CK_ERROR_INIT;
		uint64_t size;
		int fd = -1;

		ck_io_open_read(io, scratch_path(&files, "file"), &fd, &size, NULL);
		is_int(ck_io_pread_full(io, fd, files.path, dst, sizeof(dst), 5, &err), CK_EIO,
		       "pread with %s", rows[i].rules);
		like(err.text, rows[i].says, "pread with %s: text", rows[i].rules);
		ck_io_close(io, &fd);
		ck_io_fault_free(fault);
	}
}

static void test_pread_beyond_the_end(void)
{
	struct scratch files = scratch_new();
	struct ck_error err = CK_ERROR_INIT;
	uint64_t size;
	char dst[8];
	int fd = -1;

	scratch_put_text(scratch_path(&files, "file"), "content");
	ck_io_open_read(&ck_io_posix, scratch_path(&files, "file"), &fd, &size, NULL);
	is_int(ck_io_pread_full(&ck_io_posix, fd, files.path, dst, 8, 0, &err), CK_EIO,
	       "8 of 7 bytes");
	like(err.text, "/file: read at byte 7: the file ends there, 1 more bytes", "text");
	is_int(ck_io_pread_full(&ck_io_posix, fd, files.path, dst, 1, 100, &err), CK_EIO,
	       "a byte far behind the end");
	like(err.text, "read at byte 100", "text");
	is_int(ck_io_pread_full(&ck_io_posix, fd, files.path, dst, 0, 100, &err), CK_OK,
	       "no bytes are there anywhere");
	is_int(ck_io_pread_full(&ck_io_posix, fd, files.path, dst, 7, 0, &err), CK_OK,
	       "7 of 7 bytes");
	ok(memcmp(dst, "content", 7) == 0, "are right");
	ck_io_close(&ck_io_posix, &fd);
}

static void test_read_file_failures(void)
{
	static const struct {
		const char *rules;
		uint64_t max_bytes;
		int code;
		const char *says;
	} rows[] = {
		{"close:*", 6, CK_EFORMAT, "/file: has 7 bytes, at most 6 are allowed"},
		{"close:*", 0, CK_EFORMAT, "/file: has 7 bytes, at most 0 are allowed"},
		{"close:*;fstat:*:errno=EIO", 7, CK_EIO, "/file: fstat: Input/output error"},
		{"close:*;pread:*:errno=EIO", 7, CK_EIO, "/file: read of 7 bytes at byte 0"},
		{"close:*;pread:*:cut=3:times=1;pread:*:cut=0", 7, CK_EIO,
		 "/file: read at byte 3: the file ends there, 4 more bytes are wanted"},
	};
	struct scratch files = scratch_new();

	scratch_put_text(scratch_path(&files, "file"), "content");
	for (size_t i = 0; i < ROWS(rows); i++) {
		struct ck_io_fault *fault = scratch_fault(rows[i].rules);
		struct ck_error err = CK_ERROR_INIT;
		struct ck_buf buf = CK_BUF_INIT;

		ck_buf_add_str(&buf, "before");
		is_int(ck_io_read_file(ck_io_fault_io(fault), files.path, rows[i].max_bytes, &buf,
				       &err),
		       rows[i].code, "read_file with %s", rows[i].rules);
		like(err.text, rows[i].says, "read_file with %s: text", rows[i].rules);
		is_str(buf.data, "before", "read_file with %s: output untouched", rows[i].rules);
		is_u64(ck_io_fault_count(fault, 0), 1, "read_file with %s: closed", rows[i].rules);
		ck_buf_fini(&buf);
		ck_io_fault_free(fault);
	}
}

static int fstat_huge(const struct ck_io *io, int fd, struct stat *st)
{
	(void)io;
	if (fstat(fd, st))
		return -1;
	st->st_size = (off_t)1 << 50;
	return 0;
}

static void test_read_file_that_memory_does_not_hold(void)
{
	struct ck_io_ops ops = *ck_io_posix.ops;
	const struct ck_io io = {.ops = &ops, .ctx = NULL};
	struct ck_error err = CK_ERROR_INIT;
	struct ck_buf buf = CK_BUF_INIT;
	struct scratch files = scratch_new();

	ops.fstat = fstat_huge;
	scratch_put_text(scratch_path(&files, "file"), "content");
	is_int(ck_io_read_file(&io, files.path, UINT64_MAX, &buf, &err), CK_ENOMEM,
	       "a file of 2^50 bytes");
	like(err.text, "/file: out of memory: 1125899906842624 bytes wanted", "text");
	ok(buf.data == NULL, "output untouched");
}

static void test_read_file(void)
{
	struct scratch files = scratch_new();
	struct ck_buf buf = CK_BUF_INIT;

	ck_buf_add_str(&buf, "something longer that was there before");
	scratch_put(scratch_path(&files, "file"), "a\0b", 3);
	is_int(ck_io_read_file(&ck_io_posix, files.path, 3, &buf, NULL), CK_OK, "3 of 3 bytes");
	is_u64(buf.len, 3, "replace what was there");
	ok(memcmp(buf.data, "a\0b", 4) == 0, "NULs are kept, and one stands behind the end");
	scratch_put_text(scratch_path(&files, "empty"), "");
	is_int(ck_io_read_file(&ck_io_posix, files.path, 0, &buf, NULL), CK_OK, "an empty file");
	is_u64(buf.len, 0, "has no bytes");
	is_str(buf.data, "", "and is a text");
	ck_buf_fini(&buf);
}

/* A call that blocks is a failure: the alarm ends the program. */
int main(void)
{
	alarm(120);
	test_only_regular_files_are_read();
	test_open_read_failures();
	test_open_read();
	test_pread_failures();
	test_pread_beyond_the_end();
	test_read_file_failures();
	test_read_file_that_memory_does_not_hold();
	test_read_file();
	return done_testing();
}
