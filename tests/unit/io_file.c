#include "io.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io_fault.h"
#include "scratch.h"
#include "tap.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

/* Every step of a write that can fail; what was there stays, and no temporary file does. */
static const struct write_row {
	const char *rules;
	int code;
	const char *says;
} write_rows[] = {
	{"open:*.tmp-*:errno=ENOSPC", CK_EIO, "create: No space left on device"},
	{"open:*.tmp-*:errno=EEXIST", CK_EEXIST, "create: File exists"},
	{"pwrite:*.tmp-*:errno=ENOSPC", CK_EIO, "write of 3 bytes at byte 0: No space left"},
	{"pwrite:*.tmp-*:cut=1:times=1;pwrite:*:errno=EIO", CK_EIO, "write of 2 bytes at byte 1"},
	{"fsync:*.tmp-*:errno=EIO", CK_EIO, "fsync: Input/output error"},
	{"close:*.tmp-*:errno=EDQUOT", CK_EIO, "close: Disk quota exceeded"},
};

static void test_write_file_failures(void)
{
	static const struct write_row more[] = {
		{"rename:file:errno=EIO", CK_EIO, "/file: Input/output error"},
		{"rename:file:errno=EDQUOT", CK_EIO, "rename to "},
	};
	struct scratch files = scratch_new();
	char text[SCRATCH_TEXT];

	scratch_put_text(scratch_path(&files, "file"), "before");
	for (size_t i = 0; i < ROWS(write_rows) + ROWS(more); i++) {
		const struct write_row *row =
			i < ROWS(write_rows) ? &write_rows[i] : &more[i - ROWS(write_rows)];
		struct ck_io_fault *fault = scratch_fault(row->rules);
		struct ck_error err = CK_ERROR_INIT;

		is_int(ck_io_write_file(ck_io_fault_io(fault), scratch_path(&files, "file"), "new",
					3, &err),
		       row->code, "write_file with %s", row->rules);
		like(err.text, row->says, "write_file with %s: text", row->rules);
		like(err.text, "/file", "write_file with %s: names the file", row->rules);
		is_str(scratch_get(files.path, text), "before", "write_file with %s: as before",
		       row->rules);
		is_u64(scratch_entries(files.dir), 1, "write_file with %s: nothing left",
		       row->rules);
		ck_io_fault_free(fault);
	}
}

static void test_write_file_new_failures(void)
{
	static const struct write_row more[] = {
		{"link:file:errno=ENOSPC", CK_EIO, "/file: link: No space left on device"},
		{"link:file:errno=EEXIST", CK_EEXIST, "/file: link: File exists"},
		{"link:file:errno=EROFS;lstat:*:errno=EIO", CK_EIO, "/file: link: Read-only"},
		{"link:file:errno=EPERM;pwrite:file:errno=EIO", CK_EIO, "/file: write of"},
	};
	struct scratch files = scratch_new();

	for (size_t i = 0; i < ROWS(write_rows) + ROWS(more); i++) {
		const struct write_row *row =
			i < ROWS(write_rows) ? &write_rows[i] : &more[i - ROWS(write_rows)];
		struct ck_io_fault *fault = scratch_fault(row->rules);
		struct ck_error err = CK_ERROR_INIT;

		is_int(ck_io_write_file_new(ck_io_fault_io(fault), scratch_path(&files, "file"),
					    "new", 3, &err),
		       row->code, "write_file_new with %s", row->rules);
		like(err.text, row->says, "write_file_new with %s: text", row->rules);
		like(err.text, "/file", "write_file_new with %s: names the file", row->rules);
		is_u64(scratch_entries(files.dir), 0, "write_file_new with %s: nothing left",
		       row->rules);
		ck_io_fault_free(fault);
	}
}

