#include "share.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

static int fail_packed(struct ck_error *err, const char *what)
{
	return ck_fail(err, CK_EFORMAT, "packed %s: cut, or out of range", what);
}

/* ---- file entries ---- */

void ck_share_pack_file(uint32_t number, const struct ck_file *file, struct ck_buf *out)
{
	uint64_t chunks = ck_chunk_count(file->bytes, file->chunk_bytes);

	ck_buf_add_u32(out, number);
	ck_buf_add_u32(out, file->rank);
	ck_buf_add_u32(out, file->part);
	ck_buf_add_u32(out, file->crc32);
	ck_buf_add_u64(out, file->bytes);
	ck_buf_add_u64(out, file->chunk_bytes);
	ck_buf_add(out, file->sha256, CK_SHA256_HEX);
	for (uint64_t i = 0; i < chunks; i++)
		ck_buf_add_u32(out, file->chunk_crc32[i]);
}

void ck_share_files_free(struct ck_share_file *files, size_t count)
{
	for (size_t i = 0; files && i < count; i++)
		free(files[i].file.chunk_crc32);
	free(files);
}

static int unpack_chunks(struct ck_reader *reader, struct ck_file *file, struct ck_error *err)
{
	uint64_t chunks;

	if (reader->failed || file->chunk_bytes < 4096 ||
	    (file->chunk_bytes & (file->chunk_bytes - 1)))
		return fail_packed(err, "file entries");
	chunks = ck_chunk_count(file->bytes, file->chunk_bytes);
	if (chunks > (reader->len - reader->pos) / sizeof(uint32_t))
		return fail_packed(err, "file entries");
	file->chunk_crc32 = calloc(chunks + 1, sizeof(uint32_t));
	if (!file->chunk_crc32)
		return ck_fail_nomem(err, chunks * sizeof(uint32_t));
	for (uint64_t i = 0; i < chunks; i++)
		file->chunk_crc32[i] = ck_read_u32(reader);
	return 0;
}

static int unpack_file(struct ck_reader *reader, struct ck_share_file *out, struct ck_error *err)
{
	struct ck_file *file = &out->file;
	const void *sha256;

	out->number = ck_read_u32(reader);
	file->rank = ck_read_u32(reader);
	file->part = ck_read_u32(reader);
	file->crc32 = ck_read_u32(reader);
	file->bytes = ck_read_u64(reader);
	file->chunk_bytes = ck_read_u64(reader);
	sha256 = ck_read_bytes(reader, CK_SHA256_HEX);
	if (!sha256 || file->rank >= CK_WORLD_MAX || file->part >= CK_PARTS_MAX)
		return fail_packed(err, "file entries");
	memcpy(file->sha256, sha256, CK_SHA256_HEX);
	ck_name_shard(file->rank, file->part, file->path);
	return unpack_chunks(reader, file, err);
}

int ck_share_unpack_files(const void *data, size_t bytes, struct ck_share_file **files,
			  size_t *count, struct ck_error *err)
{
	struct ck_reader reader = {.data = data, .len = bytes};
	/* An entry has 96 bytes and more. */
	struct ck_share_file *list = calloc(bytes / 96 + 1, sizeof(*list));
	size_t n = 0;
	int rc = 0;

	if (!list)
		return ck_fail_nomem(err, (bytes / 96 + 1) * sizeof(*list));
	while (reader.pos < reader.len && !rc)
		rc = n < bytes / 96 ? unpack_file(&reader, &list[n++], err)
				    : fail_packed(err, "file entries");
	if (rc) {
		ck_share_files_free(list, n);
		return rc;
	}
	*files = list;
	*count = n;
	return 0;
}

/* ---- headers ---- */

static void pack_coords(struct ck_buf *out, const uint64_t *coords, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ck_buf_add_u64(out, coords[i]);
}

static int fail_block(const struct ck_shard *shard, const struct ck_stored *block, const char *what,
		      struct ck_error *err)
{
	char shown[CK_JSON_SHOW];

	return ck_fail(err, CK_EFORMAT, "%s: item '%s': %s", shard->path,
		       ck_json_show(shown, block->name), what);
}

const char *ck_share_differs(const struct ck_stored *block, const struct ck_item *item)
{
	if (item->kind != block->kind)
		return "kind";
	if (item->kind == CK_PER_RANK)
		return NULL;
	if (item->dtype != block->dtype)
		return "dtype";
	if (item->ndim != block->ndim ||
	    memcmp(item->shape, block->shape, (size_t)item->ndim * sizeof(*item->shape)) != 0)
		return "global shape";
	return NULL;
}

static int check_block(const struct ck_shard *shard, const struct ck_stored *block,
		       const struct ck_item *item, struct ck_error *err)
{
	const char *differs = ck_share_differs(block, item);
	char what[64];

	if (!differs)
		return 0;
	snprintf(what, sizeof(what), "of another %s than the manifest says", differs);
	return fail_block(shard, block, what, err);
}

int ck_share_pack_header(uint32_t number, const struct ck_shard *shard, struct ck_item_list *table,
			 struct ck_buf *out, struct ck_error *err)
{
	ck_buf_add_u32(out, number);
	ck_buf_add_u32(out, (uint32_t)shard->nblocks);
	for (size_t i = 0; i < shard->nblocks; i++) {
		const struct ck_stored *block = &shard->blocks[i];
		size_t item;
		int rc = ck_item_list_find(table, block->name, &item, err);

		if (rc == CK_ENOENT)
			rc = fail_block(shard, block, "not in the manifest", err);
		if (!rc)
			rc = check_block(shard, block, &table->items[item], err);
		if (rc)
			return rc;
		ck_buf_add_u32(out, (uint32_t)item);
		ck_buf_add_u64(out, block->offset);
		pack_coords(out, block->box.offset, (size_t)block->box.ndim);
		pack_coords(out, block->box.extent, (size_t)block->box.ndim);
	}
	return ck_buf_check(out, err);
}

