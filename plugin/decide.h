/*
 * Shall the job be requeued, now that one of its srun steps has ended? Pure.
 *
 * The rules, first one that applies:
 *   1. The training is done, was told to stop, or ended by itself: there is no work left. Or it
 *      goes round in circles: then it is held, for somebody to look.
 *   2. Slurm has a say: a cancelled job stays cancelled, a job that already starts again is left
 *      alone, an interactive one cannot be requeued.
 *   3. The limits: --ckpt-requeue, and a bound on starts that lead nowhere.
 */
#ifndef CK_DECIDE_H
#define CK_DECIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "run.h"

#define CK_EXIT_REQUEUE 75 /* a program's "I have saved, requeue me" */
#define CK_EXIT_REFUSED 78 /* a task that must not run (sysexits: a matter of configuration) */

/* Starts without a new checkpoint (or, without the library, starts at all) before we give up. */
#define CK_FRUITLESS_MAX 20

enum ck_job_state {
	CK_JOB_RUNNING = 0,
	CK_JOB_TIMEOUT,
	CK_JOB_CANCELLED,
	CK_JOB_PREEMPTED, /* by cancelling, not by requeueing it */
	CK_JOB_PENDING,   /* requeued by somebody else */
	CK_JOB_ENDED      /* completed, failed, ... */
};

/* Of a step that has failed: has it lost a node? */
enum ck_nodes {
	CK_NODES_UNKNOWN = 0, /* not looked at yet */
	CK_NODES_HEALTHY,
	CK_NODES_LOST, /* a node failure */
	CK_NODES_KEPT  /* a node failure, of a job that Slurm lets go on: --no-kill */
};

struct ck_end {
	/* The job when the step began, and now. */
	bool loaded;    /* false: the job could not be looked up at the end, */
	bool forgotten; /* since slurmctld knows no such job */
	uint32_t restarts_noted, restarts;
	int64_t start_noted, start; /* start_noted 0: not known */
	enum ck_job_state state;
	bool batch;       /* not salloc, not srun alone */
	bool may_requeue; /* the job's Requeue flag */

	/* The step. */
	int exit_code; /* srun's; -1 while it runs */
	enum ck_nodes nodes;
	const char *lost;  /* with LOST and KEPT: the node's name */
	bool at_limit;     /* it still runs and the time limit is here */
	bool has_mark;     /* the library left word for exactly this step */
	enum ck_want want; /* of the mark */
	uint64_t mark_step;
	const char *mark_reason; /* of the mark */
	bool lost_run;           /* refused: the run that an earlier start has used is not there */
	bool superseded;         /* another job, or another start, has opened the run since */
	bool library;            /* a program with the library opened the run in this job's steps */
	unsigned short_starts;   /* of short.h, with this one the newest */
	int64_t limit;           /* of the job, in seconds; 0: none */
	uint32_t margin;         /* --ckpt-margin */
	uint64_t fruitless;      /* generations since the one of the newest checkpoint */
	bool complete;           /* the run is finished, */
	uint64_t complete_step;  /* at this step */

	int32_t most;    /* --ckpt-requeue: how often at most, 0 no, CK_REQUEUE_AUTO */
	bool supervised; /* `ckpt run` decides */
};

enum ck_end_action {
	CK_END_NOTHING = 0,    /* and there is nothing to say */
	CK_END_SAY,            /* not requeued, and the user should know why */
	CK_END_FORBID,         /* the same, by a limit or the user's wish: nor is Slurm to */
	CK_END_LOOK,           /* it failed: look at its nodes, then decide */
	CK_END_ASK,            /* look the job up again: it matters, and slurmctld did not answer */
	CK_END_WAIT,           /* it is requeued already: let no more of the script run */
	CK_END_RESUME_BY_HAND, /* an interactive job with work left */
	CK_END_REQUEUE,
	CK_END_HOLD, /* requeue it held: it made no progress */
	CK_END_FAIL  /* end it as failed: its script is not to go on, and to call it done */
};

#define CK_END_REASON 320

/* `reason`: why, for "ckpt: requeueing: <reason>" or "ckpt: not requeued: <reason>". */
enum ck_end_action ck_end_decide(const struct ck_end *end, char reason[static CK_END_REASON]);

#endif
