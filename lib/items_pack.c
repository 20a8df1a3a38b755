#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "deal.h"
#include "json.h"
#include "names.h"

/*
 * All numbers little endian. u64 count of items, flat as a text ("" is none); then per item, by
 * name: text name, u32 kind, u32 dtype, u32 ndim, ndim u64 shape, u64 count of blocks; then per
 * block, by box: ndim u64 offset, ndim u64 extent. A text is a u32 length and its bytes.
 */

static void pack_text(struct ck_buf *out, const char *text)
{
	ck_buf_add_u32(out, (uint32_t)strlen(text));
	ck_buf_add_str(out, text);
}

static void pack_values(struct ck_buf *out, int ndim, const uint64_t *values)
{
	for (int d = 0; d < ndim; d++)
		ck_buf_add_u64(out, values[d]);
}

static int compare_boxes(const void *a, const void *b)
{
	return ck_box_cmp(*(const struct ck_box *const *)a, *(const struct ck_box *const *)b);
}

static int pack_blocks(const struct ck_item *item, struct ck_buf *out, struct ck_error *err)
{
	const struct ck_box **boxes = calloc(item->nblocks + 1, sizeof(*boxes));
	size_t count = 0;

	if (!boxes)
		return ck_fail_nomem(err, item->nblocks * sizeof(*boxes));
	for (size_t i = 0; i < item->nblocks; i++)
		if (!ck_box_empty(&item->blocks[i]))
			boxes[count++] = &item->blocks[i];
	qsort(boxes, count, sizeof(*boxes), compare_boxes);
	ck_buf_add_u64(out, count);
	for (size_t i = 0; i < count; i++) {
		pack_values(out, item->ndim, boxes[i]->offset);
		pack_values(out, item->ndim, boxes[i]->extent);
	}
	free(boxes);
	return 0;
}

static int pack_item(const struct ck_item *item, struct ck_buf *out, struct ck_error *err)
{
	pack_text(out, item->name);
	ck_buf_add_u32(out, (uint32_t)item->kind);
	ck_buf_add_u32(out, (uint32_t)item->dtype);
	ck_buf_add_u32(out, (uint32_t)item->ndim);
	pack_values(out, item->ndim, item->shape);
	return pack_blocks(item, out, err);
}

