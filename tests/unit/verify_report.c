/* The report of verify.h: what it counts, its failures, progress, and a writer that errs. */
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "commit.h"
#include "io_fault.h"
#include "rundir.h"
#include "tap.h"
#include "verify.h"

#define WORLD 3
#define STEP "step-0000000007.g1"
#define FILE0 "rank-00000.0.safetensors"
#define FILE01 "rank-00000.1.safetensors"
#define FILE1 "rank-00001.0.safetensors"
#define FILE2 "rank-00002.0.safetensors"

static const struct ck_step_id id = {.step = 7, .generation = 1};

static struct ck_report verify(const char *dir, enum ck_level level, int threads)
{
	struct ck_report report = {.findings = NULL};
	struct ck_error err = CK_ERROR_INIT;

	is_int(ck_verify(&ck_io_posix, dir, id, level, threads, NULL, NULL, &report, &err), 0,
	       "verified: %s", err.text);
	return report;
}

static uint64_t size_of(const char *dir, const char *name)
{
	struct stat st = {.st_size = -1};

	lstat(in_dir(in_dir(dir, STEP), name), &st);
	return (uint64_t)st.st_size;
}

static void test_report(void)
{
	const char *dir = run_with(id, WORLD);
	struct ck_error err = CK_ERROR_INIT;
	struct ck_report report = {.nfiles = 77};
	struct ck_io_fault *fault;

	is_int(ck_verify(&ck_io_posix, dir, (struct ck_step_id){8, 1}, CK_LEVEL_SHA256, 1, NULL,
			 NULL, &report, &err),
	       CK_ENOENT, "no such step");
	like(err.text, "step-0000000008.g1", "the text");
	is_u64(report.nfiles, 77, "the report is untouched");
	report = verify(dir, CK_LEVEL_SHA256, 300);
	is_u64(report.nfiles, 4, "four files");
	is_u64(report.world_size, WORLD, "world size");
	is_u64(report.bytes,
	       size_of(dir, FILE0) + size_of(dir, FILE01) + size_of(dir, FILE1) +
		       size_of(dir, FILE2),
	       "their bytes");
	ck_report_fini(&report);

	is_int(ck_io_fault_new(&fault, &ck_io_posix, "pread:" FILE2 ":errno=EIO:after=2", &err), 0,
	       "fault");
	is_int(ck_verify(ck_io_fault_io(fault), dir, id, CK_LEVEL_CRC32, 2, NULL, NULL, &report,
			 &err),
	       0, "a disk that fails");
	is_u64(report.nbad, 1, "makes one bad finding");
	is_int(report.findings[0].code, CK_EIO, "of its own code");
	like(report.findings[0].text, FILE2, "that names the file");
	ck_report_fini(&report);
	ck_io_fault_free(fault);
}

static void add_bytes(void *arg, uint64_t bytes)
{
	atomic_fetch_add((atomic_ullong *)arg, bytes);
}

static void test_progress(void)
{
	const char *dir = run_with(id, WORLD);
	struct ck_error err = CK_ERROR_INIT;
	struct ck_report report;
	atomic_ullong seen = 0;

	is_int(ck_verify(&ck_io_posix, dir, id, CK_LEVEL_SHA256, 3, add_bytes, &seen, &report,
			 &err),
	       0, "with progress");
	is_u64(seen, report.bytes, "every byte is told once");
	ck_report_fini(&report);
	seen = 0;
	is_int(ck_verify(&ck_io_posix, dir, id, CK_LEVEL_SIZED, 3, add_bytes, &seen, &report, &err),
	       0, "without hashing");
	is_u64(seen, 0, "none is");
	ck_report_fini(&report);
}

/*
 * A writer that errs: rank 1 writes what is rank 0's, so that files, digests and manifest agree and
 * only the boxes do not.
 */
static void test_stored_twice(void)
{
	const char *dir = test_tmpdir();
	struct ck_manifest m = state_manifest(id, 2);
	struct ck_error err = CK_ERROR_INIT;
	struct ck_report report;
	char staging[PATH_MAX];
	unsigned twice = 0, holes = 0, none = 0;

	make_run(dir);
	ck_save_begin(&ck_io_posix, dir, id, staging, &err);
	ck_save_announce(&ck_io_posix, dir, &m, &err);
	is_int(save_rank(&ck_io_posix, dir, &m, 0, &err), 0, "rank 0");
	is_int(save_rank_as(&ck_io_posix, dir, &m, 1, 0, &err), 0,
	       "rank 1 with rank 0's blocks: %s", err.text);
	is_int(ck_save_commit(&ck_io_posix, dir, &m, NULL, &err), 0, "committed: %s", err.text);
	report = verify(dir, CK_LEVEL_SHA256, 2);
	for (size_t i = 0; i < report.count; i++) {
		const char *text = report.findings[i].text;

		twice += strstr(text, "is stored twice, in " FILE0 " and in " FILE1) != NULL ||
			 strstr(text, "is stored twice, in " FILE01
				      " and in rank-00001.1.safetensors") != NULL;
		holes += strstr(text, "hole: ") != NULL;
		none += strstr(text, "rng") != NULL;
	}
	is_u64(twice, 4, "params, scale and both blocks of w are stored twice");
	is_u64(holes, 2, "params and w have holes");
	is_u64(none, 0, "each rank has its own rng");
	is_u64(report.nbad, 6, "all bad");
	ck_report_fini(&report);
	ck_manifest_fini(&m);
}

/* Rank 0 stores its per-rank item in two files, rank 1 in none. */
static void test_per_rank(void)
{
	static const char *const says[] = {
		"item 'params': hole: 10 of 30 elements",
		"item 'rng' of rank 0 is stored twice, in " FILE0
		" and in rank-00000.2.safetensors",
		"item 'rng' of rank 1 is stored in no file",
		"item 'w': hole: 12 of 36 elements",
	};
	const char *dir = test_tmpdir();
	struct ck_manifest m = state_manifest(id, 3);
	struct ck_error err = CK_ERROR_INIT;
	struct ck_report report;
	char staging[PATH_MAX];

	make_run(dir);
	ck_save_begin(&ck_io_posix, dir, id, staging, &err);
	ck_save_announce(&ck_io_posix, dir, &m, &err);
	is_int(save_rank(&ck_io_posix, dir, &m, 0, &err), 0, "rank 0");
	is_int(save_extra(&ck_io_posix, dir, &m, 0, true, &err), 0, "once more: %s", err.text);
	is_int(save_extra(&ck_io_posix, dir, &m, 1, false, &err), 0, "rank 1: %s", err.text);
	is_int(save_rank(&ck_io_posix, dir, &m, 2, &err), 0, "rank 2");
	is_int(ck_save_commit(&ck_io_posix, dir, &m, NULL, &err), 0, "committed: %s", err.text);
	report = verify(dir, CK_LEVEL_SHA256, 2);
	is_u64(report.count, 4, "four findings");
	for (size_t i = 0; i < report.count && i < 4; i++)
		like(report.findings[i].text, says[i], "finding %zu", i);
	ck_report_fini(&report);
	ck_manifest_fini(&m);
}

int main(void)
{
	test_report();
	test_progress();
	test_stored_twice();
	test_per_rank();
	return done_testing();
}
