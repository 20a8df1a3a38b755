/* What a generation leaves for others to read: mark.json and events.jsonl of run.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dirfile.h"
#include "fields.h"
#include "json.h"
#include "names.h"
#include "parse.h"
#include "run.h"

#define MARK_FILE_MAX (UINT64_C(64) << 10)

static const char *const want_words[] = {
	[CK_WANT_REQUEUE] = "requeue",
	[CK_WANT_STOP] = "stop",
	[CK_WANT_HOLD] = "hold",
	[CK_WANT_REFUSE] = "refuse",
};

static int parse_want(const char *where, const cJSON *tree, enum ck_want *out, struct ck_error *err)
{
	char text[16];
	int rc;

	rc = ck_field_text(where, tree, "want", text, sizeof(text), err);
	if (rc)
		return rc;
	for (int want = 0; want < CK_WANTS; want++) {
		if (strcmp(text, want_words[want]) == 0) {
			*out = (enum ck_want)want;
			return 0;
		}
	}
	return ck_fail(err, CK_EFORMAT, "%s: want: '%s' is none of requeue, stop, hold and refuse",
		       where, text);
}

int ck_mark_parse(const char *where, const char *text, size_t bytes, struct ck_mark *out,
		  struct ck_error *err)
{
	struct ck_mark mark = {.reason = ""};
	cJSON *tree;
	int rc;

	rc = ck_field_parse(where, text, bytes, &tree, err);
	if (!rc)
		rc = parse_want(where, tree, &mark.want, err);
	if (!rc)
		rc = ck_field_job(where, tree, &mark.job, err);
	if (!rc)
		rc = ck_json_u64(where, tree, "step", CK_STEP_MAX, &mark.step, err);
	if (!rc)
		rc = ck_field_text(where, tree, "reason", mark.reason, sizeof(mark.reason), err);
	if (!rc && ck_json_has(tree, "save_ms"))
		rc = ck_json_u64(where, tree, "save_ms", CK_JSON_INT_MAX, &mark.save_ms, err);
	if (!rc && ck_json_has(tree, "save_bytes"))
		rc = ck_json_u64(where, tree, "save_bytes", CK_JSON_INT_MAX, &mark.save_bytes, err);
	cJSON_Delete(tree);
	if (!rc)
		*out = mark;
	return rc;
}

static void print(const struct ck_mark *mark, struct ck_buf *out)
{
	ck_buf_addf(out, "{\n\t\"schema_version\": %d,\n\t\"want\": \"%s\",\n\t", CK_SCHEMA_VERSION,
		    want_words[mark->want]);
	ck_field_print_job(out, &mark->job, false);
	ck_buf_addf(out, ",\n\t\"step\": %" PRIu64 ",\n\t", mark->step);
	ck_field_print_text(out, "reason", mark->reason);
	if (mark->save_ms)
		ck_buf_addf(out, ",\n\t\"save_ms\": %" PRIu64 ",\n\t\"save_bytes\": %" PRIu64,
			    mark->save_ms, mark->save_bytes);
	ck_buf_add_str(out, "\n}\n");
}

/* The text is read back, so that nothing is written which a reader would refuse. */
int ck_mark_print(const struct ck_mark *mark, struct ck_buf *out, struct ck_error *err)
{
	struct ck_buf text = CK_BUF_INIT;
	struct ck_mark again;
	int rc;

	if ((int)mark->want < 0 || mark->want >= CK_WANTS)
		return ck_fail(err, CK_EFORMAT, "%s: want: %d is none", CK_MARK_FILE,
			       (int)mark->want);
	print(mark, &text);
	rc = ck_buf_check(&text, err);
	if (!rc)
		rc = ck_mark_parse(CK_MARK_FILE, text.data, text.len, &again, err);
	return ck_field_finish(out, &text, rc, err);
}

static int store(const struct ck_io *io, const char *dir, uint64_t generation, const char *name,
		 const struct ck_mark *mark, struct ck_error *err)
{
	struct ck_buf text = CK_BUF_INIT;
	int rc;

	rc = ck_mark_print(mark, &text, err);
	if (!rc)
		rc = ck_dirfile_store_of(io, dir, generation, name, &text, err);
	ck_buf_fini(&text);
	return rc;
}

int ck_mark_store(const struct ck_io *io, const char *dir, uint64_t generation,
		  const struct ck_mark *mark, struct ck_error *err)
{
	return store(io, dir, generation, CK_MARK_FILE, mark, err);
}

int ck_refusal_store(const struct ck_io *io, const char *dir, uint64_t generation,
		     const struct ck_mark *mark, struct ck_error *err)
{
	struct ck_mark refusal = *mark;

	refusal.want = CK_WANT_REFUSE;
	return store(io, dir, generation, CK_REFUSAL_FILE, &refusal, err);
}

static int load(const struct ck_io *io, const char *dir, uint64_t generation, const char *name,
		struct ck_mark *out, struct ck_error *err)
{
	struct ck_buf text = CK_BUF_INIT;
	char path[PATH_MAX];
	int rc;

