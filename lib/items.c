#include "items.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "names.h"

const char *ck_kind_name(enum ck_kind kind)
{
	return kind == CK_PER_RANK ? "per-rank" : "sharded";
}

int ck_kind_parse(const char *name, enum ck_kind *out, struct ck_error *err)
{
	char shown[CK_JSON_SHOW];

	if (strcmp(name, "sharded") == 0)
		*out = CK_SHARDED;
	else if (strcmp(name, "per-rank") == 0)
		*out = CK_PER_RANK;
	else
		return ck_fail(err, CK_EFORMAT, "unknown kind '%s'", ck_json_show(shown, name));
	return 0;
}

void ck_item_list_fini(struct ck_item_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->items[i].name);
		free(list->items[i].blocks);
	}
	free(list->items);
	free(list->flat);
	free(list->slots);
	*list = (struct ck_item_list){0};
}

/* FNV-1a. */
static size_t hash_name(const char *name)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
	return (size_t)(hash ^ hash >> 32);
}

/* The slot of a name: of the item that has it, or the free one where it would go. */
static size_t *slot_of(const struct ck_item_list *list, const char *name)
{
	size_t i = hash_name(name) & (list->nslots - 1);

	while (list->slots[i] && strcmp(list->items[list->slots[i] - 1].name, name) != 0)
		i = (i + 1) & (list->nslots - 1);
	return &list->slots[i];
}

/* Bring the hash up to date with items that were added since; they may have come by hand. */
static int hash_items(struct ck_item_list *list, struct ck_error *err)
{
	if (list->count >= list->nslots / 2) {
		size_t nslots = 64, *slots;

		while (nslots < 4 * (list->count + 1))
			nslots *= 2;
		slots = calloc(nslots, sizeof(*slots));
		if (!slots)
			return ck_fail_nomem(err, nslots * sizeof(*slots));
		free(list->slots);
		list->slots = slots;
		list->nslots = nslots;
		list->hashed = 0;
	}
	for (; list->hashed < list->count; list->hashed++)
		*slot_of(list, list->items[list->hashed].name) = list->hashed + 1;
	return 0;
}

/* 0 and where it stands; 1 when there is no such item; CK_ENOMEM. */
static int look_up(struct ck_item_list *list, const char *name, size_t *at, struct ck_error *err)
{
	int rc = hash_items(list, err);
	size_t slot;

	if (rc)
		return rc;
	slot = *slot_of(list, name);
	if (slot == 0)
		return 1;
	*at = slot - 1;
	return 0;
}

int ck_item_list_find(struct ck_item_list *list, const char *name, size_t *item,
		      struct ck_error *err)
{
	char shown[CK_JSON_SHOW];
	int rc = look_up(list, name, item, err);

	return rc <= 0 ? rc : ck_fail(err, CK_ENOENT, "no item '%s'", ck_json_show(shown, name));
}

static int compare_items(const void *a, const void *b)
{
	return strcmp(((const struct ck_item *)a)->name, ((const struct ck_item *)b)->name);
}

void ck_item_list_sort(struct ck_item_list *list)
{
	if (list->count == 0)
		return;
	qsort(list->items, list->count, sizeof(*list->items), compare_items);
	if (list->slots)
		memset(list->slots, 0, list->nslots * sizeof(*list->slots));
	list->hashed = 0;
}

static int compare_name(const void *name, const void *item)
{
	return strcmp(name, ((const struct ck_item *)item)->name);
}

const struct ck_item *ck_item_list_search(const struct ck_item_list *list, const char *name)
{
	if (list->count == 0)
		return NULL;
	return bsearch(name, list->items, list->count, sizeof(*list->items), compare_name);
}

int ck_item_list_append(struct ck_item_list *list, const struct ck_item *item, struct ck_error *err)
{
	struct ck_item copy = *item;

	if (list->count >= list->capacity) {
		size_t capacity = list->count < 8 ? 8 : 2 * list->count;
		struct ck_item *items = realloc(list->items, capacity * sizeof(*items));

		if (!items)
			return ck_fail_nomem(err, capacity * sizeof(*items));
		list->items = items;
		list->capacity = capacity;
	}
	copy.blocks = NULL;
	copy.nblocks = 0;
	copy.name = strdup(item->name);
	if (!copy.name)
		return ck_fail_nomem(err, strlen(item->name) + 1);
	list->items[list->count++] = copy;
	return 0;
}

