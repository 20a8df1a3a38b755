/*
 * The batch script as its srun sees it: srun's parent, which may be a subshell or a wrapper, and what
 * is above that. From /proc.
 */
#ifndef CK_PARENT_H
#define CK_PARENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ck_parent {
	pid_t parent;
	uid_t uid;    /* real */
	bool catches; /* SIGTERM, by a handler: a trap, or what a language's run time sets */
	uint64_t
		wakeups; /* how often it has slept; a process that waits for a child wakes for a signal */
};

/* Returns false when there is no such process. */
bool ck_parent_look(pid_t pid, struct ck_parent *out);

/*
 * SIGKILL for a process and those above it that are this user's, the uppermost first: slurmstepd,
 * which is root's, then ends the rest. For a script that Slurm believes dead.
 */
void ck_parent_end(pid_t pid);

#endif
