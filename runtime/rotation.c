#include "rotation.h"

#include <stdlib.h>
#include <string.h>

#include "catalog.h"
#include "commit.h"
#include "leave.h"
#include "rotate.h"

void ck_rotation_fini(struct ck_rotation *rotation)
{
	free(rotation->bad);
	free(rotation->unseen);
	rotation->bad = rotation->unseen = NULL;
	rotation->nbad = rotation->nunseen = 0;
}

void ck_rotation_forget_bad(struct ck_rotation *r)
{
	ck_rotation_fini(r);
	r->sized_up = false;
}

static bool is_among(const struct ck_step_id *ids, size_t count, struct ck_step_id id)
{
	for (size_t i = 0; i < count; i++)
		if (ck_step_id_cmp(&ids[i], &id) == 0)
			return true;
	return false;
}

static int add_id(struct ck_step_id **ids, size_t *count, struct ck_step_id id,
		  struct ck_error *err)
{
	size_t bytes = (*count + 1) * sizeof(**ids);
	struct ck_step_id *more;

	if (is_among(*ids, *count, id))
		return 0;
	more = realloc(*ids, bytes);
	if (!more)
		return ck_fail_nomem(err, bytes);
	more[(*count)++] = id;
	*ids = more;
	return 0;
}

int ck_rotation_mark_bad(struct ck_rotation *r, struct ck_step_id id, struct ck_error *err)
{
	return add_id(&r->bad, &r->nbad, id, err);
}

/* Is a checkpoint whole? What cannot be looked at is neither good nor bad. */
static int size_up_one(struct ck_rotation *r, struct ck_step_id id, struct ck_error *err)
{
	struct ck_error why = CK_ERROR_INIT;
	struct ck_manifest manifest = {0};
	int rc = ck_step_load_summed(r->io, r->dir, id, &manifest, &why);

	if (!rc)
		rc = ck_step_sized(r->io, r->dir, &manifest, -1, &why);
	ck_manifest_fini(&manifest);
	if (!ck_is_unseen(rc))
		return rc ? ck_rotation_mark_bad(r, id, err) : 0;
	ck_error_prefix(&why, "one cannot be looked at, and stays");
	r->trouble = why;
	return add_id(&r->unseen, &r->nunseen, id, err);
}

/* Once per generation, or until each could be looked at: which of those we found are not even whole? */
static int size_up(struct ck_rotation *r, struct ck_error *err)
{
	struct ck_catalog catalog = {0};
	int rc = ck_catalog_load(r->io, r->dir, &catalog, err);

	r->nunseen = 0;
	for (size_t i = 0; !rc && i < catalog.count; i++)
		rc = size_up_one(r, catalog.steps[i], err);
	ck_catalog_fini(&catalog);
	r->sized_up = rc == 0 && r->nunseen == 0;
	return rc;
}

/* By names alone. `out` and `steps` are the caller's to free, whatever the answer. */
static int look(const struct ck_rotation *r, const struct ck_names *names, struct ck_catalog *out,
		struct ck_rotate_step **steps, struct ck_error *err)
{
	int rc = ck_catalog_from(names, out, err);

	if (rc)
		return rc;
	*steps = calloc(out->count + 1, sizeof(**steps));
	if (!*steps)
		return ck_fail_nomem(err, out->count * sizeof(**steps));
	for (size_t i = 0; i < out->count; i++) {
		struct ck_rotate_step *step = &(*steps)[i];
		struct ck_step_id id = out->steps[i];
		int age = r->protects ? ck_step_id_cmp(&id, &r->protected_id) : -1;

		*step = (struct ck_rotate_step){.id = id, .bad = is_among(r->bad, r->nbad, id)};
		step->pinned = ck_pin_listed(names, id) || is_among(r->unseen, r->nunseen, id);
		step->protected = age == 0;
		step->held = age > 0 && !step->bad && !r->no_space;
		step->given_up = id.generation < r->generation && id.step > r->began_at;
	}
	return 0;
}

static int decide(const struct ck_rotation *r, const struct ck_names *names, bool save_to_come,
		  struct ck_catalog *out, bool **doomed, struct ck_error *err)
{
	struct ck_rotate_step *steps = NULL;
	int rc = look(r, names, out, &steps, err);

	*doomed = calloc(out->count + 1, sizeof(**doomed));
	if (!rc && !*doomed)
		rc = ck_fail_nomem(err, out->count);
	if (!rc)
		ck_rotate_decide(steps, out->count, r->keep, save_to_come, *doomed);
	free(steps);
	return rc;
}

/* Pin what keep_every wants and has not got. *more: some were. */
static int pin_due(struct ck_rotation *r, const struct ck_names *names, bool *more,
		   struct ck_error *err)
{
	struct ck_rotate_step *steps = NULL;
	struct ck_catalog catalog = {0};
	bool *due = NULL;
	int rc = look(r, names, &catalog, &steps, err);

