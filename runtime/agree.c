#include "agree.h"

#include <inttypes.h>

/* The words of the reduction. The largest of ~step tells the smallest step. */
enum word { WORD_URGE, WORD_STEP_US, WORD_STEP, WORD_NOT_STEP };

int ck_agreement_init(struct ck_agreement *agreement, struct ck_error *err)
{
	*agreement = (struct ck_agreement){.pace = ck_pace_for(0), .last_step = UINT64_MAX};
	agreement->parcel = ck_parcel_new(2 * CK_AGREE_WORDS * sizeof(uint64_t));
	return agreement->parcel ? 0 : ck_fail_nomem(err, sizeof(*agreement->parcel));
}

void ck_agreement_fini(struct ck_comm *comm, struct ck_agreement *agreement)
{
	if (agreement->parcel)
		ck_parcel_free(comm, agreement->parcel);
	agreement->parcel = NULL;
}

static int post(struct ck_comm *comm, struct ck_agreement *agreement, uint64_t step, uint64_t urge,
		uint64_t step_us, struct ck_error *err)
{
	uint64_t *in = (uint64_t *)agreement->parcel->data;

	in[WORD_URGE] = urge;
	in[WORD_STEP_US] = step_us;
	in[WORD_STEP] = step;
	in[WORD_NOT_STEP] = ~step;
	agreement->since_post = 0;
	agreement->under_way = true;
	return ck_parcel_reduce(comm, agreement->parcel, CK_AGREE_WORDS, err);
}

/* Wait for the reduction under way; set the pace from it. */
static int complete(struct ck_comm *comm, struct ck_agreement *agreement, uint64_t *decided,
		    struct ck_error *err)
{
	const uint64_t *out = (uint64_t *)agreement->parcel->data + CK_AGREE_WORDS;
	int rc = ck_parcels_wait(comm, &agreement->parcel, 1, comm->timeout_ms, "ckpt_step", err);

	agreement->under_way = false;
	if (rc)
		return rc;
	if (out[WORD_STEP] != ~out[WORD_NOT_STEP])
		return ck_fail(err, CK_EARG,
			       "ckpt_step: ranks are at different steps, %" PRIu64 " to %" PRIu64
			       ": all must call it equally often, with the same number",
			       ~out[WORD_NOT_STEP], out[WORD_STEP]);
	if (out[WORD_STEP_US])
		agreement->pace = ck_pace_for(out[WORD_STEP_US]);
	if (out[WORD_URGE] > *decided)
		*decided = out[WORD_URGE];
	return 0;
}

int ck_agreement_step(struct ck_comm *comm, struct ck_agreement *agreement, uint64_t step,
		      uint64_t urge, uint64_t step_us, uint64_t *decided, struct ck_error *err)
{
	bool again = step == agreement->last_step;
	int rc;

	*decided = 0;
	agreement->last_step = step;
	agreement->since_post++;
	if (agreement->under_way && (rc = complete(comm, agreement, decided, err)))
		return rc;
	if (!again && agreement->since_post < agreement->pace.every)
		return 0;
	if ((rc = post(comm, agreement, step, urge, step_us, err)))
		return rc;
	return agreement->pace.same_call ? complete(comm, agreement, decided, err) : 0;
}

int ck_agreement_drain(struct ck_comm *comm, struct ck_agreement *agreement, struct ck_error *err)
{
	uint64_t decided = 0;

	return agreement->under_way ? complete(comm, agreement, &decided, err) : 0;
}
