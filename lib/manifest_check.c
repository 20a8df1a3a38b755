#include "manifest.h"

#include <inttypes.h>
#include <string.h>

#include "fields.h"
#include "files.h"
#include "json.h"
#include "user.h"

/* 9999-12-31T23:59:59Z: later years have five digits. */
#define TIME_LAST INT64_C(253402300799)

static int check_head(const char *where, const struct ck_manifest *m, struct ck_error *err)
{
	if (m->world_size < 1 || m->world_size > CK_WORLD_MAX)
		return ck_fail(err, CK_EFORMAT, "%s: world_size %u is not in [1, %d]", where,
			       m->world_size, CK_WORLD_MAX);
	if (m->id.step > CK_STEP_MAX)
		return ck_fail(err, CK_EFORMAT, "%s: step %" PRIu64 " is not below 2^53", where,
			       m->id.step);
	if (m->id.generation < 1 || m->id.generation > CK_STEP_MAX)
		return ck_fail(err, CK_EFORMAT, "%s: generation %" PRIu64 " is not in [1, 2^53)",
			       where, m->id.generation);
	if (!(m->wall_clock_seconds >= 0) || m->wall_clock_seconds > (double)CK_JSON_INT_MAX)
		return ck_fail(err, CK_EFORMAT, "%s: wall_clock_seconds %g is not in [0, 2^53)",
			       where, m->wall_clock_seconds);
	if (m->created < 0 || m->created > TIME_LAST)
		return ck_fail(err, CK_EFORMAT,
			       "%s: created: %" PRId64 " is not in the years 1970 to 9999", where,
			       m->created);
	if (m->job.restart_count > CK_JSON_INT_MAX)
		return ck_fail(err, CK_EFORMAT,
			       "%s: job: restart_count %" PRIu64 " is not below 2^53", where,
			       m->job.restart_count);
	return 0;
}

static int check_texts(const char *where, const struct ck_manifest *m, struct ck_error *err)
{
	const char *const texts[][2] = {
		{"run", m->run},
		{"writer", m->writer},
		{"job: cluster", m->job.cluster},
		{"job: id", m->job.job_id},
		{"job: step_id", m->job.step_id},
		{"job: nodes", m->job.nodes},
	};
	int rc;

	rc = ck_hex_check(where, "run_id", m->run_id, CK_RUN_ID_HEX, err);
	if (!rc)
		rc = ck_hex_check(where, "save_id", m->save_id, CK_RUN_ID_HEX, err);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]) && !rc; i++)
		rc = ck_text_check(where, texts[i][0], texts[i][1], err);
	return rc;
}

/* The limit on bytes is the shard reader's: every number of a header stays below 2^53. */
static int check_shape(const char *where, const struct ck_item *item, struct ck_error *err)
{
	uint64_t elements, bytes;

	if (item->ndim < 0 || item->ndim > CK_MAX_NDIM)
		return ck_fail(err, CK_EFORMAT, "%s: item '%s': %d dimensions, at most %d", where,
			       item->name, item->ndim, CK_MAX_NDIM);
	for (int d = 0; d < item->ndim; d++)
		if (item->shape[d] > CK_JSON_INT_MAX)
			return ck_fail(err, CK_EFORMAT,
				       "%s: item '%s': extent %" PRIu64 " is not below 2^53", where,
				       item->name, item->shape[d]);
	if (!ck_volume(item->ndim, item->shape, &elements) ||
	    !ck_mul_u64(elements, ck_dtype_size((int)item->dtype), &bytes) ||
	    bytes > CK_JSON_INT_MAX)
		return ck_fail(err, CK_EFORMAT,
			       "%s: item '%s': its global shape has 2^53 bytes or more", where,
			       item->name);
	return 0;
}

static int check_item(const char *where, const struct ck_item *item, struct ck_error *err)
{
	struct ck_error why = CK_ERROR_INIT;

	if (ck_item_name_check(item->name, &why))
		return ck_fail(err, CK_EFORMAT, "%s: items: %s", where, why.text);
	if (!ck_dtype_size((int)item->dtype))
		return ck_fail(err, CK_EFORMAT, "%s: item '%s': dtype %d is none", where,
			       item->name, (int)item->dtype);
	if (item->kind == CK_SHARDED)
		return check_shape(where, item, err);
	if (item->kind != CK_PER_RANK)
		return ck_fail(err, CK_EFORMAT, "%s: item '%s': kind %d is none", where, item->name,
			       (int)item->kind);
	if (item->dtype != CK_U8)
		return ck_fail(err, CK_EFORMAT,
			       "%s: item '%s': a per-rank item has dtype U8, not %s", where,
			       item->name, ck_dtype_name((int)item->dtype));
	return 0;
}

static int check_flat(const char *where, const struct ck_manifest *m, const struct ck_item **flat,
		      struct ck_error *err)
{
	*flat = NULL;
	if (!m->items.flat)
		return 0;
	*flat = ck_item_list_search(&m->items, m->items.flat);
	if (!*flat)
		return ck_fail(err, CK_EFORMAT, "%s: flat: it names no item of items[]", where);
	if ((*flat)->kind != CK_SHARDED || (*flat)->ndim != 1)
		return ck_fail(err, CK_EFORMAT,
			       "%s: flat: item '%s' is not sharded with one dimension", where,
			       (*flat)->name);
	return 0;
}

static int check_items(const char *where, const struct ck_item_list *list, struct ck_error *err)
{
	int rc = 0, order;

	for (size_t i = 0; i < list->count && !rc; i++) {
		rc = check_item(where, &list->items[i], err);
		if (rc || i == 0)
			continue;
		order = strcmp(list->items[i - 1].name, list->items[i].name);
		if (order >= 0)
			rc = ck_fail(err, CK_EFORMAT, "%s: items: '%s' %s", where,
				     list->items[i].name,
				     order ? "is not sorted by name" : "stands there twice");
	}
	return rc;
}

static int check_param_shards(const char *where, const struct ck_manifest *m,
			      const struct ck_item *flat, struct ck_error *err)
{
	uint64_t elements = flat ? flat->shape[0] : 0;

	for (size_t i = 0; i < m->nfiles; i++) {
		uint64_t offset = m->files[i].param_shard_offset;
		uint64_t numel = m->files[i].param_shard_numel;

		if (offset + numel > elements)
			return ck_fail(err, CK_EFORMAT,
				       "%s: shards[%zu]: param_shard_offset %" PRIu64
				       ", numel %" PRIu64 ": %s has %" PRIu64 " elements",
				       where, i, offset, numel,
				       flat ? "the flat item" : "no item is flat, so it", elements);
		if (numel == 0 && offset != 0)
			return ck_fail(err, CK_EFORMAT,
				       "%s: shards[%zu]: param_shard_offset %" PRIu64
				       " without elements must be 0",
				       where, i, offset);
	}
	return 0;
}

int ck_manifest_check(const char *where, const struct ck_manifest *manifest, bool with_files,
		      struct ck_error *err)
{
	const struct ck_item *flat;
	int rc;

	rc = check_head(where, manifest, err);
	if (!rc)
		rc = check_texts(where, manifest, err);
	if (!rc)
		rc = check_items(where, &manifest->items, err);
	if (!rc)
		rc = check_flat(where, manifest, &flat, err);
	if (!rc && with_files)
		rc = ck_files_check(where, manifest->files, manifest->nfiles, 0,
				    manifest->world_size, err);
	if (!rc && with_files)
		rc = check_param_shards(where, manifest, flat, err);
	if (!rc)
		rc = ck_user_check(where, manifest->user, err);
	return rc;
}
