/*
 * The end of an srun step, in srun: is the job requeued, and is that said.
 *
 * Two things look for it. An exit handler of srun, which knows its exact exit code and runs before
 * the batch script goes on. And, for programs that are not asked to stop before the time limit, a
 * thread that sleeps until shortly before it: at the limit itself the batch shell dies of its
 * SIGTERM and srun is killed with it, before any handler of srun could run.
 */
#ifndef CK_WATCH_H
#define CK_WATCH_H

#include "jobinfo.h"
#include "start.h"

struct ck_watch {
	struct ck_start start; /* opened; its opts are not used */
	uint32_t step_id;
	bool known;              /* slurmctld answered when the step began */
	struct ck_jobinfo noted; /* the job then; else its id alone */
	int32_t most;            /* --ckpt-requeue */
	uint32_t margin;         /* --ckpt-margin */
	uint32_t over_seconds;   /* OverTimeLimit */
	bool lost_run;           /* the step was refused: the job's run is not there */
	int64_t began;           /* when; set by ck_watch_start */
};

/* Watch this process's step from now on. Copies. Once per process: later calls do nothing. */
void ck_watch_start(const struct ck_watch *watch);

/* Is the job, as it is now, still in the start in which the step began? */
bool ck_watch_same_start(const struct ck_watch *watch, const struct ck_jobinfo *job);

#endif
