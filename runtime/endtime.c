#include "endtime.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "parse.h"

extern char **environ;

int ck_end_time_parse(const char *text, int64_t *end, struct ck_error *err)
{
	char line[64];
	uint64_t value;
	size_t len = strcspn(text, "\n");

	if (len >= sizeof(line))
		return ck_fail(err, CK_EIO, "squeue: end time: a line of %zu characters", len);
	memcpy(line, text, len);
	line[len] = '\0';
	if (strcmp(line, "N/A") == 0 || strcmp(line, "NONE") == 0) {
		*end = 0;
		return 0;
	}
	if (ck_parse_u64("squeue: end time", line, 1, INT64_MAX, &value, err))
		return CK_EIO;
	*end = (int64_t)value;
	return 0;
}

/* The environment with the time format of our own; the strings are the process's. */
static char **with_format(void)
{
	static char format[] = "SLURM_TIME_FORMAT=%s";
	size_t count = 0, kept = 0;
	char **env;

	while (environ[count])
		count++;
	env = calloc(count + 2, sizeof(*env));
	for (size_t i = 0; env && i < count; i++)
		if (strncmp(environ[i], "SLURM_TIME_FORMAT=", 18) != 0)
			env[kept++] = environ[i];
	if (env)
		env[kept] = format;
	return env;
}

static int start(const char *job_id, int output, pid_t *pid, struct ck_error *err)
{
	char *argv[] = {"squeue", "-h", "-j", (char *)job_id, "-o", "%e", NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none;
	char **env = with_format();
	int rc;

	if (!env)
		return ck_fail_nomem(err, 4096);
	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, output, 1);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	rc = posix_spawnp(pid, argv[0], &actions, &attr, argv, env);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	free(env);
	return rc ? ck_fail(err, CK_EIO, "squeue: cannot be started: %s", strerror(rc)) : 0;
}

/* Read until the other side closes or the time is up. */
static void collect(int fd, unsigned timeout_ms, char *text, size_t size)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	size_t len = 0;
	ssize_t got = 1;

	while (got > 0 && len + 1 < size) {
		int ready = poll(&poll_fd, 1, (int)timeout_ms);

		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0)
			break;
		got = read(fd, text + len, size - 1 - len);
		len += got > 0 ? (size_t)got : 0;
	}
	text[len] = '\0';
}

int ck_end_time_ask(const char *job_id, unsigned timeout_ms, int64_t *end, struct ck_error *err)
{
	char text[256] = "";
	int pipe_fd[2], rc;
	pid_t pid;

	if (pipe2(pipe_fd, O_CLOEXEC))
		return ck_fail_errno(err, errno, "squeue: pipe");
	rc = start(job_id, pipe_fd[1], &pid, err);
	close(pipe_fd[1]);
	if (!rc) {
		collect(pipe_fd[0], timeout_ms, text, sizeof(text));
		/* Ends one that hangs; one that has answered is over, or as good as. */
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		rc = ck_end_time_parse(text, end, err);
	}
	close(pipe_fd[0]);
	return rc;
}
