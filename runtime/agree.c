#include "agree.h"

#include <inttypes.h>

/* The words of the reduction. The largest of ~step tells the smallest step. */
enum word { WORD_URGE, WORD_RESULT, WORD_STEP_US, WORD_STEP, WORD_NOT_STEP };

int ck_agreement_init(struct ck_agreement *agreement, struct ck_error *err)
{
	*agreement = (struct ck_agreement){.pace = CK_PACE_FIRST, .last_step = UINT64_MAX};
	agreement->parcel = ck_parcel_new(2 * CK_AGREE_WORDS * sizeof(uint64_t));
	return agreement->parcel ? 0 : ck_fail_nomem(err, sizeof(*agreement->parcel));
}

void ck_agreement_fini(struct ck_comm *comm, struct ck_agreement *agreement)
{
	if (agreement->parcel)
		ck_parcel_free(comm, agreement->parcel);
	agreement->parcel = NULL;
}

static int post(struct ck_comm *comm, struct ck_agreement *agreement, uint64_t step,
		uint64_t step_us, const struct ck_say *mine, struct ck_error *err)
{
	uint64_t *in = (uint64_t *)agreement->parcel->data;

	in[WORD_URGE] = mine->urge;
	in[WORD_RESULT] = mine->result;
	in[WORD_STEP_US] = step_us;
	in[WORD_STEP] = step;
	in[WORD_NOT_STEP] = ~step;
	agreement->since_post = 0;
	agreement->under_way = true;
	return ck_parcel_reduce(comm, agreement->parcel, CK_AGREE_WORDS, err);
}

int ck_agreement_collect(struct ck_comm *comm, struct ck_agreement *agreement, struct ck_say *said,
			 struct ck_error *err)
{
	const uint64_t *out = (uint64_t *)agreement->parcel->data + CK_AGREE_WORDS;
	int rc;

	*said = (struct ck_say){0};
	if (!agreement->under_way)
		return 0;
	rc = ck_parcels_wait(comm, &agreement->parcel, 1, comm->timeout_ms, "ckpt_step", err);
	agreement->under_way = false;
	if (rc)
		return rc;
	if (out[WORD_STEP] != ~out[WORD_NOT_STEP])
		return ck_fail(err, CK_EARG,
			       "ckpt_step: ranks are at different steps, %" PRIu64 " to %" PRIu64
			       ": all must call it equally often, with the same number",
			       ~out[WORD_NOT_STEP], out[WORD_STEP]);
	agreement->pace = ck_pace_next(&agreement->pace, out[WORD_STEP_US]);
	*said = (struct ck_say){.urge = out[WORD_URGE], .result = out[WORD_RESULT]};
	return 0;
}

bool ck_agreement_due(const struct ck_agreement *agreement, uint64_t step)
{
	return step == agreement->last_step || agreement->since_post + 1 >= agreement->pace.every;
}

int ck_agreement_post(struct ck_comm *comm, struct ck_agreement *agreement, uint64_t step,
		      uint64_t step_us, const struct ck_say *mine, struct ck_say *said,
		      struct ck_error *err)
{
	bool due = ck_agreement_due(agreement, step);
	int rc;

	*said = (struct ck_say){0};
	agreement->last_step = step;
	agreement->since_post++;
	if (!due)
		return 0;
	if ((rc = post(comm, agreement, step, step_us, mine, err)))
		return rc;
	return agreement->pace.same_call ? ck_agreement_collect(comm, agreement, said, err) : 0;
}
