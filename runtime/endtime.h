/*
 * When does the job end? Asked of Slurm once more before the deadline is acted on, since limits get
 * extended.
 */
#ifndef CK_ENDTIME_H
#define CK_ENDTIME_H

#include <stdint.h>

#include "error.h"

/*
 * Ask `squeue` for a job's end time; takes at most `timeout_ms`.
 *
 *   end  seconds since 1970; 0: no limit
 * Returns 0; CK_EIO: squeue is not there, fails, is too slow, or says something else. Starts a process.
 */
int ck_end_time_ask(const char *job_id, unsigned timeout_ms, int64_t *end, struct ck_error *err);

/* What squeue's %e prints with SLURM_TIME_FORMAT=%s: "1700000000\n", "N/A\n". 0 or CK_EIO. Pure. */
int ck_end_time_parse(const char *text, int64_t *end, struct ck_error *err);

#endif
