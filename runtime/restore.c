/*
 * Restoring: rank 0 proposes checkpoints, newest first; all ranks try one; the first that is good on
 * all of them is taken. Readers change nothing on disk but their own claim.
 */
#include "restore.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rank 0's proposal, as it goes to the others. */
struct offer {
	bool fresh;    /* nothing to load */
	bool complete; /* the run had finished */
	struct ck_step_id id;
	enum ck_level level;
	double wall_clock_seconds;
};

/* Rank 0's search. */
struct search {
	struct ck_catalog catalog;
	size_t next;                 /* the candidate to propose */
	struct ck_manifest manifest; /* of the one proposed */
	bool has_manifest;
	struct ck_buf reasons; /* of those refused, for the final error */
	int reason_code;       /* the first reason's */
};

static void search_fini(struct search *s)
{
	ck_catalog_fini(&s->catalog);
	ck_buf_fini(&s->reasons);
	if (s->has_manifest)
		ck_manifest_fini(&s->manifest);
}

/* Rank 0: is there anything to resume from, and may we start afresh when not? */
static int search_begin(ckpt *ck, struct search *s, struct ck_error *err)
{
	int rc = ck_catalog_load(ck->io, ck->set.dir, &s->catalog, err);

	if (rc || s->catalog.count || !ck->run.committed)
		return rc;
	return ck_fail(
		err, CK_ENOENT,
		"%s: this run has committed checkpoints, and none is there now: is the file system "
		"mounted? To start over, use an empty directory or another name",
		ck->set.dir);
}

/* Remember "step-…: why" in the claim. */
static int add_refused(struct ck_claim *claim, struct ck_buf *text, struct ck_error *err)
{
	size_t bytes = (claim->nrefused + 1) * sizeof(*claim->refused);
	int rc = ck_buf_check(text, err);
	char **more;

	if (rc)
		return rc;
	more = realloc(claim->refused, bytes);
	if (!more)
		return ck_fail_nomem(err, bytes);
	claim->refused = more;
	more[claim->nrefused++] = text->data;
	*text = (struct ck_buf)CK_BUF_INIT;
	return 0;
}

/* Rank 0: a candidate is bad; go on to the next. */
static int refuse(ckpt *ck, struct search *s, int code, const struct ck_error *why,
		  struct ck_error *err)
{
	struct ck_step_id id = s->catalog.steps[s->next++];
	char name[CK_NAME_MAX];
	struct ck_buf text = CK_BUF_INIT;
	int rc;

	ck_buf_addf(&text, "%s: %s", ck_name_step(id, name), why->text);
	ck_buf_addf(&s->reasons, "%s%s: %s", s->reasons.len ? "; " : "", name, why->text);
	if (!s->reason_code)
		s->reason_code = code;
	ck_log(ck, "refused step %" PRIu64 ": %s", id.step, why->text);
	ck_note(ck, "refused", id.step, why->text);
	rc = add_refused(&ck->claim, &text, err);
	ck_buf_fini(&text);
	return rc ? rc : ck_rotation_mark_bad(&ck->rotation, id, err);
}

/* Does the checkpoint fit this program? Not a reason to take an older one. */
static int fits(const ckpt *ck, const struct ck_manifest *m, struct ck_error *err)
{
	char name[CK_NAME_MAX];

	ck_name_step(m->id, name);
	if (m->world_size != (uint32_t)ck->comm.table.size)
		return ck_fail(err, CK_EWORLD,
			       "%s/%s: saved by %u ranks, this job has %d: start it with %u ranks "
			       "(another "
			       "world size is not supported yet)",
			       ck->set.dir, name, m->world_size, ck->comm.table.size,
			       m->world_size);
	if (strcmp(m->run_id, ck->run.run_id) != 0)
		return ck_fail(err, CK_EREFUSED, "%s/%s: belongs to run %s, this is run %s",
			       ck->set.dir, name, m->run_id, ck->run.run_id);
	return ck_items_compare(&m->items, &ck->dealt.deal.table, err);
}

