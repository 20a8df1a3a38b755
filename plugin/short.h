/*
 * Starts that the time limit ends before they have trained for as long as it took to start and to stop
 * them. They commit checkpoints, so the library sees progress, and would go on like this for ever.
 */
#ifndef CK_SHORT_H
#define CK_SHORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io.h"
#include "run.h"

/* So many in a row, and the job is held. */
#define CK_SHORT_MAX 3

/* What is known of one start, newest first. */
struct ck_short_start {
	bool by_limit;   /* it was this job's, and the time limit stopped it */
	int64_t trained; /* seconds from the opening of the run to the save at the stop */
};

/*
 * How many of the newest starts in a row were short. Pure.
 *   overhead  seconds that the newest one has taken beside its training
 *   no_time   the margin is as long as the time limit: there is no other kind of start
 */
unsigned ck_short_count(const struct ck_short_start *starts, size_t count, int64_t overhead,
			bool no_time);

/*
 * The starts of the run in `dir` that `job` had, at most CK_SHORT_MAX. Returns how many; what cannot be
 * read ends the list.
 */
size_t ck_short_load(const struct ck_io *io, const char *dir, const struct ck_job *job,
		     struct ck_short_start out[static CK_SHORT_MAX]);

#endif