	due = calloc(catalog.count + 1, sizeof(*due));
	if (!rc && !due)
		rc = ck_fail_nomem(err, catalog.count);
	if (!rc)
		*more = ck_rotate_due(steps, catalog.count, r->keep_every, due) > 0;
	for (size_t i = 0; !rc && i < catalog.count; i++)
		if (due[i])
			rc = ck_pin(r->io, r->dir, catalog.steps[i], err);
	r->pins_known = rc == 0 && !r->nunseen; /* those count as pinned meanwhile */
	free(due);
	free(steps);
	ck_catalog_fini(&catalog);
	return rc;
}

/* The run as it is, and ours; with the pins that it is to have, as far as that is not known. */
static int list(struct ck_rotation *r, struct ck_names *names, struct ck_error *err)
{
	bool more = false;
	int rc = ck_owner_list(r->io, r->dir, r->generation, names, err);

	if (!rc && r->keep_every && !r->pins_known)
		rc = pin_due(r, names, &more, err);
	if (rc || !more)
		return rc;
	ck_names_fini(names);
	return ck_owner_list(r->io, r->dir, r->generation, names, err);
}

/*
 * Un-publish what has to go, then unlink it. All goes by one listing, which showed that the run is ours: it was
 * made an instant ago.
 */
static int rotate(struct ck_rotation *r, const struct ck_names *names, bool save_to_come,
		  struct ck_error *err)
{
	struct ck_catalog catalog = {0};
	bool *doomed = NULL;
	int rc = decide(r, names, save_to_come, &catalog, &doomed, err);

	for (size_t i = catalog.count; !rc && i-- > 0;)
		if (doomed[i])
			rc = ck_leave(r->io, r->dir, catalog.steps[i], r->generation, err);
	for (size_t i = catalog.count; !rc && i-- > 0;)
		if (doomed[i])
			rc = ck_unpublished_remove(r->io, r->dir, catalog.steps[i], err);
	free(doomed);
	ck_catalog_fini(&catalog);
	return rc;
}

/* Whatever it is known to say, it does so no more once it is gone. */
static void look_for_run(struct ck_rotation *r, const struct ck_names *names)
{
	bool there = false;

	for (size_t i = 0; i < names->count; i++)
		there |= strcmp(names->names[i], CK_RUN_FILE) == 0;
	r->noted = r->noted && there;
}

/* What this generation's own failures have left. */
static int sweep_own(struct ck_rotation *r, const struct ck_names *names, struct ck_step_id id,
		     struct ck_error *err)
{
	int rc = ck_sweep_own(r->io, r->dir, names, id, r->leftovers, err);

	r->leftovers = r->leftovers && rc;
	return rc;
}

int ck_rotation_before(struct ck_rotation *r, struct ck_step_id id, struct ck_error *err)
{
	struct ck_names names = {0};
	int rc = r->sized_up ? 0 : size_up(r, err);

	if (!rc)
		rc = list(r, &names, err);
	if (!rc)
		look_for_run(r, &names);
	if (!rc)
		rc = sweep_own(r, &names, id, err);
	if (!rc)
		rc = rotate(r, &names, true, err);
	if (!rc)
		rc = ck_sweep_deleting(r->io, r->dir, &names, err);
	if (!rc && r->committed)
		rc = ck_sweep_fenced(r->io, r->dir, &names, r->generation, err);
	ck_names_fini(&names);
	if (!rc && r->trouble.code)
		rc = ck_fail(err, r->trouble.code, "%s", r->trouble.text);
	r->trouble.code = 0;
	return rc;
}

static int pin(struct ck_rotation *r, struct ck_step_id id, struct ck_error *err)
{
	bool due = r->keep_every && id.step / r->keep_every > r->last_step / r->keep_every;

	r->last_step = id.step;
	return due ? ck_pin(r->io, r->dir, id, err) : 0;
}

int ck_rotation_after(struct ck_rotation *r, struct ck_step_id id, struct ck_error *err)
{
	struct ck_names names = {0};
	bool went_back = r->protects;
	int rc = pin(r, id, err);

	r->pins_known = r->pins_known && !rc;
	r->protects = r->no_space = false;
	r->committed = true;
	/* Where more are kept, all that had to go went before the save, but for what waited for this commit. */
	if (rc || (r->keep > 1 && !went_back))
		return rc;
	rc = ck_owner_list(r->io, r->dir, r->generation, &names, err);
	if (!rc)
		rc = rotate(r, &names, false, err);
	ck_names_fini(&names);
	return rc;
}

void ck_rotation_tidy(struct ck_rotation *r, struct ck_step_id id)
{
	r->leftovers |= ck_save_tidy(r->io, r->dir, id, &r->trouble) != 0;
}
