/*
 * Everything that decide.h wants to know when a step has ended: from slurmctld and from the run
 * directory, as the user.
 */
#ifndef CK_GATHER_H
#define CK_GATHER_H

#include "decide.h"
#include "watch.h"

struct ck_gathered {
	struct ck_end end;
	struct ck_jobinfo job; /* when end.loaded */
	struct ck_mark mark;   /* what end.mark_reason points to */
	bool has_checkpoint;
};

/*
 * exit_code  srun's; -1: the step runs and the time limit is here
 * What cannot be read counts as not there: the rules then do less.
 */
void ck_gather(const struct ck_io *io, const struct ck_watch *watch, int exit_code,
	       struct ck_gathered *out);

/*
 * Does another step of the job run that holds the newest generation of its run, or, with `any`,
 * another step at all? Runs of the same directory are looked through. Returns its id in *step.
 */
bool ck_gather_other_step(const struct ck_io *io, const struct ck_watch *watch, bool any,
			  uint32_t *step);

#endif
