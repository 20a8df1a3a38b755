#include "io.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io_fault.h"
#include "scratch.h"
#include "tap.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

/*
 * io_dir.c gets its memory for names here, so that a test can refuse it: the program's definition
 * goes before the C library's.
 */
static bool refuse_reallocarray;
void *reallocarray(void *p, size_t n, size_t size)
{
	return refuse_reallocarray ? NULL : realloc(p, n * size);
}

static void test_sync_dir(void)
{
	static const struct {
		const char *rules;
		const char *name;
		int code;
		const char *says;
		bool unsupported;
	} rows[] = {
		{"", "missing", CK_ENOENT, "/missing: open directory: No such file", false},
		{"", "file", CK_EIO, "/file: open directory: Not a directory", false},
		{"", "dirlink", CK_EIO, "/dirlink: open directory: Not a directory", false},
		{"", "fifo", CK_EIO, "/fifo: open directory: Not a directory", false},
		{"open:dir:errno=EMFILE", "dir", CK_EIO, "/dir: open directory: Too many", false},
		{"fsync:dir:errno=EIO", "dir", CK_EIO, "/dir: fsync directory: Input/output",
		 false},
		{"fsync:dir:errno=EINTR:times=2", "dir", CK_OK, NULL, false},
		{"fsync:dir:errno=EINVAL", "dir", CK_OK, NULL, true},
		{"fsync:dir:errno=ENOTSUP", "dir", CK_OK, NULL, true},
		{"", "dir", CK_OK, NULL, false},
	};
	struct scratch files = scratch_new();

	scratch_strangers(&files);
	for (size_t i = 0; i < ROWS(rows); i++) {
		struct ck_io_fault *fault = scratch_fault(rows[i].rules);
		const struct ck_io *io = ck_io_fault_io(fault);
		bool unsupported = !rows[i].unsupported;
		struct ck_error err = CK_ERROR_INIT;

		is_int(ck_io_sync_dir(io, scratch_path(&files, rows[i].name), &unsupported, &err),
		       rows[i].code, "sync_dir: %s %s", rows[i].name, rows[i].rules);
		if (rows[i].says)
			like(err.text, rows[i].says, "sync_dir: %s: text", rows[i].name);
		else
			is_str(err.text, "", "sync_dir: no text");
		is_int(unsupported, rows[i].code ? !rows[i].unsupported : rows[i].unsupported,
		       "sync_dir: %s: whether it is supported", rows[i].name);
		is_int(ck_io_sync_dir(io, files.path, NULL, NULL), rows[i].code,
		       "sync_dir: %s: nobody wants to know", rows[i].name);
		ck_io_fault_free(fault);
	}
}

static void test_mkdir(void)
{
	static const struct scratch_refusal rows[] = {
		{"", "dir", CK_EEXIST, "/dir: mkdir: File exists"},
		{"", "file", CK_EEXIST, "/file: mkdir: File exists"},
		{"", "dangling", CK_EEXIST, "/dangling: mkdir: File exists"},
		{"", "missing/dir", CK_ENOENT, "/missing/dir: mkdir: No such file"},
		{"", "file/dir", CK_EIO, "/file/dir: mkdir: Not a directory"},
		{"mkdir:new:errno=ENOSPC", "new", CK_EIO, "/new: mkdir: No space left on device"},
	};
	struct scratch files = scratch_new();
	struct stat st;
	mode_t old;

	scratch_strangers(&files);
	scratch_refused(&files, "mkdir", rows, ROWS(rows), ck_io_mkdir);
	old = umask(027);
	is_int(ck_io_mkdir(&ck_io_posix, scratch_path(&files, "new"), NULL), CK_OK, "mkdir: new");
	umask(old);
	ok(lstat(scratch_path(&files, "new"), &st) == 0 && (st.st_mode & 07777) == 0750,
	   "mkdir: mode 0777 & ~umask");
}

