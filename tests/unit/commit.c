#include "commit.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "catalog.h"
#include "io_fault.h"
#include "rundir.h"
#include "tap.h"
#include "verify.h"

static const struct ck_step_id first = {.step = 100, .generation = 1};
static const struct ck_step_id second = {.step = 200, .generation = 1};

#define STEP1 "step-0000000100.g1"
#define SAVING1 ".saving-0000000100.g1"
#define RECORDS1 ".gen-1/records-0000000100"

static void is_sound(const char *dir, struct ck_step_id id, const char *name)
{
	struct ck_error err = CK_ERROR_INIT;
	struct ck_report report = {.findings = NULL};

	is_int(ck_verify(&ck_io_posix, dir, id, CK_LEVEL_SHA256, 2, NULL, NULL, &report, &err), 0,
	       "%s: can be verified: %s", name, err.text);
	is_u64(report.count, 0, "%s: and is sound%s%s", name, report.count ? ": " : "",
	       report.count ? report.findings[0].text : "");
	ck_report_fini(&report);
}

static void test_refusals(void)
{
	const char *dir = test_tmpdir();
	struct ck_manifest m = state_manifest(first, 2);
	struct ck_error err = CK_ERROR_INIT;
	struct ck_plan no_plan = {.nparts = 0};
	struct ck_record record;
	char staging[PATH_MAX];

	is_int(ck_save_begin(&ck_io_posix, in_dir(dir, "none"), first, staging, &err), CK_ENOENT,
	       "no run directory");
	make_run(dir);
	is_int(ck_save_announce(&ck_io_posix, dir, &m, &err), CK_ENOENT, "announced before begun");
	is_int(save_rank(&ck_io_posix, dir, &m, 0, &err), CK_ENOENT, "written before begun");
	is_int(ck_save_commit(&ck_io_posix, dir, &m, NULL, &err), CK_EFORMAT,
	       "committed without files");
	like(err.text, "shards: rank 0 has no file", "the text");
	is_int(ck_save_write(&ck_io_posix, dir, first, "abc", 0, &no_plan, NULL, NULL, &record,
			     &err),
	       CK_EFORMAT, "a save id of 3 digits");
	like(err.text, "save_id: 3 hex digits, must be 32", "the text");

	is_int(ck_save_begin(&ck_io_posix, dir, first, staging, &err), 0, "begun");
	is_str(staging, in_dir(dir, SAVING1), "the staging directory");
	is_int(ck_save_begin(&ck_io_posix, dir, first, staging, &err), 0, "by another rank");
	m.created = -1;
	is_int(ck_save_announce(&ck_io_posix, dir, &m, &err), CK_EFORMAT,
	       "what no reader would take is not announced");
	m.created = 0;
	is_int(save_rank(&ck_io_posix, dir, &m, 0, &err), 0, "a rank writes: %s", err.text);
	is_int(save_rank(&ck_io_posix, dir, &m, 0, &err), CK_EEXIST, "not over what is there");
	like(err.text, "rank-00000.0.safetensors", "the text names the file");
	ck_manifest_fini(&m);
}

/* Neither the ranks' files nor those of the commit go where a link leads that was there beforehand. */
static void test_link_in_the_way(void)
{
	const char *dir = test_tmpdir(), *elsewhere = test_tmpdir();
	struct ck_manifest m = state_manifest(first, 1);
	struct ck_error err = CK_ERROR_INIT;
	char staging[PATH_MAX];

	make_run(dir);
	ok(symlink(elsewhere, in_dir(dir, SAVING1)) == 0, "a link where a save stages");
	is_int(ck_save_begin(&ck_io_posix, dir, first, staging, &err), CK_EIO, "is not followed");
	like(err.text, SAVING1 ": is a symbolic link, and must be a directory", "and named");
	is_int(ck_save_abandon(&ck_io_posix, dir, first, &err), CK_EFORMAT, "nor removed");
	ok(unlink(in_dir(dir, SAVING1)) == 0, "the link goes");
	put_file(in_dir(dir, SAVING1), "");
	is_int(ck_save_begin(&ck_io_posix, dir, first, staging, &err), CK_EIO, "a file there");
	like(err.text, SAVING1 ": is a file", "is named");
	ok(unlink(in_dir(dir, SAVING1)) == 0, "it goes");
	is_int(ck_save_begin(&ck_io_posix, dir, first, staging, &err), 0, "begun");
	ok(symlink(elsewhere, in_dir(dir, RECORDS1)) == 0, "a link where records go");
	is_int(save_rank(&ck_io_posix, dir, &m, 0, &err), CK_EIO, "is not followed");
	like(err.text, RECORDS1 ": is a symbolic link", "and named");
	is_u64(count_in(elsewhere), 0, "nothing is written behind a link");
	ck_manifest_fini(&m);
}

