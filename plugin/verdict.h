/*
 * Did a step end because it lost a node? Pure.
 *
 * A node that dies takes its tasks with it, and somebody notices first: slurmctld, which calls the
 * node down after SlurmdTimeout and requeues the job; or the MPI library of the other ranks, which
 * ends them at once (Open MPI 5 with exit code 14), long before slurmctld knows. Then srun ends with
 * a failed step while slurmctld still has that step in its list, since a node has not reported the end
 * of its tasks. That is what this looks at; the step of an ordinary crash leaves the list within
 * milliseconds.
 *
 *   1. The job is no longer as it was: Slurm has decided.
 *   2. Every node has reported: none is lost.
 *   3. A node is down and Slurm lets the job go on: --no-kill, the script is to handle it.
 *   4. A node was booted, or its slurmd started, after the step: its tasks are gone.
 *   5. A node does not answer, us or slurmctld: Slurm decides, within SlurmdTimeout.
 *   6. All nodes answer: the step only takes its time.
 */
#ifndef CK_VERDICT_H
#define CK_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decide.h"

#define CK_NODE_NAME 256

/* How long a step may take to leave slurmctld's list before its nodes are asked. */
#define CK_REPORT_MS 1000
/* And before, with all nodes up, nobody waits for it any more. */
#define CK_PATIENCE_MS 5000
/* A slurmd that was restarted without harm has its steps go on, and they report. */
#define CK_RESTARTED_MS 15000
/* slurmctld kills the jobs of a node as it sets it down: what it leaves for so long, it leaves. */
#define CK_DOWN_MS 10000
/* How long after SlurmdTimeout slurmctld may need: it looks every third of it, and tries again. */
#define CK_DECIDE_MARGIN_S 60

struct ck_node {
	char name[CK_NODE_NAME];
	char addr[CK_NODE_NAME];
	uint16_t port;        /* of its slurmd */
	bool answers;         /* its slurmd answers us */
	bool not_responding;  /* slurmctld has marked it so */
	bool down;            /* slurmctld has set it down */
	int64_t boot, slurmd; /* when it was booted, when its slurmd started; its own clock */
};

struct ck_look {
	bool loaded;  /* the job could be looked up */
	bool changed; /* not running any more, or requeued */

	bool steps_known, listed; /* slurmctld's list of steps has ours */
	int64_t began;            /* the step's start */
	int64_t waited_ms;        /* since srun's end */
	int64_t down_ms;          /* since a node was first seen down */
	uint32_t slurmd_timeout;  /* in seconds; 0: slurmctld never sets a node down */

	const struct ck_node *nodes; /* NULL: not asked yet */
	size_t count;
};

enum ck_verdict {
	CK_VERDICT_ASK = 0, /* look at the nodes, then ask again */
	CK_VERDICT_WAIT,    /* a moment, and look again */
	CK_VERDICT_AWAIT,   /* the same, for Slurm's decision, which may take minutes */
	CK_VERDICT_CHANGED, /* Slurm has decided: decide on the job as it is now */
	CK_VERDICT_HEALTHY, /* an ordinary crash */
	CK_VERDICT_LOST,    /* a node failure, and Slurm does not requeue the job */
	CK_VERDICT_KEPT     /* a node failure, and the user wants the job to go on */
};

/* `which`: the node it is about; NULL: none, or, with AWAIT, slurmctld, which does not answer. */
enum ck_verdict ck_verdict(const struct ck_look *look, const struct ck_node **which);

/* Seconds that Slurm may take to decide on a node that does not answer. */
uint32_t ck_verdict_seconds(uint32_t slurmd_timeout);

#endif
