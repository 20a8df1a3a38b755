#include "choose.h"

#include <inttypes.h>
#include <string.h>

#include "buf.h"
#include "parse.h"

int ck_resume_parse(const char *what, const char *text, struct ck_resume *out, struct ck_error *err)
{
	uint64_t step;

	if (strcmp(text, "auto") == 0 || strcmp(text, "fresh") == 0) {
		*out = (struct ck_resume){.mode = *text == 'a' ? CK_RESUME_AUTO : CK_RESUME_FRESH};
		return 0;
	}
	if (ck_parse_u64(what, text, 0, CK_STEP_MAX, &step, NULL))
		return strpbrk(text, "\n\r\t")
			       ? ck_fail(err, CK_EARG,
					 "%s: expected auto, fresh, or the number of a step", what)
			       : ck_fail(err, CK_EARG,
					 "%s: %s: expected auto, fresh, or the number of a step",
					 what, *text ? text : "empty");
	*out = (struct ck_resume){.mode = CK_RESUME_STEP, .step = step};
	return 0;
}

static int fail_no_step(const struct ck_resume *asked, const struct ck_candidate *all, size_t count,
			struct ck_error *err)
{
	struct ck_buf there = CK_BUF_INIT;
	int rc;

	for (size_t i = 0; i < count && i < 8; i++)
		ck_buf_addf(&there, "%s%" PRIu64, i ? ", " : "", all[i].id.step);
	if (count > 8)
		ck_buf_addf(&there, " and %zu more", count - 8);
	rc = ck_fail(err, CK_ENOENT,
		     "step %" PRIu64 " was asked for, and is not there; there are: %s", asked->step,
		     there.data ? there.data : "none");
	ck_buf_fini(&there);
	return rc;
}

int ck_choose(const struct ck_resume *asked, const struct ck_candidate *all, size_t count,
	      struct ck_step_id *out, bool *fresh, struct ck_error *err)
{
	bool any_ours = false;
	int chosen = 0;

	for (size_t i = 0; i < count; i++)
		any_ours = any_ours || all[i].ours;
	*fresh = asked->mode == CK_RESUME_FRESH && !any_ours;
	for (size_t i = 0; i < count && !*fresh; i++) {
		bool take = asked->mode == CK_RESUME_AUTO || all[i].ours ||
			    (asked->mode == CK_RESUME_STEP && all[i].id.step == asked->step);

		if (take)
			out[chosen++] = all[i].id;
	}
	if (asked->mode == CK_RESUME_STEP && chosen == 0)
		return fail_no_step(asked, all, count, err);
	*fresh = chosen == 0;
	return chosen;
}

bool ck_claim_same_job(const struct ck_claim *a, const struct ck_claim *b)
{
	return *a->job.job_id && strcmp(a->job.job_id, b->job.job_id) == 0 &&
	       strcmp(a->job.cluster, b->job.cluster) == 0 && a->submit_time == b->submit_time;
}

bool ck_no_progress(const struct ck_claim *before, size_t count, const struct ck_claim *ours,
		    struct ck_step_id id)
{
	if (count < CK_NO_PROGRESS)
		return false;
	for (size_t i = 0; i < CK_NO_PROGRESS; i++) {
		const struct ck_claim *claim = &before[i];
		bool resumed = strcmp(claim->resume, "resumed") == 0 ||
			       strcmp(claim->resume, "fell-back") == 0;

		if (!resumed || !ck_claim_same_job(claim, ours) ||
		    ck_step_id_cmp(&claim->resumed, &id) != 0)
			return false;
	}
	return true;
}
