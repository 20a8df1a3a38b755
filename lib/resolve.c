/* ck_resolve of catalog.h: what the user means by RUN, RUN@STEP and RUN/step-…. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "catalog.h"
#include "dirfile.h"
#include "json.h"
#include "parse.h"

#define SHOWN_MAX 8

static bool is_dir(const struct ck_io *io, const char *path)
{
	char followed[PATH_MAX];
	struct stat st;

	return snprintf(followed, sizeof(followed), "%s/", path) < PATH_MAX &&
	       io->ops->lstat(io, followed, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool has_run_file(const struct ck_io *io, const char *dir)
{
	char path[PATH_MAX];
	struct stat st;

	return ck_path_join(path, dir, CK_RUN_FILE) && io->ops->lstat(io, path, &st) == 0;
}

/* --- what is there, for messages --- */

/* "; runs in <dir>: a, b, c" */
static void show_runs(const struct ck_io *io, const char *dir, struct ck_buf *out)
{
	struct ck_names names;
	char path[PATH_MAX];
	unsigned shown = 0;

	if (ck_dirfile_list(io, dir, &names, NULL))
		return;
	for (size_t i = 0; i < names.count && shown <= SHOWN_MAX; i++) {
		if (!ck_path_join(path, dir, names.names[i]) || !has_run_file(io, path))
			continue;
		if (shown == 0) {
			ck_buf_add_str(out, "; runs in ");
			ck_buf_add_escaped(out, dir);
		}
		ck_buf_add_str(out, shown ? ", " : ": ");
		if (++shown > SHOWN_MAX)
			ck_buf_add_str(out, "...");
		else
			ck_buf_add_escaped(out, names.names[i]);
	}
	ck_names_fini(&names);
}

/* "; there are: 1300, 1200, …" or "; there is none yet" */
static void show_steps(const struct ck_catalog *catalog, struct ck_buf *out)
{
	if (catalog->count == 0)
		ck_buf_add_str(out, "; there is none yet");
	for (size_t i = 0; i < catalog->count && i <= SHOWN_MAX; i++) {
		ck_buf_add_str(out, i ? ", " : "; there are: ");
		if (i == SHOWN_MAX)
			ck_buf_addf(out, "... (%zu in all)", catalog->count);
		else
			ck_buf_addf(out, "%" PRIu64, catalog->steps[i].step);
	}
}

