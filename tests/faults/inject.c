/*
 * Run a program and strike at its n-th system call below a directory, from under the C library.
 *
 *	inject [-d DIR] [-c CALLS] [-n N] [-f FAULT] [-o FILE] [-r FILE] -- PROGRAM ARGUMENT ...
 *
 *	-d DIR    calls count whose path, or whose descriptor's, lies in or below it. io_uring_enter always does
 *	-c CALLS  which calls count: write (default: what changes the file system), read (what only looks),
 *	          all, memory (mmap of memory: large blocks, stacks; from the first call below DIR on)
 *	-n N      strike at the N-th (from 1); without it nothing happens, calls are only counted
 *	-f FAULT  before   SIGKILL for the whole program before the call is made
 *	          after    SIGKILL when it has been made
 *	          hold     the whole program is suspended before it is made; this says "held" on standard error, and
 *	                   lets it go on when a line comes on standard input, or its end
 *	          fail=E   it is not made and returns the error E (a number or a name such as EIO)
 *	          fails=E  this and all that follow
 *	          lost=E   it is made, and reported as failed
 *	          short    a read or write of half the bytes
 *	-o FILE   append a line for each call that counts: number, name, path or descriptor's path
 *	-r FILE   record each call of -c write that succeeds, for tests/faults/powercut: a JSON object a line, with
 *	          "call", "path", "path2" (of rename, link), "number" (offset, length or flags), "data" (hex); and
 *	          what the program writes to its standard output ("call": "say"). No -n beside it
 *
 * Exits as the program does; with 128 + signal where a signal ended it; with 120 for its own failures;
 * with 121 when there were fewer than N calls, whatever the program did.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_OURS 120
#define EXIT_TOO_FEW 121

#ifndef __x86_64__
int main(void)
{
	fputs("inject: written for x86_64 only\n", stderr);
	return EXIT_OURS;
}
#else

enum kind { WRITE = 1, READ = 2, MEMORY = 4 };

/* Where a call says what it is about. */
enum about { PATH_0, PATH_1, FD_0, ANYTHING, ANONYMOUS };

struct call {
	int number;
	const char *name;
	enum kind kind;
	enum about about;
};

#define CALL(name, kind, about)                \
	{                                      \
		SYS_##name, #name, kind, about \
	}
/* open counts as write where it may create, truncate or write; see kind_of. */
static const struct call calls[] = {
	CALL(open, READ, PATH_0),
	CALL(openat, READ, PATH_1),
	CALL(read, READ, FD_0),
	CALL(pread64, READ, FD_0),
	CALL(preadv, READ, FD_0),
	CALL(getdents64, READ, FD_0),
	CALL(stat, READ, PATH_0),
	CALL(lstat, READ, PATH_0),
	CALL(newfstatat, READ, PATH_1),
	CALL(fstat, READ, FD_0),
	CALL(statx, READ, PATH_1),
	CALL(access, READ, PATH_0),
	CALL(faccessat, READ, PATH_1),
	CALL(faccessat2, READ, PATH_1),
	CALL(readlink, READ, PATH_0),
	CALL(statfs, READ, PATH_0),
	CALL(write, WRITE, FD_0),
	CALL(pwrite64, WRITE, FD_0),
	CALL(writev, WRITE, FD_0),
	CALL(pwritev, WRITE, FD_0),
	CALL(fsync, WRITE, FD_0),
	CALL(fdatasync, WRITE, FD_0),
	CALL(close, WRITE, FD_0),
	CALL(ftruncate, WRITE, FD_0),
	CALL(fallocate, WRITE, FD_0),
	CALL(rename, WRITE, PATH_0),
	CALL(renameat, WRITE, PATH_1),
	CALL(renameat2, WRITE, PATH_1),
	CALL(link, WRITE, PATH_0),
	CALL(linkat, WRITE, PATH_1),
	CALL(symlink, WRITE, PATH_1),
	CALL(unlink, WRITE, PATH_0),
	CALL(unlinkat, WRITE, PATH_1),
	CALL(mkdir, WRITE, PATH_0),
	CALL(mkdirat, WRITE, PATH_1),
	CALL(rmdir, WRITE, PATH_0),
	CALL(chmod, WRITE, PATH_0),
	CALL(fchmod, WRITE, FD_0),
	CALL(utimensat, WRITE, PATH_1),
	CALL(io_uring_enter, WRITE, ANYTHING),
	CALL(io_uring_setup, READ, ANYTHING),
	CALL(mmap, MEMORY, ANONYMOUS),
};
#define NCALLS (sizeof(calls) / sizeof(*calls))

