/*
 * Restoring: rank 0 proposes checkpoints, newest first; all ranks try one; the first that is good on
 * all of them is taken. Readers change nothing on disk but their own claim.
 */
#include "restore.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "parse.h"
#include "retry.h"
#include "search.h"

/* The file entries of a rank, as the record they were made from. */
static int add_files(const void *arg, uint32_t rank, struct ck_buf *text, struct ck_error *err)
{
	const struct ck_manifest *m = arg;
	struct ck_record record = {.rank = rank, .step = m->id.step};
	size_t first;

	if (!ck_manifest_rank_files(m, rank, &first, &record.nfiles))
		return ck_fail(err, CK_EFORMAT, "manifest: rank %u has no file", rank);
	strcpy(record.save_id, m->save_id);
	record.files = m->files + first;
	return ck_record_print(&record, text, err);
}

/* Collective: this rank's file entries of the checkpoint proposed. */
static int receive_files(ckpt *ck, const struct ck_search *s, struct ck_record *record,
			 struct ck_error *err)
{
	struct ck_per_rank texts = CK_PER_RANK_INIT;
	void *text = NULL;
	uint64_t bytes = 0;
	int rc = 0;

	if (ck_is_root(ck))
		rc = ck_per_rank_make(&texts, (uint32_t)ck->comm.table.size, add_files,
				      &s->manifest, err);
	rc = ck_comm_agree(&ck->comm, rc, err);
	if (!rc)
		rc = ck_comm_scatter(&ck->comm, 0, &texts, &text, &bytes, err);
	ck_per_rank_fini(&texts);
	if (rc)
		return rc;
	rc = ck_record_parse("manifest entries", text, bytes, record, err);
	free(text);
	return ck_comm_agree(&ck->comm, rc, err);
}

/*
 * Collective: read what each rank stored itself, if that is what each wants. *other: it is not, on one rank at
 * least, and nothing was read.
 */
static int load_own(ckpt *ck, const struct ck_search *s, const struct ck_offer *offer,
		    struct ck_load *load, bool *other, struct ck_error *err)
{
	struct ck_record record = {0};
	uint64_t differs;
	int rc = receive_files(ck, s, &record, err);

	if (rc)
		return rc;
	rc = ck_load_open(ck, offer->dir, &record, load, err);
	differs = rc == CK_EITEM;
	if (ck_comm_allreduce_max(&ck->comm, &differs, 1, err))
		rc = CK_EPEER;
	*other = differs && rc != CK_EPEER;
	if (!*other)
		rc = ck_comm_agree(&ck->comm, rc, err);
	if (!*other && !rc) {
		rc = ck_load_read(ck, &record, offer->level, load, err);
		rc = ck_comm_agree(&ck->comm, rc, err);
	}
	ck_record_fini(&record);
	return *other ? 0 : rc;
}

/* Collective: into the registered memory, or as near to it as can be. */
static int load_offer(ckpt *ck, const struct ck_search *s, const struct ck_offer *offer,
		      struct ck_load *load, struct ck_error *err)
{
	bool other = offer->world_size != (uint32_t)ck->comm.table.size;
	int rc = ck_load_init(ck, load, err);

	rc = ck_comm_agree(&ck->comm, rc, err);
	if (!rc && !other)
		rc = load_own(ck, s, offer, load, &other, err);
	if (!rc && other)
		rc = ck_load_any(ck, offer->dir, &s->manifest, offer->world_size, offer->level,
				 load, err);
	return rc ? rc : ck_load_share(ck, load, err);
}

/* Collective: try the proposed checkpoint. The same answer on all ranks. */
static int try_offer(ckpt *ck, const struct ck_search *s, const struct ck_offer *offer,
		     struct ck_error *err)
{
	struct ck_load load = {0};
	int rc = load_offer(ck, s, offer, &load, err);

	if (!rc) {
		rc = ck_load_hand_over(ck, &load, err);
		rc = ck_comm_agree(&ck->comm, rc, err);
	}
	ck_load_fini(ck, &load);
	return rc;
}

/* Is it not there as it should be, so that an older one may be better? What could not be looked at is not that. */
static bool is_bad(int code)
{
	return code == CK_ENOENT || code == CK_EFORMAT || code == CK_EDIGEST;
}

