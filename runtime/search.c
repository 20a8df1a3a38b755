#include "search.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "choose.h"
#include "dirfile.h"
#include "parse.h"
#include "source.h"

/* The option, as a job and as a program calls it. */
#define FROM "--ckpt-from (ckpt_options.from)"

/* A run that saves faster than it is read is not run after for ever. */
#define RENEWALS_MAX 10

void ck_search_fini(struct ck_search *s)
{
	free(s->steps);
	ck_buf_fini(&s->reasons);
	if (s->has_manifest)
		ck_manifest_fini(&s->manifest);
	*s = (struct ck_search){.reasons = CK_BUF_INIT};
}

/* ---- what is there ---- */

/*
 * Was this generation claimed by our job, in an earlier start of it? One without a claim, or with a bad one, was not;
 * where that cannot be looked at, what was asked for must not be done a second time.
 */
static int look_for_ours(const ckpt *ck, uint64_t generation, bool *ours, struct ck_error *err)
{
	struct ck_claim claim;
	int rc = ck_claim_load(ck->io, ck->set.dir, generation, &claim, err);

	*ours = !rc && ck_claim_same_job(&claim, &ck->claim);
	if (!rc)
		ck_claim_fini(&claim);
	return ck_is_unseen(rc) ? rc : 0;
}

static int find_candidates(const ckpt *ck, const struct ck_catalog *catalog,
			   struct ck_candidate *all, struct ck_error *err)
{
	int rc = 0;

	for (size_t i = 0; i < catalog->count && !rc; i++) {
		bool same = i && catalog->steps[i].generation == catalog->steps[i - 1].generation;

		all[i].id = catalog->steps[i];
		if (same)
			all[i].ours = all[i - 1].ours;
		else
			rc = look_for_ours(ck, all[i].id.generation, &all[i].ours, err);
	}
	return rc;
}

static int choose(ckpt *ck, const struct ck_catalog *catalog, struct ck_search *s,
		  struct ck_error *err)
{
	struct ck_candidate *all = calloc(catalog->count + 1, sizeof(*all));
	bool fresh = false;
	int n;

	s->steps = calloc(catalog->count + 1, sizeof(*s->steps));
	if (!all || !s->steps)
		n = ck_fail_nomem(err, catalog->count * sizeof(*all));
	else
		n = find_candidates(ck, catalog, all, err);
	if (!n)
		n = ck_choose(&ck->set.resume, all, catalog->count, s->steps, &fresh, err);
	free(all);
	if (n < 0)
		return n;
	s->count = (size_t)n;
	s->nunused = fresh ? catalog->count : 0;
	return 0;
}

/* Nothing of our own yet: begin from another run, which is only read. */
static int begin_from(ckpt *ck, struct ck_search *s, struct ck_error *err)
{
	struct ck_catalog catalog = {0};
	struct ck_step_id id;
	bool has_step;
	int rc = ck_resolve(ck->io, ck->set.from, s->run, &has_step, &id, err);

	if (!rc)
		rc = ck_catalog_load(ck->io, s->run, &catalog, err);
	if (rc) {
		ck_error_prefix(err, FROM);
		return rc;
	}
	s->foreign = true;
	s->steps = catalog.steps; /* moved */
	s->count = catalog.count;
	if (has_step) {
		s->steps[0] = id;
		s->count = 1;
	}
	if (s->count)
		return 0;
	return ck_fail(err, CK_ENOENT, FROM ": %s: there is no checkpoint", ck->set.from);
}

static int begin(ckpt *ck, struct ck_search *s, struct ck_error *err)
{
	struct ck_catalog catalog = {0};
	int rc = ck_catalog_load(ck->io, ck->set.dir, &catalog, err);

	ck_search_fini(s); /* of an earlier try */
	if (rc)
		return rc;
	strcpy(s->run, ck->set.dir);
	if (catalog.count)
		rc = choose(ck, &catalog, s, err);
	else if (ck->run.committed)
		rc = ck_fail(err, CK_ENOENT,
			     "%s: this run has committed checkpoints, and none is there now: is "
			     "the file system "
			     "mounted? To start over, use an empty directory or another name",
			     ck->set.dir);
	else if (*ck->set.from)
		rc = begin_from(ck, s, err);
	else if (ck->set.resume.mode == CK_RESUME_STEP)
		rc = choose(ck, &catalog, s, err); /* says that there is none */
	ck_catalog_fini(&catalog);
	s->begun = rc == 0;
	return rc;
}

