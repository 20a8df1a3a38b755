#include "io_fault.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scratch.h"
#include "tap.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

/*
 * io_fault gets copies of texts here, so that a test can refuse one: the program's definition goes
 * before the C library's. The number counts down to the call that fails; 0: none does.
 */
static _Thread_local unsigned refuse_strdup;
char *strdup(const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *copy = refuse_strdup == 1 ? NULL : malloc(bytes);

	refuse_strdup -= refuse_strdup > 0;
	return copy ? memcpy(copy, text, bytes) : NULL;
}

static void test_no_memory(void)
{
	struct ck_io_fault *fault = NULL;
	struct ck_error err = CK_ERROR_INIT;
	struct scratch files = scratch_new();
	const struct ck_io *io;
	int fd;

	for (unsigned call = 1; call <= 3; call++) {
		refuse_strdup = call;
		is_int(ck_io_fault_new(&fault, &ck_io_posix, "open:*;close:*", &err), CK_ENOMEM,
		       "copy %u cannot be made", call);
		like(err.text, "out of memory: ", "text");
	}
	refuse_strdup = 0;
	fault = scratch_fault("close:*");
	io = ck_io_fault_io(fault);
	refuse_strdup = 1;
	fd = io->ops->open(io, scratch_path(&files, "new"), O_WRONLY | O_CREAT, 0666);
	is_int(errno, ENOMEM, "a path that cannot be kept: ENOMEM");
	is_int(fd, -1, "and no descriptor");
	refuse_strdup = 0;
	ck_io_fault_free(fault);
	ck_io_fault_free(NULL);
}

static int ignore_entry(void *arg, const char *name)
{
	(void)arg;
	(void)name;
	return 0;
}

/*
 * Call each operation once, in the order of struct ck_io_ops, in a directory that has "old" and
 * "dir". Bit n of the result: operation n failed with `errnum`; UINT32_MAX: one failed otherwise.
 */
static uint32_t call_all(const struct ck_io *io, struct scratch *files, int errnum)
{
	struct scratch to = *files;
	int fd = open(scratch_path(files, "old"), O_RDWR | O_CLOEXEC);
	struct stat st;
	char byte;
	uint32_t failed = 0;
	long rc[15];
	int errnos[15];

#define CALL(n, ...)                   \
	do {                           \
		errno = 0;             \
		rc[n] = (__VA_ARGS__); \
		errnos[n] = errno;     \
	} while (0)
	CALL(0, io->ops->open(io, scratch_path(files, "old"), O_RDWR, 0));
	fd = rc[0] >= 0 ? (close(fd), (int)rc[0]) : fd;
	CALL(2, io->ops->pread(io, fd, &byte, 1, 0));
	CALL(3, io->ops->pwrite(io, fd, "x", 1, 0));
	CALL(4, io->ops->fsync(io, fd));
	CALL(5, io->ops->fallocate(io, fd, 0, 4096));
	CALL(6, io->ops->fstat(io, fd, &st));
	CALL(14, io->ops->lock(io, fd));
	CALL(1, io->ops->close(io, fd));
	CALL(7, io->ops->lstat(io, scratch_path(files, "old"), &st));
	CALL(8, io->ops->mkdir(io, scratch_path(files, "made"), 0777));
	CALL(9, io->ops->rmdir(io, scratch_path(files, "dir")));
	CALL(10, io->ops->rename(io, scratch_path(files, "old"), scratch_path(&to, "renamed")));
	CALL(11, io->ops->link(io, scratch_path(files, "second"), scratch_path(&to, "linked")));
	CALL(12, io->ops->unlink(io, scratch_path(files, "third")));
	CALL(13, io->ops->readdir(io, files->dir, ignore_entry, NULL));
#undef CALL
	for (unsigned i = 0; i < 15; i++) {
		if (rc[i] < 0 && errnos[i] != errnum)
			return UINT32_MAX;
		failed |= rc[i] < 0 ? 1u << i : 0;
	}
	return failed;
}

