#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "commit.h"
#include "env.h"
#include "shard.h"
#include "tap.h"

#define NOBODY 65534
#define DEADLINE_S 60
#define RNG_BYTES 24

static void need(bool done, const char *what, const char *why)
{
	if (done)
		return;
	printf("Bail out! %s: %s\n", what, why);
	exit(1);
}

/* --- runs --- */

const char *in(const char *dir, const char *name)
{
	static char paths[4][PATH_MAX];
	static unsigned next;
	char *path = paths[next++ % 4];

	need(snprintf(path, PATH_MAX, "%s/%s", dir, name) < PATH_MAX, dir, "too long");
	return path;
}

const char *in_step(const char *dir, uint64_t generation, uint64_t step, const char *name)
{
	struct ck_step_id id = {.step = step, .generation = generation};
	char text[CK_NAME_MAX];

	return in(in(dir, ck_name_step(id, text)), name);
}

/* Directories stay until the program ends. */
struct made {
	struct made *before;
	char dir[PATH_MAX];
};

static const char *keep_dir(const char *tmp, const char *name)
{
	static struct made *last;
	struct made *made = calloc(1, sizeof(*made));

	need(made != NULL, name, "no memory");
	snprintf(made->dir, sizeof(made->dir), "%s/%s", tmp, name);
	made->before = last;
	last = made;
	return made->dir;
}

const char *made_run(const char *name)
{
	struct ck_run run = {.cluster = "tux", .job_id = "4711", .submit_time = 1700000000};
	struct ck_error err = CK_ERROR_INIT;
	const char *tmp = test_tmpdir(), *dir = keep_dir(tmp, name);

	need(chmod(tmp, 0755) == 0, tmp, strerror(errno));
	snprintf(run.name, sizeof(run.name), "train");
	need(ck_run_create(&ck_io_posix, dir, &run, &err) == 0, dir, err.text);
	return dir;
}

uint64_t made_claim(const char *dir)
{
	struct ck_claim claim = {
		.job = {.cluster = "tux", .job_id = "4711", .restart_count = 2},
		.host = "node5",
		.pid = 321,
		.time = 1700000600,
		.world_size = 4,
	};
	struct ck_error err = CK_ERROR_INIT;
	uint64_t generation;

	need(ck_claim_take(&ck_io_posix, dir, &claim, &err) == 0, dir, err.text);
	generation = claim.generation;
	ck_claim_fini(&claim);
	return generation;
}

void made_complete(const char *dir, uint64_t step)
{
	struct ck_error err = CK_ERROR_INIT;
	struct ck_run run;

	need(ck_run_load(&ck_io_posix, dir, &run, &err) == 0, dir, err.text);
	run.complete = true;
	run.complete_step = step;
	need(ck_run_store(&ck_io_posix, dir, &run, &err) == 0, dir, err.text);
}

static void make_items(struct ck_manifest *m, struct ck_error *err)
{
	uint64_t shape = (uint64_t)m->world_size * MADE_ELEMENTS;
	struct ck_box box = {.ndim = 1, .extent = {MADE_ELEMENTS}};
	size_t item, block;

	/* By name, as the table has to be. */
	need(ck_item_list_add_rank(&m->items, "rng", &item, err) == 0 &&
		     ck_item_list_add_block(&m->items, "w", CK_F32, 1, &shape, &box, &item, &block,
					    err) == 0,
	     "items", err->text);
	m->items.flat = strdup("w");
}

/* One rank's files, added to the manifest's. */
static void write_rank(const char *dir, struct ck_manifest *m, uint32_t rank, struct ck_error *err)
{
	static float w[MADE_ELEMENTS];
	static const char rng[RNG_BYTES] = "a generator's state";
	struct ck_stored blocks[] = {
		{.name = "w",
		 .kind = CK_SHARDED,
		 .dtype = CK_F32,
		 .ndim = 1,
		 .shape = {(uint64_t)m->world_size * MADE_ELEMENTS},
		 .box = {.ndim = 1,
			 .offset = {(uint64_t)rank * MADE_ELEMENTS},
			 .extent = {MADE_ELEMENTS}},
		 .bytes = sizeof(w),
		 .data = w},
		{.name = "rng",
		 .kind = CK_PER_RANK,
		 .dtype = CK_U8,
		 .ndim = 1,
		 .box = {.ndim = 1, .extent = {RNG_BYTES}},
		 .bytes = RNG_BYTES,
		 .data = rng},
	};
	struct ck_record record;
	struct ck_plan plan;

	for (size_t i = 0; i < MADE_ELEMENTS; i++)
		w[i] = (float)(m->id.step + rank + i);
	need(ck_shard_plan(rank, m->world_size, blocks, 2, &plan, err) == 0 &&
		     ck_save_write(&ck_io_posix, dir, m->id, m->save_id, rank, &plan, "w", NULL,
				   &record, err) == 0,
	     dir, err->text);
	need(record.nfiles == 1, dir, "more than one file of a rank");
	m->files[m->nfiles++] = record.files[0];
	free(record.files); /* its chunk table is the manifest's now */
	ck_plan_fini(&plan);
}