static void test_write_file_where_it_cannot_be(void)
{
	struct scratch files = scratch_new();
	struct ck_error err = CK_ERROR_INIT;
	char path[PATH_MAX];

	is_int(ck_io_write_file(&ck_io_posix, scratch_path(&files, "nodir/file"), "new", 3, &err),
	       CK_ENOENT, "write_file: no such directory");
	like(err.text, "/nodir/file.tmp-", "text");
	is_int(ck_io_write_file_new(&ck_io_posix, scratch_path(&files, "nodir/file"), "new", 3,
				    &err),
	       CK_ENOENT, "write_file_new: no such directory");
	mkdir(scratch_path(&files, "dir"), 0777);
	is_int(ck_io_write_file(&ck_io_posix, files.path, "new", 3, &err), CK_EIO,
	       "write_file: a directory is there");
	like(err.text, "/dir: Is a directory", "text");
	is_int(ck_io_write_file_new(&ck_io_posix, files.path, "new", 3, &err), CK_EEXIST,
	       "write_file_new: a directory is there");
	is_u64(scratch_entries(files.dir), 1, "nothing left");
	memset(path, '/', sizeof(path));
	strcpy(path + PATH_MAX - 10, "file");
	is_int(ck_io_write_file(&ck_io_posix, path, "new", 3, &err), CK_EIO,
	       "write_file: no room for a temporary name");
	is_int(ck_io_write_file_new(&ck_io_posix, path, "new", 3, &err), CK_EIO,
	       "write_file_new: the same");
}

static void test_temporary_file_that_cannot_be_removed(void)
{
	struct scratch files = scratch_new();
	struct ck_io_fault *fault =
		scratch_fault("pwrite:*:errno=ENOSPC:times=1;unlink:*:errno=EIO");
	struct ck_error err = CK_ERROR_INIT;
	char text[SCRATCH_TEXT];

	is_int(ck_io_write_file(ck_io_fault_io(fault), scratch_path(&files, "file"), "new", 3,
				&err),
	       CK_EIO, "both the write and the removal fail");
	like(err.text, "No space left on device", "the first failure is told");
	is_u64(scratch_entries(files.dir), 1, "the temporary file stays");
	is_int(ck_io_write_file_new(ck_io_fault_io(fault), scratch_path(&files, "file"), "new", 3,
				    &err),
	       CK_OK, "a file in place counts, though its other name stays");
	is_str(scratch_get(files.path, text), "new", "it is whole");
	ck_io_fault_free(fault);
}

static void test_write_file(void)
{
	struct scratch files = scratch_new();
	struct ck_io_fault *fault =
		scratch_fault("fsync:*.tmp-*;fsync:*;pwrite:*:errno=EINTR:times=2");
	const struct ck_io *io = ck_io_fault_io(fault);
	char text[SCRATCH_TEXT];
	struct stat st;

	is_int(ck_io_write_file(io, scratch_path(&files, "file"), "one", 3, NULL), CK_OK,
	       "a new file");
	is_str(scratch_get(files.path, text), "one", "its content");
	is_int(ck_io_write_file(io, files.path, "", 0, NULL), CK_OK, "replaced by an empty one");
	is_str(scratch_get(files.path, text), "", "its content");
	is_u64(ck_io_fault_count(fault, 0), 2, "each was synced under its temporary name");
	is_u64(ck_io_fault_count(fault, 1), 0, "and nothing else, the directory neither");
	scratch_put_text(scratch_path(&files, "target"), "target");
	(void)!symlink("target", scratch_path(&files, "link"));
	is_int(ck_io_write_file(io, files.path, "two", 3, NULL), CK_OK, "over a link");
	ok(lstat(files.path, &st) == 0 && S_ISREG(st.st_mode), "the link itself is replaced");
	is_str(scratch_get(scratch_path(&files, "target"), text), "target",
	       "what it pointed to is untouched");
	is_u64(scratch_entries(files.dir), 3, "nothing left");
	ck_io_fault_free(fault);
}

