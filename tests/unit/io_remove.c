#include "io.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io_fault.h"
#include "hook.h"
#include "scratch.h"
#include "tap.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static void make_dirs(struct scratch *files, const char *const *names)
{
	for (; *names; names++)
		ck_io_mkdir(&ck_io_posix, scratch_path(files, *names), NULL);
}

/* A tree with one of everything, and links that lead out of it. */
static void make_tree(struct scratch *files)
{
	static const char *const dirs[] = {"out", "tree", "tree/sub", "tree/sub/empty", NULL};
	static const char *const names[] = {"out/kept", "tree/a",       "tree/b",
					    "tree/c",   "tree/.hidden", "tree/sub/d"};

	make_dirs(files, dirs);
	for (size_t i = 0; i < ROWS(names); i++)
		scratch_put_text(scratch_path(files, names[i]), names[i]);
	ok(symlink("../out", scratch_path(files, "tree/outlink")) == 0 &&
		   symlink("../../out/kept", scratch_path(files, "tree/sub/filelink")) == 0 &&
		   symlink("nowhere", scratch_path(files, "tree/sub/dangling")) == 0 &&
		   mkfifo(scratch_path(files, "tree/sub/fifo"), 0666) == 0,
	   "a tree with links and a FIFO");
}

static void test_remove_tree_refused(void)
{
	static const struct scratch_refusal rows[] = {
		{"", "file", CK_EFORMAT, "/file: not removed: not a directory"},
		{"", "fifo", CK_EFORMAT, "/fifo: not removed: not a directory"},
		{"", "link", CK_EFORMAT, "/link: not removed: not a directory"},
		{"", "dirlink", CK_EFORMAT, "/dirlink: not removed: not a directory"},
		{"rmdir:dir:errno=EBUSY", "dir", CK_EIO, "/dir: rmdir: Device or resource busy"},
		{"readdir:dir:errno=EIO", "dir", CK_EIO, "/dir: read directory: Input/output"},
		{"", "file/below", CK_EIO, "/file/below: read directory: Not a directory"},
	};
	struct scratch files = scratch_new();

	scratch_strangers(&files);
	scratch_put_text(scratch_path(&files, "dir/a"), "a");
	scratch_refused(&files, "remove_tree", rows, ROWS(rows), ck_io_remove_tree);
	ok(scratch_exists(scratch_path(&files, "dir")), "the directory is there");
	ok(scratch_exists(scratch_path(&files, "link")) &&
		   scratch_exists(scratch_path(&files, "dirlink")),
	   "the links are there");
	is_int(ck_io_remove_tree(&ck_io_posix, scratch_path(&files, "missing"), NULL), CK_OK,
	       "what is not there is fine");
}

static void swap(struct hook *hook, const char *op, const char *path)
{
	const char *dir = hook->arg;
	char from[PATH_MAX], to[PATH_MAX];

	(void)path;
	if (!dir || strcmp(op, "unlink") != 0)
		return;
	hook->arg = NULL; /* once */
	snprintf(from, sizeof(from), "%s/victim", dir);
	snprintf(to, sizeof(to), "%s/away", dir);
	if (rename(from, to) || symlink("outside", from))
		ok(false, "swapped");
}

/* Between the listing and the first unlink a link takes the place of the directory. */
static void test_remove_tree_swapped(void)
{
	struct scratch files = scratch_new();
	struct hook hook;

	mkdir(scratch_path(&files, "victim"), 0777);
	mkdir(scratch_path(&files, "outside"), 0777);
	scratch_put_text(scratch_path(&files, "victim/a"), "a");
	scratch_put_text(scratch_path(&files, "outside/a"), "a");
	hook_init(&hook, swap, (void *)(uintptr_t)files.dir);
	ck_io_remove_tree(&hook.io, scratch_path(&files, "victim"), NULL);
	ok(hook.arg == NULL, "swapped meanwhile");
	ok(scratch_exists(scratch_path(&files, "outside/a")), "files outside stay");
	ok(!scratch_exists(scratch_path(&files, "away/a")), "those of the directory go");
}