static void parent_of(const char *path, char out[static PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 0;

	if (!slash)
		snprintf(out, PATH_MAX, ".");
	else
		snprintf(out, PATH_MAX, "%.*s", (int)(len ? len : 1), path);
}

static int fail_no_run(const struct ck_io *io, const char *path, const char *what,
		       const char *look_in, struct ck_error *err)
{
	struct ck_buf there = CK_BUF_INIT;
	char shown[CK_JSON_SHOW];
	int rc;

	show_runs(io, look_in, &there);
	rc = ck_fail(err, CK_ENOENT, "%s: %s%s", ck_json_show(shown, path), what,
		     there.data ? there.data : "");
	ck_buf_fini(&there);
	return rc;
}

static int fail_no_step(const char *run, const char *what, const struct ck_catalog *catalog,
			struct ck_error *err)
{
	struct ck_buf there = CK_BUF_INIT;
	char shown[CK_JSON_SHOW];
	int rc;

	show_steps(catalog, &there);
	rc = ck_fail(err, CK_ENOENT, "%s: no checkpoint %s%s", ck_json_show(shown, run), what,
		     there.data ? there.data : "");
	ck_buf_fini(&there);
	return rc;
}

/* --- the forms --- */

static int fail_no_dir(const struct ck_io *io, const char *path, int errnum, struct ck_error *err)
{
	char parent[PATH_MAX], shown[CK_JSON_SHOW];
	struct stat st;

	if (errnum == ENOTDIR && io->ops->lstat(io, path, &st) == 0)
		return ck_fail(err, CK_EFORMAT, "%s: not a directory", ck_json_show(shown, path));
	parent_of(path, parent);
	return fail_no_run(io, path, "no such run directory", parent, err);
}

/* A directory is a run when it has run.json or a checkpoint. */
static int load_run(const struct ck_io *io, const char *run, struct ck_catalog *catalog,
		    struct ck_error *err)
{
	int rc;

	if (!is_dir(io, run))
		return fail_no_dir(io, run, errno, err);
	rc = ck_catalog_load(io, run, catalog, err);
	if (rc || catalog->count || has_run_file(io, run))
		return rc;
	ck_catalog_fini(catalog);
	return fail_no_run(io, run, "not a run directory, it has no run.json and no checkpoint",
			   run, err);
}

/* The newest checkpoint of that step; SIZE_MAX: none. */
static size_t find_step(const struct ck_catalog *catalog, uint64_t step)
{
	for (size_t i = 0; i < catalog->count; i++)
		if (catalog->steps[i].step == step)
			return i;
	return SIZE_MAX;
}

static int choose(const char *run, const char *which, const struct ck_catalog *catalog,
		  struct ck_step_id *id, struct ck_error *err)
{
	char shown[CK_JSON_SHOW], what[64];
	size_t found;
	uint64_t step;

	if (strcmp(which, "latest") == 0) {
		if (catalog->count == 0)
			return ck_fail(err, CK_ENOENT, "%s: it has no checkpoint yet",
				       ck_json_show(shown, run));
		*id = catalog->steps[0];
		return 0;
	}
	if (ck_parse_u64("step", which, 0, CK_STEP_MAX, &step, NULL)) {
		return ck_fail(err, CK_EARG, "%s: '@%s': a step's number or 'latest' is expected",
			       run, ck_json_show(shown, which));
	}
	found = find_step(catalog, step);
	snprintf(what, sizeof(what), "of step %" PRIu64, step);
	if (found == SIZE_MAX)
		return fail_no_step(run, what, catalog, err);
	*id = catalog->steps[found];
	return 0;
}

/* `path` names a step directory, `name` is its last component. */
static int resolve_step_dir(const struct ck_io *io, const char *path, const char *name,
			    char run[static PATH_MAX], struct ck_error *err)
{
	char parent[PATH_MAX];
	struct ck_catalog catalog;
	int rc;

	parent_of(path, parent);
	if (is_dir(io, path)) {
		memcpy(run, parent, sizeof(parent));
		return 0;
	}
	rc = load_run(io, parent, &catalog, err);
	if (rc)
		return rc;
	rc = fail_no_step(parent, name, &catalog, err);
	ck_catalog_fini(&catalog);
	return rc;
}

/* `at` is what stands behind the '@', NULL for the run as a whole. */
static int resolve_run(const struct ck_io *io, const char *path, const char *at,
		       char run[static PATH_MAX], struct ck_step_id *id, struct ck_error *err)
{
	struct ck_catalog catalog;
	int rc;

	rc = load_run(io, path, &catalog, err);
	if (rc)
		return rc;
	if (at)
		rc = choose(path, at, &catalog, id, err);
	if (!rc)
		snprintf(run, PATH_MAX, "%s", path);
	ck_catalog_fini(&catalog);
	return rc;
}

int ck_resolve(const struct ck_io *io, const char *text, char run[static PATH_MAX], bool *has_step,
	       struct ck_step_id *id, struct ck_error *err)
{
	struct ck_step_id found = {.step = 0};
	char path[PATH_MAX] = "";
	size_t len = strlen(text);
	char *last, *at;
	int rc;

	while (len > 1 && text[len - 1] == '/')
		len--;
	if (len == 0)
		return ck_fail(err, CK_EARG, "'': a run directory or a checkpoint is expected");
	if (len >= sizeof(path))
		return ck_fail(err, CK_EARG, "a path of %zu characters is too long", len);
	memcpy(path, text, len);
	last = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	at = strrchr(last, '@');
	/* A directory whose own name has an '@' is meant as it is. */
	if (at && !is_dir(io, path))
		*at++ = '\0';
	else
		at = NULL;
	if (!at && ck_is_step(last, &found)) {
		rc = resolve_step_dir(io, path, last, run, err);
		at = last;
	} else {
		rc = resolve_run(io, path, at, run, &found, err);
	}
	if (rc)
		return rc;
	*has_step = at != NULL;
	*id = found;
	return 0;
}
