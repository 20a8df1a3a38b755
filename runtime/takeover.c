#include "takeover.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Clocks are read one after the other, and a claim is written a little after its process began. */
#define SLACK_SECONDS 2
#define PROC_BYTES 1024

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

/* hidepid= hides the processes of others in /proc: nothing there says nothing. */
static bool is_in_proc(const struct ck_io *io, uint64_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/stat", pid);
	return io->ops->lstat(io, path, &st) == 0;
}

/* Does the process run, by what /proc says, and did it begin before it claimed? */
static bool runs(const struct ck_io *io, const struct ck_claim *owner)
{
	struct ck_buf stat = CK_BUF_INIT, uptime = CK_BUF_INIT;
	char path[64];
	int64_t since;
	bool alive;

	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/stat", owner->pid);
	alive = ck_io_read_stream(io, path, PROC_BYTES, &stat, NULL) == 0 && stat.len &&
		ck_io_read_stream(io, "/proc/uptime", PROC_BYTES, &uptime, NULL) == 0 &&
		uptime.len &&
		ck_process_runs(stat.data, uptime.data, sysconf(_SC_CLK_TCK), time(NULL), &since) &&
		since <= owner->time + SLACK_SECONDS;
	ck_buf_fini(&stat);
	ck_buf_fini(&uptime);
	return alive;
}

bool ck_owner_is_gone(const struct ck_io *io, const struct ck_claim *owner, const char *host)
{
	if (owner->ended)
		return true;
	if (*owner->job.job_id || strcmp(owner->host, host) != 0 || owner->pid < 2 ||
	    owner->pid > INT_MAX)
		return false;
	if (kill((pid_t)owner->pid, 0) < 0 && errno == ESRCH)
		return true;
	return is_in_proc(io, owner->pid) && !runs(io, owner);
}

bool ck_owner_seems_alive(const struct ck_io *io, const struct ck_claim *owner,
			  const struct ck_claim *ours)
{
	if (owner->ended || *owner->job.job_id || *ours->job.job_id)
		return false;
	if (strcmp(owner->host, ours->host) != 0 || owner->pid == ours->pid || owner->pid < 2)
		return false;
	return runs(io, owner);
}

bool ck_owner_is_us(const struct ck_io *io, const struct ck_claim *owner,
		    const struct ck_claim *ours)
{
	return !owner->ended && owner->pid == ours->pid && strcmp(owner->host, ours->host) == 0 &&
	       strcmp(owner->job.job_id, ours->job.job_id) == 0 && runs(io, owner);
}
