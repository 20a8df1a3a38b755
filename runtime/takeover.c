#include "takeover.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

bool ck_owner_seems_alive(const struct ck_claim *owner, const struct ck_claim *ours)
{
	if (owner->ended || *owner->job.job_id || *ours->job.job_id)
		return false;
	if (strcmp(owner->host, ours->host) != 0 || owner->pid == ours->pid || owner->pid < 2)
		return false;
	return kill((pid_t)owner->pid, 0) == 0 || errno == EPERM;
}
