#include "registry.h"

#include <stdlib.h>
#include <string.h>

/* The callbacks as they were before `reassign` came at their end. */
#define WITHOUT_REASSIGN offsetof(struct ckpt_rank_callbacks, reassign)

void ck_registry_fini(struct ck_registry *registry)
{
	for (size_t i = 0; registry->behind && i < registry->list.count; i++)
		free(registry->behind[i].data);
	free(registry->behind);
	ck_item_list_fini(&registry->list);
	*registry = (struct ck_registry){0};
}

/* Room for one more item behind the list, before the list grows: so nothing is left half done. */
static int grow(struct ck_registry *registry, struct ck_error *err)
{
	size_t bytes = (registry->list.count + 1) * sizeof(*registry->behind);
	struct ck_behind *behind = realloc(registry->behind, bytes);

	if (!behind)
		return ck_fail_nomem(err, bytes);
	behind[registry->list.count] = (struct ck_behind){0};
	registry->behind = behind;
	return 0;
}

static int grow_blocks(struct ck_registry *registry, const char *name, struct ck_error *err)
{
	size_t item = ck_registry_find(registry, name);
	size_t count = item < registry->list.count ? registry->list.items[item].nblocks : 0;
	void **data = realloc(registry->behind[item].data, (count + 1) * sizeof(*data));

	if (!data)
		return ck_fail_nomem(err, (count + 1) * sizeof(*data));
	registry->behind[item].data = data;
	return 0;
}

int ck_registry_add_block(struct ck_registry *registry, const char *name, int dtype, int ndim,
			  const uint64_t *shape, const struct ck_box *box, void *data,
			  struct ck_error *err)
{
	size_t item, block, before = registry->list.count;
	int rc;

	if (!name)
		return ck_fail(err, CK_EARG, "item name: NULL");
	if (!ck_dtype_size(dtype))
		return ck_fail(err, CK_EARG, "item '%s': dtype %d is no enum ckpt_dtype", name,
			       dtype);
	if (!data && !ck_box_empty(box))
		return ck_fail(err, CK_EARG, "item '%s': data is NULL", name);
	if ((rc = grow(registry, err)) || (rc = grow_blocks(registry, name, err)))
		return rc;
	rc = ck_item_list_add_block(&registry->list, name, (enum ck_dtype)dtype, ndim, shape, box,
				    &item, &block, err);
	if (rc) {
		if (ck_registry_find(registry, name) == before) {
			free(registry->behind[before].data);
			registry->behind[before].data = NULL;
		}
		return rc;
	}
	registry->behind[item].data[block] = data;
	registry->version++;
	return 0;
}

int ck_registry_add_rank(struct ck_registry *registry, const char *name,
			 const struct ckpt_rank_callbacks *callbacks, struct ck_error *err)
{
	size_t item;
	int rc;

	if (!name)
		return ck_fail(err, CK_EARG, "item name: NULL");
	if (!callbacks || (callbacks->struct_size != sizeof(*callbacks) &&
			   callbacks->struct_size != WITHOUT_REASSIGN))
		return ck_fail(err, CK_EARG,
			       "item '%s': callbacks.struct_size: expected sizeof(struct "
			       "ckpt_rank_callbacks) = %zu",
			       name, sizeof(*callbacks));
	if (!callbacks->size || !callbacks->get || !callbacks->set)
		return ck_fail(err, CK_EARG, "item '%s': callbacks size, get and set must be given",
			       name);
	if ((rc = grow(registry, err)) ||
	    (rc = ck_item_list_add_rank(&registry->list, name, &item, err)))
		return rc;
	memcpy(&registry->behind[item].callbacks, callbacks, callbacks->struct_size);
	registry->version++;
	return 0;
}

int ck_registry_set_flat(struct ck_registry *registry, const char *name, struct ck_error *err)
{
	char *copy = NULL;

	if (name && !(copy = strdup(name)))
		return ck_fail_nomem(err, strlen(name) + 1);
	free(registry->list.flat);
	registry->list.flat = copy;
	registry->version++;
	return 0;
}

int ck_registry_set_copier(struct ck_registry *registry, const char *name,
			   const struct ckpt_copier *copier, struct ck_error *err)
{
	size_t item = name ? ck_registry_find(registry, name) : registry->list.count;

	if (item == registry->list.count || registry->list.items[item].kind != CK_SHARDED)
		return ck_fail(err, CK_EARG,
			       "copier of item '%s': register the item with ckpt_add_ first",
			       name ? name : "(null)");
	if (!copier || copier->struct_size != sizeof(*copier) || !copier->read || !copier->write)
		return ck_fail(err, CK_EARG,
			       "item '%s': copier: struct_size %zu, read and write must be given",
			       name, sizeof(*copier));
	registry->behind[item].copier = *copier;
	return 0;
}

const struct ckpt_copier *ck_registry_copier(const struct ck_registry *registry, const char *name)
{
	size_t item = ck_registry_find(registry, name);

	if (item == registry->list.count || !registry->behind[item].copier.read)
		return NULL;
	return &registry->behind[item].copier;
}