static int fail_shapes(const struct ck_item *a, const char *a_is, const struct ck_item *b,
		       const char *b_is, const char *shown, int code, struct ck_error *err)
{
	struct ck_buf text = CK_BUF_INIT;
	int rc;

	ck_shape_print(&text, a->ndim, a->shape);
	ck_buf_addf(&text, " (%s) and ", a_is);
	ck_shape_print(&text, b->ndim, b->shape);
	ck_buf_addf(&text, " (%s)", b_is);
	rc = ck_buf_check(&text, err);
	if (rc == 0)
		rc = ck_fail(err, code, "item '%s': global shape %s", shown, text.data);
	ck_buf_fini(&text);
	return rc;
}

int ck_item_same(const struct ck_item *a, const char *a_is, const struct ck_item *b,
		 const char *b_is, int code, struct ck_error *err)
{
	char shown[CK_JSON_SHOW];

	ck_json_show(shown, a->name);
	if (a->kind != b->kind)
		return ck_fail(err, code, "item '%s': %s (%s) and %s (%s)", shown,
			       ck_kind_name(a->kind), a_is, ck_kind_name(b->kind), b_is);
	if (a->dtype != b->dtype)
		return ck_fail(err, code, "item '%s': dtype %s (%s) and %s (%s)", shown,
			       ck_dtype_name(a->dtype), a_is, ck_dtype_name(b->dtype), b_is);
	if (a->kind == CK_SHARDED &&
	    (a->ndim != b->ndim ||
	     memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof(*a->shape)) != 0))
		return fail_shapes(a, a_is, b, b_is, shown, code, err);
	return 0;
}

/* What the shape alone tells. Extents and offsets travel through JSON, so 2^53 bounds them. */
static int check_shape(const struct ck_item *item, struct ck_error *err)
{
	uint64_t volume, bytes;

	for (int d = 0; d < item->ndim; d++)
		if (item->shape[d] > CK_JSON_INT_MAX)
			return ck_fail(err, CK_EARG,
				       "extent %" PRIu64 " of dimension %d is not below 2^53",
				       item->shape[d], d);
	if (!ck_volume(item->ndim, item->shape, &volume) ||
	    !ck_mul_u64(volume, ck_dtype_size(item->dtype), &bytes) || bytes > CK_JSON_INT_MAX)
		return ck_fail(err, CK_EARG, "the tensor has 2^53 bytes or more");
	return 0;
}

static int fail_outside(const struct ck_box *box, const struct ck_item *item, struct ck_error *err)
{
	struct ck_buf text = CK_BUF_INIT;
	int rc;

	ck_buf_add_str(&text, "block of shape ");
	ck_shape_print(&text, box->ndim, box->extent);
	ck_buf_add_str(&text, " at ");
	ck_shape_print(&text, box->ndim, box->offset);
	ck_buf_add_str(&text, " leaves the tensor ");
	ck_shape_print(&text, item->ndim, item->shape);
	rc = ck_buf_check(&text, err);
	if (rc == 0)
		rc = ck_fail(err, CK_EARG, "%s", text.data);
	ck_buf_fini(&text);
	return rc;
}

static int fail_overlap(const struct ck_box *a, const struct ck_box *b, struct ck_error *err)
{
	struct ck_buf text = CK_BUF_INIT;
	int rc;

	ck_box_print(&text, a);
	ck_buf_add_str(&text, " and ");
	ck_box_print(&text, b);
	rc = ck_buf_check(&text, err);
	if (rc == 0)
		rc = ck_fail(err, CK_EARG, "blocks %s of one rank %s", text.data,
			     ck_box_equal(a, b) ? "are the same" : "overlap");
	ck_buf_fini(&text);
	return rc;
}