static void test_fenced(void)
{
	const char *dir = test_tmpdir();
	struct ck_manifest m = state_manifest(first, 1);
	struct ck_error err = CK_ERROR_INIT, warning = CK_ERROR_INIT;
	char staging[PATH_MAX];

	make_run(dir);
	is_int(ck_save_begin(&ck_io_posix, dir, first, staging, &err), 0, "begun");
	make_generation(dir, 2);
	is_int(ck_save_announce(&ck_io_posix, dir, &m, &err), CK_EFENCED, "fenced at announcing");
	ok(!exists_in(staging, "save.json"), "nothing announced");
	is_int(save_rank(&ck_io_posix, dir, &m, 0, &err), 0, "its ranks may still write");
	is_int(ck_save_commit(&ck_io_posix, dir, &m, &warning, &err), CK_EFENCED,
	       "fenced at the commit");
	like(err.text, "generation 2 has taken over", "the text");
	ok(!exists_in(dir, STEP1) && exists_in(dir, SAVING1), "nothing is published");
	ok(!exists_in(dir, "latest"), "latest is not touched");
	ck_manifest_fini(&m);
}

/* Before which rename a newer owner comes, and sweeps. */
struct late {
	const char *dir;
	const char *from; /* the path has this in it, and ... */
	const char *to;   /* ... the new one that */
};

static int late_rename(const struct ck_io *io, const char *from, const char *to)
{
	const struct late *late = io->ctx;
	const char *dir = late->dir;
	struct ck_salvaged salvaged;

	if (strstr(from, late->from) && strstr(to, late->to)) {
		make_generation(dir, 2);
		ck_io_posix.ops->unlink(&ck_io_posix, in_dir(dir, SAVING1 "/manifest.json"));
		ck_io_posix.ops->unlink(&ck_io_posix, in_dir(dir, SAVING1 "/save.json"));
		ok(ck_salvage(&ck_io_posix, dir, 2, &salvaged, NULL) == 0 && salvaged.count == 0,
		   "the newer owner takes it away");
		ok(sweep_now(&ck_io_posix, dir, 2, NULL) == 0, "and sweeps");
	}
	return ck_io_posix.ops->rename(&ck_io_posix, from, to);
}

static void swept_before(const char *from, const char *to, const char *what)
{
	const char *dir = test_tmpdir();
	struct ck_io_ops ops = *ck_io_posix.ops;
	struct late late = {.dir = dir, .from = from, .to = to};
	const struct ck_io io = {.ops = &ops, .ctx = &late};
	struct ck_error err = CK_ERROR_INIT;

	ops.rename = late_rename;
	make_run(dir);
	is_int(save_step(&io, dir, first, 1, NULL, &err), CK_EFENCED, "fenced at %s", what);
	like(err.text, "generation 2 has taken over", "the text");
	ok(!exists_in(dir, STEP1) && !exists_in(dir, SAVING1), "nothing is published or left");
}

static void test_swept(void)
{
	swept_before(SAVING1, "/" STEP1, "the rename itself");
	swept_before("manifest.json.tmp", "manifest.json", "the last file before it");
	swept_before("SHA256SUMS.tmp", "SHA256SUMS", "the first one");
}