/* Collective: propose and try one. Returns 0: it is taken (or: fresh); 1: it is refused; a code. */
static int try_next(ckpt *ck, struct ck_search *s, struct ck_offer *offer, struct ck_error *err)
{
	struct ck_error why = CK_ERROR_INIT;
	int rc = ck_is_root(ck) ? ck_search_propose(ck, s, offer, err) : 0;

	if ((rc = ck_comm_agree(&ck->comm, rc, err)) ||
	    (rc = ck_comm_bcast(&ck->comm, 0, offer, sizeof(*offer), err)))
		return rc;
	if (offer->fresh)
		return 0;
	rc = try_offer(ck, s, offer, &why);
	if (!rc)
		return 0;
	if (!is_bad(rc)) {
		*err = why;
		return rc;
	}
	rc = ck_is_root(ck) ? ck_search_refuse(ck, s, rc, &why, err) : 0;
	rc = ck_comm_agree(&ck->comm, rc, err);
	return rc ? rc : 1;
}

/* Alike on all ranks: something could not be looked at, time and again. */
static void explain(struct ck_error *err)
{
	struct ck_error why = *err;

	ck_fail(err, why.code,
		"%s: this does not mean that a checkpoint is bad, so none is passed over: start "
		"again when the cause is gone, or choose an older one with --ckpt-resume=STEP "
		"(ckpt_options.resume)",
		why.text);
}

/* Collective: from proposal to proposal, until one is good. What cannot be looked at is tried again for a while. */
static int find(ckpt *ck, struct ck_search *s, struct ck_offer *offer, struct ck_error *err)
{
	struct ck_retry retry = ck_retry_begin(ck->set.timeout_ms);
	bool told = false;

	for (;;) {
		int rc = try_next(ck, s, offer, err);

		if (rc == 0)
			return 0;
		if (rc == 1) {
			retry = ck_retry_begin(ck->set.timeout_ms);
			continue;
		}
		if (ck_is_unseen(rc) && !told)
			ck_log(ck, "trying again what could not be looked at: %s", err->text);
		told = true;
		if (ck_retry_wait(&retry, rc))
			continue;
		if (ck_is_unseen(rc))
			explain(err);
		return rc;
	}
}

static const char *const choices[] = {
	[CKPT_FRESH] = "fresh",
	[CKPT_RESUMED] = "resumed",
	[CKPT_FELL_BACK] = "fell-back",
	[CKPT_COMPLETE] = "complete",
};

static void say(const ckpt *ck, enum ckpt_restored result, const struct ck_search *s)
{
	const struct ck_manifest *m = &s->manifest;
	char when[32], now[24];

	switch (result) {
	case CKPT_FRESH:
		if (s->nunused)
			ck_log(ck,
			       "fresh, as asked for: %zu older checkpoint%s of this run %s not "
			       "used, in "
			       "%s",
			       s->nunused, ck_plural(s->nunused), s->nunused == 1 ? "is" : "are",
			       ck->set.dir);
		else
			ck_log(ck, "starting afresh: no checkpoint yet in %s", ck->set.dir);
		break;
	case CKPT_RESUMED:
		if (s->foreign) {
			ck_log(ck, "began from step %" PRIu64 " of %s, into %s", m->id.step, s->run,
			       ck->set.dir);
			break;
		}
		snprintf(now, sizeof(now), ", on %d", ck->comm.table.size);
		ck_log(ck, "resumed at step %" PRIu64 ", saved %s by %u rank%s%s, in %s",
		       m->id.step, ck_format_time(m->created, when), m->world_size,
		       ck_plural(m->world_size),
		       m->world_size == (uint32_t)ck->comm.table.size ? "" : now, ck->set.dir);
		break;
	case CKPT_FELL_BACK:
		ck_log(ck, "fell back to step %" PRIu64 ", saved %s: %zu newer refused, in %s",
		       m->id.step, ck_format_time(m->created, when), ck->claim.nrefused,
		       ck->set.dir);
		break;
	case CKPT_COMPLETE:
		ck_log(ck, "complete: this run finished at step %" PRIu64 ", in %s", m->id.step,
		       ck->set.dir);
		break;
	}
}

/* Rank 0: a finished run that starts from an earlier step, or afresh, is not finished any more. */
static void reopen(ckpt *ck)
{
	struct ck_error err = CK_ERROR_INIT;

	ck->run.complete = false;
	if (ck_run_store(ck->io, ck->set.dir, &ck->run, &err))
		ck_log(ck, "warning: %s", err.text);
}

/* Rank 0: a file more in the checkpoint does us no harm, but whoever reads the directory otherwise. */
static void warn_of_stray(ckpt *ck, const struct ck_search *s)
{
	char stray[NAME_MAX + 1], name[CK_NAME_MAX];

	if (ck_step_stray(ck->io, s->run, &s->manifest, stray, NULL) == 0 && *stray)
		ck_log(ck,
		       "warning: %s/%s/%s is not in the manifest, but other readers would load it: "
		       "remove it",
		       s->run, ck_name_step(s->manifest.id, name), stray);
}