static struct scratch directory_for_all(void)
{
	struct scratch files = scratch_new();

	scratch_put_text(scratch_path(&files, "old"), "old");
	scratch_put_text(scratch_path(&files, "second"), "second");
	scratch_put_text(scratch_path(&files, "third"), "third");
	ck_io_mkdir(&ck_io_posix, scratch_path(&files, "dir"), NULL);
	return files;
}

static void test_every_operation_fails_by_its_name(void)
{
	static const struct {
		const char *rules;
		uint32_t fails;
	} rows[] = {
		{"", 0},
		{";;", 0},
		{"any:*", 0},
		{"any:nothing-of-the-kind:errno=ESTALE", 0},
		{"open:*:errno=ESTALE", 1u << 0},
		{"close:*:errno=ESTALE", 1u << 1},
		{"pread:*:errno=ESTALE", 1u << 2},
		{"pwrite:*:errno=ESTALE", 1u << 3},
		{"fsync:*:errno=ESTALE", 1u << 4},
		{"fallocate:*:errno=ESTALE", 1u << 5},
		{"fstat:*:errno=ESTALE", 1u << 6},
		{"lstat:*:errno=ESTALE", 1u << 7},
		{"mkdir:*:errno=ESTALE", 1u << 8},
		{"rmdir:*:errno=ESTALE", 1u << 9},
		{"rename:*:errno=ESTALE", 1u << 10},
		{"link:*:errno=ESTALE", 1u << 11},
		{"unlink:*:errno=ESTALE", 1u << 12},
		{"readdir:*:errno=ESTALE", 1u << 13},
		{"lock:*:errno=ESTALE", 1u << 14},
		{"rmdir,mkdir:*:errno=ESTALE", 1u << 8 | 1u << 9},
		{"rmdir:*:errno=ESTALE;mkdir:*:errno=ESTALE;", 1u << 8 | 1u << 9},
		{"meta:*:errno=ESTALE", 0x7fff & ~(1u << 2 | 1u << 3)},
		{"any:*:errno=ESTALE", 0x7fff},
		{"any:*:errno=ESTALE:done=1", 0x7fff},
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct scratch files = directory_for_all();
		struct ck_io_fault *fault = scratch_fault(rows[i].rules);

		is_u64(call_all(ck_io_fault_io(fault), &files, ESTALE), rows[i].fails,
		       "'%s': what fails", rows[i].rules);
		ck_io_fault_free(fault);
	}
}

static void test_calls_that_fail_are_not_made(void)
{
	struct scratch files = directory_for_all();
	struct ck_io_fault *fault = scratch_fault("any:*:errno=EIO");
	char text[SCRATCH_TEXT];

	call_all(ck_io_fault_io(fault), &files, EIO);
	is_u64(scratch_entries(files.dir), 4, "the directory is as before");
	is_str(scratch_get(scratch_path(&files, "old"), text), "old", "the file too");
	ck_io_fault_free(fault);

	fault = scratch_fault("any:*:errno=EIO:done=1");
	call_all(ck_io_fault_io(fault), &files, EIO);
	is_str(scratch_get(scratch_path(&files, "renamed"), text), "xld",
	       "done=1: written and renamed all the same");
	ok(scratch_exists(scratch_path(&files, "linked")), "linked");
	ok(scratch_exists(scratch_path(&files, "made")), "made");
	ok(!scratch_exists(scratch_path(&files, "dir")), "removed");
	ok(!scratch_exists(scratch_path(&files, "third")), "unlinked");
	ck_io_fault_free(fault);
}

