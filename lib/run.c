#include "run.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dirfile.h"
#include "fields.h"
#include "json.h"
#include "names.h"

#define RUN_FILE_MAX (UINT64_C(1) << 20)

static int parse_job(const char *where, const cJSON *tree, struct ck_run *run, struct ck_error *err)
{
	const cJSON *job;
	int rc;

	rc = ck_json_object(where, tree, "job", &job, err);
	if (!rc)
		rc = ck_field_text(where, job, "cluster", run->cluster, sizeof(run->cluster), err);
	if (!rc)
		rc = ck_field_text(where, job, "id", run->job_id, sizeof(run->job_id), err);
	if (!rc)
		rc = ck_field_time_or_null(where, job, "submit_time", &run->submit_time, err);
	return rc;
}

static int parse_complete(const char *where, const cJSON *tree, struct ck_run *run,
			  struct ck_error *err)
{
	run->complete = ck_json_has(tree, "complete_step");
	if (!run->complete)
		return 0;
	return ck_json_u64(where, tree, "complete_step", CK_STEP_MAX, &run->complete_step, err);
}

int ck_run_parse(const char *where, const char *text, size_t bytes, struct ck_run *out,
		 struct ck_error *err)
{
	struct ck_run run = {.name = ""};
	cJSON *tree;
	int rc;

	rc = ck_field_parse(where, text, bytes, &tree, err);
	if (!rc)
		rc = ck_field_hex(where, tree, "run_id", CK_RUN_ID_HEX, run.run_id, err);
	if (!rc)
		rc = ck_field_text(where, tree, "run", run.name, sizeof(run.name), err);
	if (!rc)
		rc = parse_job(where, tree, &run, err);
	if (!rc)
		rc = ck_field_time(where, tree, "created", &run.created, err);
	if (!rc)
		rc = ck_json_bool(where, tree, "committed", &run.committed, err);
	if (!rc)
		rc = parse_complete(where, tree, &run, err);
	cJSON_Delete(tree);
	if (!rc)
		*out = run;
	return rc;
}

static void print(const struct ck_run *run, struct ck_buf *out)
{
	ck_buf_addf(out, "{\n\t\"schema_version\": %d,\n\t\"run_id\": \"%s\",\n\t",
		    CK_SCHEMA_VERSION, run->run_id);
	ck_field_print_text(out, "run", run->name);
	ck_buf_add_str(out, ",\n\t\"job\": {");
	ck_field_print_text(out, "cluster", run->cluster);
	ck_buf_add_str(out, ", ");
	ck_field_print_text(out, "id", run->job_id);
	ck_buf_add_str(out, ", ");
	ck_field_print_time_or_null(out, "submit_time", run->submit_time);
	ck_buf_add_str(out, "},\n\t");
	ck_field_print_time(out, "created", run->created);
	ck_buf_addf(out, ",\n\t\"committed\": %s,\n", run->committed ? "true" : "false");
	if (run->complete)
		ck_buf_addf(out, "\t\"complete_step\": %" PRIu64 "\n}\n", run->complete_step);
	else
		ck_buf_add_str(out, "\t\"complete_step\": null\n}\n");
}

/* The text is read back, so that nothing is written which a reader would refuse. */
int ck_run_print(const struct ck_run *run, struct ck_buf *out, struct ck_error *err)
{
	struct ck_buf text = CK_BUF_INIT;
	struct ck_run again;
	int rc;

	print(run, &text);
	rc = ck_buf_check(&text, err);
	if (!rc)
		rc = ck_run_parse(CK_RUN_FILE, text.data, text.len, &again, err);
	return ck_field_finish(out, &text, rc, err);
}

int ck_run_load(const struct ck_io *io, const char *dir, struct ck_run *out, struct ck_error *err)
{
	struct ck_buf text = CK_BUF_INIT;
	char path[PATH_MAX];
	int rc;

	rc = ck_dirfile_read(io, dir, CK_RUN_FILE, RUN_FILE_MAX, path, &text, err);
	if (!rc)
		rc = ck_run_parse(path, text.data, text.len, out, err);
	ck_buf_fini(&text);
	return rc;
}

/* mkdir, durable. There already is fine. */
static int make_dir(const struct ck_io *io, const char *path, struct ck_error *err)
{
	struct ck_error why;
	int rc = ck_io_mkdir(io, path, &why);

	if (rc == CK_EEXIST)
		return 0;
	return rc ? ck_fail(err, rc, "%s", why.text) : ck_dirfile_sync_parent(io, path, err);
}

