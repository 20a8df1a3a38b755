/*
 * The agreement of ckpt_step: one small non-blocking reduction now and then, so that every rank takes
 * the same decision at the same call.
 *
 * A reduction is posted at every n-th call, and at each call that repeats the step number of the call before
 * (an evaluation); n and the moment of completion follow from what earlier reductions agreed on
 * (pace.h). So ranks never post different counts, whatever each of them sees.
 */
#ifndef CK_AGREE_H
#define CK_AGREE_H

#include <stdbool.h>
#include <stdint.h>

#include "comm.h"
#include "error.h"
#include "pace.h"

#define CK_AGREE_WORDS 4

struct ck_agreement {
	struct ck_parcel *parcel; /* of the reduction */
	bool under_way;
	struct ck_pace pace;
	uint64_t since_post; /* calls since the last posting */
	uint64_t last_step;
};

/* Returns 0 or CK_ENOMEM. */
int ck_agreement_init(struct ck_agreement *agreement, struct ck_error *err);
void ck_agreement_fini(struct ck_comm *comm, struct ck_agreement *agreement);

/*
 * One call of ckpt_step. Collective in the sense above.
 *
 *   step     number of completed steps, the same on all ranks
 *   urge     what this rank wants (ck_urge_pack)
 *   step_us  how long its last step took, 0 if unknown
 *   decided  out: the largest urge of all ranks, when a reduction ended in this call; else 0
 * Returns 0; CK_EARG when the ranks gave different steps; CK_EPEER.
 */
int ck_agreement_step(struct ck_comm *comm, struct ck_agreement *agreement, uint64_t step,
		      uint64_t urge, uint64_t step_us, uint64_t *decided, struct ck_error *err);

/* Complete a reduction under way, so that the communicator is free of it. Collective. 0 or CK_EPEER. */
int ck_agreement_drain(struct ck_comm *comm, struct ck_agreement *agreement, struct ck_error *err);

#endif