void made_save(const char *dir, uint64_t generation, uint64_t step, uint32_t ranks, bool commit)
{
	struct ck_manifest m = {
		.world_size = ranks,
		.id = {.step = step, .generation = generation},
		.wall_clock_seconds = 12.5,
		.run = "train",
		.save_id = "00112233445566778899aabbccddeeff",
		.job = {.cluster = "tux", .job_id = "4711"},
		.created = 1700001000 + (int64_t)step,
		.writer = "a test",
		.files = calloc(ranks, sizeof(*m.files)),
	};
	struct ck_error err = CK_ERROR_INIT;
	char staging[PATH_MAX];
	struct ck_run run;

	need(m.files && ck_run_load(&ck_io_posix, dir, &run, &err) == 0, dir, err.text);
	strcpy(m.run_id, run.run_id);
	make_items(&m, &err);
	need(ck_save_begin(&ck_io_posix, dir, m.id, staging, &err) == 0 &&
		     ck_save_announce(&ck_io_posix, dir, &m, &err) == 0,
	     dir, err.text);
	for (uint32_t rank = 0; rank < ranks; rank++)
		write_rank(dir, &m, rank, &err);
	if (commit)
		need(ck_save_commit(&ck_io_posix, dir, &m, NULL, &err) == 0 &&
			     ck_save_tidy(&ck_io_posix, dir, m.id, &err) == 0,
		     dir, err.text);
	ck_manifest_fini(&m);
}

const char *two_steps(void)
{
	const char *dir = made_run("run");
	uint64_t generation = made_claim(dir);

	made_save(dir, generation, 1000, 4, true);
	made_save(dir, generation, 2000, 4, true);
	return dir;
}

void flip_bit(const char *path, uint64_t offset)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	unsigned char byte = 0;

	need(fd >= 0 && pread(fd, &byte, 1, (off_t)offset) == 1, path, strerror(errno));
	byte ^= 0x10;
	need(pwrite(fd, &byte, 1, (off_t)offset) == 1 && close(fd) == 0, path, strerror(errno));
}

/* --- the command --- */

/* Beside the variant that this test belongs to: build/<variant>/tests/unit/x.t. */
static const char *command_path(void)
{
	static char path[PATH_MAX];
	const char *given = getenv("CKPT_CMD");
	char self[PATH_MAX] = "";
	ssize_t len;

	if (given) {
		need(realpath(given, path) != NULL, given, strerror(errno));
		return path;
	}
	len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	need(len > 0, "/proc/self/exe", strerror(errno));
	snprintf(path, sizeof(path), "%.*s/../../ckpt", PATH_MAX - 16, dirname(self));
	need(access(path, X_OK) == 0, path, "is not built");
	return path;
}