/* Whatever fails within, the rest goes, and the first failure is told. */
static void test_remove_tree_goes_on_after_a_failure(void)
{
	static const struct {
		const char *rules;
		const char *says;
		const char *stays;
		const char *goes;
	} rows[] = {
		{"unlink:b:errno=EIO", "/tree/b: unlink: Input/output error", "tree/b", "tree/c"},
		{"unlink:b:errno=EPERM", "/tree/b: unlink: Operation not", "tree/b", "tree/sub"},
		{"unlink:b:errno=EIO;unlink:c:errno=EROFS", "/tree/b: unlink: Input/output",
		 "tree/c", "tree/sub"},
		{"unlink:d:errno=EIO", "/tree/sub/d: unlink: Input/output", "tree/sub/d",
		 "tree/sub/fifo"},
		{"rmdir:empty:errno=EIO", "/tree/sub/empty: rmdir: Input/output", "tree/sub/empty",
		 "tree/sub/d"},
		{"readdir:sub:errno=EIO", "/tree/sub: read directory: Input/output", "tree/sub/d",
		 "tree/c"},
		{"open:sub:errno=EIO", "/tree/sub: unlink: Is a directory", "tree/sub/d", "tree/c"},
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct ck_io_fault *fault = scratch_fault(rows[i].rules);
		struct ck_error err = CK_ERROR_INIT;
		struct scratch files = scratch_new();

		make_tree(&files);
		is_int(ck_io_remove_tree(ck_io_fault_io(fault), scratch_path(&files, "tree"), &err),
		       CK_EIO, "remove_tree with %s", rows[i].rules);
		like(err.text, rows[i].says, "remove_tree with %s: text", rows[i].rules);
		ok(scratch_exists(scratch_path(&files, rows[i].stays)), "%s stays", rows[i].stays);
		ok(!scratch_exists(scratch_path(&files, rows[i].goes)), "%s goes", rows[i].goes);
		ck_io_fault_free(fault);
	}
}

static void test_remove_tree_with_others_at_work(void)
{
	struct scratch files = scratch_new();
	struct ck_io_fault *fault = scratch_fault(
		"unlink:b:errno=ENOENT:done=1;rmdir:empty:errno=ENOENT:done=1;rmdir:tree:errno="
		"ENOENT:done=1");
	struct ck_error err = CK_ERROR_INIT;

	make_tree(&files);
	is_int(ck_io_remove_tree(ck_io_fault_io(fault), scratch_path(&files, "tree"), &err), CK_OK,
	       "what others have removed meanwhile is fine: '%s'", err.text);
	ok(!scratch_exists(files.path), "all is gone");
	ck_io_fault_free(fault);

	fault = scratch_fault("readdir:sub:errno=ENOENT");
	make_tree(&files);
	is_int(ck_io_remove_tree(ck_io_fault_io(fault), scratch_path(&files, "tree"), NULL), CK_EIO,
	       "a directory that claims to be gone and is not");
	ck_io_fault_free(fault);
}

static void test_remove_tree_depth(void)
{
	struct scratch files = scratch_new();
	struct ck_error err = CK_ERROR_INIT;
	char path[PATH_MAX] = "1";

	for (int level = '2'; level <= '9'; level++) {
		ck_io_mkdir(&ck_io_posix, scratch_path(&files, path), NULL);
		snprintf(path + strlen(path), 3, "/%c", level);
	}
	scratch_put_text(scratch_path(&files, path), "within the eighth");
	is_int(ck_io_remove_tree(&ck_io_posix, scratch_path(&files, "1"), &err), CK_OK,
	       "8 levels are removed: '%s'", err.text);
	ok(!scratch_exists(files.path), "all of them");

	strcpy(path, "1");
	for (int level = '2'; level <= ':'; level++) {
		ck_io_mkdir(&ck_io_posix, scratch_path(&files, path), NULL);
		snprintf(path + strlen(path), 3, "/%c", level);
	}
	is_int(ck_io_remove_tree(&ck_io_posix, scratch_path(&files, "1"), &err), CK_EFORMAT,
	       "9 are not");
	like(err.text, "/1/2/3/4/5/6/7/8/9: not removed: more than 8 directories deep", "text");
	ok(scratch_exists(scratch_path(&files, "1/2/3/4/5/6/7/8/9")), "the ninth stays");
}

