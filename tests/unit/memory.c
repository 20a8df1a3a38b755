/*
 * Each single allocation fails in turn: the answer is CK_ENOMEM, nothing leaks, outputs stay.
 * The program brings its own malloc, so the sanitizers, which do too, skip it.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog.h"
#include "commit.h"
#include "manifests.h"
#include "run.h"
#include "rundir.h"
#include "tap.h"
#include "verify.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

int main(void)
{
	skip("the sanitizer's own malloc cannot be made to fail");
	return done_testing();
}

#else

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void __libc_free(void *old);

static long countdown = -1; /* allocations until the one that fails; < 0: none fails */
static long live;

static bool fails(void)
{
	if (countdown < 0)
		return false;
	if (countdown-- > 0)
		return false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t bytes)
{
	void *p = fails() ? NULL : __libc_malloc(bytes);

	live += p != NULL;
	return p;
}

void *calloc(size_t count, size_t bytes)
{
	void *p = fails() ? NULL : __libc_calloc(count, bytes);

	live += p != NULL;
	return p;
}

void *realloc(void *old, size_t bytes)
{
	void *p = fails() ? NULL : __libc_realloc(old, bytes);

	live += p && !old;
	return p;
}

void free(void *old)
{
	live -= old != NULL;
	__libc_free(old);
}

/* --- what is tried --- */

static const char *dir;
static struct ck_buf text = CK_BUF_INIT;
static struct ck_manifest manifest;
static const struct ck_step_id id = {.step = 7, .generation = 1};

static int try_parse(struct ck_error *err)
{
	struct ck_manifest m;
	int rc = ck_manifest_parse("m", text.data, text.len, true, &m, err);

	if (!rc)
		ck_manifest_fini(&m);
	return rc;
}

static int try_print(struct ck_error *err)
{
	struct ck_buf out = CK_BUF_INIT;
	int rc = ck_manifest_print(&manifest, true, &out, err);

	if (rc && out.len)
		rc = 1;
	ck_buf_fini(&out);
	return rc;
}

static int try_record(struct ck_error *err)
{
	struct ck_record record = {.rank = 1, .files = manifest.files + 1, .nfiles = 2}, again;
	struct ck_buf out = CK_BUF_INIT;
	int rc;

	memcpy(record.save_id, manifest.save_id, sizeof(record.save_id));
	rc = ck_record_print(&record, &out, err);
	if (!rc)
		rc = ck_record_parse("r", out.data, out.len, &again, err);
	if (!rc)
		ck_record_fini(&again);
	ck_buf_fini(&out);
	return rc;
}

static int try_claim(struct ck_error *err)
{
	char *refused[] = {(char *)"a", (char *)"b"};
	struct ck_claim claim = {.generation = 1, .time = 5, .refused = refused, .nrefused = 2};
	struct ck_buf out = CK_BUF_INIT;
	int rc;

	memcpy(claim.nonce, manifest.run_id, sizeof(claim.nonce));
	rc = ck_claim_print(&claim, &out, err);
	ck_buf_fini(&out);
	return rc;
}

static int try_run(struct ck_error *err)
{
	struct ck_run run;
	int rc = ck_run_load(&ck_io_posix, dir, &run, err);

	return rc ? rc : ck_run_store(&ck_io_posix, dir, &run, err);
}

static int try_mark(struct ck_error *err)
{
	struct ck_mark mark = {.job = {.job_id = "1"}, .reason = "r"}, found;
	int rc = ck_mark_store(&ck_io_posix, dir, 1, &mark, err);

	return rc ? rc : ck_mark_find(&ck_io_posix, dir, &mark.job, &found, err);
}

static int try_event(struct ck_error *err)
{
	return ck_event_add(&ck_io_posix, dir, 1, "tried", 1, "x", err);
}

static int try_catalog(struct ck_error *err)
{
	struct ck_catalog catalog;
	int rc = ck_catalog_load(&ck_io_posix, dir, &catalog, err);

	if (!rc)
		ck_catalog_fini(&catalog);
	return rc;
}

static int try_resolve(struct ck_error *err)
{
	char run[PATH_MAX];
	struct ck_step_id found;
	bool has_step;

	return ck_resolve(&ck_io_posix, dir, run, &has_step, &found, err);
}

