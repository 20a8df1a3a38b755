#include "catalog.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "dirfile.h"
#include "files.h"
#include "json.h"
#include "sums.h"

void ck_catalog_fini(struct ck_catalog *catalog)
{
	free(catalog->steps);
	catalog->steps = NULL;
	catalog->count = 0;
}

static int compare_newest_first(const void *a, const void *b)
{
	return ck_step_id_cmp(b, a);
}

int ck_catalog_from(const struct ck_names *names, struct ck_catalog *out, struct ck_error *err)
{
	struct ck_catalog catalog = {.steps = calloc(names->count + 1, sizeof(*catalog.steps))};

	if (!catalog.steps)
		return ck_fail_nomem(err, (names->count + 1) * sizeof(*catalog.steps));
	for (size_t i = 0; i < names->count; i++)
		if (ck_is_step(names->names[i], &catalog.steps[catalog.count]))
			catalog.count++;
	qsort(catalog.steps, catalog.count, sizeof(*catalog.steps), compare_newest_first);
	*out = catalog;
	return 0;
}

static int load_once(const struct ck_io *io, const char *dir, struct ck_catalog *out,
		     struct ck_error *err)
{
	struct ck_names names;
	int rc;

	rc = ck_dirfile_list(io, dir, &names, err);
	if (rc)
		return rc;
	rc = ck_catalog_from(&names, out, err);
	ck_names_fini(&names);
	return rc;
}

/* A listing made while the only checkpoint is replaced may have neither: "none" wants to be said twice. */
int ck_catalog_load(const struct ck_io *io, const char *dir, struct ck_catalog *out,
		    struct ck_error *err)
{
	struct ck_catalog catalog;
	int rc = load_once(io, dir, &catalog, err);

	if (!rc && catalog.count == 0) {
		ck_catalog_fini(&catalog);
		rc = load_once(io, dir, &catalog, err);
	}
	if (!rc)
		*out = catalog;
	return rc;
}

int ck_step_read(const struct ck_io *io, const char *dir, struct ck_step_id id,
		 struct ck_manifest *out, struct ck_buf *text, struct ck_error *err)
{
	char step[PATH_MAX], path[PATH_MAX], name[CK_NAME_MAX];
	struct ck_buf read = CK_BUF_INIT;
	struct ck_manifest manifest;
	int rc;

	rc = ck_dirfile_path(step, dir, ck_name_step(id, name), err);
	if (!rc && ck_io_is_no_dir(io, step))
		rc = ck_fail(err, CK_EFORMAT,
			     "%s: a link or a file, not a directory: links are not followed here",
			     step);
	if (!rc)
		rc = ck_dirfile_read(io, step, CK_MANIFEST_FILE, CK_JSON_MAX_BYTES, path, &read,
				     err);
	if (!rc)
		rc = ck_manifest_parse(path, read.data, read.len, true, &manifest, err);
	if (!rc && ck_step_id_cmp(&manifest.id, &id) != 0) {
		rc = ck_fail(err, CK_EFORMAT,
			     "%s: it is of step %" PRIu64 ", generation %" PRIu64
			     ", but stands in %s",
			     path, manifest.id.step, manifest.id.generation, name);
		ck_manifest_fini(&manifest);
	}
	if (rc) {
		ck_buf_fini(&read);
		return rc;
	}
	*out = manifest;
	*text = read;
	return 0;
}

int ck_step_load(const struct ck_io *io, const char *dir, struct ck_step_id id,
		 struct ck_manifest *out, struct ck_error *err)
{
	struct ck_buf text = CK_BUF_INIT;
	int rc;

	rc = ck_step_read(io, dir, id, out, &text, err);
	ck_buf_fini(&text);
	return rc;
}

int ck_step_load_summed(const struct ck_io *io, const char *dir, struct ck_step_id id,
			struct ck_manifest *out, struct ck_error *err)
{
	char step[PATH_MAX], name[CK_NAME_MAX];
	struct ck_buf text = CK_BUF_INIT;
	struct ck_manifest manifest;
	int rc;

	rc = ck_step_read(io, dir, id, &manifest, &text, err);
	if (rc)
		return rc;
	rc = ck_dirfile_path(step, dir, ck_name_step(id, name), err);
	if (!rc)
		rc = ck_sums_check(io, step, &manifest, &text, err);
	ck_buf_fini(&text);
	if (rc)
		ck_manifest_fini(&manifest);
	else
		*out = manifest;
	return rc;
}

int ck_step_sized(const struct ck_io *io, const char *dir, const struct ck_manifest *manifest,
		  int64_t rank, struct ck_error *err)
{
	char step[PATH_MAX], name[CK_NAME_MAX];
	size_t first = 0, count = manifest->nfiles;
	int rc;

	rc = ck_dirfile_path(step, dir, ck_name_step(manifest->id, name), err);
	if (rc)
		return rc;
	if (rank >= 0)
		ck_manifest_rank_files(manifest, (uint32_t)rank, &first, &count);
	for (size_t i = first; i < first + count && !rc; i++)
		rc = ck_file_sized(io, step, &manifest->files[i], err);
	return rc;
}

bool ck_step_has_name(const struct ck_manifest *manifest, const char *name)
{
	uint32_t rank, part;
	size_t first, count;

	if (strcmp(name, CK_MANIFEST_FILE) == 0 || strcmp(name, CK_SUMS_FILE) == 0)
		return true;
	return ck_is_shard(name, &rank, &part) &&
	       ck_manifest_rank_files(manifest, rank, &first, &count) && part < count;
}

bool ck_is_safetensors(const char *name)
{
	static const char suffix[] = ".safetensors";
	size_t len = strlen(name), tail = sizeof(suffix) - 1;

	return len >= tail && strcmp(name + len - tail, suffix) == 0;
}

int ck_step_stray(const struct ck_io *io, const char *dir, const struct ck_manifest *manifest,
		  char stray[static NAME_MAX + 1], struct ck_error *err)
{
	char step[PATH_MAX], name[CK_NAME_MAX];
	struct ck_names names;
	int rc = ck_dirfile_path(step, dir, ck_name_step(manifest->id, name), err);

	*stray = '\0';
	if (!rc)
		rc = ck_io_list(io, step, &names, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < names.count && !*stray; i++)
		if (ck_is_safetensors(names.names[i]) &&
		    !ck_step_has_name(manifest, names.names[i]) &&
		    strlen(names.names[i]) <= NAME_MAX)
			strcpy(stray, names.names[i]);
	ck_names_fini(&names);
	return 0;
}
