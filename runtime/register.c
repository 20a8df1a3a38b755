/* Registration: the public calls; the work is registry.c's. */
#include "handle.h"

#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "user.h"

static int add_block(ckpt *ck, const char *name, enum ckpt_dtype dtype, int ndim,
		     const uint64_t *global_shape, const uint64_t *offset, const uint64_t *shape,
		     void *data)
{
	struct ck_error err = CK_ERROR_INIT;
	struct ck_box box = {.ndim = ndim};
	int rc;

	if (ck_is_idle(ck, &rc))
		return rc;
	if (ndim < 0 || ndim > CKPT_MAX_NDIM)
		return ck_keep(ck,
			       ck_fail(&err, CK_EARG, "item '%s': %d dimensions: expected 0 to %d",
				       name ? name : "(null)", ndim, CKPT_MAX_NDIM),
			       &err);
	if (ndim && (!global_shape || !shape))
		return ck_keep(ck,
			       ck_fail(&err, CK_EARG, "item '%s': a shape is NULL",
				       name ? name : "(null)"),
			       &err);
	for (int d = 0; d < ndim; d++) {
		box.offset[d] = offset ? offset[d] : 0;
		box.extent[d] = shape[d];
	}
	return ck_keep(ck,
		       ck_registry_add_block(&ck->registry, name, (int)dtype, ndim, global_shape,
					     &box, data, &err),
		       &err);
}

int ckpt_add_sharded(ckpt *ck, const char *name, enum ckpt_dtype dtype, int ndim,
		     const uint64_t *global_shape, const uint64_t *offset, const uint64_t *shape,
		     void *data)
{
	return add_block(ck, name, dtype, ndim, global_shape, offset, shape, data);
}

int ckpt_add_replicated(ckpt *ck, const char *name, enum ckpt_dtype dtype, int ndim,
			const uint64_t *shape, void *data)
{
	return add_block(ck, name, dtype, ndim, shape, NULL, shape, data);
}

int ckpt_add_rank(ckpt *ck, const char *name, const struct ckpt_rank_callbacks *callbacks)
{
	struct ck_error err = CK_ERROR_INIT;
	int rc;

	if (ck_is_idle(ck, &rc))
		return rc;
	return ck_keep(ck, ck_registry_add_rank(&ck->registry, name, callbacks, &err), &err);
}

int ckpt_set_copier(ckpt *ck, const char *name, const struct ckpt_copier *copier)
{
	struct ck_error err = CK_ERROR_INIT;
	int rc;

	if (ck_is_idle(ck, &rc))
		return rc;
	return ck_keep(ck, ck_registry_set_copier(&ck->registry, name, copier, &err), &err);
}

int ckpt_reassign_drop(void *arg, uint32_t old_world, const struct ckpt_rank_value *values)
{
	(void)arg;
	(void)old_world;
	(void)values;
	return 0;
}

int ckpt_set_flat(ckpt *ck, const char *name)
{
	struct ck_error err = CK_ERROR_INIT;
	int rc;

	if (ck_is_idle(ck, &rc))
		return rc;
	return ck_keep(ck, ck_registry_set_flat(&ck->registry, name, &err), &err);
}

int ckpt_set_user(ckpt *ck, const char *json)
{
	struct ck_error err = CK_ERROR_INIT;
	cJSON *tree = NULL;
	char *copy = NULL;
	int rc;

	if (ck_is_idle(ck, &rc))
		return rc;
	if (json) {
		rc = ck_json_parse("ckpt_set_user", json, strlen(json), &tree, &err);
		if (!rc)
			rc = ck_user_check("ckpt_set_user", json, &err);
		cJSON_Delete(tree);
		if (rc)
			return ck_keep(ck, rc == CK_EFORMAT ? CK_EARG : rc, &err);
		copy = strdup(json);
		if (!copy)
			return ck_keep(ck, ck_fail_nomem(&err, strlen(json) + 1), &err);
	}
	free(ck->user);
	ck->user = copy;
	return 0;
}