static int try_step(struct ck_error *err)
{
	struct ck_manifest m;
	int rc = ck_step_load(&ck_io_posix, dir, id, &m, err);

	if (!rc)
		ck_manifest_fini(&m);
	return rc;
}

/* Where libcrypto lacks memory, it does not say so: that file is a finding. */
static int try_verify(struct ck_error *err)
{
	struct ck_report report = {.findings = NULL};
	int rc = ck_verify(&ck_io_posix, dir, id, CK_LEVEL_CRC32, 1, NULL, NULL, &report, err);

	if (!rc && report.count)
		rc = ck_fail(err, report.findings[0].code, "%s", report.findings[0].text);
	ck_report_fini(&report);
	return rc;
}

static int try_commit(struct ck_error *err)
{
	struct ck_error warning;
	int rc = ck_save_commit(&ck_io_posix, dir, &manifest, &warning, err);

	return !rc && warning.code ? ck_fail(err, warning.code, "%s", warning.text) : rc;
}

static const struct {
	const char *name;
	int (*attempt)(struct ck_error *err);
} rows[] = {
	{"a manifest is read", try_parse},
	{"a manifest is printed", try_print},
	{"a record", try_record},
	{"a claim", try_claim},
	{"run.json", try_run},
	{"a mark", try_mark},
	{"an event", try_event},
	{"a catalog", try_catalog},
	{"a run is looked up", try_resolve},
	{"a step is loaded", try_step},
	{"a checkpoint is verified", try_verify},
};

static void fail_each(const char *name, int (*attempt)(struct ck_error *err))
{
	unsigned wrong = 0, leaks = 0, n = 0;
	struct ck_error err;
	bool reached = true;
	long before;
	int rc;

	/* Once without failures: libraries allocate what they keep. */
	rc = attempt(&err);
	if (rc)
		ok(false, "%s: succeeds with memory: %s", name, err.text);
	for (; reached && n < 5000; n++) {
		bool libcrypto;

		before = live;
		countdown = n;
		rc = attempt(&err);
		reached = countdown < 0;
		countdown = -1;
		/* It does not say what it lacks, and keeps a list of its errors. */
		libcrypto = rc && strstr(err.text, "libcrypto");
		leaks += live != before && !libcrypto;
		/* Some can be done without: qsort's, stdio's. */
		if (rc && !libcrypto && !(rc == CK_ENOMEM && strstr(err.text, "emory"))) {
			wrong++;
			diag("%s: allocation %u: %d, %s", name, n, rc, err.text);
		}
	}
	ok(n > 1 && n < 5000, "%s: %u allocations", name, n - 1);
	is_int(wrong, 0, "%s: each failure is told as such", name);
	is_int(leaks, 0, "%s: nothing leaks", name);
}

/* A commit that failed for lack of memory can be tried again, until it succeeds. */
static void test_commit(void)
{
	struct ck_error err = CK_ERROR_INIT;
	char staging[PATH_MAX];
	unsigned n = 0, tries = 0;
	int rc = -1;

	ck_manifest_fini(&manifest);
	manifest = state_manifest((struct ck_step_id){8, 1}, 2);
	if (ck_save_begin(&ck_io_posix, dir, manifest.id, staging, &err) ||
	    ck_save_announce(&ck_io_posix, dir, &manifest, &err) ||
	    save_rank(&ck_io_posix, dir, &manifest, 0, &err) ||
	    save_rank(&ck_io_posix, dir, &manifest, 1, &err))
		ok(false, "written: %s", err.text);
	for (; n < 500 && !exists_in(dir, "step-0000000008.g1"); n++) {
		countdown = n;
		rc = try_commit(&err);
		countdown = -1;
		tries += rc != 0;
	}
	ok(tries > 5, "%u commits failed for lack of memory", tries);
	ok(exists_in(dir, "step-0000000008.g1/manifest.json"), "the one after them succeeds");
}

int main(void)
{
	struct ck_error err = CK_ERROR_INIT;

	dir = test_tmpdir();
	make_run(dir);
	is_int(save_step(&ck_io_posix, dir, id, 2, NULL, &err), 0, "a checkpoint: %s", err.text);
	manifest = manifest_valid();
	is_int(ck_manifest_print(&manifest, true, &text, &err), 0, "a manifest: %s", err.text);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		fail_each(rows[i].name, rows[i].attempt);
	test_commit();
	ck_manifest_fini(&manifest);
	ck_buf_fini(&text);
	return done_testing();
}

#endif