/* Another run goes on meanwhile: what it has removed, it has something newer for. */
static int renew(ckpt *ck, struct ck_search *s, struct ck_error *err)
{
	unsigned renewals = s->renewals;
	int rc = begin(ck, s, err);

	s->renewals = renewals + 1;
	return rc;
}

/* ---- bad ones ---- */

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

static int refuse(ckpt *ck, struct ck_search *s, int code, const struct ck_error *why,
		  struct ck_error *err)
{
	struct ck_step_id id = s->steps[s->next++];
	char name[CK_NAME_MAX];
	struct ck_buf text = CK_BUF_INIT;
	int rc;

	s->nrefused++;
	ck_buf_addf(&text, "%s: %s", ck_name_step(id, name), why->text);
	ck_buf_addf(&s->reasons, "%s%s: %s", s->reasons.len ? "; " : "", name, why->text);
	if (!s->reason_code)
		s->reason_code = code;
	ck_log(ck, "refused step %" PRIu64 ": %s", id.step, why->text);
	ck_note(ck, "refused", id.step, why->text);
	rc = add_refused(&ck->claim, &text, err);
	ck_buf_fini(&text);
	return rc || s->foreign ? rc : ck_rotation_mark_bad(&ck->rotation, id, err);
}

/* Is the whole checkpoint away, as a program that rotates takes it? Then it is not bad. 0 when it can be told. */
static int look_for_step(const ckpt *ck, const struct ck_search *s, bool *gone,
			 struct ck_error *err)
{
	char path[PATH_MAX], name[CK_NAME_MAX];
	struct stat st;
	int rc = ck_dirfile_path(path, s->run, ck_name_step(s->steps[s->next], name), err);

	if (rc || ck->io->ops->lstat(ck->io, path, &st) == 0)
		return rc;
	*gone = errno == ENOENT;
	return *gone ? 0 : ck_fail_errno(err, errno, "%s: lstat", path);
}

int ck_search_refuse(ckpt *ck, struct ck_search *s, int code, const struct ck_error *why,
		     struct ck_error *err)
{
	bool gone = false;
	int rc = code == CK_ENOENT ? look_for_step(ck, s, &gone, err) : 0;

	if (rc)
		return rc;
	if (gone) {
		ck_log(ck, "step %" PRIu64 " is gone: it was removed while it was looked at",
		       s->steps[s->next++].step);
		return s->foreign && s->renewals < RENEWALS_MAX ? renew(ck, s, err) : 0;
	}
	/* A client's view of a directory may be old: what one rank misses and another sees is not missing. */
	if (code == CK_ENOENT && s->has_manifest &&
	    ck_step_sized(ck->io, s->run, &s->manifest, -1, NULL) == 0)
		return ck_fail(err, CK_EIO, "%s; but rank 0 sees all of its files", why->text);
	return refuse(ck, s, code, why, err);
}

/* ---- proposing ---- */

/* A per-rank item that the program makes itself (ckpt_reassign_drop) and the checkpoint lacks. */
static bool may_be_missing(const ckpt *ck, const struct ck_manifest *m, const struct ck_item *item)
{
	const struct ck_registry *registry = &ck->registry;
	size_t mine;

	if (item->kind != CK_PER_RANK || ck_item_list_search(&m->items, item->name))
		return false;
	mine = ck_registry_find(registry, item->name);
	return mine < registry->list.count &&
	       registry->behind[mine].callbacks.reassign == ckpt_reassign_drop;
}