static void test_committed(void)
{
	const char *dir = test_tmpdir();
	struct ck_error err = CK_ERROR_INIT, warning = CK_ERROR_INIT;
	struct ck_run run = {.committed = false};
	char command[PATH_MAX + 64], *text;

	make_run(dir);
	is_int(ck_run_load(&ck_io_posix, dir, &run, &err), 0, "run.json");
	ok(!run.committed, "nothing committed yet");
	is_int(save_step(&ck_io_posix, dir, first, 3, &warning, &err), 0, "a save: %s", err.text);
	is_int(warning.code, 0, "no warning: %s", warning.text);
	is_u64(count_in(in_dir(dir, STEP1)), 6, "four files, SHA256SUMS, manifest.json");
	ok(!exists_in(dir, SAVING1), "the staging directory has become it");
	is_sound(dir, first, "the checkpoint");
	text = content_of(in_dir(dir, "latest"));
	is_str(text, STEP1 "\n", "latest");
	free(text);
	is_int(ck_run_load(&ck_io_posix, dir, &run, &err), 0, "run.json");
	ok(run.committed, "says so");
	snprintf(command, sizeof(command),
		 "cd %s/" STEP1 " && sha256sum --strict --quiet -c "
		 "SHA256SUMS",
		 dir);
	is_int(system(command), 0, "sha256sum agrees");

	is_u64(count_in(in_dir(dir, RECORDS1)), 3, "three records");
	is_int(ck_save_tidy(&ck_io_posix, dir, first, &err), 0, "tidied");
	ok(!exists_in(dir, RECORDS1), "no records");
	is_int(ck_save_tidy(&ck_io_posix, dir, first, &err), 0, "missing is fine");

	is_int(save_step(&ck_io_posix, dir, second, 3, &warning, &err), 0, "the next: %s",
	       err.text);
	text = content_of(in_dir(dir, "latest"));
	is_str(text, "step-0000000200.g1\n", "latest");
	free(text);
	is_sound(dir, first, "the older one");
	is_sound(dir, second, "the newer one");
}

static void test_param_shards(void)
{
	const char *dir = test_tmpdir();
	struct ck_manifest m;
	struct ck_error err = CK_ERROR_INIT;

	make_run(dir);
	is_int(save_step(&ck_io_posix, dir, first, 2, NULL, &err), 0, "a save: %s", err.text);
	is_int(ck_step_load(&ck_io_posix, dir, first, &m, &err), 0, "loads: %s", err.text);
	is_u64(m.nfiles, 3, "three files");
	is_u64(m.files[0].param_shard_numel, 10, "rank 0 has ten elements of the flat item");
	is_u64(m.files[1].param_shard_numel, 0, "none in its second file");
	is_u64(m.files[2].param_shard_offset, 10, "rank 1 begins behind them");
	is_u64(m.files[2].param_shard_numel, 10, "and has ten");
	ck_manifest_fini(&m);
}

static void test_abandon(void)
{
	const char *dir = test_tmpdir();
	struct ck_manifest m = state_manifest(second, 2);
	struct ck_error err = CK_ERROR_INIT;
	struct ck_io_fault *fault;
	char staging[PATH_MAX];

	make_run(dir);
	is_int(save_step(&ck_io_posix, dir, first, 2, NULL, &err), 0, "a save");
	ck_save_begin(&ck_io_posix, dir, second, staging, &err);
	ck_save_announce(&ck_io_posix, dir, &m, &err);
	save_rank(&ck_io_posix, dir, &m, 0, &err);
	is_int(ck_io_fault_new(&fault, &ck_io_posix, "unlink:rank-*.json:errno=EROFS", &err), 0,
	       "fault");
	is_int(ck_save_abandon(ck_io_fault_io(fault), dir, second, &err), CK_EIO,
	       "a record that stays is told");
	like(err.text, "Read-only file system", "the text");
	ok(!exists_in(dir, ".saving-0000000200.g1"), "the rest is gone all the same");
	ck_io_fault_free(fault);
	is_int(ck_save_abandon(&ck_io_posix, dir, second, &err), 0, "again");
	ok(!exists_in(dir, ".gen-1/records-0000000200"), "all gone");
	is_int(ck_save_abandon(&ck_io_posix, dir, second, &err), 0, "missing is fine");
	is_sound(dir, first, "the older one");
	ck_manifest_fini(&m);
}