	rc = ck_dirfile_read_of(io, dir, generation, name, MARK_FILE_MAX, path, &text, err);
	if (!rc)
		rc = ck_mark_parse(path, text.data, text.len, out, err);
	ck_buf_fini(&text);
	return rc;
}

int ck_mark_load(const struct ck_io *io, const char *dir, uint64_t generation, struct ck_mark *out,
		 struct ck_error *err)
{
	return load(io, dir, generation, CK_MARK_FILE, out, err);
}

/* The refusal or the mark of a generation, if it is this step's. */
static int find_in(const struct ck_io *io, const char *dir, uint64_t generation,
		   const struct ck_job *job, struct ck_mark *out, struct ck_error *err)
{
	struct ck_mark mark;
	int rc;

	if (load(io, dir, generation, CK_REFUSAL_FILE, out, NULL) == 0 &&
	    ck_job_equal(&out->job, job))
		return 0;
	rc = ck_mark_load(io, dir, generation, &mark, err);
	if (rc)
		return rc;
	*out = mark;
	return ck_job_equal(&mark.job, job) ? 0 : ck_fail(err, CK_ENOENT, "another step's");
}

/*
 * A mark that cannot be read is the answer only where no other one fits: it may be of another job.
 */
int ck_mark_find(const struct ck_io *io, const char *dir, const struct ck_job *job,
		 struct ck_mark *out, struct ck_error *err)
{
	struct ck_error first = CK_ERROR_INIT, why;
	uint64_t *generations = NULL;
	struct ck_mark mark;
	size_t count;
	int rc;

	rc = ck_generations_load(io, dir, &generations, &count, err);
	if (rc)
		return rc;
	rc = ck_fail(&first, CK_ENOENT, "%s: no mark of job %s, restart %" PRIu64 ", step %s", dir,
		     job->job_id, job->restart_count, job->step_id);
	for (size_t i = 0; i < count; i++) {
		int got = find_in(io, dir, generations[i], job, &mark, &why);

		if (!got) {
			*out = mark;
			free(generations);
			return 0;
		}
		if (got && got != CK_ENOENT && rc == CK_ENOENT) {
			first = why;
			rc = got;
		}
	}
	free(generations);
	if (err)
		*err = first;
	return rc;
}

static void print_event(struct ck_buf *out, const char *event, uint64_t step, const char *text)
{
	struct ck_buf escaped = CK_BUF_INIT;

	ck_buf_add_str(out, "{");
	ck_field_print_time(out, "time", time(NULL));
	ck_buf_add_str(out, ", ");
	ck_field_print_text(out, "event", event);
	if (step == UINT64_MAX)
		ck_buf_add_str(out, ", \"step\": null, ");
	else
		ck_buf_addf(out, ", \"step\": %" PRIu64 ", ", step);
	ck_buf_add_escaped(&escaped, text);
	ck_field_print_text(out, "text", escaped.data ? escaped.data : "");
	ck_buf_add_str(out, "}\n");
	out->failed = out->failed || escaped.failed;
	ck_buf_fini(&escaped);
}

/* A writer that died may have left half a line: end it, so that only that one is lost. */
static int end_line(const struct ck_io *io, int fd, const char *path, uint64_t *size,
		    struct ck_error *err)
{
	struct stat st;
	char last;
	int rc;

	if (io->ops->fstat(io, fd, &st) < 0)
		return ck_fail_errno(err, errno, "%s: fstat", path);
	*size = (uint64_t)st.st_size;
	if (*size == 0)
		return 0;
	rc = ck_io_pread_full(io, fd, path, &last, 1, *size - 1, err);
	if (rc || last == '\n')
		return rc;
	return ck_io_pwrite_full(io, fd, path, "\n", 1, (*size)++, err);
}

int ck_event_add(const struct ck_io *io, const char *dir, uint64_t generation, const char *event,
		 uint64_t step, const char *text, struct ck_error *err)
{
	struct ck_buf line = CK_BUF_INIT;
	char sub[PATH_MAX], path[PATH_MAX];
	uint64_t size = 0;
	int fd = -1, rc;

	rc = ck_dirfile_generation(sub, dir, generation, err);
	if (!rc)
		rc = ck_dirfile_path(path, sub, CK_EVENTS_FILE, err);
	print_event(&line, event, step, text);
	if (!rc)
		rc = ck_buf_check(&line, err);
	if (rc)
		goto out;
	fd = io->ops->open(io, path, O_RDWR | O_CREAT, 0666);
	if (fd < 0) {
		rc = ck_fail_errno(err, errno, "%s: open", path);
		goto out;
	}
	rc = end_line(io, fd, path, &size, err);
	if (!rc)
		rc = ck_io_pwrite_full(io, fd, path, line.data, line.len, size, err);
	if (!rc)
		rc = ck_io_sync_close(io, &fd, path, err);
out:
	ck_io_close(io, &fd);
	ck_buf_fini(&line);
	return rc;
}