/* A reload within the same start of the same job: the bytes have been verified while written. */
static enum ck_level level_for(const ckpt *ck, const struct ck_manifest *m)
{
	const struct ck_job *ours = &ck->set.job, *theirs = &m->job;
	bool warm = *ours->job_id && strcmp(ours->job_id, theirs->job_id) == 0 &&
		    strcmp(ours->cluster, theirs->cluster) == 0 &&
		    ours->restart_count == theirs->restart_count;

	return warm ? CK_LEVEL_CRC32 : CK_LEVEL_SHA256;
}

/* Rank 0: propose the next candidate whose manifest can be read, or say that there is none. */
static int propose(ckpt *ck, struct search *s, struct offer *offer, struct ck_error *err)
{
	struct ck_error why = CK_ERROR_INIT;
	int rc;

	if (s->has_manifest)
		ck_manifest_fini(&s->manifest);
	s->has_manifest = false;
	*offer = (struct offer){.fresh = s->catalog.count == 0};
	if (offer->fresh)
		return 0;
	while (s->next < s->catalog.count) {
		rc = ck_step_load(ck->io, ck->set.dir, s->catalog.steps[s->next], &s->manifest,
				  &why);
		if (!rc)
			break;
		if (rc == CK_ENOMEM || (rc = refuse(ck, s, rc, &why, err)))
			return rc;
	}
	if (s->next == s->catalog.count)
		return ck_fail(err, s->reason_code, "%s: none of %zu checkpoints is good: %s",
			       ck->set.dir, s->catalog.count,
			       s->reasons.data ? s->reasons.data : "");
	s->has_manifest = true;
	offer->id = s->manifest.id;
	offer->level = level_for(ck, &s->manifest);
	offer->complete = ck->run.complete && ck->run.complete_step == offer->id.step;
	offer->wall_clock_seconds = s->manifest.wall_clock_seconds;
	return fits(ck, &s->manifest, err);
}

/* Rank 0: the file entries of each rank, as the records they were made from. */
static int pack_files(const ckpt *ck, const struct ck_manifest *m, struct ck_per_rank *out,
		      struct ck_error *err)
{
	uint32_t size = (uint32_t)ck->comm.table.size;
	struct ck_buf all = CK_BUF_INIT;
	int rc = 0;

	out->offsets = calloc(size + 1, sizeof(*out->offsets));
	if (!out->offsets)
		return ck_fail_nomem(err, (size + 1) * sizeof(*out->offsets));
	for (uint32_t r = 0; !rc && r < size; r++) {
		struct ck_record record = {.rank = r, .step = m->id.step};
		size_t first, count;

		if (!ck_manifest_rank_files(m, r, &first, &count))
			return ck_fail(err, CK_EFORMAT, "manifest: rank %u has no file", r);
		strcpy(record.save_id, m->save_id);
		record.files = m->files + first;
		record.nfiles = count;
		rc = ck_record_print(&record, &all, err);
		out->offsets[r + 1] = all.len;
	}
	out->data = (unsigned char *)all.data;
	return rc;
}

/* Collective: this rank's file entries of the checkpoint proposed. */
static int receive_files(ckpt *ck, const struct search *s, struct ck_record *record,
			 struct ck_error *err)
{
	struct ck_per_rank texts = CK_PER_RANK_INIT;
	void *text = NULL;
	uint64_t bytes = 0;
	int rc = ck_is_root(ck) ? pack_files(ck, &s->manifest, &texts, err) : 0;

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

/* Collective: try the proposed checkpoint. The same answer on all ranks. */
static int try_offer(ckpt *ck, const struct search *s, const struct offer *offer,
		     struct ck_error *err)
{
	char name[CK_NAME_MAX], dir[PATH_MAX];
	struct ck_record record = {0};
	struct ck_load load = {0};
	int rc = receive_files(ck, s, &record, err);