static void test_open_whose_answer_is_lost(void)
{
	struct scratch files = scratch_new();
	struct ck_io_fault *fault = scratch_fault("open:*:errno=EIO:done=1");
	const struct ck_io *io = ck_io_fault_io(fault);
	int next = open("/", O_RDONLY | O_CLOEXEC), fd = -1;

	close(next);
	is_int(ck_io_create(io, scratch_path(&files, "new"), &fd, NULL), CK_EIO, "create fails");
	ok(scratch_exists(files.path), "the file is there");
	is_int(fcntl(next, F_GETFD), -1, "and no descriptor stays open");
	ck_io_fault_free(fault);
}

static void test_rename_and_link_match_either_path(void)
{
	struct ck_io_fault *fault = scratch_fault("rename,link:b:errno=EXDEV");
	const struct ck_io *io = ck_io_fault_io(fault);
	struct scratch from = scratch_new(), to = from;

	scratch_put_text(scratch_path(&from, "a"), "");
	scratch_put_text(scratch_path(&from, "b"), "");
	ok(io->ops->rename(io, scratch_path(&from, "a"), scratch_path(&to, "b")) < 0 &&
		   errno == EXDEV,
	   "rename to b");
	ok(io->ops->rename(io, scratch_path(&from, "b"), scratch_path(&to, "c")) < 0 &&
		   errno == EXDEV,
	   "rename from b");
	ok(io->ops->link(io, scratch_path(&from, "a"), scratch_path(&to, "b")) < 0 &&
		   errno == EXDEV,
	   "link to b");
	ok(io->ops->link(io, scratch_path(&from, "b"), scratch_path(&to, "c")) < 0 &&
		   errno == EXDEV,
	   "link from b");
	is_int(io->ops->rename(io, scratch_path(&from, "a"), scratch_path(&to, "c")), 0,
	       "neither is b");
	ck_io_fault_free(fault);
}

/* The path of a descriptor is the one it was opened with, also when its number comes back. */
static void test_descriptors(void)
{
	struct scratch files = scratch_new();
	struct ck_io_fault *fault = scratch_fault("fstat:b:errno=EIO;fstat:*");
	const struct ck_io *io = ck_io_fault_io(fault);
	int a = -1, b = -1, again = -1, number, foreign;
	struct stat st;

	ck_io_create(io, scratch_path(&files, "a"), &a, NULL);
	ck_io_create(io, scratch_path(&files, "b"), &b, NULL);
	is_int(io->ops->fstat(io, a, &st), 0, "a is not b");
	is_int(io->ops->fstat(io, b, &st), -1, "b is");
	number = b;
	ck_io_close(io, &b);
	ck_io_create(io, scratch_path(&files, "c"), &again, NULL);
	is_int(again, number, "the number comes back");
	is_int(io->ops->fstat(io, again, &st), 0, "for c, which is not b");
	foreign = open("/", O_RDONLY | O_CLOEXEC);
	is_int(io->ops->fstat(io, foreign, &st), 0, "a descriptor from elsewhere");
	is_u64(ck_io_fault_count(fault, 0), 1, "matches no name");
	is_u64(ck_io_fault_count(fault, 1), 3, "but '*'");
	close(foreign);
	ck_io_close(io, &a);
	/* `again` is left in the table on purpose: freeing the fault forgets it. */
	ck_io_fault_free(fault);
	close(again);
}

static void test_close_that_fails_closes(void)
{
	struct scratch files = scratch_new();
	struct ck_io_fault *fault = scratch_fault("close:*:errno=EIO");
	const struct ck_io *io = ck_io_fault_io(fault);
	int fd = -1;

	ck_io_create(io, scratch_path(&files, "a"), &fd, NULL);
	ok(io->ops->close(io, fd) < 0 && errno == EIO, "a close fails");
	is_int(fcntl(fd, F_GETFD), -1, "and the descriptor is gone");
	ck_io_fault_free(fault);
}

