#include <cjson/cJSON.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crc32.h"
#include "json.h"
#include "names.h"
#include "parse.h"
#include "safetensors.h"
#include "shard.h"

/* A JSON object of __metadata__, its members sorted by key. */
struct map {
	const char *what;
	cJSON *tree;
	const cJSON **entries;
	size_t count;
};

static void map_fini(struct map *map)
{
	cJSON_Delete(map->tree);
	free(map->entries);
}

static int compare_entries(const void *a, const void *b)
{
	return strcmp((*(const cJSON *const *)a)->string, (*(const cJSON *const *)b)->string);
}

static int map_init(struct map *map, const char *what, const struct ck_st_header *header,
		    struct ck_error *err)
{
	const char *text = ck_st_meta(header, what);
	size_t i = 0;
	int rc;

	*map = (struct map){.what = what};
	if (!text)
		return ck_fail(err, CK_EFORMAT, "__metadata__ has no %s", what);
	rc = ck_json_parse(what, text, strlen(text), &map->tree, err);
	if (rc)
		return rc;
	for (const cJSON *node = map->tree->child; node; node = node->next)
		map->count++;
	map->entries = calloc(map->count + 1, sizeof(*map->entries));
	if (!map->entries)
		return ck_fail_nomem(err, map->count * sizeof(*map->entries));
	for (const cJSON *node = map->tree->child; node; node = node->next)
		map->entries[i++] = node;
	qsort(map->entries, map->count, sizeof(*map->entries), compare_entries);
	/* Keys are unique; with each tensor's entry found later, equal counts make it exact. */
	if (map->count != header->ntensors)
		return ck_fail(err, CK_EFORMAT, "%s has %zu entries for %zu tensor%s", what,
			       map->count, header->ntensors, ck_plural(header->ntensors));
	return 0;
}

static int map_find(const struct map *map, const char *name, const cJSON **out,
		    struct ck_error *err)
{
	cJSON key = {.string = (char *)name};
	const cJSON *wanted = &key, **found = NULL;

	if (map->count)
		found = bsearch(&wanted, map->entries, map->count, sizeof(*map->entries),
				compare_entries);
	if (!found)
		return ck_fail(err, CK_EFORMAT, "not in %s", map->what);
	if (!cJSON_IsObject(*found))
		return ck_fail(err, CK_EFORMAT, "%s: not an object", map->what);
	*out = *found;
	return 0;
}

/* "rank-<r>/<bare>", r without leading zeros, is this rank's? Then *bare points into name. */
static int bare_name(const char *name, uint32_t rank, const char **bare, struct ck_error *err)
{
	char prefix[32];
	int length = snprintf(prefix, sizeof(prefix), "rank-%" PRIu32 "/", rank);

	if (strncmp(name, prefix, (size_t)length) != 0)
		return ck_fail(err, CK_EFORMAT, "per-rank, but not named %s...", prefix);
	*bare = name + length;
	return 0;
}

static int check_per_rank(const struct ck_st_tensor *tensor, const cJSON *ckpt,
			  const struct ck_stored *block, struct ck_error *err)
{
	if (tensor->dtype != CK_U8 || tensor->ndim != 1)
		return ck_fail(err, CK_EFORMAT, "per-rank: %s of %d dimensions, U8 of 1 wanted",
			       ck_dtype_name(tensor->dtype), tensor->ndim);
	if (ck_json_has(ckpt, "global_shape"))
		return ck_fail(err, CK_EFORMAT, "ckpt: global_shape: null wanted for per-rank");
	if (block->box.offset[0] != 0)
		return ck_fail(err, CK_EFORMAT,
			       "DCP_SHARDING_INFO: offset %" PRIu64 ", 0 wanted for per-rank",
			       block->box.offset[0]);
	return 0;
}

static int fail_outside(const struct ck_stored *block, struct ck_error *err)
{
	struct ck_buf text = CK_BUF_INIT;
	int rc;

	ck_buf_add_str(&text, "shape ");
	ck_shape_print(&text, block->box.ndim, block->box.extent);
	ck_buf_add_str(&text, " at ");
	ck_shape_print(&text, block->box.ndim, block->box.offset);
	ck_buf_add_str(&text, " leaves the global shape ");
	ck_shape_print(&text, block->ndim, block->shape);
	rc = ck_buf_check(&text, err);
	if (rc == 0)
		rc = ck_fail(err, CK_EFORMAT, "%s", text.data);
	ck_buf_fini(&text);
	return rc;
}

