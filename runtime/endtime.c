#include "endtime.h"

#include <errno.h>
#include <fcntl.h>
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

int ck_end_time_ask(struct ck_end_time_query *query, const char *job_id, struct ck_error *err)
{
	int pipe_fd[2], rc;
	pid_t pid;

	if (pipe2(pipe_fd, O_CLOEXEC | O_NONBLOCK))
		return ck_fail_errno(err, errno, "squeue: pipe");
	rc = start(job_id, pipe_fd[1], &pid, err);
	close(pipe_fd[1]);
	if (rc) {
		close(pipe_fd[0]);
		return rc;
	}
	*query = (struct ck_end_time_query){.pid = pid, .fd = pipe_fd[0]};
	return 0;
}

int ck_end_time_answer(struct ck_end_time_query *query, int64_t *end, struct ck_error *err)
{
	ssize_t got;
	int rc;

	do {
		size_t room = sizeof(query->text) - 1 - query->got;

		got = room ? read(query->fd, query->text + query->got, room) : 0;
		query->got += got > 0 ? (unsigned)got : 0;
	} while (got > 0 || (got < 0 && errno == EINTR));
	if (got < 0 && errno == EAGAIN)
		return 0;
	query->text[query->got] = '\0';
	rc = ck_end_time_parse(query->text, end, err);
	ck_end_time_forget(query);
	return rc ? rc : 1;
}

static pid_t wait_for(pid_t pid, int flags)
{
	pid_t found;

	do
		found = waitpid(pid, NULL, flags);
	while (found < 0 && errno == EINTR);
	return found;
}

void ck_end_time_forget(struct ck_end_time_query *query)
{
	if (!query->pid)
		return;
	/*
	 * One that has answered is over, or as good as; one that hangs ends here. The program's own wait() may have
	 * had it, and its number may be another process's by now: only what is still our child is touched.
	 */
	if (wait_for(query->pid, WNOHANG) == 0) {
		kill(query->pid, SIGKILL);
		wait_for(query->pid, 0);
	}
	close(query->fd);
	*query = (struct ck_end_time_query){0};
}
