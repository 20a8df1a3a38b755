/* ck_salvage of commit.h: a save that was complete is committed by the next owner. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "catalog.h"
#include "commit.h"
#include "io_fault.h"
#include "rundir.h"
#include "tap.h"
#include "verify.h"

#define WORLD 3

static const struct ck_step_id older = {.step = 1, .generation = 1},
			       cut = {.step = 2, .generation = 1};

/* A run with a committed step 1, and a save of step 2 that ended as the rules say. */
static const char *run_cut(const char *rules)
{
	const char *dir = test_tmpdir();
	struct ck_error err = CK_ERROR_INIT;
	struct ck_io_fault *fault;

	make_run(dir);
	if (save_step(&ck_io_posix, dir, older, WORLD, NULL, &err))
		ok(false, "step 1: %s", err.text);
	if (ck_io_fault_new(&fault, &ck_io_posix, rules, &err))
		ok(false, "%s: %s", rules, err.text);
	ok(save_step(ck_io_fault_io(fault), dir, cut, WORLD, NULL, &err) != 0, "cut: %s", rules);
	ck_io_fault_free(fault);
	make_generation(dir, 2);
	return dir;
}

static size_t salvage(const char *dir)
{
	struct ck_error err = CK_ERROR_INIT;
	struct ck_salvaged salvaged;
	size_t count;

	is_int(ck_salvage(&ck_io_posix, dir, 2, &salvaged, &err), 0, "salvage: %s", err.text);
	count = salvaged.count;
	ck_salvaged_fini(&salvaged);
	is_int(sweep_now(&ck_io_posix, dir, 2, &err), 0, "sweep: %s", err.text);
	ok(!exists_in(dir, ".saving-0000000002.g1") && !exists_in(dir, ".salvage-0000000002.g1") &&
		   !exists_in(dir, ".deleting-0000000002.g1"),
	   "nothing is left over");
	return count;
}

static void is_good(const char *dir)
{
	struct ck_report report = {0};
	struct ck_error err = CK_ERROR_INIT;

	is_int(ck_verify(&ck_io_posix, dir, cut, CK_LEVEL_SHA256, 1, NULL, NULL, &report, &err), 0,
	       "verified: %s", err.text);
	is_u64(report.nbad, 0, "it is good: %s", report.count ? report.findings[0].text : "");
	is_u64(report.count, 0, "without a warning");
	ck_report_fini(&report);
}

static void complete(void)
{
	static const char *const rules[] = {
		"open:SHA256SUMS*:errno=EIO", /* all written and recorded, the commit not begun */
		"rename:*manifest.json*:errno=EIO", /* no manifest yet */
		"unlink:save.json:errno=EIO",       /* manifest and save.json */
		"rename:.saving-*:errno=EIO",       /* all but the last rename */
	};

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		const char *dir = run_cut(rules[i]);

		is_u64(salvage(dir), 1, "cut after the last byte, before the commit: salvaged");
		is_good(dir);
		ok(exists_in(dir, "step-0000000002.g1"), "it keeps its generation");
	}
}

static void incomplete(void)
{
	static const char *const rules[] = {
		"open:rank-00002.0.safetensors:errno=ENOSPC", /* a shard is missing */
		"open:*rank-00002.json*:errno=ENOSPC",        /* a record is missing */
	};

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		is_u64(salvage(run_cut(rules[i])), 0, "incomplete: swept");
}

static void damaged(void)
{
	const char *dir = run_cut("rename:.saving-*:errno=EIO");

	if (truncate(in_dir(dir, ".saving-0000000002.g1/rank-00001.0.safetensors"), 100))
		ok(false, "truncate");
	is_u64(salvage(dir), 0, "a shard of another size: swept, not published");
	ok(exists_in(dir, "step-0000000001.g1"), "the older checkpoint is there");
}

static void again(void)
{
	const char *dir = run_cut("rename:.saving-*:errno=EIO");
	struct ck_error err = CK_ERROR_INIT;
	struct ck_salvaged salvaged;
	struct ck_io_fault *fault;

	ck_io_fault_new(&fault, &ck_io_posix, "rename:.salvage-*:errno=EIO", &err);
	ok(ck_salvage(ck_io_fault_io(fault), dir, 2, &salvaged, &err) < 0,
	   "a salvage that fails is told");
	ck_salvaged_fini(&salvaged);
	ck_io_fault_free(fault);
	is_u64(salvage(dir), 1, "and done by the next");
	is_good(dir);
}

/*
 * Each call that looks fails once, by each cause: what is not salvaged for that is there still, and the next opener
 * salvages it.
 */
static void not_looked_at(void)
{
	static const char *const causes[] = {"EIO", "ESTALE", "EMFILE", "ENOMEM", "EACCES"};
	static const char *const cuts[] = {
		"rename:.saving-*:errno=EIO", /* save.json is gone, all hangs on the manifest */
		"open:SHA256SUMS*:errno=EIO", /* save.json and the records */
	};

	for (unsigned n = 0; n < 2 * 48; n++) {
		const char *dir = run_cut(cuts[n % 2]);
		struct ck_error err = CK_ERROR_INIT;
		struct ck_salvaged salvaged;
		struct ck_io_fault *fault;
		char rules[96];
		int rc;

		snprintf(rules, sizeof(rules),
			 "open,pread,fstat,lstat,readdir:*:errno=%s:after=%u:times=1",
			 causes[n / 2 % 5], n / 2);
		ck_io_fault_new(&fault, &ck_io_posix, rules, &err);
		rc = ck_salvage(ck_io_fault_io(fault), dir, 2, &salvaged, &err);
		ok(salvaged.count == 1 || rc == CK_EIO || rc == CK_ENOMEM,
		   "%s: salvaged, or said: %d", rules, rc);
		ck_salvaged_fini(&salvaged);
		ck_io_fault_free(fault);
		ok(exists_in(dir, "step-0000000002.g1") || salvage(dir) == 1,
		   "%s: by the next opener, then", rules);
		is_good(dir);
	}
}

static void fenced(void)
{
	const char *dir = run_cut("rename:.saving-*:errno=EIO");
	struct ck_error err = CK_ERROR_INIT;
	struct ck_salvaged salvaged;

	make_generation(dir, 3);
	is_int(ck_salvage(&ck_io_posix, dir, 2, &salvaged, &err), CK_EFENCED,
	       "not the owner any more");
	is_u64(salvaged.count, 0, "nothing is published");
	ck_salvaged_fini(&salvaged);
}

int main(void)
{
	complete();
	incomplete();
	damaged();
	again();
	not_looked_at();
	fenced();
	return done_testing();
}
