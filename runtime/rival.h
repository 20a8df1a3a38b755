/*
 * Who else has the run open? Under Slurm the plugin has looked before the step began (inuse.h). What came after that is
 * to be seen here: several steps, or several tasks of a step, that each open the run. The first one has it; the others
 * are refused at once, rather than fence each other at their first save.
 */
#ifndef CK_RIVAL_H
#define CK_RIVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "ckpt.h"
#include "error.h"
#include "run.h"
#include "takeover.h"

enum ck_rival {
	CK_RIVAL_NONE = 0,
	CK_RIVAL_TASK, /* of this very step, and not one of our ranks */
	CK_RIVAL_STEP, /* of this job */
	CK_RIVAL_JOB
};

struct ck_rivals {
	const struct ck_claim *owner, *ours; /* both of Slurm jobs, or the answer is NONE */
	enum ck_process process;             /* the owner's */
	bool looked;                         /* as in settings.h */
	uint64_t generation;
	uint32_t tasks;
};

/* Pure. */
enum ck_rival ck_rival_judge(const struct ck_rivals *rivals);

/*
 * Rank 0: claim the run, ck->claim, unless somebody holds it. Of several at once one does.
 * Returns 0; CK_EREFUSED, with who holds it and what to do; CK_ENOENT, CK_EIO, CK_EFORMAT, CK_ENOMEM.
 */
int ck_rival_claim(ckpt *ck, struct ck_error *err);

#endif