static void test_rename(void)
{
	static const struct {
		const char *rules;
		const char *from, *to;
		int code;
		const char *says;
	} rows[] = {
		{"", "missing", "new", CK_ENOENT, "/missing: rename to "},
		{"", "file", "missing/new", CK_ENOENT, "/missing/new: No such file"},
		{"", "file", "dir", CK_EIO, "/dir: Is a directory"},
		{"rename:new:errno=EEXIST", "file", "new", CK_EEXIST, "/new: File exists"},
		{"rename:new:errno=EIO", "file", "new", CK_EIO, "/new: Input/output error"},
		{"", "file", "new", CK_OK, NULL},
	};
	struct scratch files = scratch_new(), to = files;

	scratch_strangers(&files);
	for (size_t i = 0; i < ROWS(rows); i++) {
		struct ck_io_fault *fault = scratch_fault(rows[i].rules);
		struct ck_error err = CK_ERROR_INIT;

		is_int(ck_io_rename(ck_io_fault_io(fault), scratch_path(&files, rows[i].from),
				    scratch_path(&to, rows[i].to), &err),
		       rows[i].code, "rename: %s to %s %s", rows[i].from, rows[i].to,
		       rows[i].rules);
		if (rows[i].says)
			like(err.text, rows[i].says, "rename: %s to %s: text", rows[i].from,
			     rows[i].to);
		else
			is_str(err.text, "", "rename: no text");
		ck_io_fault_free(fault);
	}
	ok(!scratch_exists(scratch_path(&files, "file")) &&
		   scratch_exists(scratch_path(&files, "new")),
	   "rename: moved");
}

static int list_untouched(const struct ck_io *io, const char *path, struct ck_error *err)
{
	struct ck_names names = {NULL, 77};
	int rc = ck_io_list(io, path, &names, err);

	ok(names.names == NULL && names.count == 77, "list: output untouched");
	return rc;
}

static void test_list_failures(void)
{
	static const struct scratch_refusal rows[] = {
		{"", "missing", CK_ENOENT, "/missing: read directory: No such file"},
		{"", "file", CK_EIO, "/file: read directory: Not a directory"},
		{"", "fifo", CK_EIO, "/fifo: read directory: Not a directory"},
		{"", "dirlink", CK_EIO, "/dirlink: read directory: Not a directory"},
		{"readdir:dir:errno=ESTALE", "dir", CK_EIO, "/dir: read directory: Stale"},
		{"readdir:dir:errno=EIO:done=1", "dir", CK_EIO, "/dir: read directory: Input"},
	};
	struct ck_names names = {NULL, 77};
	struct ck_error err = CK_ERROR_INIT;
	struct scratch files = scratch_new();

	scratch_strangers(&files);
	scratch_put_text(scratch_path(&files, "dir/a"), "a");
	scratch_refused(&files, "list", rows, ROWS(rows), list_untouched);
	refuse_reallocarray = true;
	is_int(ck_io_list(&ck_io_posix, scratch_path(&files, "dir"), &names, &err), CK_ENOMEM,
	       "list: no memory");
	refuse_reallocarray = false;
	like(err.text, "/dir: out of memory after 0 names", "list: no memory: text");
	ok(names.names == NULL && names.count == 77, "list: no memory: output untouched");
}

static void test_list(void)
{
	struct ck_names names = {NULL, 0};
	struct scratch files = scratch_new();
	bool sorted = true;
	char name[32];

	is_int(ck_io_list(&ck_io_posix, files.dir, &names, NULL), CK_OK, "an empty directory");
	is_u64(names.count, 0, "has no names");
	ck_names_fini(&names);
	for (int i = 999; i >= 0; i--) {
		snprintf(name, sizeof(name), "%s%03d", i % 2 ? "n" : ".N", i);
		scratch_put_text(scratch_path(&files, name), "");
	}
	is_int(ck_io_list(&ck_io_posix, files.dir, &names, NULL), CK_OK, "a thousand names");
	is_u64(names.count, 1000, "are there, hidden ones too");
	for (size_t i = 1; i < names.count; i++)
		sorted = sorted && strcmp(names.names[i - 1], names.names[i]) < 0;
	ok(sorted, "in the order of strcmp");
	is_str(names.names[0], ".N000", "the first");
	is_str(names.names[999], "n999", "the last");
	ck_names_fini(&names);
	ok(names.names == NULL && names.count == 0, "ck_names_fini empties");
	ck_names_fini(&names);
}

/* A call that blocks is a failure: the alarm ends the program. */
int main(void)
{
	alarm(120);
	test_sync_dir();
	test_mkdir();
	test_rename();
	test_list_failures();
	test_list();
	return done_testing();
}
