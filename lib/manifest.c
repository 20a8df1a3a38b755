#include "manifest.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fields.h"
#include "files.h"
#include "json.h"
#include "user.h"

void ck_manifest_fini(struct ck_manifest *manifest)
{
	ck_item_list_fini(&manifest->items);
	ck_files_free(manifest->files, manifest->nfiles);
	free(manifest->user);
	*manifest = (struct ck_manifest){.user = NULL};
}

bool ck_manifest_rank_files(const struct ck_manifest *manifest, uint32_t rank, size_t *first,
			    size_t *count)
{
	size_t low = 0, high = manifest->nfiles, n = 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (manifest->files[middle].rank < rank)
			low = middle + 1;
		else
			high = middle;
	}
	while (low + n < manifest->nfiles && manifest->files[low + n].rank == rank)
		n++;
	*first = low;
	*count = n;
	return n > 0;
}

/*
 * Milliseconds, without printf's %f: the program may have set a locale with a decimal comma.
 */
static void print_wall_clock(struct ck_buf *out, double seconds)
{
	uint64_t whole = (uint64_t)seconds;
	uint64_t ms = (uint64_t)((seconds - (double)whole) * 1000 + 0.5);
	uint64_t s = whole + ms / 1000;

	ck_buf_addf(out, "\t\"wall_clock_seconds\": %" PRIu64 ".%03" PRIu64 ",\n", s, ms % 1000);
}

static void print_head(struct ck_buf *out, const struct ck_manifest *m)
{
	ck_buf_addf(out, "{\n\t\"schema_version\": %d,\n\t\"world_size\": %u,\n", CK_SCHEMA_VERSION,
		    m->world_size);
	ck_buf_addf(out, "\t\"step\": %" PRIu64 ",\n", m->id.step);
	print_wall_clock(out, m->wall_clock_seconds);
	ck_buf_addf(out, "\t\"run_id\": \"%s\",\n\t", m->run_id);
	ck_field_print_text(out, "run", m->run);
	ck_buf_addf(out, ",\n\t\"generation\": %" PRIu64 ",\n", m->id.generation);
	ck_buf_addf(out, "\t\"save_id\": \"%s\",\n\t", m->save_id);
	ck_field_print_job(out, &m->job, true);
	ck_buf_add_str(out, ",\n\t");
	ck_field_print_time(out, "created", m->created);
	ck_buf_add_str(out, ",\n\t");
	ck_field_print_text(out, "writer", m->writer);
}

static void print_item(struct ck_buf *out, const struct ck_item *item)
{
	ck_buf_add_str(out, "\t\t{");
	ck_field_print_text(out, "name", item->name);
	ck_buf_addf(out, ", \"dtype\": \"%s\", \"kind\": \"%s\", \"global_shape\": ",
		    ck_dtype_name((int)item->dtype), ck_kind_name(item->kind));
	if (item->kind == CK_PER_RANK)
		ck_buf_add_str(out, "null");
	else
		ck_shape_print(out, item->ndim, item->shape);
	ck_buf_add_str(out, "}");
}

static void print_items(struct ck_buf *out, const struct ck_item_list *list)
{
	ck_buf_add_str(out, ",\n\t\"flat\": ");
	if (list->flat)
		ck_buf_add_json_string(out, list->flat);
	else
		ck_buf_add_str(out, "null");
	ck_buf_add_str(out, ",\n\t\"items\": [\n");
	for (size_t i = 0; i < list->count; i++) {
		print_item(out, &list->items[i]);
		ck_buf_add_str(out, i + 1 < list->count ? ",\n" : "\n");
	}
	ck_buf_add_str(out, "\t]");
}

int ck_manifest_print(const struct ck_manifest *manifest, bool with_files, struct ck_buf *out,
		      struct ck_error *err)
{
	const char *where = with_files ? CK_MANIFEST_FILE : CK_SAVE_FILE;
	struct ck_buf text = CK_BUF_INIT;
	int rc;

	rc = ck_manifest_check(where, manifest, with_files, err);
	if (rc)
		return rc;
	print_head(&text, manifest);
	ck_buf_add_str(&text, ",\n\t");
	ck_user_print(&text, manifest->user);
	print_items(&text, &manifest->items);
	if (with_files) {
		ck_buf_add_str(&text, ",\n\t");
		ck_files_print(&text, manifest->files, manifest->nfiles);
	}
	ck_buf_add_str(&text, "\n}\n");
	rc = ck_buf_check(&text, err);
	if (!rc && text.len > CK_JSON_MAX_BYTES)
		rc = ck_fail(err, CK_EFORMAT, "%s: it would have %zu bytes, at most %" PRIu64,
			     where, text.len, CK_JSON_MAX_BYTES);
	return ck_field_finish(out, &text, rc, err);
}

int ck_sums_print(const struct ck_manifest *manifest,
		  const char manifest_sha256[static CK_SHA256_HEX + 1], struct ck_buf *out,
		  struct ck_error *err)
{
	for (size_t i = 0; i < manifest->nfiles; i++)
		ck_buf_addf(out, "%s  %s\n", manifest->files[i].sha256, manifest->files[i].path);
	ck_buf_addf(out, "%s  %s\n", manifest_sha256, CK_MANIFEST_FILE);
	return ck_buf_check(out, err);
}