/* What may fail behind the commit. */
static void test_warnings(void)
{
	static const struct {
		const char *rule;
		const char *says;
	} rows[] = {
		{"pwrite:latest*:errno=ENOSPC", "latest.tmp-"},
		{"rename:latest:errno=EIO", "latest"},
		{"pwrite:run.json*:errno=ENOSPC", "No space left on device"},
		{"open:run.json:errno=EACCES", "run.json: open: Permission denied"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *dir = test_tmpdir();
		struct ck_error err = CK_ERROR_INIT, warning;
		struct ck_io_fault *fault;

		make_run(dir);
		is_int(ck_io_fault_new(&fault, &ck_io_posix, rows[i].rule, &err), 0, "%s",
		       rows[i].rule);
		is_int(save_step(ck_io_fault_io(fault), dir, first, 1, &warning, &err), 0,
		       "%s: committed: %s", rows[i].rule, err.text);
		is_int(warning.code, CK_EIO, "%s: with a warning", rows[i].rule);
		like(warning.text, rows[i].says, "%s: the text", rows[i].rule);
		is_sound(dir, first, rows[i].rule);
		is_int(save_step(ck_io_fault_io(fault), dir, second, 1, NULL, &err), 0,
		       "%s: nobody need ask for the warning", rows[i].rule);
		ck_io_fault_free(fault);
	}
}

static void test_sync_unsupported(void)
{
	const char *dir = test_tmpdir();
	struct ck_error err = CK_ERROR_INIT, warning;
	struct ck_io_fault *fault;

	make_run(dir);
	is_int(ck_io_fault_new(&fault, &ck_io_posix,
			       "fsync:*.safetensors;fsync:*.tmp-*;fsync:*:errno=EINVAL", &err),
	       0, "fsync of directories is not supported: %s", err.text);
	is_int(save_step(ck_io_fault_io(fault), dir, first, 2, &warning, &err), 0, "committed: %s",
	       err.text);
	is_int(warning.code, 0, "without a warning: %s", warning.text);
	is_sound(dir, first, "the checkpoint");
	ck_io_fault_free(fault);
}

static void test_look_before_belief(void)
{
	const char *dir = test_tmpdir();
	struct ck_error err = CK_ERROR_INIT, warning;
	struct ck_io_fault *fault;

	make_run(dir);
	is_int(ck_io_fault_new(&fault, &ck_io_posix, "rename:" SAVING1 ":errno=EIO:done=1", &err),
	       0, "a rename whose answer is lost");
	is_int(save_step(ck_io_fault_io(fault), dir, first, 2, &warning, &err), 0,
	       "is found to have happened: %s", err.text);
	is_sound(dir, first, "the checkpoint");
	ck_io_fault_free(fault);

	/* Somebody else's directory of that name is not ours, whatever rename says. */
	is_int(ck_io_rename(&ck_io_posix, in_dir(dir, STEP1), in_dir(dir, "step-0000000200.g1"),
			    &err),
	       0, "a checkpoint of another save in the way");
	is_int(save_step(&ck_io_posix, dir, second, 2, &warning, &err), CK_EIO,
	       "is not taken for ours");
	like(err.text, "Directory not empty", "the text");
	ok(exists_in(dir, ".saving-0000000200.g1"), "the staging directory is still there");
}

/* The run directory cannot be fsynced behind the rename (the staging one's fsync does not match). */
static void test_not_durable(void)
{
	static const char fails[] = "fsync:*/:errno=EIO:times=1";
	struct ck_error err = CK_ERROR_INIT, warning;
	struct ck_io_fault *fault;
	const char *dir = test_tmpdir();
	char rules[256];

	make_run(dir);
	is_int(ck_io_fault_new(&fault, &ck_io_posix, fails, &err), 0, "%s", fails);
	is_int(save_step(ck_io_fault_io(fault), dir, first, 1, &warning, &err), CK_EIO,
	       "a commit that is not durable has failed");
	like(err.text, "fsync directory: Input/output error", "the text");
	ok(!exists_in(dir, STEP1) && exists_in(dir, SAVING1 "/manifest.json"),
	   "the rename is taken back");
	ok(!exists_in(dir, "latest"), "latest is not touched");
	ck_io_fault_free(fault);
	is_int(ck_save_abandon(&ck_io_posix, dir, first, &err), 0, "abandoned");

	snprintf(rules, sizeof(rules), "%s;rename:" STEP1 ":errno=EIO:after=1", fails);
	is_int(ck_io_fault_new(&fault, &ck_io_posix, rules, &err), 0, "%s", rules);
	is_int(save_step(ck_io_fault_io(fault), dir, first, 1, &warning, &err), 0,
	       "where that fails too, it is committed: %s", err.text);
	is_int(warning.code, CK_EIO, "with a warning");
	like(warning.text, "not known to be on disk: ", "that says so");
	is_sound(dir, first, "the checkpoint");
	ck_io_fault_free(fault);
}

int main(void)
{
	test_refusals();
	test_link_in_the_way();
	test_fenced();
	test_swept();
	test_committed();
	test_param_shards();
	test_abandon();
	test_warnings();
	test_sync_unsupported();
	test_look_before_belief();
	test_not_durable();
	return done_testing();
}