static void test_remove_tree_with_a_path_that_is_too_long(void)
{
	struct scratch files = scratch_new();
	struct ck_error err = CK_ERROR_INIT;
	char path[PATH_MAX];
	size_t n = strlen(files.dir);

	scratch_put_text(scratch_path(&files, "a-name-of-some-length"), "x");
	memcpy(path, files.dir, n);
	for (; n < PATH_MAX - 10; n += 2)
		memcpy(path + n, "/.", 2);
	path[n] = '\0';
	is_int(ck_io_remove_tree(&ck_io_posix, path, &err), CK_EIO,
	       "what ends in a dot cannot be removed");
	is_int(err.code, CK_EIO, "and is told");
	ok(!scratch_exists(scratch_path(&files, "a-name-of-some-length")),
	   "an entry with too long a path goes: it is reached by its directory");
}

static void make_many(struct scratch *files)
{
	char name[32];

	ck_io_mkdir(&ck_io_posix, scratch_path(files, "tree"), NULL);
	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "tree/%02d", i);
		scratch_put_text(scratch_path(files, name), "x");
	}
}

/* Returns when four threads are here. */
static int unlink_together(const struct ck_io *io, const char *path)
{
	pthread_barrier_wait(io->ctx);
	return unlink(path);
}

static void test_remove_tree_in_several_threads(void)
{
	struct ck_io_ops ops = *ck_io_posix.ops;
	pthread_barrier_t barrier;
	struct ck_io io = {.ops = &ops, .ctx = &barrier};
	struct scratch files = scratch_new();
	struct ck_io_fault *fault;
	struct ck_error err = CK_ERROR_INIT;

	ops.unlink = unlink_together;
	pthread_barrier_init(&barrier, NULL, 4);
	make_many(&files);
	is_int(ck_io_remove_tree(&io, scratch_path(&files, "tree"), &err), CK_OK,
	       "many files, four at a time: '%s'", err.text);
	ok(!scratch_exists(files.path), "all are removed");
	pthread_barrier_destroy(&barrier);

	fault = scratch_fault("unlink:17:errno=EIO");
	make_many(&files);
	is_int(ck_io_remove_tree(ck_io_fault_io(fault), scratch_path(&files, "tree"), &err), CK_EIO,
	       "one of many fails");
	like(err.text, "/tree/17: unlink: Input/output error", "and is told");
	is_u64(scratch_entries(scratch_path(&files, "tree")), 1, "the others go");
	ck_io_fault_free(fault);
}

static void test_remove_tree(void)
{
	struct scratch files = scratch_new();
	struct ck_error err = CK_ERROR_INIT;
	char text[SCRATCH_TEXT];

	make_tree(&files);
	is_int(ck_io_remove_tree(&ck_io_posix, scratch_path(&files, "tree"), &err), CK_OK,
	       "a tree is removed: '%s'", err.text);
	ok(!scratch_exists(files.path), "all of it");
	is_str(scratch_get(scratch_path(&files, "out/kept"), text), "out/kept",
	       "what links led to is untouched");
}

/* A call that blocks is a failure: the alarm ends the program. */
int main(void)
{
	alarm(120);
	test_remove_tree_refused();
	test_remove_tree_swapped();
	test_remove_tree_goes_on_after_a_failure();
	test_remove_tree_with_others_at_work();
	test_remove_tree_depth();
	test_remove_tree_with_a_path_that_is_too_long();
	test_remove_tree_in_several_threads();
	test_remove_tree();
	return done_testing();
}