static void test_write_file_new(void)
{
	struct scratch files = scratch_new();
	struct ck_error err = CK_ERROR_INIT;
	char text[SCRATCH_TEXT];
	struct stat st;

	is_int(ck_io_write_file_new(&ck_io_posix, scratch_path(&files, "file"), "one", 3, &err),
	       CK_OK, "a new file");
	is_str(scratch_get(files.path, text), "one", "its content");
	ok(lstat(files.path, &st) == 0 && st.st_nlink == 1, "it has one name");
	is_int(ck_io_write_file_new(&ck_io_posix, files.path, "two", 3, &err), CK_EEXIST, "again");
	like(err.text, "/file: link: File exists", "text");
	is_str(scratch_get(files.path, text), "one", "the first stays");
	(void)!symlink("nowhere", scratch_path(&files, "dangling"));
	is_int(ck_io_write_file_new(&ck_io_posix, files.path, "two", 3, &err), CK_EEXIST,
	       "a dangling link is there too");
	ok(!scratch_exists(scratch_path(&files, "nowhere")), "and not followed");
	is_u64(scratch_entries(files.dir), 2, "nothing left");
}

static void test_link_whose_answer_is_lost(void)
{
	struct scratch files = scratch_new();
	struct ck_io_fault *fault = scratch_fault("link:*:errno=EEXIST:done=1");
	struct ck_error err = CK_ERROR_INIT;
	char text[SCRATCH_TEXT];

	is_int(ck_io_write_file_new(ck_io_fault_io(fault), scratch_path(&files, "file"), "one", 3,
				    &err),
	       CK_OK, "the link was made although it says EEXIST");
	is_str(scratch_get(files.path, text), "one", "it is ours");
	is_int(ck_io_write_file_new(ck_io_fault_io(fault), files.path, "two", 3, &err), CK_EEXIST,
	       "one that was really there is not");
	is_str(scratch_get(files.path, text), "one", "and stays");
	is_u64(scratch_entries(files.dir), 1, "nothing left");
	ck_io_fault_free(fault);
}

struct contender {
	pthread_t thread;
	pthread_barrier_t *start;
	const char *path;
	char text[9];
	int rc;
};

static void *contend(void *arg)
{
	struct contender *contender = arg;

	pthread_barrier_wait(contender->start);
	contender->rc =
		ck_io_write_file_new(&ck_io_posix, contender->path, contender->text, 8, NULL);
	return NULL;
}

static void test_of_several_writers_one_wins(void)
{
	struct contender contenders[8];
	struct scratch files = scratch_new();
	pthread_barrier_t start;
	char text[SCRATCH_TEXT];
	unsigned winners = 0, losers = 0, winner = 0;

	scratch_path(&files, "file");
	pthread_barrier_init(&start, NULL, ROWS(contenders));
	for (unsigned i = 0; i < ROWS(contenders); i++) {
		contenders[i] = (struct contender){.start = &start, .path = files.path};
		memset(contenders[i].text, 'a' + (int)i, 8);
		pthread_create(&contenders[i].thread, NULL, contend, &contenders[i]);
	}
	for (unsigned i = 0; i < ROWS(contenders); i++) {
		pthread_join(contenders[i].thread, NULL);
		winners += contenders[i].rc == CK_OK;
		losers += contenders[i].rc == CK_EEXIST;
		winner = contenders[i].rc == CK_OK ? i : winner;
	}
	pthread_barrier_destroy(&start);
	is_int(winners, 1, "one of 8 writers wins");
	is_int(losers, 7, "the others find it there");
	is_str(scratch_get(files.path, text), contenders[winner].text,
	       "the content is the winner's");
	is_u64(scratch_entries(files.dir), 1, "nothing left");
}

/* A call that blocks is a failure: the alarm ends the program. */
int main(void)
{
	alarm(120);
	test_write_file_failures();
	test_write_file_new_failures();
	test_write_file_where_it_cannot_be();
	test_temporary_file_that_cannot_be_removed();
	test_write_file();
	test_write_file_new();
	test_link_whose_answer_is_lost();
	test_of_several_writers_one_wins();
	return done_testing();
}
