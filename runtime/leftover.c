#include "leftover.h"

#include <inttypes.h>

#include "commit.h"
#include "retry.h"

static int salvage_once(ckpt *ck, bool *unknown, struct ck_error *err)
{
	struct ck_salvaged salvaged;
	int rc = ck_salvage(ck->io, ck->set.dir, ck->generation, &salvaged, err);

	for (size_t i = 0; i < salvaged.count; i++)
		ck_log(ck,
		       "salvaged step %" PRIu64
		       ": its save was complete, only the commit was missing",
		       salvaged.steps[i].step);
	if (salvaged.nlost)
		ck_log(ck,
		       "the save of step %" PRIu64
		       " had begun and was not complete when the program "
		       "ended: it is lost. A program that ends by itself calls ckpt_close first",
		       salvaged.lost.step);
	if (salvaged.count)
		ck->run.committed = true;
	*unknown = salvaged.unknown;
	ck_salvaged_fini(&salvaged);
	return rc;
}

/* Who goes on without a save that may be the newest state there is gives it up, which is for the user to say. */
int ck_leftover_salvage(ckpt *ck, struct ck_error *err)
{
	struct ck_retry retry = ck_retry_begin(ck->set.timeout_ms);
	struct ck_error trouble = CK_ERROR_INIT;
	bool unknown = false;
	int rc;

	do
		rc = salvage_once(ck, &unknown, &trouble);
	while (unknown && ck_retry_wait(&retry, rc));
	if (!rc)
		return 0;
	if (unknown && ck_is_unseen(rc) && ck->set.resume.mode == CK_RESUME_AUTO)
		return ck_fail(err, rc,
			       "%s: this was saved by an earlier start, and cannot be completed or "
			       "looked at: start again when the cause is gone, or go back to an "
			       "older checkpoint with --ckpt-resume=STEP (ckpt_options.resume)",
			       trouble.text);
	ck_log(ck, "warning: what an earlier start left could not be salvaged: %s", trouble.text);
	return 0;
}