static int check_sharded(const cJSON *ckpt, struct ck_stored *block, struct ck_error *err)
{
	uint64_t volume;
	size_t count;
	int rc = ck_json_u64_array("ckpt", ckpt, "global_shape", CK_MAX_NDIM, block->shape, &count,
				   err);

	if (rc)
		return rc;
	if (count != (size_t)block->ndim)
		return ck_fail(err, CK_EFORMAT,
			       "ckpt: global_shape has %zu dimensions, the tensor %d", count,
			       block->ndim);
	if (!ck_volume(block->ndim, block->shape, &volume) ||
	    volume > CK_JSON_INT_MAX / ck_dtype_size(block->dtype))
		return ck_fail(err, CK_EFORMAT, "ckpt: global_shape: 2^53 bytes or more");
	if (!ck_box_inside(&block->box, block->shape))
		return fail_outside(block, err);
	if (ck_box_empty(&block->box))
		return ck_fail(err, CK_EFORMAT, "an empty block is stored");
	return 0;
}

static int read_offsets(const struct map *dcp, const struct ck_st_tensor *tensor,
			struct ck_box *box, struct ck_error *err)
{
	const cJSON *entry;
	size_t count;
	int rc = map_find(dcp, tensor->name, &entry, err);

	if (rc == 0)
		rc = ck_json_u64_array(dcp->what, entry, "saved_offsets", CK_MAX_NDIM, box->offset,
				       &count, err);
	if (rc)
		return rc;
	if (count != (size_t)tensor->ndim)
		return ck_fail(err, CK_EFORMAT, "%s: %zu saved_offsets for %d dimensions",
			       dcp->what, count, tensor->ndim);
	return 0;
}

/* What the three maps say about one tensor. block->name is the caller's to set. */
static int describe(const struct ck_st_tensor *tensor, const struct map *dcp,
		    const struct map *ckpt, uint32_t rank, struct ck_stored *block,
		    const char **bare, struct ck_error *err)
{
	const cJSON *entry = NULL;
	const char *kind = NULL;
	int rc;

	block->dtype = tensor->dtype;
	block->ndim = block->box.ndim = tensor->ndim;
	memcpy(block->box.extent, tensor->shape, sizeof(block->box.extent));
	block->bytes = tensor->end - tensor->begin;
	rc = read_offsets(dcp, tensor, &block->box, err);
	if (rc == 0)
		rc = map_find(ckpt, tensor->name, &entry, err);
	if (rc == 0)
		rc = ck_json_string(ckpt->what, entry, "kind", 64, &kind, err);
	if (rc == 0)
		rc = ck_kind_parse(kind, &block->kind, err);
	if (rc)
		return rc;
	*bare = tensor->name;
	if (block->kind == CK_SHARDED)
		return check_sharded(entry, block, err);
	rc = bare_name(tensor->name, rank, bare, err);
	return rc ? rc : check_per_rank(tensor, entry, block, err);
}

static int add_block(struct ck_shard *shard, const struct ck_st_tensor *tensor,
		     const struct map *dcp, const struct map *ckpt, struct ck_error *err)
{
	struct ck_stored *block = &shard->blocks[shard->nblocks];
	const char *bare = NULL;
	int rc = describe(tensor, dcp, ckpt, shard->rank, block, &bare, err);

	if (rc == 0 && ck_item_name_check(bare, err))
		rc = ck_fail(err, CK_EFORMAT, "not a valid item name");
	if (rc)
		return rc;
	block->offset = shard->data_offset + tensor->begin;
	block->name = strdup(bare);
	if (!block->name)
		return ck_fail_nomem(err, strlen(bare) + 1);
	shard->nblocks++;
	return 0;
}

static int add_blocks(struct ck_shard *shard, const struct ck_st_header *header,
		      const struct map *dcp, const struct map *ckpt, struct ck_error *err)
{
	char shown[CK_JSON_SHOW];

	shard->blocks = calloc(header->ntensors + 1, sizeof(*shard->blocks));
	if (!shard->blocks)
		return ck_fail_nomem(err, header->ntensors * sizeof(*shard->blocks));
	for (size_t i = 0; i < header->ntensors; i++) {
		int rc = add_block(shard, &header->tensors[i], dcp, ckpt, err);

		if (rc) {
			ck_error_prefix(err, "tensor '%s'",
					ck_json_show(shown, header->tensors[i].name));
			return rc;
		}
	}
	return 0;
}

