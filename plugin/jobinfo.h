/*
 * What slurmctld knows of a job, and the one thing we ask of it. Only this and nodeinfo.h call libslurm.
 *
 * Its functions come from the process that loads the plugin (srun, slurmstepd). Each call is a
 * round trip to slurmctld as the user who makes it; Slurm's own MessageTimeout bounds it.
 */
#ifndef CK_JOBINFO_H
#define CK_JOBINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "comment.h"
#include "decide.h"
#include "error.h"
#include "manifest.h"

#define CK_NO_TASK UINT32_MAX

struct ck_jobinfo {
	uint32_t job_id;
	uint32_t array_job;  /* 0: not in an array */
	uint32_t array_task; /* CK_NO_TASK: not in an array */
	uint32_t het_job;    /* id of the leader, 0: not heterogeneous */
	uint32_t restarts;
	int64_t start, submit; /* seconds since 1970; Slurm renews both at a requeue */
	int64_t end;           /* 0: no limit */
	int64_t preempted;     /* 0: not being preempted */
	enum ck_job_state state;
	bool completing; /* its processes are being ended */
	bool batch;
	bool may_requeue;
	char name[CK_SHORT_TEXT];
	char partition[CK_SHORT_TEXT];
	char comment[CK_COMMENT_BYTES];
};

/* Returns 0; CK_ENOENT: no such job; CK_EIO: slurmctld did not answer (text: Slurm's words). */
int ck_jobinfo_load(uint32_t job_id, struct ck_jobinfo *out, struct ck_error *err);

/* The cluster's name, where the environment does not tell it. Returns 0 or CK_EIO. */
int ck_jobinfo_cluster(char out[static CK_SHORT_TEXT], struct ck_error *err);

/* Are other users' jobs not shown to this one (PrivateData=jobs)? True when that is not known. */
bool ck_jobinfo_hides_others(void);

/*
 * Requeue the job: an array element alone, a heterogeneous job through its leader. That it is
 * pending already is success. A job that was running when it was loaded, and is not any more (it was
 * cancelled), is left alone, which is success too.
 * Returns 0; CK_EREFUSED: Slurm will not; CK_EIO: no answer, it may have been heard or not.
 */
int ck_jobinfo_requeue(const struct ck_jobinfo *job, struct ck_error *err);

/*
 * Requeue it held, with the reason behind its comment (comment.h), until somebody releases it.
 * Returns as ck_jobinfo_requeue.
 */
int ck_jobinfo_requeue_held(const struct ck_jobinfo *job, const char *reason, struct ck_error *err);

/*
 * From 24.05 on, slurmctld requeues a job by itself when its batch script ends within the grace time
 * of a preemption. Then that is the way to take: after a requeue of ours it would keep the note and
 * requeue the next start as well, when it has finished. Returns 1 when this release and the job's
 * partition do so; 0 when not, or with a QOS; CK_EIO: no answer. [job_mgr.c: job_complete, GRACE_PREEMPT]
 */
int ck_jobinfo_grace_requeues(const struct ck_jobinfo *job);

/* Set the job to Requeue=0, as --no-requeue does. Returns 0 or CK_EIO. */
int ck_jobinfo_forbid_requeue(const struct ck_jobinfo *job, struct ck_error *err);

/*
 * End the job as FAILED with this exit code, whatever its script would return; Slurm then ends its
 * processes as those of a cancelled job. Returns as ck_jobinfo_requeue.
 */
int ck_jobinfo_end(const struct ck_jobinfo *job, int exit_code, struct ck_error *err);

/*
 * How long the job may run beyond its time limit before Slurm ends it, in seconds: OverTimeLimit of its
 * partition, else of slurm.conf. 0 without an answer.
 */
#define CK_OVER_UNLIMITED (365 * 86400U)
uint32_t ck_jobinfo_over_seconds(const struct ck_jobinfo *job);

/* Signal the batch script alone. Returns 0 or CK_EIO. */
int ck_jobinfo_signal_batch(const struct ck_jobinfo *job, int signal, struct ck_error *err);

#define CK_STEPS_MAX 256

/*
 * Ids of the srun steps that the job has now, at most CK_STEPS_MAX: not the batch script, the
 * extern or the interactive step. Returns 0 or CK_EIO.
 */
int ck_jobinfo_steps(uint32_t job_id, uint32_t steps[static CK_STEPS_MAX], size_t *count,
		     struct ck_error *err);

#endif