/*
 * mkdir -p, from the deepest directory that exists: a parent that exists may be one where a mkdir
 * would be refused for other reasons. Works in `path`, which is as before at the end.
 */
static int make_dirs(const struct ck_io *io, char *path, struct ck_error *err)
{
	size_t len = strlen(path);
	char *slash;
	int rc;

	while ((rc = make_dir(io, path, err)) == CK_ENOENT) {
		slash = strrchr(path, '/');
		if (!slash || slash == path)
			break;
		*slash = '\0';
	}
	while (strlen(path) < len && !rc) {
		path[strlen(path)] = '/';
		rc = make_dir(io, path, err);
	}
	return rc;
}

static int link_new(const struct ck_io *io, const char *dir, const struct ck_run *run,
		    struct ck_error *err)
{
	struct ck_buf text = CK_BUF_INIT;
	char path[PATH_MAX];
	int rc = ck_dirfile_path(path, dir, CK_RUN_FILE, err);

	if (!rc)
		rc = ck_run_print(run, &text, err);
	if (!rc)
		rc = ck_io_write_file_new(io, path, text.data, text.len, err);
	if (!rc)
		rc = ck_dirfile_sync(io, dir, err);
	ck_buf_fini(&text);
	return rc;
}

static int create(const struct ck_io *io, const char *dir, const struct ck_run *run,
		  struct ck_error *err)
{
	struct ck_run made = *run;
	int rc = 0;

	made.created = time(NULL);
	made.complete = false;
	if (!*made.run_id) {
		made.committed = false;
		rc = ck_random_hex(made.run_id, CK_RUN_ID_HEX / 2, err);
	}
	return rc ? rc : link_new(io, dir, &made, err);
}

/* Where there are no hard links, another one's file may not be whole yet. */
static int load_whole(const struct ck_io *io, const char *dir, struct ck_run *run,
		      struct ck_error *err)
{
	const struct timespec pause = {.tv_nsec = 20000000};
	int rc = ck_run_load(io, dir, run, err);

	for (unsigned tries = 0; rc == CK_EFORMAT && tries < 50; tries++) {
		nanosleep(&pause, NULL);
		rc = ck_run_load(io, dir, run, err);
	}
	return rc;
}

int ck_run_create(const struct ck_io *io, const char *dir, struct ck_run *run, struct ck_error *err)
{
	char path[PATH_MAX];
	size_t len = strlen(dir);
	int rc;

	if (len == 0 || len >= sizeof(path))
		return ck_fail(err, CK_EIO, "run directory: a path of %zu bytes is not in [1, %d)",
			       len, PATH_MAX);
	memcpy(path, dir, len + 1);
	while (len > 1 && path[len - 1] == '/')
		path[--len] = '\0';
	rc = ck_run_load(io, path, run, err);
	if (rc != CK_ENOENT)
		return rc;
	rc = make_dirs(io, path, err);
	if (!rc)
		rc = create(io, path, run, err);
	/*
	 * Another one won, or we did: what stands there is the answer in both cases. Its owner may even have
	 * swept away our temporary file.
	 */
	if (!rc || rc == CK_EEXIST || rc == CK_ENOENT)
		rc = load_whole(io, path, run, err);
	return rc;
}

int ck_run_mend(const struct ck_io *io, const char *dir, const struct ck_run *run, bool *mended,
		struct ck_error *err)
{
	char path[PATH_MAX];
	struct stat st;
	int rc = ck_dirfile_path(path, dir, CK_RUN_FILE, err);

	*mended = false;
	if (rc || io->ops->lstat(io, path, &st) == 0 || errno != ENOENT)
		return rc;
	rc = link_new(io, dir, run, err);
	*mended = rc == 0;
	return rc == CK_EEXIST ? 0 : rc;
}

int ck_run_set_committed(const struct ck_io *io, const char *dir, struct ck_error *err)
{
	struct ck_run run;
	int rc;

	rc = ck_run_load(io, dir, &run, err);
	if (rc || run.committed)
		return rc;
	run.committed = true;
	return ck_run_store(io, dir, &run, err);
}

int ck_run_store(const struct ck_io *io, const char *dir, const struct ck_run *run,
		 struct ck_error *err)
{
	struct ck_buf text = CK_BUF_INIT;
	int rc;

	rc = ck_run_print(run, &text, err);
	if (!rc)
		rc = ck_dirfile_store(io, dir, CK_RUN_FILE, &text, err);
	ck_buf_fini(&text);
	return rc;
}