enum fault { NONE, BEFORE, AFTER, HOLD, FAIL, LOST, SHORT };

static struct {
	const char *dir;
	size_t dir_len;
	int kinds;
	long at;
	enum fault fault;
	bool repeated;
	int error;
	FILE *log, *record;
	pid_t program;
	long count;
	bool begun, struck;
} plan = {.kinds = WRITE};

static _Noreturn void give_up(const char *what)
{
	fprintf(stderr, "inject: %s: %s\n", what, strerror(errno));
	if (plan.program > 0)
		kill(plan.program, SIGKILL);
	exit(EXIT_OURS);
}

/* ---- what a call is about */

static bool read_text(pid_t pid, unsigned long long address, char text[PATH_MAX])
{
	size_t got = 0;

	/* A string may end where the next page is not mapped. */
	while (got < PATH_MAX - 1) {
		size_t piece = 256 - (address + got) % 256;
		struct iovec local = {text + got, piece},
			     remote = {(void *)(uintptr_t)(address + got), piece};

		if (got + piece > PATH_MAX - 1 ||
		    process_vm_readv(pid, &local, 1, &remote, 1, 0) != (ssize_t)piece)
			return false;
		if (memchr(text + got, 0, piece))
			return true;
		got += piece;
	}
	return false;
}

static bool descriptor_path(pid_t pid, long long fd, char path[PATH_MAX])
{
	char link[64];
	ssize_t len;

	if ((int)fd == AT_FDCWD)
		snprintf(link, sizeof(link), "/proc/%d/cwd", (int)pid);
	else
		snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)pid, (int)fd);
	len = readlink(link, path, PATH_MAX - 1);
	path[len > 0 ? len : 0] = '\0';
	return len > 0;
}

static bool path_below(pid_t pid, long long dirfd, unsigned long long address, char path[PATH_MAX])
{
	char name[PATH_MAX], base[PATH_MAX];

	if (!read_text(pid, address, name))
		return false;
	if (name[0] == '/')
		snprintf(path, PATH_MAX, "%s", name);
	else if (!descriptor_path(pid, dirfd, base) ||
		 snprintf(path, PATH_MAX, "%s%s%s", base, *name ? "/" : "", name) >= PATH_MAX)
		return false;
	return true;
}

static bool is_below(const char *path)
{
	return strncmp(path, plan.dir, plan.dir_len) == 0 &&
	       (path[plan.dir_len] == '/' || path[plan.dir_len] == '\0' ||
		path[plan.dir_len] == ' ');
}

static bool asks_for_memory(const struct user_regs_struct *regs)
{
	return plan.begun && (regs->r10 & MAP_ANONYMOUS) && (regs->rdx & PROT_WRITE);
}

/* Is the call one of those below the directory? Says what about in `path`. */
static bool concerns(pid_t pid, const struct call *call, const struct user_regs_struct *regs,
		     char path[PATH_MAX])
{
	path[0] = '\0';
	switch (call->about) {
	case ANYTHING:
		return plan.begun;
	case ANONYMOUS:
		return asks_for_memory(regs);
	case FD_0:
		return descriptor_path(pid, (long long)regs->rdi, path) && is_below(path);
	case PATH_0:
		return path_below(pid, AT_FDCWD, regs->rdi, path) && is_below(path);
	case PATH_1:
		return path_below(pid, (long long)regs->rdi, regs->rsi, path) && is_below(path);
	}
	return false;
}

static int kind_of(const struct call *call, const struct user_regs_struct *regs)
{
	unsigned long long flags = call->number == SYS_open ? regs->rsi : regs->rdx;

	if (call->number != SYS_open && call->number != SYS_openat)
		return call->kind;
	return (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) ? WRITE : READ;
}

/* ---- the record: calls are seen twice, when they are made and when they have been */

/* A call that a thread is in. */
struct pending {
	pid_t tid;
	const struct call *call;
	struct user_regs_struct regs;
	char path[PATH_MAX];
};
static struct pending pending[64];

