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

#define CK_AGREE_WORDS 5

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

/* What a rank says in an agreement; what came out: the largest of each. */
struct ck_say {
	uint64_t urge;   /* what it wants: ck_urge_pack */
	uint64_t result; /* what ended: ck_save_result */
};

/*
 * The beginning of a call of ckpt_step: collect the reduction that an earlier call posted, if any.
 * Collective, as all of them. Returns 0 with what was said (zeros when nothing ended); CK_EARG when
 * the ranks gave different steps; CK_EPEER.
 */
int ck_agreement_collect(struct ck_comm *comm, struct ck_agreement *agreement, struct ck_say *said,
			 struct ck_error *err);

/* Is it the turn of this call: will ck_agreement_post look at what the rank says? Alike on all ranks. */
bool ck_agreement_due(const struct ck_agreement *agreement, uint64_t step);

/*
 * The end of the call: post what this rank says now, if it is the turn of this call; with long steps, collect it
 * too.
 *
 *   step     number of completed steps, the same on all ranks
 *   step_us  longest of this rank's recent steps, 0 if unknown
 * Returns as collect.
 */
int ck_agreement_post(struct ck_comm *comm, struct ck_agreement *agreement, uint64_t step,
		      uint64_t step_us, const struct ck_say *mine, struct ck_say *said,
		      struct ck_error *err);

#endif
