/*
 * Who starts and where its run lies, from slurmctld's word and from an environment: that of srun,
 * or the one slurmstepd has ready for the batch script. Runs as the user.
 */
#ifndef CK_BEGIN_H
#define CK_BEGIN_H

#include "jobinfo.h"
#include "site.h"
#include "start.h"

/* Value of a variable in "NAME=value" strings ended by NULL; NULL when it is not there or empty. */
const char *ck_begin_getenv(char *const *env, const char *name);

/*
 * Fill what `start` needs before ck_start_open.
 *   start    in: job_id, opts and outside
 *   job      from ck_jobinfo_load; all zero when slurmctld did not answer
 *   surprise out: the directory is one that nobody has named
 * Returns 0; CK_EARG, CK_EIO: no directory can be made out.
 */
int ck_begin(struct ck_start *start, const struct ck_site *site, const struct ck_jobinfo *job,
	     char *const *env, bool *surprise, struct ck_error *err);

/*
 * What the batch script's environment has, if that is sealed for this start: the job's run, and
 * whether this is the first start of its script (CK_ENV_FIRST).
 */
void ck_begin_job_run(struct ck_start *start, const char *seal, const char *run, const char *first);

/* "<seal> <text>" for CK_ENV_REFUSED. */
#define CK_REFUSED_BYTES (CK_SEAL_BYTES + CK_ERROR_TEXT + 2)
char *ck_begin_refusal(const struct ck_start *start, const char *text,
		       char out[static CK_REFUSED_BYTES]);

/* The text in such a value if it is for this job, else NULL. */
const char *ck_begin_refused(const char *value, uint32_t job_id);

#endif
