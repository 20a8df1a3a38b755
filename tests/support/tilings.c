#include "tilings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *what)
{
	printf("Bail out! tilings: %s\n", what);
	exit(1);
}

struct ck_box range(uint64_t begin, uint64_t end)
{
	return (struct ck_box){.ndim = 1, .offset = {begin}, .extent = {end - begin}};
}

void tile_shape(uint64_t *state, int ndim, const uint64_t *shape, size_t count, struct ck_box *out)
{
	out[0] = (struct ck_box){.ndim = ndim};
	for (int d = 0; d < ndim; d++)
		out[0].extent[d] = shape[d];
	for (size_t n = 1; n < count; n++) {
		struct ck_box *box = &out[draw(state, n)];
		int d = ndim ? (int)draw(state, (uint64_t)ndim) : 0;
		uint64_t at = ndim ? draw(state, box->extent[d] + 1) : 0;

		out[n] = *box;
		if (!ndim)
			die("a scalar cannot be cut");
		box->extent[d] = at;
		out[n].offset[d] += at;
		out[n].extent[d] -= at;
	}
}

void plain_copy(const struct ck_box *whole, void *whole_data, const struct ck_box *part,
		void *part_data, size_t element, int in)
{
	uint64_t volume = ck_box_volume(part);

	for (uint64_t i = 0; i < volume; i++) {
		uint64_t rest = i, place = 0, stride = 1;
		char *a, *b = (char *)part_data + i * element;

		for (int d = part->ndim - 1; d >= 0; d--) {
			uint64_t index = part->offset[d] + rest % part->extent[d];

			rest /= part->extent[d];
			place += (index - whole->offset[d]) * stride;
			stride *= whole->extent[d];
		}
		a = (char *)whole_data + place * element;
		memcpy(in ? a : b, in ? b : a, element);
	}
}

struct ck_item_list draw_items(uint64_t *state, size_t count)
{
	static const uint64_t extents[] = {0, 1, 1, 2, 3, 5, 7, 8, 13};
	struct ck_item_list list = {.count = 0};

	for (size_t i = 0; i < count; i++) {
		char name[32];
		struct ck_item item = {.name = name,
				       .dtype = (enum ck_dtype)draw(state, CK_DTYPES)};

		snprintf(name, sizeof(name), "i%02zu", i);
		item.ndim = (int)draw(state, 5);
		for (int d = 0; d < item.ndim; d++)
			item.shape[d] = extents[draw(state, sizeof(extents) / sizeof(*extents))];
		if (item.ndim && draw(state, 8) == 0)
			item.shape[draw(state, (uint64_t)item.ndim)] = 0;
		if (ck_item_list_append(&list, &item, NULL))
			die("out of memory");
	}
	ck_item_list_sort(&list);
	return list;
}

static void add(struct ck_layout *layout, size_t item, uint32_t rank, const struct ck_box *box)
{
	struct ck_layout_block block = {.item = (uint32_t)item, .rank = rank, .file = rank};
	struct ck_error err = CK_ERROR_INIT;

	block.at = layout->nblocks;
	if (ck_layout_add(layout, &block, box, &err))
		die(err.text);
}

struct ck_layout draw_layout(uint64_t *state, const struct ck_item_list *table, uint32_t ranks,
			     int copies)
{
	struct ck_layout layout;
	struct ck_box boxes[64];

	ck_layout_init(&layout, table);
	for (size_t i = 0; i < table->count; i++) {
		const struct ck_item *item = &table->items[i];
		size_t count = item->ndim ? 1 + draw(state, 2 * ranks < 64 ? 2 * ranks : 64) : 1;

		if (item->kind == CK_PER_RANK)
			continue;
		tile_shape(state, item->ndim, item->shape, count, boxes);
		for (size_t b = 0; b < count; b++) {
			uint32_t rank = (uint32_t)draw(state, ranks);
			uint32_t more = copies ? (uint32_t)draw(state, ranks) : 0;

			for (uint32_t r = 0; r <= more; r++)
				add(&layout, i, (rank + r) % ranks, &boxes[b]);
		}
	}
	if (ck_layout_sort(&layout, NULL))
		die("out of memory");
	return layout;
}