static struct pending *find_pending(pid_t tid)
{
	for (size_t i = 0; i < sizeof(pending) / sizeof(*pending); i++)
		if (pending[i].tid == tid)
			return &pending[i];
	return NULL;
}

static void record_bytes(pid_t pid, unsigned long long address, size_t bytes)
{
	unsigned char *data = malloc(bytes ? bytes : 1);
	struct iovec local = {data, bytes}, remote = {(void *)(uintptr_t)address, bytes};

	if (!data || process_vm_readv(pid, &local, 1, &remote, 1, 0) != (ssize_t)bytes)
		give_up("record");
	fputs(", \"data\": \"", plan.record);
	for (size_t i = 0; i < bytes; i++)
		fprintf(plan.record, "%02x", data[i]);
	fputc('"', plan.record);
	free(data);
}

/* The second path of a call that has two. */
static bool second_path(pid_t pid, const struct call *call, const struct user_regs_struct *regs,
			char path[PATH_MAX])
{
	switch (call->number) {
	case SYS_rename:
	case SYS_link:
		return path_below(pid, AT_FDCWD, regs->rsi, path);
	case SYS_renameat:
	case SYS_renameat2:
	case SYS_linkat:
		return path_below(pid, (long long)regs->rdx, regs->r10, path);
	}
	return false;
}

static unsigned long long number_of(const struct call *call, const struct user_regs_struct *regs)
{
	switch (call->number) {
	case SYS_open:
	case SYS_ftruncate:
		return regs->rsi;
	case SYS_openat:
	case SYS_unlinkat:
		return regs->rdx;
	case SYS_pwrite64:
		return regs->r10;
	case SYS_fallocate:
		return regs->rdx + regs->r10;
	}
	return 0;
}

static void record_call(const struct pending *made, size_t bytes)
{
	const char *name = made->call->name;
	char path2[PATH_MAX] = "";

	fprintf(plan.record, "{\"call\": \"%s\", \"path\": \"%s\", \"number\": %llu",
		*made->path ? name : "say", made->path, number_of(made->call, &made->regs));
	if (second_path(made->tid, made->call, &made->regs, path2))
		fprintf(plan.record, ", \"path2\": \"%s\"", path2);
	if (made->call->number == SYS_write || made->call->number == SYS_pwrite64)
		record_bytes(made->tid, made->regs.rsi, bytes);
	fputs("}\n", plan.record);
}

/* A call begins; its paths are looked up now, they may be others when it is over. */
static int remember(pid_t tid, const struct call *call, const struct user_regs_struct *regs,
		    const char *path)
{
	struct pending *slot = find_pending(0);

	if (!slot)
		give_up("record: too many threads");
	*slot = (struct pending){.tid = tid, .call = call, .regs = *regs};
	snprintf(slot->path, sizeof(slot->path), "%s", path);
	return PTRACE_SYSCALL;
}

static bool is_said(const struct call *call, const struct user_regs_struct *regs)
{
	return call->number == SYS_write && regs->rdi == STDOUT_FILENO;
}

static void on_over(pid_t tid)
{
	struct pending *made = find_pending(tid);
	struct user_regs_struct regs;

	if (!made)
		return;
	if (ptrace(PTRACE_GETREGS, tid, NULL, &regs) == 0 && (long long)regs.rax >= 0)
		record_call(made, (size_t)regs.rax);
	made->tid = 0;
}

/* ---- the strike */

static const struct call *find_call(long long number)
{
	for (size_t i = 0; i < NCALLS; i++)
		if (calls[i].number == number)
			return &calls[i];
	return NULL;
}

static void set_regs(pid_t tid, struct user_regs_struct *regs)
{
	if (ptrace(PTRACE_SETREGS, tid, NULL, regs))
		give_up("ptrace: set registers");
}

static bool moves_bytes(const struct call *call)
{
	return call->number == SYS_write || call->number == SYS_pwrite64 ||
	       call->number == SYS_read || call->number == SYS_pread64;
}

/*
 * All threads stop: this one is stopped already, the others by a signal that is never delivered, and none goes on
 * until we look after it again.
 */