size_t ck_registry_find(const struct ck_registry *registry, const char *name)
{
	/* Looking up makes the list's index, which is no change of the list. */
	struct ck_item_list *list = (struct ck_item_list *)&registry->list;
	size_t item = 0;

	if (ck_item_list_find(list, name, &item, NULL) == 0)
		return item;
	return list->count;
}

void *ck_registry_block(const struct ck_registry *registry, size_t item, const struct ck_box *box)
{
	const struct ck_item *it = &registry->list.items[item];

	for (size_t b = 0; b < it->nblocks; b++)
		if (ck_box_equal(&it->blocks[b], box))
			return registry->behind[item].data[b];
	return NULL;
}

uint64_t ck_registry_bytes(const struct ck_registry *registry, size_t item,
			   const struct ck_box *box)
{
	return ck_box_volume(box) * ck_dtype_size((int)registry->list.items[item].dtype);
}

/* Fetch one per-rank item for a save. */
static int fetch_rank(const struct ck_registry *registry, size_t item, struct ck_rank_bytes *out,
		      struct ck_error *err)
{
	const struct ckpt_rank_callbacks *cb = &registry->behind[item].callbacks;
	const char *name = registry->list.items[item].name;
	int answer;

	*out = (struct ck_rank_bytes){.item = item, .bytes = cb->size(cb->arg)};
	out->data = malloc(out->bytes ? out->bytes : 1);
	if (!out->data)
		return ck_fail_nomem(err, out->bytes);
	answer = cb->get(cb->arg, out->data, out->bytes);
	if (answer == 0)
		return 0;
	free(out->data);
	out->data = NULL;
	return ck_fail(err, CK_EARG, "item '%s': the program's get callback returned %d", name,
		       answer);
}

static void fill_common(const struct ck_item *item, struct ck_stored *out)
{
	*out = (struct ck_stored){
		.name = item->name, .kind = item->kind, .dtype = item->dtype, .ndim = item->ndim};
	memcpy(out->shape, item->shape, sizeof(out->shape));
}

static int stored_sharded(const struct ck_registry *registry, const struct ck_duty *duty,
			  uint32_t rank, struct ck_stored *out, size_t *count, struct ck_error *err)
{
	for (size_t i = 0; i < duty->count; i++) {
		size_t item = ck_registry_find(registry, duty->items[i].name);

		for (size_t b = 0; b < duty->items[i].nblocks; b++) {
			const struct ck_duty_block *block = &duty->items[i].blocks[b];
			struct ck_stored *to = &out[*count];

			if (block->writer != rank)
				continue;
			fill_common(&registry->list.items[item], to);
			to->box = block->box;
			to->bytes = ck_registry_bytes(registry, item, &block->box);
			to->data = ck_registry_block(registry, item, &block->box);
			if (!to->data)
				return ck_fail(err, CK_EARG,
					       "item '%s': registered block not found", to->name);
			(*count)++;
		}
	}
	return 0;
}

static int stored_per_rank(const struct ck_registry *registry, struct ck_stored *out, size_t *count,
			   struct ck_rank_bytes *bytes, size_t *nbytes, struct ck_error *err)
{
	for (size_t i = 0; i < registry->list.count; i++) {
		struct ck_stored *to = &out[*count];
		int rc;

		if (registry->list.items[i].kind != CK_PER_RANK)
			continue;
		if ((rc = fetch_rank(registry, i, &bytes[*nbytes], err)))
			return rc;
		fill_common(&registry->list.items[i], to);
		to->dtype = CK_U8;
		to->ndim = 1;
		to->box = (struct ck_box){.ndim = 1, .extent = {bytes[*nbytes].bytes}};
		to->bytes = bytes[*nbytes].bytes;
		to->data = bytes[*nbytes].data;
		(*nbytes)++;
		(*count)++;
	}
	return 0;
}

int ck_registry_stored(const struct ck_registry *registry, const struct ck_duty *duty,
		       uint32_t rank, struct ck_stored **out, size_t *count,
		       struct ck_rank_bytes **rank_bytes, size_t *nrank_bytes, struct ck_error *err)
{
	size_t most = registry->list.count + 1, n = 0, nbytes = 0;
	struct ck_rank_bytes *bytes = calloc(registry->list.count + 1, sizeof(*bytes));
	struct ck_stored *stored;
	int rc;

	for (size_t i = 0; i < duty->count; i++)
		most += duty->items[i].nblocks;
	stored = calloc(most, sizeof(*stored));
	if (!stored || !bytes) {
		rc = ck_fail_nomem(err, most * sizeof(*stored));
		goto out;
	}
	if ((rc = stored_sharded(registry, duty, rank, stored, &n, err)) ||
	    (rc = stored_per_rank(registry, stored, &n, bytes, &nbytes, err)))
		goto out;
	*out = stored;
	*count = n;
	*rank_bytes = bytes;
	*nrank_bytes = nbytes;
	return 0;
out:
	free(stored);
	ck_rank_bytes_free(bytes, nbytes);
	return rc;
}

void ck_rank_bytes_free(struct ck_rank_bytes *rank_bytes, size_t count)
{
	for (size_t i = 0; rank_bytes && i < count; i++)
		free(rank_bytes[i].data);
	free(rank_bytes);
}
