#include "slabs.h"

#include <stdlib.h>
#include <string.h>

/* Below so many bytes for each rank an item is not cut: its headers would cost more than it evens out. */
#define WORTH_CUTTING 65536

void ck_slabs_init(struct ck_slabs *slabs, const struct ck_box *box, uint64_t most)
{
	uint64_t inner = 1;
	int d;

	*slabs = (struct ck_slabs){.box = *box, .done = ck_box_empty(box), .rows = 1};
	if (slabs->done)
		return;
	/* The innermost dimensions that fit whole; the next one out is cut. */
	for (d = box->ndim - 1; d > 0 && box->extent[d] <= most / inner; d--)
		inner *= box->extent[d];
	slabs->dim = d > 0 ? d : 0;
	if (box->ndim) {
		slabs->rows = most / inner;
		if (slabs->rows == 0)
			slabs->rows = 1;
	}
}

bool ck_slabs_next(struct ck_slabs *slabs, struct ck_box *out)
{
	const struct ck_box *box = &slabs->box;
	int dim = slabs->dim;
	uint64_t left;

	if (slabs->done)
		return false;
	*out = *box;
	if (box->ndim == 0) {
		slabs->done = true;
		return true;
	}
	for (int d = 0; d <= dim; d++) {
		out->offset[d] = box->offset[d] + slabs->index[d];
		out->extent[d] = 1;
	}
	left = box->extent[dim] - slabs->index[dim];
	out->extent[dim] = left < slabs->rows ? left : slabs->rows;
	slabs->index[dim] += out->extent[dim];
	for (int d = dim; d >= 0 && slabs->index[d] == box->extent[d]; d--) {
		slabs->index[d] = 0;
		if (d == 0)
			slabs->done = true;
		else
			slabs->index[d - 1]++;
	}
	return true;
}

/* ---- dealing items ---- */

static uint64_t bytes_of(const struct ck_item *item)
{
	uint64_t volume = 0;

	ck_volume(item->ndim, item->shape, &volume);
	return volume * ck_dtype_size((int)item->dtype);
}

static int dim_to_cut(const struct ck_item *item, uint32_t world)
{
	int longest = 0;

	for (int d = 0; d < item->ndim; d++) {
		if (item->shape[d] >= world)
			return d;
		if (item->shape[d] > item->shape[longest])
			longest = d;
	}
	return longest;
}

static int add(struct ck_layout *out, size_t item, uint32_t rank, const struct ck_box *box,
	       uint64_t *load, struct ck_error *err)
{
	struct ck_layout_block block = {.item = (uint32_t)item, .rank = rank};

	load[rank] += ck_box_volume(box) * ck_dtype_size((int)out->table->items[item].dtype);
	return ck_layout_add(out, &block, box, err);
}

static int cut(struct ck_layout *out, size_t i, uint32_t world, uint64_t *load,
	       struct ck_error *err)
{
	const struct ck_item *item = &out->table->items[i];
	int d = dim_to_cut(item, world), rc = 0;
	struct ck_box box = {.ndim = item->ndim};
	uint64_t whole = item->shape[d] / world, more = item->shape[d] % world;

	memcpy(box.extent, item->shape, sizeof(box.extent));
	/* The first `more` parts are longer by one. */
	for (uint32_t r = 0; r < world && !rc; r++) {
		box.extent[d] = whole + (r < more);
		rc = add(out, i, r, &box, load, err);
		box.offset[d] += box.extent[d];
	}
	return rc;
}

static int give(struct ck_layout *out, size_t i, uint32_t world, uint64_t *load,
		struct ck_error *err)
{
	const struct ck_item *item = &out->table->items[i];
	struct ck_box box = {.ndim = item->ndim};
	uint32_t least = 0;

	memcpy(box.extent, item->shape, sizeof(box.extent));
	for (uint32_t r = 1; r < world; r++)
		if (load[r] < load[least])
			least = r;
	return add(out, i, least, &box, load, err);
}

int ck_slabs_deal(const struct ck_item_list *table, uint32_t world, struct ck_layout *out,
		  struct ck_error *err)
{
	uint64_t *load = calloc((size_t)world + 1, sizeof(*load));
	int rc = 0;

	if (!load)
		return ck_fail_nomem(err, world * sizeof(*load));
	for (int large = 1; large >= 0; large--) {
		for (size_t i = 0; i < table->count && !rc; i++) {
			const struct ck_item *item = &table->items[i];
			bool flat = table->flat && strcmp(table->flat, item->name) == 0;
			bool cuts = item->ndim && (flat || bytes_of(item) / WORTH_CUTTING >= world);

			if (item->kind == CK_PER_RANK || cuts != (large == 1))
				continue;
			rc = cuts ? cut(out, i, world, load, err) : give(out, i, world, load, err);
		}
	}
	free(load);
	return rc ? rc : ck_layout_sort(out, err);
}
