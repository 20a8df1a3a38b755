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

/* proc(5): state is field 3, starttime, in ticks since boot, field 22. */
static bool parse_stat(const char *stat, char *state, uint64_t *start)
{
	const char *rest = strrchr(stat, ')'); /* behind the name, which may hold anything */

	return rest &&
	       sscanf(rest,
		      ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
		      "%*d %" SCNu64,
		      state, start) == 2;
}

bool ck_process_runs(const char *stat, const char *uptime, long ticks, int64_t now, int64_t *since)
{
	uint64_t start;
	double up;
	char state;

	if (!parse_stat(stat, &state, &start) || sscanf(uptime, "%lf", &up) != 1 || ticks <= 0)
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

static bool read_proc(const struct ck_io *io, const char *path, struct ck_buf *out)
{
	return ck_io_read_stream(io, path, PROC_BYTES, out, NULL) == 0 && out->len;
}

/* This boot of this host; "" when it is not told, or is none that a claim has room for. */
static void read_boot_id(const struct ck_io *io, char out[static CK_BOOT_ID_MAX + 1])
{
	struct ck_buf text = CK_BUF_INIT;
	size_t len = 0;

	*out = '\0';
	if (read_proc(io, "/proc/sys/kernel/random/boot_id", &text))
		len = strcspn(text.data, "\n");
	if (len && len <= CK_BOOT_ID_MAX)
		snprintf(out, CK_BOOT_ID_MAX + 1, "%.*s", (int)len, text.data);
	ck_buf_fini(&text);
}

void ck_claim_sign(const struct ck_io *io, struct ck_claim *claim)
{
	struct ck_buf stat = CK_BUF_INIT;
	char state;

	claim->pid = (uint64_t)getpid();
	claim->time = time(NULL);
	if (gethostname(claim->host, sizeof(claim->host) - 1))
		claim->host[0] = '\0';
	read_boot_id(io, claim->boot_id);
	if (!read_proc(io, "/proc/self/stat", &stat) ||
	    !parse_stat(stat.data, &state, &claim->start_ticks))
		claim->boot_id[0] = '\0';
	ck_buf_fini(&stat);
}

/* Did the process begin before the claim, by the clock? A clock that is set between the two misleads this. */
static bool began_before(const struct ck_io *io, const char *stat, int64_t claimed)
{
	struct ck_buf uptime = CK_BUF_INIT;
	int64_t since;
	bool before =
		read_proc(io, "/proc/uptime", &uptime) &&
		ck_process_runs(stat, uptime.data, sysconf(_SC_CLK_TCK), time(NULL), &since) &&
		since <= claimed + SLACK_SECONDS;

	ck_buf_fini(&uptime);
	return before;
}

/* Does the process run, by what /proc says, and is it the one that claimed? */
static bool runs(const struct ck_io *io, const struct ck_claim *owner)
{
	struct ck_buf stat = CK_BUF_INIT;
	char path[64], boot_id[CK_BOOT_ID_MAX + 1], state;
	uint64_t start;
	bool alive;

	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/stat", owner->pid);
	alive = read_proc(io, path, &stat) && parse_stat(stat.data, &state, &start) &&
		state != 'Z' && state != 'X';
	read_boot_id(io, boot_id);
	if (alive && *owner->boot_id && *boot_id)
		alive = strcmp(owner->boot_id, boot_id) == 0 && start == owner->start_ticks;
	else if (alive)
		alive = began_before(io, stat.data, owner->time);
	ck_buf_fini(&stat);
	return alive;
}

/* Of a claim on this host: is its process dead, as far as can be told? */
static bool is_dead(const struct ck_io *io, const struct ck_claim *owner)
{
	if (owner->pid < 2 || owner->pid > INT_MAX)
		return false;
	if (kill((pid_t)owner->pid, 0) < 0 && errno == ESRCH)
		return true;
	return is_in_proc(io, owner->pid) && !runs(io, owner);
}

bool ck_owner_is_gone(const struct ck_io *io, const struct ck_claim *owner, const char *host)
{
	if (owner->ended)
		return true;
	return !*owner->job.job_id && strcmp(owner->host, host) == 0 && is_dead(io, owner);
}

enum ck_process ck_owner_process(const struct ck_io *io, const struct ck_claim *owner,
				 const struct ck_claim *ours)
{
	if (strcmp(owner->host, ours->host) != 0)
		return CK_PROCESS_UNKNOWN;
	if (owner->pid == ours->pid || is_dead(io, owner))
		return CK_PROCESS_GONE;
	return runs(io, owner) ? CK_PROCESS_RUNS : CK_PROCESS_UNKNOWN;
}

bool ck_owner_seems_alive(const struct ck_io *io, const struct ck_claim *owner,
			  const struct ck_claim *ours)
{
	if (owner->ended || strcmp(owner->host, ours->host) != 0 || owner->pid == ours->pid ||
	    owner->pid < 2)
		return false;
	return runs(io, owner);
}

bool ck_owner_is_us(const struct ck_io *io, const struct ck_claim *owner,
		    const struct ck_claim *ours)
{
	return !owner->ended && owner->pid == ours->pid && strcmp(owner->host, ours->host) == 0 &&
	       strcmp(owner->job.job_id, ours->job.job_id) == 0 && runs(io, owner);
}
