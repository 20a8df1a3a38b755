/*
 * When does the job end? Asked of Slurm once more before the deadline is acted on, since limits get
 * extended.
 */
#ifndef CK_ENDTIME_H
#define CK_ENDTIME_H

#include <stdint.h>

#include "error.h"

/* A question under way; zeroed: none. */
struct ck_end_time_query {
	int pid; /* of squeue; 0: none */
	int fd;
	unsigned got; /* bytes of text */
	char text[64];
};

/* Start `squeue` for a job. Returns 0; CK_EIO, CK_ENOMEM. */
int ck_end_time_ask(struct ck_end_time_query *query, const char *job_id, struct ck_error *err);

/*
 * Has it answered? Never waits.
 *
 *   end  seconds since 1970; 0: no limit
 * Returns 1 with the answer; 0: not yet; CK_EIO: it failed or said something else. After 1 and
 * CK_EIO the query is over.
 */
int ck_end_time_answer(struct ck_end_time_query *query, int64_t *end, struct ck_error *err);

/* End a question under way, if any. */
void ck_end_time_forget(struct ck_end_time_query *query);

/* What squeue's %e prints with SLURM_TIME_FORMAT=%s: "1700000000\n", "N/A\n". 0 or CK_EIO. Pure. */
int ck_end_time_parse(const char *text, int64_t *end, struct ck_error *err);

#endif