/* Are the items those of the program? `ckpt reshard --per-rank=drop` leaves some out. */
static int compare_items(const ckpt *ck, const struct ck_manifest *m, struct ck_error *err)
{
	const struct ck_item_list *table = &ck->dealt.deal.table;
	struct ck_item_list wanted = {.count = 0};
	int rc = 0;

	for (size_t i = 0; i < table->count && !rc; i++)
		if (!may_be_missing(ck, m, &table->items[i]))
			rc = ck_item_list_append(&wanted, &table->items[i], err);
	if (!rc)
		rc = ck_items_compare(&m->items, &wanted, err);
	ck_item_list_fini(&wanted);
	return rc;
}

/* Does the checkpoint fit this program? Not a reason to take an older one. */
static int fits(const ckpt *ck, const struct ck_search *s, struct ck_error *err)
{
	const struct ck_manifest *m = &s->manifest;
	char name[CK_NAME_MAX];
	int rc;

	ck_name_step(m->id, name);
	if (ck->set.world_fixed && m->world_size != (uint32_t)ck->comm.table.size)
		return ck_fail(err, CK_EWORLD,
			       "%s/%s: saved by %u rank%s, this job has %d, and --ckpt-world=fixed "
			       "(ckpt_options.world): start it with %u rank%s, or with any",
			       s->run, name, m->world_size, ck_plural(m->world_size),
			       ck->comm.table.size, m->world_size, ck_plural(m->world_size));
	if (!s->foreign && strcmp(m->run_id, ck->run.run_id) != 0)
		return ck_fail(err, CK_EREFUSED, "%s/%s: belongs to run %s, this is run %s", s->run,
			       name, m->run_id, ck->run.run_id);
	rc = compare_items(ck, m, err);
	if (rc == CK_EITEM)
		ck_error_prefix(err, "%s/%s", s->run, name);
	return rc;
}

/* What was asked for; else CRC-32 for a reload within the same start of the same job, SHA-256 after one. */
static enum ck_level level_for(const ckpt *ck, const struct ck_manifest *m)
{
	const struct ck_job *ours = &ck->set.job, *theirs = &m->job;
	bool warm = *ours->job_id && strcmp(ours->job_id, theirs->job_id) == 0 &&
		    strcmp(ours->cluster, theirs->cluster) == 0 &&
		    ours->restart_count == theirs->restart_count;

	if (ck->set.level_asked)
		return ck->set.level;
	return warm ? CK_LEVEL_CRC32 : CK_LEVEL_SHA256;
}

/*
 * The claims before ours, newest first; at most CK_NO_PROGRESS, and none behind one that cannot be looked at, which
 * may be of a start that made progress. Returns how many.
 */
static size_t load_claims(const ckpt *ck, struct ck_claim *out)
{
	uint64_t *generations;
	size_t ngenerations, count = 0;
	int rc = 0;

	if (ck_generations_load(ck->io, ck->set.dir, &generations, &ngenerations, NULL))
		return 0;
	for (size_t i = 0; i < ngenerations && count < CK_NO_PROGRESS && !ck_is_unseen(rc); i++) {
		if (generations[i] >= ck->generation)
			continue;
		rc = ck_claim_load(ck->io, ck->set.dir, generations[i], &out[count], NULL);
		count += !rc;
	}
	free(generations);
	return count;
}

/* The job goes round in circles: leave word to hold it. */
static int hold(ckpt *ck, struct ck_step_id id, struct ck_error *err)
{
	struct ck_error trouble = CK_ERROR_INIT;
	char reason[CK_SHORT_TEXT], left[16] = "";

	if (ck->set.end_time)
		ck_format_seconds((double)ck->set.end_time - (double)time(NULL), left);
	snprintf(reason, sizeof(reason),
		 "no progress: started %d times from step %" PRIu64
		 " without saving a newer one%s%s%s",
		 CK_NO_PROGRESS, id.step, *left ? "; a start has " : "", left,
		 *left ? ", which may be too short; or saves fail: see the messages of its earlier "
			 "starts"
		       : "");
	strcpy(ck->claim.resume, "held");
	ck->claim.resumed = id;
	if (ck_claim_store(ck->io, ck->set.dir, &ck->claim, &trouble) ||
	    ck_leave_mark(ck, id.step, CK_WANT_HOLD, reason, &trouble))
		ck_log(ck, "warning: %s", trouble.text);
	ck_note(ck, "held", id.step, reason);
	return ck_fail(err, CK_EREFUSED, "%s", reason);
}

