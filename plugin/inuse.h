/*
 * Is a run in use by somebody else when a step of ours begins? Pure; srun.c looks things up.
 *
 * A chain of jobs may continue one run: an owner that has ended, or only waits, is superseded without
 * questions; one that runs is not, nor one of which that cannot be told.
 */
#ifndef CK_INUSE_H
#define CK_INUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decide.h"
#include "run.h"

/* What slurmctld says of the claim's job. */
enum ck_answer {
	CK_ANSWER_JOB = 0, /* state, owner_restarts and steps below count */
	CK_ANSWER_NO_JOB,  /* there is none any more */
	CK_ANSWER_HIDDEN, /* there is none that we may see, and it is another user's (PrivateData) */
	CK_ANSWER_NONE    /* it did not answer */
};

struct ck_owner {
	const struct ck_claim *claim; /* of the newest generation */
	/* Who begins. */
	const char *cluster;
	uint32_t job_id, restarts, step_id;
	/* The claim's job as slurmctld knows it. */
	enum ck_answer answer;
	enum ck_job_state state;
	uint32_t owner_restarts;
	bool steps_known;
	const uint32_t *steps; /* its srun steps now */
	size_t nsteps;
};

enum ck_holding {
	CK_HOLDING_NONE = 0,     /* the owner is gone, waits, or is this step */
	CK_HOLDING_SAME_JOB,     /* another step of our job runs */
	CK_HOLDING_OTHER_JOB,    /* a step of another job runs */
	CK_HOLDING_UNKNOWN,      /* slurmctld did not answer */
	CK_HOLDING_HIDDEN,       /* another user's, and such jobs are not shown */
	CK_HOLDING_OTHER_CLUSTER /* nobody here can be asked */
};

/* The number in claim->job.job_id; 0: a claim from outside of Slurm. */
uint32_t ck_owner_job(const struct ck_claim *claim);

enum ck_holding ck_owner_holding(const struct ck_owner *owner);

/*
 * Why the run is not taken, for the job's output. `run` is its directory; `why`: Slurm's words for
 * CK_HOLDING_UNKNOWN. Returns CK_EREFUSED, or 0 for CK_HOLDING_NONE.
 */
int ck_owner_refuse(const struct ck_owner *owner, const char *run, const char *why,
		    struct ck_error *err);

#endif
