/*
 * The copy that a save is to be made from cannot be had: a limit on address space (ulimit -v, Slurm's VSizeFactor)
 * refuses it. Every save succeeds all the same, from the program's memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ckpt.h"
#include "tap.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

int main(void)
{
	skip("the sanitizer's shadow leaves no room for a limit on address space");
	return done_testing();
}

#else

#define MIB ((size_t)1 << 20)
#define STATE (24 * MIB)

/* What a child found, by its exit code. */
enum found { STAGED, DIRECT, WRONG };

static char said[8192];

static void listen(void *arg, const char *line)
{
	(void)arg;
	strncat(said, line, sizeof(said) - strlen(said) - 2);
	strcat(said, "\n");
}

static size_t address_space(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	if (!file || fscanf(file, "%lu", &pages) != 1)
		_exit(99);
	fclose(file);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void limit_to(size_t bytes)
{
	struct rlimit limit;

	getrlimit(RLIMIT_AS, &limit);
	limit.rlim_cur = bytes;
	if (setrlimit(RLIMIT_AS, &limit))
		_exit(98);
}

static ckpt *open_run(const char *dir, unsigned char *state)
{
	struct ckpt_options options = {
		.struct_size = sizeof(options), .dir = dir, .every = "1d", .log = listen};
	const uint64_t n = STATE;
	uint64_t step;
	ckpt *ck = NULL;

	if (ckpt_open(&ck, NULL, &options) || ckpt_add_replicated(ck, "x", CKPT_U8, 1, &n, state) ||
	    ckpt_restore(ck, &step) < 0)
		return NULL;
	return ck;
}

static unsigned lines_with(const char *needle)
{
	unsigned n = 0;

	for (const char *at = said; (at = strstr(at, needle)); at++)
		n++;
	return n;
}

/* Two saves with `room` bytes more than there are now. */
static int save_within(const char *dir, unsigned char *state, size_t room, bool prepare)
{
	ckpt *ck = open_run(dir, state);
	int rc = ck ? 0 : -1;

	limit_to(address_space() + room);
	if (!rc && prepare)
		rc = ckpt_prepare(ck);
	for (uint64_t step = 1; !rc && step <= 2; step++) {
		memset(state, (int)step, STATE);
		rc = ckpt_save(ck, step);
		if (!rc)
			rc = ckpt_wait(ck);
	}
	if (!rc)
		rc = ckpt_close(ck);
	if (rc || lines_with("saved step") != 2 || lines_with("fail"))
		fprintf(stderr, "# %zu MiB: %d\n%s", room / MIB, rc, said);
	if (rc || lines_with("saved step") != 2)
		return WRONG;
	if (!lines_with("saves are synchronous"))
		return STAGED;
	return lines_with("and the system does not give it that much memory") == 1 ? DIRECT : WRONG;
}

static int in_child(unsigned char *state, size_t room, bool prepare)
{
	const char *dir = test_tmpdir();
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(save_within(dir, state, room, prepare));
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(void)
{
	unsigned char *state = malloc(STATE);
	unsigned count[WRONG + 1] = {0};
	size_t step = rounds(1, 8, 8) * MIB;

	if (!state)
		return 1;
	memset(state, 0, STATE);
	unsetenv("SLURM_JOB_ID");
	for (size_t room = 16 * MIB; room <= 160 * MIB; room += step) {
		int found = in_child(state, room, room / step % 2);

		ok(found == STAGED || found == DIRECT, "%zu MiB: both saves succeed (%d)",
		   room / MIB, found);
		count[found <= WRONG ? found : WRONG]++;
	}
	ok(count[DIRECT] > 0, "where there is no room, from the program's memory: %u times",
	   count[DIRECT]);
	ok(count[STAGED] > 0, "where there is, by way of a copy: %u times", count[STAGED]);
	free(state);
	return done_testing();
}

#endif