static int read_maps(struct ck_shard *shard, const struct ck_st_header *header,
		     struct ck_error *err)
{
	const char *format = ck_st_meta(header, "format");
	struct map dcp = {0}, ckpt = {0};
	char shown[CK_JSON_SHOW];
	int rc;

	if (!format || strcmp(format, "pt") != 0)
		return ck_fail(err, CK_EFORMAT, "__metadata__: format is '%s', 'pt' wanted",
			       ck_json_show(shown, format ? format : ""));
	if (header->data_offset % CK_ST_ALIGN)
		return ck_fail(err, CK_EFORMAT,
			       "the data begin at byte %" PRIu64 ", not at a multiple of %" PRIu64,
			       header->data_offset, CK_ST_ALIGN);
	rc = map_init(&dcp, "DCP_SHARDING_INFO", header, err);
	if (rc == 0)
		rc = map_init(&ckpt, "ckpt", header, err);
	if (rc == 0)
		rc = add_blocks(shard, header, &dcp, &ckpt, err);
	map_fini(&dcp);
	map_fini(&ckpt);
	return rc;
}

/* Read the header's JSON; its length is checked against limit and file before it is believed. */
static int read_header(const struct ck_io *io, struct ck_shard *shard, struct ck_st_header *header,
		       struct ck_error *err)
{
	unsigned char prefix[8] = {0};
	uint64_t bytes = 0;
	char *json = NULL;
	int rc = 0;

	if (shard->bytes >= sizeof(prefix))
		rc = ck_io_pread_full(io, shard->fd, shard->path, prefix, sizeof(prefix), 0, err);
	if (rc == 0)
		rc = ck_st_header_bytes(shard->path, prefix, shard->bytes, &bytes, err);
	if (rc)
		return rc;
	json = malloc(bytes + 1);
	if (!json)
		return ck_fail_nomem(err, bytes);
	rc = ck_io_pread_full(io, shard->fd, shard->path, json, bytes, sizeof(prefix), err);
	shard->head_bytes = sizeof(prefix) + bytes;
	if (rc == 0) {
		shard->head_crc32 = ck_crc32(ck_crc32(0, prefix, sizeof(prefix)), json, bytes);
		rc = ck_st_parse(shard->path, json, bytes, shard->bytes, header, err);
	}
	free(json);
	return rc;
}

static int open_and_read(const struct ck_io *io, struct ck_shard *shard, const char *path,
			 struct ck_error *err)
{
	struct ck_st_header header = {0};
	int rc;

	shard->path = strdup(path);
	if (!shard->path)
		return ck_fail_nomem(err, strlen(path) + 1);
	rc = ck_io_open_read(io, path, &shard->fd, &shard->bytes, err);
	if (rc == 0)
		rc = read_header(io, shard, &header, err);
	if (rc)
		return rc;
	shard->data_offset = header.data_offset;
	rc = read_maps(shard, &header, err);
	if (rc)
		ck_error_prefix(err, "%s", shard->path);
	ck_st_fini(&header);
	return rc;
}

int ck_shard_open(const struct ck_io *io, const char *dir, uint32_t rank, uint32_t part,
		  struct ck_shard *out, struct ck_error *err)
{
	struct ck_shard shard = {.fd = -1, .rank = rank, .part = part};
	char name[CK_NAME_MAX], path[PATH_MAX];
	int rc;

	ck_name_shard(rank, part, name);
	if (!ck_path_join(path, dir, name))
		return ck_fail(err, CK_EARG, "%s/%s: path too long", dir, name);
	rc = open_and_read(io, &shard, path, err);
	if (rc)
		ck_shard_close(io, &shard);
	else
		*out = shard;
	return rc;
}

void ck_shard_close(const struct ck_io *io, struct ck_shard *shard)
{
	for (size_t i = 0; i < shard->nblocks; i++)
		free((char *)shard->blocks[i].name);
	free(shard->blocks);
	free(shard->path);
	ck_io_close(io, &shard->fd);
	*shard = (struct ck_shard){.fd = -1};
}
