/*
 * A start of a job, or of one of its steps: its run is found or made, its newest checkpoint looked
 * up, and the environment of its tasks written down. Runs as the user, never as root.
 */
#ifndef CK_START_H
#define CK_START_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "io.h"
#include "opts.h"
#include "run.h"
#include "token.h"

struct ck_start {
	/* Who starts. */
	char cluster[CK_SHORT_TEXT];
	uint32_t job_id;
	uint32_t array_job, array_task; /* array_job 0: not in an array */
	uint32_t restarts;              /* how often the job has started before */
	bool outside;   /* by srun --jobid from elsewhere: the environment is not the job's */
	int64_t submit; /* seconds since 1970, the same at every restart; 0: unknown */
	int64_t end;    /* time limit; 0: none */
	uint32_t over_seconds; /* how long Slurm lets it run beyond that */

	/* What is wanted. */
	const struct ck_opts *opts;
	char base[PATH_MAX];    /* the directory of runs, absolute */
	bool private_base;      /* its missing parts are made for the user alone (0700), */
	size_t literal;         /* ... and those behind so many bytes must be the user's own */
	bool shared;            /* runs of the user's groups may be continued */
	struct ck_token token;  /* of the submission */
	char job_run[PATH_MAX]; /* a step: run directory of the job as a whole, "" if unknown */

	/*
	 * Slurm counts restarts, but no script of this job has run before. In, of a step: the batch
	 * script's environment says so. Out: or it was found, by ck_start_open.
	 */
	bool first;

	/* What was found, by ck_start_open. */
	char name[CK_RUN_NAME_BYTES]; /* the run's */
	char run[PATH_MAX];           /* <base>/<name> */
	char run_id[CK_RUN_ID_HEX + 1];
	bool looked; /* by srun.c, who owns the run: */
	uint64_t
		generation; /* ... the newest claim is of this one, and its owner is gone; 0: none */
	bool has_resume;
	struct ck_step_id resume; /* newest checkpoint by name */
	bool lost_run;            /* refused: the run of an earlier start is not there */
};

/*
 * Find the run or, when that is no silent fresh start, make it.
 *
 * Returns 0; CK_EREFUSED: the job has run before and its run is missing, the run belongs to another
 * job with this id, or to another user; CK_EARG: no name or path can be made; CK_EIO, CK_EFORMAT, CK_ENOMEM:
 * the directory or its run.json. The text is meant for the job's output.
 */
int ck_start_open(const struct ck_io *io, struct ck_start *start, struct ck_error *err);

/* Make a directory of runs with its parents, as ck_start_open does. Returns 0; CK_EARG; CK_EIO. */
int ck_start_make_base(const struct ck_io *io, const char *dir, bool private_base,
		       struct ck_error *err);

/* Sets a variable of the tasks; value NULL: removes it. Returns 0, or not 0 to stop. */
typedef int ck_start_set(void *arg, const char *name, const char *value);

/* "<cluster>/<job id>/<restart count>" into out. Returns out. */
#define CK_SEAL_BYTES (CK_SHORT_TEXT + 32)
char *ck_start_seal(const struct ck_start *start, char out[static CK_SEAL_BYTES]);

/* Hand every variable of env.h to `set`, those without a value too. Returns what `set` returned. */
int ck_start_env(const struct ck_start *start, ck_start_set *set, void *arg);

/* Remove them all, and CK_ENV_REFUSED. */
int ck_start_env_clear(ck_start_set *set, void *arg);

/* srun's word to its tasks that they must not run, with the reason: "<seal> <text>". */
#define CK_ENV_REFUSED "SLURM_CKPT_REFUSED"
/* We have set SLURM_KILL_BAD_EXIT, so a job submitted from this one must not inherit it. */
#define CK_ENV_KILL_SET "SLURM_CKPT_KILL_BAD_EXIT"
/*
 * When the job was submitted, by sbatch's clock; SLURM_SPANK_ is put in front of it in the job.
 * Slurm's own submit time will not do: it is renewed at every requeue.
 */
#define CK_SUBMITTED "CKPT_SUBMITTED"
/* ... which is CK_ENV_SUBMITTED of env.h */
/* A token's path, see token.h. */
#define CK_TOKEN "CKPT_TOKEN"
#define CK_ENV_TOKEN "SLURM_SPANK_" CK_TOKEN
/* We have arranged that output is appended: Slurm tells the job so in SLURM_OPEN_MODE. */
#define CK_APPENDED "CKPT_APPENDED"
#define CK_ENV_APPENDED "SLURM_SPANK_" CK_APPENDED
/* Slurm's own, which it does not set at all in a first start: then another job's may be there. */
#define CK_ENV_RESTARTS "SLURM_RESTART_COUNT"
/* Set by `ckpt run`: requeueing is its business. */
#define CK_ENV_SUPERVISED "SLURM_CKPT_SUPERVISED"

#endif