/* Who starts the tests may ignore signals, as a shell does in the background. */
static void become(const struct manner *manner, int out, int err)
{
	bool drop = manner->as_nobody && geteuid() == 0;

	if (dup2(out, 1) < 0 || dup2(err, 2) < 0 || chdir(manner->cwd ? manner->cwd : "/"))
		_exit(120);
	if (drop && (setgid(NOBODY) || setuid(NOBODY)))
		_exit(121);
	signal(SIGINT, manner->no_interrupts ? SIG_IGN : SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	unsetenv(CK_ENV_DIR);
	unsetenv(CK_ENV_IO_FAULT);
	if (manner->run_dir)
		setenv(CK_ENV_DIR, manner->run_dir, 1);
	if (manner->faults)
		setenv(CK_ENV_IO_FAULT, manner->faults, 1);
}

/* The command is opened before the user changes, who may not be able to reach it. */
static pid_t start(const struct manner *manner, const char *const *arguments, int out, int err)
{
	const char *path = command_path();
	int program = open(path, O_RDONLY | O_CLOEXEC);
	char *argv[32] = {(char *)"ckpt"};
	pid_t pid;

	need(program >= 0, path, strerror(errno));
	for (size_t i = 0; arguments[i]; i++)
		argv[i + 1] = (char *)arguments[i];
	fflush(stdout);
	pid = fork();
	need(pid >= 0, "fork", strerror(errno));
	if (pid == 0) {
		become(manner, out, err);
		fexecve(program, argv, environ);
		_exit(122);
	}
	close(program);
	close(out);
	close(err);
	return pid;
}

static void open_stderr(const struct manner *manner, int fds[static 2])
{
	struct winsize size = {.ws_row = 24, .ws_col = 80};

	if (manner->on_terminal)
		need(openpty(&fds[0], &fds[1], NULL, NULL, &size) == 0, "openpty", strerror(errno));
	else
		need(pipe2(fds, O_CLOEXEC) == 0, "pipe", strerror(errno));
}

static void open_stdout(const struct manner *manner, int fds[static 2])
{
	need(pipe2(fds, O_CLOEXEC) == 0, "pipe", strerror(errno));
	if (!manner->full_disk)
		return;
	close(fds[1]);
	fds[1] = open("/dev/full", O_WRONLY | O_CLOEXEC);
	need(fds[1] >= 0, "/dev/full", strerror(errno));
}

/* Append what is there; false at the end. A terminal whose other side is gone says EIO. */
static bool take(int fd, struct ck_buf *text)
{
	char piece[4096];
	ssize_t got = read(fd, piece, sizeof(piece));

	if (got > 0)
		ck_buf_add(text, piece, (size_t)got);
	return got > 0 || (got < 0 && errno == EINTR);
}

/* Wait until it is stopped, or has ended. */
static void do_meanwhile(const struct manner *manner, pid_t pid)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	siginfo_t info = {.si_pid = 0};

	for (int i = 0; i < DEADLINE_S * 1000 && !info.si_pid; i++) {
		nanosleep(&pause, NULL);
		need(waitid(P_PID, (id_t)pid, &info, WSTOPPED | WEXITED | WNOHANG | WNOWAIT) == 0,
		     "waitid", strerror(errno));
	}
	if (!ok(info.si_code == CLD_STOPPED, "ckpt comes to %s", manner->faults))
		return;
	manner->meanwhile(manner->arg);
	kill(pid, SIGCONT);
}

static void listen_to(pid_t pid, int out, int err, struct ck_buf texts[static 2])
{
	struct pollfd fds[2] = {{.fd = out, .events = POLLIN}, {.fd = err, .events = POLLIN}};

	while (fds[0].fd >= 0 || fds[1].fd >= 0) {
		int ready = poll(fds, 2, DEADLINE_S * 1000);

		if (ready == 0)
			kill(pid, SIGKILL);
		need(ready != 0, "ckpt", "says nothing for 60 s");
		for (int i = 0; i < 2; i++)
			if (fds[i].revents && !take(fds[i].fd, &texts[i]))
				fds[i].fd = -1;
	}
	close(out);
	close(err);
}

static char *text_of(struct ck_buf *buf)
{
	ck_buf_add(buf, "", 1);
	need(buf->data && !buf->failed, "output", "no memory");
	return buf->data;
}

struct said command(const struct manner *manner, const char *const *arguments)
{
	struct ck_buf texts[2] = {CK_BUF_INIT, CK_BUF_INIT};
	int out[2], err[2], status;
	pid_t pid;

	open_stdout(manner, out);
	open_stderr(manner, err);
	pid = start(manner, arguments, out[1], err[1]);
	if (manner->meanwhile)
		do_meanwhile(manner, pid);
	listen_to(pid, out[0], err[0], texts);
	need(waitpid(pid, &status, 0) == pid, "waitpid", strerror(errno));
	return (struct said){
		.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
		.out = text_of(&texts[0]),
		.err = text_of(&texts[1]),
	};
}

void said_fini(struct said *said)
{
	free(said->out);
	free(said->err);
}

unsigned longest_line(const char *text)
{
	size_t longest = 0;

	while (*text) {
		size_t len = strcspn(text, "\n");

		longest = len > longest ? len : longest;
		text += len + (text[len] == '\n');
	}
	return (unsigned)longest;
}

const cJSON *json_at(const cJSON *tree, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(tree, key);
}

const char *json_text(const cJSON *tree, const char *key)
{
	const char *text = cJSON_GetStringValue(json_at(tree, key));

	return text ? text : "(no string)";
}
