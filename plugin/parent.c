#include "parent.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LEVELS_MAX 32

static void take_line(const char *line, struct ck_parent *out)
{
	uint64_t caught;

	if (sscanf(line, "PPid: %d", &out->parent) == 1 ||
	    sscanf(line, "Uid: %u", &out->uid) == 1 ||
	    sscanf(line, "voluntary_ctxt_switches: %" SCNu64, &out->wakeups) == 1)
		return;
	if (sscanf(line, "SigCgt: %" SCNx64, &caught) == 1)
		out->catches = caught & (UINT64_C(1) << (SIGTERM - 1));
}

bool ck_parent_look(pid_t pid, struct ck_parent *out)
{
	char path[32], line[256];
	FILE *status;

	*out = (struct ck_parent){.parent = 0};
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	status = fopen(path, "re");
	if (!status)
		return false;
	while (fgets(line, sizeof(line), status))
		take_line(line, out);
	fclose(status);
	return true;
}

/* Jobs of root's are root's processes too, and so is slurmstepd. */
static bool is_slurmstepd(pid_t pid)
{
	char path[32], name[32] = "";
	FILE *comm;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	comm = fopen(path, "re");
	if (!comm)
		return false;
	if (!fgets(name, sizeof(name), comm))
		name[0] = '\0';
	fclose(comm);
	return strncmp(name, "slurmstepd", 10) == 0;
}

void ck_parent_end(pid_t pid)
{
	pid_t chain[LEVELS_MAX];
	struct ck_parent at;
	int levels = 0;

	while (levels < LEVELS_MAX && pid > 1 && ck_parent_look(pid, &at) && at.uid == getuid() &&
	       !is_slurmstepd(pid)) {
		chain[levels++] = pid;
		pid = at.parent;
	}
	while (levels > 0)
		kill(chain[--levels], SIGKILL);
}