static int check_progress(ckpt *ck, const struct ck_search *s, struct ck_error *err)
{
	struct ck_claim claims[CK_NO_PROGRESS] = {0};
	size_t count;
	bool stuck;

	if (s->foreign)
		return 0;
	count = load_claims(ck, claims);
	stuck = ck_no_progress(claims, count, &ck->claim, s->manifest.id);
	for (size_t i = 0; i < count; i++)
		ck_claim_fini(&claims[i]);
	return stuck ? hold(ck, s->manifest.id, err) : 0;
}

/* Load the next manifest that SHA256SUMS vouches for. */
static int next_manifest(ckpt *ck, struct ck_search *s, struct ck_error *err)
{
	struct ck_error why = CK_ERROR_INIT;
	int rc;

	if (s->has_manifest)
		ck_manifest_fini(&s->manifest);
	s->has_manifest = false;
	while (s->next < s->count) {
		rc = ck_step_load_summed(ck->io, s->run, s->steps[s->next], &s->manifest, &why);
		s->has_manifest = !rc;
		if (!rc)
			return 0;
		if (ck_is_unseen(rc))
			return ck_fail(err, rc, "%s", why.text);
		if ((rc = ck_search_refuse(ck, s, rc, &why, err)))
			return rc;
	}
	if (!s->nrefused)
		return ck_fail(err, CK_ENOENT, "%s: its checkpoints were removed meanwhile",
			       s->run);
	return ck_fail(err, s->reason_code, "%s: none of %zu checkpoint%s is good: %s", s->run,
		       s->count, ck_plural(s->count), s->reasons.data ? s->reasons.data : "");
}

/*
 * It does not fit the program, by its manifest. Is that what its files hold? Else it is not the program that is to
 * blame. Returns 0: it is; CK_EFORMAT, CK_ENOENT: the checkpoint is bad; CK_EIO, CK_ENOMEM: not known.
 */
static int check_headers(const ckpt *ck, const struct ck_search *s, struct ck_error *err)
{
	struct ck_source source;
	int rc = ck_source_open(ck->io, s->run, s->manifest.id, &source, NULL, NULL, err);

	if (!rc)
		ck_source_close(&source);
	return rc;
}

/* A candidate that fits the program, or one that does not through no fault of its own. */
static int next_fitting(ckpt *ck, struct ck_search *s, struct ck_error *err)
{
	struct ck_error why = CK_ERROR_INIT;
	int rc, fault;

	for (;;) {
		if ((rc = next_manifest(ck, s, err)))
			return rc;
		rc = fits(ck, s, err);
		if (rc != CK_EITEM)
			return rc;
		fault = check_headers(ck, s, &why);
		if (!fault)
			return rc;
		if (ck_is_unseen(fault))
			return ck_fail(err, fault, "%s", why.text);
		if ((rc = ck_search_refuse(ck, s, fault, &why, err)))
			return rc;
	}
}

int ck_search_propose(ckpt *ck, struct ck_search *s, struct ck_offer *offer, struct ck_error *err)
{
	char name[CK_NAME_MAX];
	int rc = s->begun ? 0 : begin(ck, s, err);

	if (rc)
		return rc;
	*offer = (struct ck_offer){.fresh = s->count == 0, .foreign = s->foreign};
	if (offer->fresh)
		return 0;
	rc = next_fitting(ck, s, err);
	if (rc)
		return rc;
	offer->id = s->manifest.id;
	offer->level = level_for(ck, &s->manifest);
	offer->complete =
		!s->foreign && ck->run.complete && ck->run.complete_step == offer->id.step;
	offer->wall_clock_seconds = s->manifest.wall_clock_seconds;
	offer->world_size = s->manifest.world_size;
	if (!ck_path_join(offer->dir, s->run, ck_name_step(offer->id, name)))
		return ck_fail(err, CK_EARG, "%s: path too long", s->run);
	return check_progress(ck, s, err);
}