static int compare_items(const void *a, const void *b)
{
	const struct ck_item *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

int ck_item_list_pack(const struct ck_item_list *list, struct ck_buf *out, struct ck_error *err)
{
	const struct ck_item **order = calloc(list->count + 1, sizeof(*order));
	int rc = 0;

	if (!order)
		return ck_fail_nomem(err, list->count * sizeof(*order));
	for (size_t i = 0; i < list->count; i++)
		order[i] = &list->items[i];
	qsort(order, list->count, sizeof(*order), compare_items);
	ck_buf_add_u64(out, list->count);
	pack_text(out, list->flat ? list->flat : "");
	for (size_t i = 0; i < list->count && rc == 0; i++)
		rc = pack_item(order[i], out, err);
	free(order);
	return rc ? rc : ck_buf_check(out, err);
}

static int fail_packed(struct ck_error *err, const char *problem)
{
	return ck_fail(err, CK_EFORMAT, "packed items: %s", problem);
}

/* A text as a string of its own; NULL in *text after a failure. */
static int unpack_text(struct ck_reader *reader, char **text, struct ck_error *err)
{
	uint32_t bytes = ck_read_u32(reader);
	const void *from = bytes <= CK_ITEM_NAME_MAX ? ck_read_bytes(reader, bytes) : NULL;

	*text = NULL;
	if (reader->failed || !from)
		return fail_packed(err, "a name is cut or too long");
	if (memchr(from, '\0', bytes))
		return fail_packed(err, "a NUL in a name");
	*text = strndup(from, bytes);
	return *text ? 0 : ck_fail_nomem(err, bytes);
}

static void unpack_values(struct ck_reader *reader, int ndim, uint64_t *values)
{
	for (int d = 0; d < ndim; d++)
		values[d] = ck_read_u64(reader);
}

/* The numbers in front of the blocks: kind, dtype, ndim, shape. */
static int unpack_head(struct ck_reader *reader, struct ck_item *item, struct ck_error *err)
{
	uint32_t kind = ck_read_u32(reader), dtype = ck_read_u32(reader);
	uint32_t ndim = ck_read_u32(reader);
	uint64_t volume;

	if (reader->failed || kind > CK_PER_RANK || dtype >= CK_DTYPES || ndim > CK_MAX_NDIM)
		return fail_packed(err, "kind, dtype or number of dimensions out of range");
	item->kind = (enum ck_kind)kind;
	item->dtype = (enum ck_dtype)dtype;
	item->ndim = (int)ndim;
	unpack_values(reader, item->ndim, item->shape);
	if (reader->failed || !ck_volume(item->ndim, item->shape, &volume) ||
	    volume > CK_JSON_INT_MAX / ck_dtype_size(item->dtype))
		return fail_packed(err, "shape cut or too large");
	return 0;
}

static int unpack_blocks(struct ck_reader *reader, struct ck_item *item, struct ck_error *err)
{
	uint64_t count = ck_read_u64(reader);
	size_t room = (reader->len - reader->pos) / (16 * (size_t)(item->ndim ? item->ndim : 1));

	/* A scalar's block has no bytes of its own, and there is but one. */
	if (item->ndim == 0)
		room = item->kind == CK_SHARDED;
	if (reader->failed || count > room || count > CK_PARTS_MAX ||
	    (item->kind == CK_PER_RANK && count))
		return fail_packed(err, "more blocks than there can be");
	item->blocks = count ? calloc(count, sizeof(*item->blocks)) : NULL;
	if (count && !item->blocks)
		return ck_fail_nomem(err, count * sizeof(*item->blocks));
	for (uint64_t i = 0; i < count; i++) {
		struct ck_box *box = &item->blocks[item->nblocks++];

		box->ndim = item->ndim;
		unpack_values(reader, box->ndim, box->offset);
		unpack_values(reader, box->ndim, box->extent);
		if (reader->failed || !ck_box_inside(box, item->shape) || ck_box_empty(box))
			return fail_packed(err, "a block is cut, empty or leaves its tensor");
		if (i && ck_box_cmp(box - 1, box) >= 0)
			return fail_packed(err, "blocks out of order");
	}
	return 0;
}

static int unpack_item(struct ck_reader *reader, struct ck_item *item, struct ck_error *err)
{
	int rc = unpack_text(reader, &item->name, err);

	if (rc)
		return rc;
	if (ck_item_name_check(item->name, err))
		return fail_packed(err, "a bad item name");
	rc = unpack_head(reader, item, err);
	return rc ? rc : unpack_blocks(reader, item, err);
}

static int unpack_items(struct ck_reader *reader, uint64_t count, struct ck_item_list *list,
			struct ck_error *err)
{
	int rc;

	/* An item takes more than 16 bytes: a count cannot make us ask for more than was sent. */
	if (reader->failed || count > reader->len / 16)
		return fail_packed(err, "more items than there can be");
	list->items = count ? calloc(count, sizeof(*list->items)) : NULL;
	if (count && !list->items)
		return ck_fail_nomem(err, count * sizeof(*list->items));
	list->capacity = count;
	for (uint64_t i = 0; i < count; i++) {
		struct ck_item *item = &list->items[list->count++];

		rc = unpack_item(reader, item, err);
		if (rc)
			return rc;
		if (i && strcmp(item[-1].name, item->name) >= 0)
			return fail_packed(err, "items out of order");
	}
	return reader->pos == reader->len ? 0 : fail_packed(err, "trailing bytes");
}

int ck_item_list_unpack(const void *data, size_t bytes, struct ck_item_list *out,
			struct ck_error *err)
{
	struct ck_reader reader = {.data = data, .len = bytes};
	struct ck_item_list list = {0};
	uint64_t count = ck_read_u64(&reader);
	int rc = unpack_text(&reader, &list.flat, err);

	if (rc == 0 && list.flat[0] == '\0') {
		free(list.flat);
		list.flat = NULL;
	}
	if (rc == 0)
		rc = unpack_items(&reader, count, &list, err);
	if (rc)
		ck_item_list_fini(&list);
	else
		*out = list;
	return rc;
}

#define RUN_BYTES 12

/*
 * A duty: u64 count of items, then per item: text name, u32 ndim, u64 count of blocks, then per
 * block: offset and extent as above, u32 writer, u32 count of runs (0: this rank alone), then per
 * run u32 first rank, u32 count, u32 stride.
 */

void ck_duty_fini(struct ck_duty *duty)
{
	for (size_t i = 0; i < duty->count; i++) {
		struct ck_duty_item *item = &duty->items[i];

		for (size_t b = 0; b < item->nblocks; b++)
			free(item->blocks[b].holders);
		free(item->blocks);
		free(item->name);
	}
	free(duty->items);
	*duty = (struct ck_duty){0};
}

/* How many of n ascending ranks follow at one distance: mostly all, one after the other. */
static uint32_t run_length(const struct ck_layout_block *holders, size_t n)
{
	size_t count = n < 2 ? n : 2;

	if (holders[n - 1].rank - holders[0].rank == n - 1)
		return (uint32_t)n;
	while (count < n &&
	       holders[count].rank - holders[count - 1].rank == holders[1].rank - holders[0].rank)
		count++;
	return (uint32_t)count;
}

static void pack_holders(const struct ck_deal *deal, const struct ck_deal_block *block,
			 struct ck_buf *out)
{
	struct ck_buf runs = CK_BUF_INIT;
	uint32_t count;

	for (size_t i = 0; i < block->nholders && block->nholders > 1; i += count) {
		const struct ck_layout_block *holders = deal->layout.blocks + block->first + i;

		count = run_length(holders, block->nholders - i);
		ck_buf_add_u32(&runs, holders[0].rank);
		ck_buf_add_u32(&runs, count);
		ck_buf_add_u32(&runs, count > 1 ? holders[1].rank - holders[0].rank : 1);
	}
	out->failed = out->failed || runs.failed;
	ck_buf_add_u32(out, (uint32_t)(runs.len / RUN_BYTES));
	ck_buf_add(out, runs.data, runs.len);
	ck_buf_fini(&runs);
}

/* The blocks of one item among a rank's blocks: how many of the n at the front. */
static size_t same_item(const struct ck_deal *deal, const size_t *blocks, size_t n)
{
	size_t count = 0;

	while (count < n && deal->blocks[blocks[count]].item == deal->blocks[blocks[0]].item)
		count++;
	return count;
}

int ck_duty_pack(const struct ck_deal *deal, uint32_t rank, struct ck_buf *out,
		 struct ck_error *err)
{
	const size_t *blocks = deal->rank_blocks + deal->rank_first[rank];
	size_t n = deal->rank_first[rank + 1] - deal->rank_first[rank], items = 0, i;

	for (i = 0; i < n; items++)
		i += same_item(deal, blocks + i, n - i);
	ck_buf_add_u64(out, items);
	while (n > 0) {
		const struct ck_item *item = &deal->table.items[deal->blocks[blocks[0]].item];
		size_t count = same_item(deal, blocks, n);

		pack_text(out, item->name);
		ck_buf_add_u32(out, (uint32_t)item->ndim);
		ck_buf_add_u64(out, count);
		for (i = 0; i < count; i++) {
			const struct ck_deal_block *block = &deal->blocks[blocks[i]];

			pack_values(out, 2 * item->ndim,
				    deal->layout.coords + deal->layout.blocks[block->first].coords);
			ck_buf_add_u32(out, block->writer);
			pack_holders(deal, block, out);
		}
		blocks += count;
		n -= count;
	}
	return ck_buf_check(out, err);
}

static int fail_duty(struct ck_error *err, const char *problem)
{
	return ck_fail(err, CK_EFORMAT, "packed duty: %s", problem);
}

/* Add the ranks of one run; they go on rising. */
static int unpack_run(struct ck_reader *reader, struct ck_duty_block *block, struct ck_error *err)
{
	uint64_t rank = ck_read_u32(reader);
	uint32_t count = ck_read_u32(reader), stride = ck_read_u32(reader), *holders;
	uint64_t floor = block->nholders ? block->holders[block->nholders - 1] + UINT64_C(1) : 0;

	if (reader->failed || count == 0 || stride == 0 || rank < floor || count > CK_WORLD_MAX ||
	    rank + (uint64_t)(count - 1) * stride >= CK_WORLD_MAX)
		return fail_duty(err, "holders cut or out of range");
	holders = realloc(block->holders, (block->nholders + count) * sizeof(*holders));
	if (!holders)
		return ck_fail_nomem(err, (block->nholders + count) * sizeof(*holders));
	block->holders = holders;
	for (uint32_t i = 0; i < count; i++, rank += stride)
		holders[block->nholders++] = (uint32_t)rank;
	return 0;
}

static int unpack_duty_block(struct ck_reader *reader, struct ck_duty_block *block,
			     struct ck_error *err)
{
	uint64_t volume;
	uint32_t runs;
	int rc = 0;

	unpack_values(reader, block->box.ndim, block->box.offset);
	unpack_values(reader, block->box.ndim, block->box.extent);
	block->writer = ck_read_u32(reader);
	runs = ck_read_u32(reader);
	if (reader->failed || !ck_volume(block->box.ndim, block->box.extent, &volume) || !volume ||
	    block->writer >= CK_WORLD_MAX)
		return fail_duty(err, "a block is cut or out of range");
	for (uint32_t i = 0; i < runs && rc == 0; i++)
		rc = unpack_run(reader, block, err);
	if (runs == 0)
		block->nholders = 1;
	return rc;
}

static int unpack_duty_item(struct ck_reader *reader, struct ck_duty_item *item,
			    struct ck_error *err)
{
	int rc = unpack_text(reader, &item->name, err);
	uint32_t ndim = ck_read_u32(reader);
	uint64_t count = ck_read_u64(reader);

	if (rc)
		return rc;
	if (reader->failed || ndim > CK_MAX_NDIM || count == 0 || count > CK_PARTS_MAX ||
	    count > (reader->len - reader->pos) / 8)
		return fail_duty(err, "an item is cut or has too many blocks");
	item->blocks = calloc(count, sizeof(*item->blocks));
	if (!item->blocks)
		return ck_fail_nomem(err, count * sizeof(*item->blocks));
	for (uint64_t i = 0; i < count && rc == 0; i++) {
		struct ck_duty_block *block = &item->blocks[item->nblocks++];

		block->box.ndim = (int)ndim;
		rc = unpack_duty_block(reader, block, err);
	}
	return rc;
}

int ck_duty_unpack(const void *data, size_t bytes, struct ck_duty *out, struct ck_error *err)
{
	struct ck_reader reader = {.data = data, .len = bytes};
	struct ck_duty duty = {0};
	uint64_t count = ck_read_u64(&reader);
	int rc = 0;

	if (reader.failed || count > bytes / 16)
		return fail_duty(err, "more items than there can be");
	duty.items = calloc(count + 1, sizeof(*duty.items));
	if (!duty.items)
		return ck_fail_nomem(err, count * sizeof(*duty.items));
	for (uint64_t i = 0; i < count && rc == 0; i++)
		rc = unpack_duty_item(&reader, &duty.items[duty.count++], err);
	if (rc == 0 && reader.pos != reader.len)
		rc = fail_duty(err, "trailing bytes");
	if (rc)
		ck_duty_fini(&duty);
	else
		*out = duty;
	return rc;
}