static void hold(void)
{
	char path[64];
	struct dirent *entry;
	DIR *tasks;
	int c;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)plan.program);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks)))
		if (atoi(entry->d_name) > 0)
			syscall(SYS_tgkill, plan.program, atoi(entry->d_name), SIGSTOP);
	if (tasks)
		closedir(tasks);
	fputs("held\n", stderr);
	do {
		c = getchar();
	} while (c != '\n' && c != EOF);
}

/* Returns how the thread is to go on: PTRACE_CONT, or PTRACE_SYSCALL to see how the call ends. */
static int strike(pid_t tid, const struct call *call, struct user_regs_struct *regs)
{
	plan.struck = true;
	switch (plan.fault) {
	case BEFORE:
		kill(plan.program, SIGKILL);
		return PTRACE_CONT;
	case HOLD:
		hold();
		return PTRACE_CONT;
	case FAIL:
		regs->orig_rax = (unsigned long long)-1;
		regs->rax = (unsigned long long)-plan.error;
		set_regs(tid, regs);
		return PTRACE_CONT;
	case SHORT:
		if (moves_bytes(call) && regs->rdx > 1) {
			regs->rdx /= 2;
			set_regs(tid, regs);
		}
		return PTRACE_CONT;
	case AFTER:
	case LOST:
		return PTRACE_SYSCALL;
	case NONE:
		break;
	}
	return PTRACE_CONT;
}

static int on_call(pid_t tid)
{
	struct user_regs_struct regs;
	const struct call *call;
	char path[PATH_MAX];

	if (ptrace(PTRACE_GETREGS, tid, NULL, &regs))
		return PTRACE_CONT; /* gone meanwhile */
	call = find_call((long long)regs.orig_rax);
	if (!call)
		return PTRACE_CONT;
	if (plan.record && is_said(call, &regs))
		return remember(tid, call, &regs, "");
	if (!concerns(tid, call, &regs, path))
		return PTRACE_CONT;
	if (call->about != ANONYMOUS)
		plan.begun = true;
	if (!(kind_of(call, &regs) & plan.kinds))
		return PTRACE_CONT;
	plan.count++;
	if (plan.log)
		fprintf(plan.log, "%ld %s %s\n", plan.count, call->name, path);
	if (plan.record)
		return remember(tid, call, &regs, path);
	if (plan.at == 0 || plan.count < plan.at || (plan.count > plan.at && !plan.repeated))
		return PTRACE_CONT;
	return strike(tid, call, &regs);
}

/* The call that was struck, or is to be recorded, has been made. */
static void on_made(pid_t tid)
{
	struct user_regs_struct regs;

	if (plan.record) {
		on_over(tid);
	} else if (plan.fault == AFTER) {
		kill(plan.program, SIGKILL);
	} else if (ptrace(PTRACE_GETREGS, tid, NULL, &regs) == 0 && (long long)regs.rax >= 0) {
		regs.rax = (unsigned long long)-plan.error;
		set_regs(tid, &regs);
	}
}

/* ---- the program */

static void install_filter(void)
{
	struct sock_filter code[NCALLS + 6];
	struct sock_fprog program = {.filter = code};
	size_t n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < NCALLS; i++)
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							 (uint32_t)calls[i].number,
							 (uint8_t)(NCALLS - i), 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
	program.len = (unsigned short)n;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		give_up("seccomp");
}

static void start(char **argv)
{
	long options = PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
		       PTRACE_O_TRACEVFORK | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACESYSGOOD |
		       PTRACE_O_TRACEEXEC;
	int status;

	plan.program = fork();
	if (plan.program < 0)
		give_up("fork");
	if (plan.program == 0) {
		if (!freopen("/dev/null", "r", stdin) || ptrace(PTRACE_TRACEME, 0, NULL, NULL) ||
		    raise(SIGSTOP))
			give_up("ptrace");
		install_filter();
		execvp(argv[0], argv);
		give_up(argv[0]);
	}
	if (waitpid(plan.program, &status, 0) < 0 || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_SETOPTIONS, plan.program, NULL, options) ||
	    ptrace(PTRACE_CONT, plan.program, NULL, NULL))
		give_up("ptrace: start");
}

/* Returns the signal that the thread is to get. */
static int on_signal(pid_t tid, int sig)
{
	siginfo_t info;

	/* The stop that a new thread begins with, or that of hold, is not a signal to hand on. */
	return sig == SIGSTOP || ptrace(PTRACE_GETSIGINFO, tid, NULL, &info) ? 0 : sig;
}