/* Rank 0: write down what was chosen; the claim is our own file. */
static void record_choice(ckpt *ck, enum ckpt_restored result, const struct ck_offer *offer,
			  const struct ck_search *s)
{
	struct ck_error err = CK_ERROR_INIT;

	say(ck, result, s);
	if (!offer->fresh)
		warn_of_stray(ck, s);
	strcpy(ck->claim.resume, choices[offer->foreign ? CKPT_FRESH : result]);
	if (!offer->foreign) /* a name of another run says nothing here */
		ck->claim.resumed = offer->id;
	if (ck_claim_store(ck->io, ck->set.dir, &ck->claim, &err))
		ck_log(ck, "warning: %s", err.text);
	ck_note(ck, choices[result], offer->id.step, "");
	if (ck->run.complete && result != CKPT_COMPLETE)
		reopen(ck);
}

/* Rank 0: another number, of the run that we hold. */
static int claim_again(ckpt *ck, struct ck_error *err)
{
	int rc = ck_owner_check(ck->io, ck->set.dir, ck->generation, err);

	ck->claim.time = time(NULL);
	if (!rc)
		rc = ck_claim_take(ck->io, ck->set.dir, &ck->claim, err);
	return rc ? rc : ck_owner_check(ck->io, ck->set.dir, ck->claim.generation, err);
}

/*
 * Collective: who goes back behind what this handle has committed gives those steps up, as a start does that resumes
 * from an older one. So it gets a generation of its own: else a step could not be saved again, and what it gave up
 * would be newer than what comes.
 */
static int begin_time_line(ckpt *ck, const struct ck_offer *offer, struct ck_error *err)
{
	struct ck_step_id last = {.step = ck->saved, .generation = ck->generation};
	uint64_t generation;
	int rc = 0;

	if (!ck->saved_here || (!offer->fresh && ck_step_id_cmp(&offer->id, &last) == 0))
		return 0;
	if (ck_is_root(ck))
		rc = claim_again(ck, err);
	generation = ck->claim.generation;
	if ((rc = ck_comm_agree(&ck->comm, rc, err)) ||
	    (rc = ck_comm_bcast(&ck->comm, 0, &generation, sizeof(generation), err)))
		return rc;
	ck->generation = ck->rotation.generation = generation;
	ck->saved_here = false;
	return 0;
}

/* Whatever this handle has done before, it stands there now; step and time of a fresh start are 0. */
static enum ckpt_restored adopt(ckpt *ck, const struct ck_offer *offer, uint64_t nrefused)
{
	ck->opened_at = ck->last_save_at = ck_now();
	ck->last_call_at = 0; /* the next gap is no step's length */
	ck->step = ck->tried = offer->id.step;
	ck->wall_clock_before = offer->wall_clock_seconds;
	ck->rotation.last_step = ck->rotation.began_at = offer->id.step;
	ck->rotation.pins_known = false;
	ck->saved = offer->id.step;
	ck->has_saved = !offer->fresh && !offer->foreign; /* a foreign one is not saved here yet */
	ck->rotation.protects = ck->has_saved;
	ck->rotation.protected_id = offer->id;
	if (offer->fresh)
		return CKPT_FRESH;
	if (offer->complete)
		return CKPT_COMPLETE;
	return nrefused ? CKPT_FELL_BACK : CKPT_RESUMED;
}

/* Rank 0: what an earlier call refused may be good for the program as it is registered now. */
static void forget_refused(ckpt *ck)
{
	ck_rotation_forget_bad(&ck->rotation);
	for (size_t i = 0; i < ck->claim.nrefused; i++)
		free(ck->claim.refused[i]);
	ck->claim.nrefused = 0;
}

int ck_restore_now(ckpt *ck, enum ckpt_restored *result, struct ck_error *err)
{
	struct ck_search search = {.reasons = CK_BUF_INIT};
	struct ck_offer offer = {0};
	uint64_t nrefused;
	int rc = ck_deal_refresh(ck, err);

	if (rc)
		return rc;
	if (ck_is_root(ck))
		forget_refused(ck);
	rc = find(ck, &search, &offer, err);
	if (!rc)
		rc = begin_time_line(ck, &offer, err);
	nrefused = search.nrefused;
	if (!rc)
		rc = ck_comm_bcast(&ck->comm, 0, &nrefused, sizeof(nrefused), err);
	if (!rc) {
		*result = adopt(ck, &offer, nrefused);
		if (ck_is_root(ck))
			record_choice(ck, *result, &offer, &search);
	}
	ck_search_fini(&search);
	return rc;
}