/* Item and box; false when they are not there. */
static bool read_box(struct ck_reader *reader, const struct ck_item_list *table, uint32_t item,
		     struct ck_box *box)
{
	if (reader->failed || item >= table->count)
		return false;
	box->ndim = table->items[item].kind == CK_PER_RANK ? 1 : table->items[item].ndim;
	for (int d = 0; d < box->ndim; d++)
		box->offset[d] = ck_read_u64(reader);
	for (int d = 0; d < box->ndim; d++)
		box->extent[d] = ck_read_u64(reader);
	return !reader->failed && (table->items[item].kind == CK_PER_RANK ||
				   ck_box_inside(box, table->items[item].shape));
}

static int unpack_header(struct ck_reader *reader, const struct ck_file *files, size_t nfiles,
			 struct ck_layout *stored, struct ck_error *err)
{
	uint32_t number = ck_read_u32(reader), count = ck_read_u32(reader);
	struct ck_box box;
	int rc = 0;

	if (reader->failed || number >= nfiles)
		return fail_packed(err, "headers");
	for (uint32_t i = 0; i < count && !rc; i++) {
		struct ck_layout_block block = {.item = ck_read_u32(reader)};

		block.rank = files[number].rank;
		block.file = number;
		block.at = ck_read_u64(reader);
		if (!read_box(reader, stored->table, block.item, &box))
			return fail_packed(err, "headers");
		rc = ck_layout_add(stored, &block, &box, err);
	}
	return rc;
}

int ck_share_unpack_headers(const void *data, size_t bytes, const struct ck_file *files,
			    size_t nfiles, struct ck_layout *stored, struct ck_error *err)
{
	struct ck_reader reader = {.data = data, .len = bytes};
	int rc = 0;

	while (reader.pos < reader.len && !rc)
		rc = unpack_header(&reader, files, nfiles, stored, err);
	return rc;
}

/* ---- shares ---- */

static void pack_block(const struct ck_layout *stored, const struct ck_layout *wanted,
		       const struct ck_reshard *plan, size_t b, struct ck_buf *out)
{
	const struct ck_layout_block *block = &stored->blocks[b];

	ck_buf_add_u32(out, block->item);
	ck_buf_add_u32(out, (uint32_t)(plan->first[b + 1] - plan->first[b]));
	ck_buf_add_u64(out, block->at);
	pack_coords(out, stored->coords + block->coords, (size_t)2 * block->ndim);
	for (size_t i = plan->first[b]; i < plan->first[b + 1]; i++) {
		const struct ck_layout_block *to = &wanted->blocks[plan->to[i]];

		ck_buf_add_u32(out, to->rank);
		ck_buf_add_u32(out, (uint32_t)to->at);
		pack_coords(out, wanted->coords + to->coords, (size_t)2 * to->ndim);
	}
}

void ck_share_pack(const struct ck_layout *stored, const struct ck_layout *wanted,
		   const struct ck_reshard *plan, size_t number, struct ck_buf *out)
{
	size_t begin = plan->file_first[number], end = plan->file_first[number + 1];

	ck_buf_add_u32(out, (uint32_t)number);
	ck_buf_add_u32(out, (uint32_t)(end - begin));
	for (size_t i = begin; i < end; i++)
		pack_block(stored, wanted, plan, plan->order[i], out);
}

int ck_share_next_file(struct ck_share_walk *walk, uint32_t *number, struct ck_error *err)
{
	if (walk->reader.pos == walk->reader.len)
		return 0;
	*number = ck_read_u32(&walk->reader);
	walk->blocks = ck_read_u32(&walk->reader);
	walk->moves = 0;
	return walk->reader.failed ? fail_packed(err, "share") : 1;
}

int ck_share_next_block(struct ck_share_walk *walk, struct ck_share_block *out,
			struct ck_error *err)
{
	struct ck_share_move left_out;
	uint64_t volume;

	while (walk->moves) {
		int rc = ck_share_next_move(walk, out, &left_out, err);

		if (rc < 0)
			return rc;
	}
	if (!walk->blocks)
		return 0;
	out->item = ck_read_u32(&walk->reader);
	walk->moves = out->moves = ck_read_u32(&walk->reader);
	out->at = ck_read_u64(&walk->reader);
	if (!read_box(&walk->reader, walk->table, out->item, &out->box) ||
	    !ck_volume(out->box.ndim, out->box.extent, &volume))
		return fail_packed(err, "share");
	out->element = ck_dtype_size((int)walk->table->items[out->item].dtype);
	if (!ck_mul_u64(volume, out->element, &out->bytes) || out->bytes > CK_JSON_INT_MAX ||
	    out->at > CK_JSON_INT_MAX)
		return fail_packed(err, "share");
	walk->blocks--;
	return 1;
}

int ck_share_next_move(struct ck_share_walk *walk, const struct ck_share_block *block,
		       struct ck_share_move *out, struct ck_error *err)
{
	if (!walk->moves)
		return 0;
	out->rank = ck_read_u32(&walk->reader);
	out->slot = ck_read_u32(&walk->reader);
	if (!read_box(&walk->reader, walk->table, block->item, &out->box))
		return fail_packed(err, "share");
	walk->moves--;
	return 1;
}