static int watch(void)
{
	int status, ended = 0;
	pid_t tid;

	while ((tid = waitpid(-1, &status, __WALL)) > 0) {
		int go_on = PTRACE_CONT, sig = 0;

		if (WIFEXITED(status) || WIFSIGNALED(status)) {
			if (tid == plan.program)
				ended = status;
			continue;
		}
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_SECCOMP << 8))
			go_on = on_call(tid);
		else if (WSTOPSIG(status) == (SIGTRAP | 0x80))
			on_made(tid);
		else if (status >> 16 == 0)
			sig = on_signal(tid, WSTOPSIG(status));
		ptrace(go_on, tid, NULL, sig);
	}
	return ended;
}

/* ---- arguments */

static int parse_error(const char *text)
{
	static const struct {
		const char *name;
		int value;
	} names[] = {{"EIO", EIO},
		     {"ENOSPC", ENOSPC},
		     {"EDQUOT", EDQUOT},
		     {"ESTALE", ESTALE},
		     {"EMFILE", EMFILE},
		     {"ENFILE", ENFILE},
		     {"ENOMEM", ENOMEM},
		     {"EINTR", EINTR},
		     {"EACCES", EACCES},
		     {"EPERM", EPERM},
		     {"ENOSYS", ENOSYS},
		     {"EINVAL", EINVAL},
		     {"EOPNOTSUPP", EOPNOTSUPP},
		     {"ETIMEDOUT", ETIMEDOUT},
		     {"EROFS", EROFS}};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(text, names[i].name) == 0)
			return names[i].value;
	return atoi(text);
}

static bool parse_fault(const char *text)
{
	const char *error = strchr(text, '=');
	size_t len = error ? (size_t)(error - text) : strlen(text);
	static const struct {
		const char *name;
		enum fault fault;
	} names[] = {{"before", BEFORE}, {"after", AFTER}, {"hold", HOLD},  {"fail", FAIL},
		     {"fails", FAIL},    {"lost", LOST},   {"short", SHORT}};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strlen(names[i].name) == len && strncmp(text, names[i].name, len) == 0)
			plan.fault = names[i].fault;
	plan.repeated = strncmp(text, "fails", len) == 0 && len == 5;
	plan.error = error ? parse_error(error + 1) : 0;
	return plan.fault != NONE && (plan.error > 0 || (plan.fault != FAIL && plan.fault != LOST));
}

static bool parse_kinds(const char *text)
{
	plan.kinds = strcmp(text, "write") == 0    ? WRITE
		     : strcmp(text, "read") == 0   ? READ
		     : strcmp(text, "all") == 0    ? WRITE | READ
		     : strcmp(text, "memory") == 0 ? MEMORY
						   : 0;
	return plan.kinds != 0;
}

static bool parse_arguments(int argc, char **argv)
{
	bool good = true;
	int c;

	while (good && (c = getopt(argc, argv, "+d:c:n:f:o:r:")) != -1) {
		if (c == 'd')
			plan.dir = optarg;
		else if (c == 'c')
			good = parse_kinds(optarg);
		else if (c == 'n')
			good = (plan.at = atol(optarg)) > 0;
		else if (c == 'f')
			good = parse_fault(optarg);
		else if (c == 'o')
			good = (plan.log = fopen(optarg, "ae")) != NULL;
		else if (c == 'r')
			good = (plan.record = fopen(optarg, "we")) != NULL;
		else
			good = false;
	}
	good = good && plan.dir && optind < argc && (plan.at == 0) == (plan.fault == NONE) &&
	       !(plan.at && plan.record);
	plan.dir_len = good ? strlen(plan.dir) : 0;
	return good;
}

int main(int argc, char **argv)
{
	int status;

	if (!parse_arguments(argc, argv)) {
		fputs("usage: inject -d DIR [-c write|read|all|memory] [-n N -f FAULT] [-o FILE] "
		      "-- PROGRAM ...\n",
		      stderr);
		return EXIT_OURS;
	}
	start(argv + optind);
	status = watch();
	if ((plan.log && fclose(plan.log)) || (plan.record && fclose(plan.record)))
		give_up("log");
	if (plan.at && !plan.struck)
		return EXIT_TOO_FEW;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
#endif