/* --- parsing --- */

static int parse_shape(const char *at, const cJSON *tree, struct ck_item *item,
		       struct ck_error *err)
{
	size_t ndim;
	int rc;

	if (item->kind == CK_PER_RANK) {
		if (ck_json_has(tree, "global_shape"))
			return ck_fail(err, CK_EFORMAT,
				       "%s: global_shape: of a per-rank item it is null", at);
		item->ndim = 0;
		return 0;
	}
	rc = ck_json_u64_array(at, tree, "global_shape", CK_MAX_NDIM, item->shape, &ndim, err);
	if (!rc)
		item->ndim = (int)ndim;
	return rc;
}

static int parse_item(const char *at, const cJSON *tree, struct ck_item *item, struct ck_error *err)
{
	const char *name, *dtype, *kind;
	struct ck_error why = CK_ERROR_INIT;
	int rc;

	if (!cJSON_IsObject(tree))
		return ck_fail(err, CK_EFORMAT, "%s: not an object", at);
	rc = ck_json_string(at, tree, "name", CK_ITEM_NAME_MAX, &name, err);
	if (!rc)
		rc = ck_json_string(at, tree, "dtype", CK_NAME_MAX, &dtype, err);
	if (!rc)
		rc = ck_json_string(at, tree, "kind", CK_NAME_MAX, &kind, err);
	if (rc)
		return rc;
	if (ck_dtype_parse(dtype, &item->dtype, &why) || ck_kind_parse(kind, &item->kind, &why))
		return ck_fail(err, CK_EFORMAT, "%s: %s", at, why.text);
	rc = parse_shape(at, tree, item, err);
	if (rc)
		return rc;
	item->name = strdup(name);
	return item->name ? 0 : ck_fail_nomem(err, strlen(name) + 1);
}

static int parse_flat(const char *where, const cJSON *tree, struct ck_item_list *list,
		      struct ck_error *err)
{
	const char *flat;
	int rc;

	if (!ck_json_has(tree, "flat"))
		return 0;
	rc = ck_json_string(where, tree, "flat", CK_ITEM_NAME_MAX, &flat, err);
	if (rc)
		return rc;
	list->flat = strdup(flat);
	return list->flat ? 0 : ck_fail_nomem(err, strlen(flat) + 1);
}

static int parse_items(const char *where, const cJSON *tree, struct ck_item_list *list,
		       struct ck_error *err)
{
	char at[PATH_MAX + 32];
	const cJSON *array;
	size_t n;
	int rc;

	rc = ck_json_array(where, tree, "items", &array, err);
	if (rc)
		return rc;
	n = (size_t)cJSON_GetArraySize(array);
	list->items = calloc(n ? n : 1, sizeof(*list->items));
	if (!list->items)
		return ck_fail_nomem(err, n * sizeof(*list->items));
	for (const cJSON *item = array->child; item && !rc; item = item->next) {
		snprintf(at, sizeof(at), "%s: items[%zu]", where, list->count);
		rc = parse_item(at, item, &list->items[list->count++], err);
	}
	return rc ? rc : parse_flat(where, tree, list, err);
}

static int parse_head(const char *where, const cJSON *tree, struct ck_manifest *m,
		      struct ck_error *err)
{
	int rc;

	rc = ck_field_u32(where, tree, "world_size", UINT32_MAX, &m->world_size, err);
	if (!rc)
		rc = ck_json_u64(where, tree, "step", CK_JSON_INT_MAX, &m->id.step, err);
	if (!rc)
		rc = ck_json_double(where, tree, "wall_clock_seconds", &m->wall_clock_seconds, err);
	if (!rc)
		rc = ck_field_hex(where, tree, "run_id", CK_RUN_ID_HEX, m->run_id, err);
	if (!rc)
		rc = ck_field_text(where, tree, "run", m->run, sizeof(m->run), err);
	if (!rc)
		rc = ck_json_u64(where, tree, "generation", CK_JSON_INT_MAX, &m->id.generation,
				 err);
	if (!rc)
		rc = ck_field_hex(where, tree, "save_id", CK_RUN_ID_HEX, m->save_id, err);
	if (!rc)
		rc = ck_field_job(where, tree, &m->job, err);
	if (!rc)
		rc = ck_field_time(where, tree, "created", &m->created, err);
	if (!rc)
		rc = ck_field_text(where, tree, "writer", m->writer, sizeof(m->writer), err);
	return rc;
}

int ck_manifest_parse(const char *where, const char *text, size_t bytes, bool with_files,
		      struct ck_manifest *out, struct ck_error *err)
{
	struct ck_manifest m = {.user = NULL};
	cJSON *tree;
	int rc;

	rc = ck_field_parse(where, text, bytes, &tree, err);
	if (!rc)
		rc = parse_head(where, tree, &m, err);
	if (!rc)
		rc = ck_user_get(where, text, tree, &m.user, err);
	if (!rc)
		rc = parse_items(where, tree, &m.items, err);
	if (!rc && with_files)
		rc = ck_files_parse(where, tree, &m.files, &m.nfiles, err);
	cJSON_Delete(tree);
	if (!rc)
		rc = ck_manifest_check(where, &m, with_files, err);
	if (rc)
		ck_manifest_fini(&m);
	else
		*out = m;
	return rc;
}
