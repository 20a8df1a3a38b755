#include "takeover.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Clocks are read one after the other, and a claim is written a little after its process began. */
#define SLACK_SECONDS 2

/* Files of /proc have no size, so they are read until nothing comes. */
static bool read_proc(const struct ck_io *io, const char *path, char *text, size_t size)
{
	ssize_t got = 0;
	int fd = io->ops->open(io, path, O_RDONLY | O_CLOEXEC, 0);

	if (fd < 0)
		return false;
	got = io->ops->pread(io, fd, text, size - 1, 0);
	io->ops->close(io, fd);
	text[got > 0 ? got : 0] = '\0';
	return got > 0;
}

bool ck_process_runs(const char *stat, const char *uptime, long ticks, int64_t now, int64_t *since)
{
	const char *rest = strrchr(stat, ')'); /* behind the name, which may hold anything */
	unsigned long long start;
	double up;
	char state;

	/* proc(5): state is field 3, starttime, in ticks since boot, field 22. */
	if (!rest ||
	    sscanf(rest,
		   ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
		   "%llu",
		   &state, &start) != 2 ||
	    sscanf(uptime, "%lf", &up) != 1 || ticks <= 0)
		return false;
	*since = now - (int64_t)(up - (double)start / (double)ticks);
	return state != 'Z' && state != 'X';
}

bool ck_owner_seems_alive(const struct ck_io *io, const struct ck_claim *owner,
			  const struct ck_claim *ours)
{
	char path[64], stat[1024], uptime[128];
	int64_t since;

	if (owner->ended || *owner->job.job_id || *ours->job.job_id)
		return false;
	if (strcmp(owner->host, ours->host) != 0 || owner->pid == ours->pid || owner->pid < 2)
		return false;
	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/stat", owner->pid);
	return read_proc(io, path, stat, sizeof(stat)) &&
	       read_proc(io, "/proc/uptime", uptime, sizeof(uptime)) &&
	       ck_process_runs(stat, uptime, sysconf(_SC_CLK_TCK), time(NULL), &since) &&
	       since <= owner->time + SLACK_SECONDS;
}
