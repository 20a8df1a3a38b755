#include "rotation.h"

#include <stdlib.h>

#include "catalog.h"
#include "commit.h"
#include "rotate.h"

void ck_rotation_fini(struct ck_rotation *rotation)
{
	free(rotation->bad);
	rotation->bad = NULL;
	rotation->nbad = 0;
}

static bool is_bad(const struct ck_rotation *r, struct ck_step_id id)
{
	for (size_t i = 0; i < r->nbad; i++)
		if (ck_step_id_cmp(&r->bad[i], &id) == 0)
			return true;
	return false;
}

int ck_rotation_mark_bad(struct ck_rotation *r, struct ck_step_id id, struct ck_error *err)
{
	size_t bytes = (r->nbad + 1) * sizeof(*r->bad);
	struct ck_step_id *more;

	if (is_bad(r, id))
		return 0;
	more = realloc(r->bad, bytes);
	if (!more)
		return ck_fail_nomem(err, bytes);
	more[r->nbad++] = id;
	r->bad = more;
	return 0;
}

/* Once per generation: which of the checkpoints we found are not even whole? */
static int size_up(struct ck_rotation *r, const struct ck_catalog *catalog, struct ck_error *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < catalog->count; i++) {
		struct ck_manifest manifest = {0};
		int bad = ck_step_load(r->io, r->dir, catalog->steps[i], &manifest, NULL);

		if (!bad)
			bad = ck_step_sized(r->io, r->dir, &manifest, -1, NULL);
		ck_manifest_fini(&manifest);
		if (bad)
			rc = ck_rotation_mark_bad(r, catalog->steps[i], err);
	}
	r->sized_up = rc == 0;
	return rc;
}

static int unpublish(struct ck_rotation *r, struct ck_step_id id, struct ck_error *err)
{
	int rc = ck_owner_check(r->io, r->dir, r->generation, err);

	return rc ? rc : ck_unpublish(r->io, r->dir, id, err);
}

static int unpublish_all(struct ck_rotation *r, const struct ck_catalog *catalog, bool save_to_come,
			 struct ck_error *err)
{
	struct ck_rotate_step *steps = calloc(catalog->count + 1, sizeof(*steps));
	bool *doomed = calloc(catalog->count + 1, sizeof(*doomed));
	int rc = 0;

	if (!steps || !doomed) {
		rc = ck_fail_nomem(err, catalog->count * sizeof(*steps));
		goto out;
	}
	for (size_t i = 0; i < catalog->count; i++) {
		steps[i].id = catalog->steps[i];
		steps[i].bad = is_bad(r, catalog->steps[i]);
		steps[i].pinned = ck_is_pinned(r->io, r->dir, catalog->steps[i]);
		steps[i].protected =
			r->protects && ck_step_id_cmp(&r->protected_id, &catalog->steps[i]) == 0;
	}
	ck_rotate_decide(steps, catalog->count, r->keep, save_to_come, doomed);
	for (size_t i = catalog->count; !rc && i-- > 0;)
		if (doomed[i])
			rc = unpublish(r, steps[i].id, err);
out:
	free(steps);
	free(doomed);
	return rc;
}

int ck_rotation_unpublish(struct ck_rotation *r, bool save_to_come, struct ck_error *err)
{
	struct ck_catalog catalog = {0};
	int rc = ck_catalog_load(r->io, r->dir, &catalog, err);

	if (!rc && !r->sized_up)
		rc = size_up(r, &catalog, err);
	if (!rc)
		rc = unpublish_all(r, &catalog, save_to_come, err);
	ck_catalog_fini(&catalog);
	return rc;
}

int ck_rotation_pin(struct ck_rotation *r, struct ck_step_id id, struct ck_error *err)
{
	bool due = r->keep_every && id.step / r->keep_every > r->last_step / r->keep_every;

	r->last_step = id.step;
	return due ? ck_pin(r->io, r->dir, id, err) : 0;
}

int ck_rotation_remove(struct ck_rotation *r, struct ck_error *err)
{
	return ck_sweep(r->io, r->dir, r->generation, err);
}