static void test_cut(void)
{
	struct scratch files = scratch_new();
	struct ck_io_fault *fault = scratch_fault("pwrite:*:cut=3:times=1;pwrite:*:cut=0;"
						  "pread:*:cut=2");
	const struct ck_io *io = ck_io_fault_io(fault);
	int fd = io->ops->open(io, scratch_path(&files, "a"), O_RDWR | O_CREAT, 0666);
	char text[SCRATCH_TEXT];

	is_int(io->ops->pwrite(io, fd, "content", 7, 0), 3, "three of seven bytes are written");
	is_int(io->ops->pwrite(io, fd, "more", 4, 3), 0, "then none");
	is_str(scratch_get(files.path, text), "con", "as the file says");
	is_int(io->ops->pread(io, fd, text, 7, 0), 2, "two are read");
	is_int(io->ops->pread(io, fd, text, 1, 0), 1, "one is not cut");
	ck_io_close(io, &fd);
	ck_io_fault_free(fault);
}

static void test_delay(void)
{
	struct scratch files = scratch_new();
	struct ck_io_fault *fault = scratch_fault("lstat:*:delay=80:times=1");
	const struct ck_io *io = ck_io_fault_io(fault);
	double begin = seconds();
	struct stat st;

	is_int(io->ops->lstat(io, files.dir, &st), 0, "a delayed call succeeds");
	ok(seconds() - begin >= 0.08, "80 ms later at the earliest (%.3f s)", seconds() - begin);
	ck_io_fault_free(fault);
}

static void *look(void *arg)
{
	struct ck_io_fault *fault = arg;
	const struct ck_io *io = ck_io_fault_io(fault);
	struct stat st;

	return io->ops->lstat(io, "/", &st) == 0 ? arg : NULL;
}

static void test_until(void)
{
	struct scratch there = scratch_new();
	const char *path = scratch_path(&there, "there");
	struct ck_io_fault *fault;
	char rules[PATH_MAX + 32];
	pthread_t thread;
	void *looked;

	snprintf(rules, sizeof(rules), "lstat:/:until=%s;open:*:times=1:until=%s", path, path);
	fault = scratch_fault(rules);
	pthread_create(&thread, NULL, look, fault);
	while (ck_io_fault_count(fault, 0) == 0)
		sched_yield();
	is_int(pthread_tryjoin_np(thread, &looked), EBUSY, "until=: the call is under way");
	scratch_put_text(path, "");
	is_int(pthread_join(thread, &looked), 0, "... and is over once the file is there");
	ok(looked == fault, "it succeeds");
	ck_io_fault_free(fault);
}

static volatile sig_atomic_t handled;

static void handle(int signum)
{
	handled = signum;
}

/* The handler runs in the thread that makes the call, though it blocks all signals. */
static void *look_deaf(void *arg)
{
	sigset_t all, now;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	if (!look(arg) || !handled)
		return NULL;
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	return sigismember(&now, SIGUSR1) ? arg : NULL;
}

static void test_kill_where_blocked(void)
{
	struct ck_io_fault *fault = scratch_fault("lstat:*:kill=USR1");
	void (*before)(int) = signal(SIGUSR1, handle);
	pthread_t thread;
	void *looked;

	pthread_create(&thread, NULL, look_deaf, fault);
	pthread_join(thread, &looked);
	ok(looked == fault, "a thread that blocks signals has handled it before the call is made");
	signal(SIGUSR1, before);
	ck_io_fault_free(fault);
}

static void test_kill(void)
{
	static const struct {
		const char *rules;
		int signal;
	} rows[] = {
		{"rename:*:kill=SIGKILL", SIGKILL},
		{"rename:*:kill=TERM", SIGTERM},
		{"rename:*:kill=SIGUSR1:errno=EIO", SIGUSR1},
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct ck_io_fault *fault = scratch_fault(rows[i].rules);
		const struct ck_io *io = ck_io_fault_io(fault);
		struct scratch from = scratch_new(), to = from;
		int status = 0;
		pid_t pid;

		scratch_put_text(scratch_path(&from, "a"), "");
		scratch_path(&to, "b");
		pid = fork();
		if (pid == 0) {
			signal(rows[i].signal, SIG_DFL); /* who starts us may ignore it */
			io->ops->rename(io, from.path, to.path);
			_exit(0);
		}
		is_int(waitpid(pid, &status, 0), pid, "%s: a process", rows[i].rules);
		ok(WIFSIGNALED(status) && WTERMSIG(status) == rows[i].signal,
		   "%s: dies of signal %d (status %d)", rows[i].rules, rows[i].signal, status);
		ok(scratch_exists(from.path), "%s: before the call", rows[i].rules);
		ck_io_fault_free(fault);
	}
}