/* Does a block fit the shape and the blocks that are there? */
static int check_block(const struct ck_item *shape, const struct ck_item *there,
		       const struct ck_box *box, struct ck_error *err)
{
	if (box->ndim != shape->ndim)
		return ck_fail(err, CK_EARG, "a block of %d dimensions in a tensor of %d",
			       box->ndim, shape->ndim);
	if (!ck_box_inside(box, shape->shape))
		return fail_outside(box, shape, err);
	if (!there)
		return 0;
	if (there->nblocks >= CK_PARTS_MAX)
		return ck_fail(err, CK_EARG, "more than %d blocks of one rank", CK_PARTS_MAX);
	for (size_t i = 0; i < there->nblocks; i++)
		if (ck_box_overlap(&there->blocks[i], box))
			return fail_overlap(&there->blocks[i], box, err);
	return 0;
}

static int push_block(struct ck_item *item, const struct ck_box *box, struct ck_error *err)
{
	size_t bytes = (item->nblocks + 1) * sizeof(*box);
	struct ck_box *blocks = realloc(item->blocks, bytes);

	if (!blocks)
		return ck_fail_nomem(err, bytes);
	item->blocks = blocks;
	blocks[item->nblocks++] = *box;
	return 0;
}

/* Checks of an item that is new (at == count) or has been registered before. */
static int check_item(const struct ck_item_list *list, size_t at, const struct ck_item *wanted,
		      const struct ck_box *box, struct ck_error *err)
{
	const struct ck_item *there = at < list->count ? &list->items[at] : NULL;
	char shown[CK_JSON_SHOW];
	int rc;

	/* Another shape is told before a block that does not fit it. */
	if (there && ck_item_same(there, "before", wanted, "now", CK_EARG, err))
		return CK_EARG;
	if (wanted->kind == CK_PER_RANK)
		rc = there ? ck_fail(err, CK_EARG, "registered twice") : 0;
	else
		rc = check_block(wanted, there, box, err);
	if (rc)
		ck_error_prefix(err, "item '%s'", ck_json_show(shown, wanted->name));
	return rc;
}

/* box is NULL for a per-rank item. */
static int add_item(struct ck_item_list *list, const struct ck_item *wanted,
		    const struct ck_box *box, size_t *item, struct ck_error *err)
{
	size_t at = list->count, before = list->count;
	int rc = look_up(list, wanted->name, &at, err);

	if (rc < 0)
		return rc;
	rc = check_item(list, at, wanted, box, err);
	if (rc == 0 && at == before)
		rc = ck_item_list_append(list, wanted, err);
	if (rc)
		return rc;
	if (box)
		rc = push_block(&list->items[at], box, err);
	if (rc == 0) {
		*item = at;
	} else if (at == before) {
		free(list->items[at].name);
		list->count--;
	}
	return rc;
}

int ck_item_list_add_block(struct ck_item_list *list, const char *name, enum ck_dtype dtype,
			   int ndim, const uint64_t *shape, const struct ck_box *box, size_t *item,
			   size_t *block, struct ck_error *err)
{
	struct ck_item wanted = {.name = (char *)name, .kind = CK_SHARDED, .dtype = dtype};
	char shown[CK_JSON_SHOW];
	int rc = ck_item_name_check(name, err);

	if (rc)
		return rc;
	ck_json_show(shown, name);
	if (!ck_dtype_name((int)dtype))
		return ck_fail(err, CK_EARG, "item '%s': %d is no dtype", shown, (int)dtype);
	if (ndim < 0 || ndim > CK_MAX_NDIM)
		return ck_fail(err, CK_EARG, "item '%s': %d dimensions, 0 to %d wanted", shown,
			       ndim, CK_MAX_NDIM);
	wanted.ndim = ndim;
	if (ndim)
		memcpy(wanted.shape, shape, (size_t)ndim * sizeof(*shape));
	rc = check_shape(&wanted, err);
	if (rc) {
		ck_error_prefix(err, "item '%s'", shown);
		return rc;
	}
	rc = add_item(list, &wanted, box, item, err);
	if (rc == 0)
		*block = list->items[*item].nblocks - 1;
	return rc;
}

int ck_item_list_add_rank(struct ck_item_list *list, const char *name, size_t *item,
			  struct ck_error *err)
{
	struct ck_item wanted = {.name = (char *)name, .kind = CK_PER_RANK, .dtype = CK_U8};
	int rc = ck_item_name_check(name, err);

	return rc ? rc : add_item(list, &wanted, NULL, item, err);
}