	if (rc)
		return rc;
	if (!ck_path_join(dir, ck->set.dir, ck_name_step(offer->id, name)))
		rc = ck_fail(err, CK_EARG, "%s: path too long", ck->set.dir);
	if (!rc)
		rc = ck_load_open(ck, dir, &record, &load, err);
	rc = ck_comm_agree(&ck->comm, rc, err);
	if (!rc) {
		rc = ck_load_read(ck, &record, offer->level, &load, err);
		rc = ck_comm_agree(&ck->comm, rc, err);
	}
	if (!rc)
		rc = ck_load_share(ck, &load, err);
	if (!rc) {
		rc = ck_load_hand_over(ck, &load, err);
		rc = ck_comm_agree(&ck->comm, rc, err);
	}
	ck_load_fini(ck, &load);
	ck_record_fini(&record);
	return rc;
}

/* Is it the checkpoint that is bad, so that an older one may be better? */
static bool is_bad(int code)
{
	return code == CK_ENOENT || code == CK_EFORMAT || code == CK_EDIGEST || code == CK_EIO;
}

/* Collective: from proposal to proposal, until one is good. */
static int find(ckpt *ck, struct search *s, struct offer *offer, struct ck_error *err)
{
	for (;;) {
		struct ck_error why = CK_ERROR_INIT;
		int rc = ck_is_root(ck) ? propose(ck, s, offer, err) : 0;

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
		rc = ck_is_root(ck) ? refuse(ck, s, rc, &why, err) : 0;
		if ((rc = ck_comm_agree(&ck->comm, rc, err)))
			return rc;
	}
}

static const char *const choices[] = {
	[CKPT_FRESH] = "fresh",
	[CKPT_RESUMED] = "resumed",
	[CKPT_FELL_BACK] = "fell-back",
	[CKPT_COMPLETE] = "complete",
};

static void say(const ckpt *ck, enum ckpt_restored result, const struct ck_manifest *m)
{
	char when[32];

	switch (result) {
	case CKPT_FRESH:
		ck_log(ck, "starting afresh: no checkpoint yet in %s", ck->set.dir);
		break;
	case CKPT_RESUMED:
		ck_log(ck, "resumed at step %" PRIu64 ", saved %s by %u ranks, in %s", m->id.step,
		       ck_format_time(m->created, when), m->world_size, ck->set.dir);
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

/* Rank 0: write down what was chosen; the claim is our own file. */
static void record_choice(ckpt *ck, enum ckpt_restored result, const struct offer *offer,
			  const struct search *s)
{
	struct ck_error err = CK_ERROR_INIT;

	say(ck, result, &s->manifest);
	strcpy(ck->claim.resume, choices[result]);
	ck->claim.resumed = offer->id;
	if (ck_claim_store(ck->io, ck->set.dir, &ck->claim, &err))
		ck_log(ck, "warning: %s", err.text);
	ck_note(ck, choices[result], offer->id.step, "");
}

static enum ckpt_restored adopt(ckpt *ck, const struct offer *offer, uint64_t nrefused)
{
	ck->opened_at = ck->last_save_at = ck_now();
	if (offer->fresh)
		return CKPT_FRESH;
	ck->step = ck->saved = ck->tried = offer->id.step;
	ck->has_saved = true;
	ck->rotation.protects = true;
	ck->rotation.protected_id = offer->id;
	ck->wall_clock_before = offer->wall_clock_seconds;
	if (offer->complete)
		return CKPT_COMPLETE;
	return nrefused ? CKPT_FELL_BACK : CKPT_RESUMED;
}

int ck_restore_now(ckpt *ck, enum ckpt_restored *result, struct ck_error *err)
{
	struct search search = {.reasons = CK_BUF_INIT};
	struct offer offer = {0};
	uint64_t nrefused;
	int rc = ck_deal_refresh(ck, err);

	if (rc)
		return rc;
	rc = ck_is_root(ck) ? search_begin(ck, &search, err) : 0;
	rc = ck_comm_agree(&ck->comm, rc, err);
	if (!rc)
		rc = find(ck, &search, &offer, err);
	nrefused = search.next;
	if (!rc)
		rc = ck_comm_bcast(&ck->comm, 0, &nrefused, sizeof(nrefused), err);
	if (!rc) {
		*result = adopt(ck, &offer, nrefused);
		if (ck_is_root(ck))
			record_choice(ck, *result, &offer, &search);
	}
	search_fini(&search);
	return rc;
}