struct worker {
	pthread_t thread;
	const struct ck_io *io;
	struct scratch files;
	unsigned number;
	unsigned good;
};

#define WORKERS 8
#define ROUNDS 200

/* Writes to the own file are cut, those to the others' are not: a mixed-up path shows. */
static void *work(void *arg)
{
	struct worker *worker = arg;
	const struct ck_io *io = worker->io;
	char name[16];

	snprintf(name, sizeof(name), "%s-%u", worker->number % 2 ? "odd" : "even", worker->number);
	scratch_path(&worker->files, name);
	for (unsigned i = 0; i < ROUNDS; i++) {
		int fd = io->ops->open(io, worker->files.path, O_WRONLY | O_CREAT, 0666);
		ssize_t n = io->ops->pwrite(io, fd, "content", 7, 0);

		worker->good += n == (worker->number % 2 ? 3 : 7);
		io->ops->close(io, fd);
	}
	return NULL;
}

static void test_threads(void)
{
	struct scratch files = scratch_new();
	struct ck_io_fault *fault = scratch_fault("pwrite:odd-*:cut=3;pwrite:*;open,close:*");
	struct worker workers[WORKERS];

	for (unsigned i = 0; i < WORKERS; i++) {
		workers[i] =
			(struct worker){.io = ck_io_fault_io(fault), .files = files, .number = i};
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	}
	for (unsigned i = 0; i < WORKERS; i++) {
		pthread_join(workers[i].thread, NULL);
		is_int(workers[i].good, ROUNDS, "thread %u: each write by its own path", i);
	}
	is_u64(ck_io_fault_count(fault, 0), WORKERS / 2 * ROUNDS, "writes that are cut");
	is_u64(ck_io_fault_count(fault, 1), WORKERS / 2 * ROUNDS, "writes that are not");
	is_u64(ck_io_fault_count(fault, 2), 2 * WORKERS * ROUNDS, "opens and closes");
	ck_io_fault_free(fault);
}

static void test_fault_over_fault(void)
{
	struct scratch files = scratch_new();
	struct ck_io_fault *below = scratch_fault("pwrite:*:cut=3"), *above = NULL;
	const struct ck_io *io;
	int fd = -1;

	is_int(ck_io_fault_new(&above, ck_io_fault_io(below), "pwrite:*:errno=EIO:times=1", NULL),
	       CK_OK, "one over another");
	io = ck_io_fault_io(above);
	ck_io_create(io, scratch_path(&files, "a"), &fd, NULL);
	is_int(io->ops->pwrite(io, fd, "content", 7, 0), -1, "the upper one acts first");
	is_int(io->ops->pwrite(io, fd, "content", 7, 0), 3, "then the lower one");
	is_u64(ck_io_fault_count(below, 0), 1, "which has seen one call");
	ck_io_close(io, &fd);
	ck_io_fault_free(above);
	ck_io_fault_free(below);
}

int main(void)
{
	alarm(120);
	test_no_memory();
	test_every_operation_fails_by_its_name();
	test_calls_that_fail_are_not_made();
	test_open_whose_answer_is_lost();
	test_rename_and_link_match_either_path();
	test_descriptors();
	test_close_that_fails_closes();
	test_cut();
	test_delay();
	test_until();
	test_kill();
	test_kill_where_blocked();
	test_threads();
	test_fault_over_fault();
	return done_testing();
}
