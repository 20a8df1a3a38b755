/*
 * Is a run in use by somebody else when a step of ours begins? Pure; srun.c looks things up.
 *
 * A chain of jobs may continue one run: an owner that has ended, or only waits, is superseded without
 * questions; one that runs is not.
 */
#ifndef CK_INUSE_H
#define CK_INUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decide.h"
#include "run.h"

struct ck_owner {
	const struct ck_claim *claim; /* of the newest generation */
	/* Who begins. */
	const char *cluster;
	uint32_t job_id, restarts, step_id;
	/* The claim's job as slurmctld knows it. */
	bool loaded; /* false: no such job any more, or no answer */
	enum ck_job_state state;
	uint32_t owner_restarts;
	const uint32_t *steps; /* its srun steps now */
	size_t nsteps;
};

/* The number in claim->job.job_id; 0: a claim from outside of Slurm. */
uint32_t ck_owner_job(const struct ck_claim *claim);

/* True: the owner's step runs now, and is another one than ours. */
bool ck_owner_runs(const struct ck_owner *owner);

#endif
