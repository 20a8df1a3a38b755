#include "run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io_fault.h"
#include "rundir.h"
#include "tap.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))
#define ID "0123456789abcdef0123456789abcdef"
#define JOB "\"job\": {\"cluster\": \"atlas\", \"id\": \"47\", \"submit_time\": null}, "
#define HEAD "{\"schema_version\": 1, \"run_id\": \"" ID "\", \"run\": \"bert\", " JOB
#define TIME "\"created\": \"2026-11-29T20:37:50Z\", "

/* --- run.json --- */

static const struct {
	const char *name;
	const char *text;
	const char *says;
} refusals[] = {
	{"empty", "", "r: not JSON: byte 0"},
	{"version 2", "{\"schema_version\": 2}", "r: schema_version is 2, this program reads 1"},
	{"no run id", "{\"schema_version\": 1}", "r: run_id: missing"},
	{"run id in upper case",
	 "{\"schema_version\": 1, \"run_id\": \"0123456789ABCDEF0123456789abcdef\"}",
	 "r: run_id: character 10 is no lower-case hex digit"},
	{"a name with escape codes",
	 "{\"schema_version\": 1, \"run_id\": \"" ID "\", \"run\": \"\\u001b[2J\"}",
	 "r: run: byte 0 is a control character (0x1b)"},
	{"no job", "{\"schema_version\": 1, \"run_id\": \"" ID "\", \"run\": \"x\"}",
	 "r: job: missing"},
	{"created without time zone", HEAD "\"created\": \"2026-11-29T20:37:50\"}",
	 "r: created: 2026-11-29T20:37:50: not a time"},
	{"committed as a number", HEAD TIME "\"committed\": 1}",
	 "r: committed: a number, a boolean"},
	{"complete at -1", HEAD TIME "\"committed\": true, \"complete_step\": -1}",
	 "r: complete_step: -1, an integer from 0"},
};

static void test_parse(void)
{
	static const char good[] =
		HEAD TIME "\"committed\": true, \"complete_step\": 900, \"later\": []}";
	struct ck_error err = CK_ERROR_INIT;
	struct ck_run run;

	for (size_t i = 0; i < ROWS(refusals); i++) {
		run.created = 5;
		is_int(ck_run_parse("r", refusals[i].text, strlen(refusals[i].text), &run, &err),
		       CK_EFORMAT, "%s is refused", refusals[i].name);
		like(err.text, refusals[i].says, "%s: the text", refusals[i].name);
		is_int(run.created, 5, "%s: the output is untouched", refusals[i].name);
	}
	is_int(ck_run_parse("r", good, strlen(good), &run, &err), 0, "a good one: %s", err.text);
	is_str(run.name, "bert", "name");
	is_str(run.job_id, "47", "job");
	is_int(run.submit_time, 0, "submit time unknown");
	ok(run.committed && run.complete, "committed and complete");
	is_u64(run.complete_step, 900, "at its step");
}

static void test_print(void)
{
	struct ck_run run = {.run_id = ID,
			     .name = "a \"b\"",
			     .cluster = "c",
			     .submit_time = 1764448000,
			     .created = 1764448670};
	struct ck_error err = CK_ERROR_INIT;
	struct ck_buf first = CK_BUF_INIT, second = CK_BUF_INIT;
	struct ck_run again;

	for (int complete = 0; complete < 2; complete++) {
		run.complete = complete;
		run.complete_step = complete ? 77 : 0;
		ck_buf_clear(&first);
		ck_buf_clear(&second);
		is_int(ck_run_print(&run, &first, &err), 0, "prints: %s", err.text);
		is_int(ck_run_parse("r", first.data, first.len, &again, &err), 0, "reads: %s",
		       err.text);
		is_int(ck_run_print(&again, &second, &err), 0, "prints again");
		is_str(second.data, first.data, "the same text");
		is_int(again.submit_time, 1764448000, "submit time");
	}
	ck_buf_clear(&first);
	strcpy(run.cluster, "\xff");
	is_int(ck_run_print(&run, &first, &err), CK_EFORMAT, "a cluster not in UTF-8 is refused");
	like(err.text, "run.json: ", "the text names the file");
	is_u64(first.len, 0, "nothing printed");
	ck_buf_fini(&first);
	ck_buf_fini(&second);
}

/* --- files --- */

static void test_create(void)
{
	const char *top = test_tmpdir();
	char dir[PATH_MAX];
	struct ck_run run = {.name = "bert", .cluster = "atlas", .job_id = "47"}, other;
	struct ck_error err = CK_ERROR_INIT;

	snprintf(dir, sizeof(dir), "%s/a/b//run/", top);
	is_int(ck_run_load(&ck_io_posix, dir, &run, &err), CK_ENOENT, "no run yet");
	like(err.text, "run.json", "the text names the file");
	is_int(ck_run_create(&ck_io_posix, dir, &run, &err), 0, "made with its parents");
	is_u64(strlen(run.run_id), 32, "a run id");
	ok(!run.committed && !run.complete && run.created > 1700000000, "new");

	other = (struct ck_run){.name = "other", .job_id = "48"};
	is_int(ck_run_create(&ck_io_posix, dir, &other, &err), 0, "made again");
	is_str(other.run_id, run.run_id, "is what stands there");
	is_str(other.name, "bert", "name and all");

	run.committed = run.complete = true;
	run.complete_step = 12;
	is_int(ck_run_store(&ck_io_posix, dir, &run, &err), 0, "stored");
	is_int(ck_run_load(&ck_io_posix, dir, &other, &err), 0, "loaded");
	ok(other.committed && other.complete && other.complete_step == 12, "as stored");

	is_int(symlink(dir, in_dir(top, "link")), 0, "a link to it");
	is_int(ck_run_create(&ck_io_posix, in_dir(top, "link"), &other, &err), 0,
	       "the user may name a link: %s", err.text);
	is_str(other.run_id, run.run_id, "the same run");
	is_int(ck_run_store(&ck_io_posix, in_dir(top, "link"), &run, &err), 0,
	       "stored through it: %s", err.text);
}

static void test_create_failures(void)
{
	const char *top = test_tmpdir();
	struct ck_run run = {.name = "x"};
	struct ck_error err = CK_ERROR_INIT;
	struct ck_io_fault *fault;
	char deep[PATH_MAX + 8];
	struct ck_buf text = {.data = (char *)"{}", .len = 2};
	uint64_t highest;

	is_int(ck_run_create(&ck_io_posix, "", &run, &err), CK_EIO, "no directory");
	like(err.text, "a path of 0 bytes", "the text");
	memset(deep, 'd', sizeof(deep));
	deep[sizeof(deep) - 1] = '\0';
	is_int(ck_run_create(&ck_io_posix, deep, &run, &err), CK_EIO, "a path too long");
	like(err.text, "a path of 4103 bytes", "the text");

	deep[PATH_MAX - 3] = '\0';
	is_int(ck_run_load(&ck_io_posix, deep, &run, &err), CK_EIO, "no room for the name");
	like(err.text, "a path of 4102 bytes, at most 4095: dddd", "the text");
	is_int(ck_generation_highest(&ck_io_posix, deep, &highest, &err), CK_EIO,
	       "a path that the kernel refuses");
	deep[PATH_MAX - 3] = 'd';
	deep[PATH_MAX - 1] = '\0';
	is_int(ck_generation_highest(&ck_io_posix, deep, &highest, &err), CK_EIO,
	       "no room for a slash");
	like(err.text, "a path of 4096 bytes, at most 4095: dddd", "the text");

	ck_io_write_file(&ck_io_posix, in_dir(top, "file"), text.data, text.len, &err);
	is_int(ck_run_create(&ck_io_posix, in_dir(top, "file"), &run, &err), CK_EIO,
	       "a file there");
	like(err.text, "Not a directory", "the text");

	is_int(ck_run_create(&ck_io_posix, top, &run, &err), 0, "a run");
	ck_io_write_file(&ck_io_posix, in_dir(top, "run.json"), text.data, text.len, &err);
	is_int(ck_run_create(&ck_io_posix, top, &run, &err), CK_EFORMAT, "a spoilt run.json");
	like(err.text, "run.json: schema_version: missing", "is not written over");

	is_int(ck_io_fault_new(&fault, &ck_io_posix, "link:*:errno=EDQUOT", &err), 0, "fault");
	is_int(ck_run_create(ck_io_fault_io(fault), in_dir(top, "new"), &run, &err), CK_EIO,
	       "no space for run.json");
	like(err.text, "quota", "the text");
	is_int(ck_run_load(&ck_io_posix, in_dir(top, "new"), &run, &err), CK_ENOENT,
	       "nothing is there");
	ck_io_fault_free(fault);
}

/* A new directory is fsynced where it stands, if that one may be read. */
static void test_parents(void)
{
	const char *top = test_tmpdir();
	struct ck_run run = {.name = "x"};
	struct ck_error err = CK_ERROR_INIT;
	struct ck_io_fault *fault;
	char rule[PATH_MAX + 64];

	snprintf(rule, sizeof(rule), "open:%s/:errno=EACCES", top);
	is_int(ck_io_fault_new(&fault, &ck_io_posix, rule, &err), 0, "fault");
	is_int(ck_run_create(ck_io_fault_io(fault), in_dir(top, "a"), &run, &err), 0,
	       "below a directory that cannot be read: %s", err.text);
	is_u64(ck_io_fault_count(fault, 0), 1, "which was tried");
	ck_io_fault_free(fault);
	snprintf(rule, sizeof(rule), "fsync:%s/:errno=EIO", top);
	is_int(ck_io_fault_new(&fault, &ck_io_posix, rule, &err), 0, "fault");
	is_int(ck_run_create(ck_io_fault_io(fault), in_dir(top, "b"), &run, &err), CK_EIO,
	       "below one that cannot be made durable");
	like(err.text, "fsync directory: Input/output error", "the text");
	ck_io_fault_free(fault);
	is_int(chdir(top), 0, "within it");
	is_int(ck_run_create(&ck_io_posix, "relative", &run, &err), 0, "a relative path: %s",
	       err.text);
	ok(exists_in(top, "relative/run.json"), "is one from here");
	is_int(chdir("/"), 0, "out of it");
}

static int create_one(const char *dir, int i)
{
	struct ck_run run = {.name = "race"};
	struct ck_error err;
	char name[32];

	if (ck_run_create(&ck_io_posix, in_dir(dir, "x/y/run"), &run, &err))
		return 1;
	snprintf(name, sizeof(name), "id-%d", i);
	return ck_io_write_file(&ck_io_posix, in_dir(dir, name), run.run_id, 32, &err) ? 2 : 0;
}

static void test_create_race(void)
{
	const char *dir = test_tmpdir();
	int results[8];
	struct ck_run run;
	struct ck_error err = CK_ERROR_INIT;
	struct ck_names names;

	race(8, create_one, dir, results);
	is_int(ck_run_load(&ck_io_posix, in_dir(dir, "x/y/run"), &run, &err), 0, "a run: %s",
	       err.text);
	for (int i = 0; i < 8; i++) {
		struct ck_buf id = CK_BUF_INIT;
		char name[32];

		snprintf(name, sizeof(name), "id-%d", i);
		is_int(results[i], 0, "creator %d", i);
		ck_io_read_file(&ck_io_posix, in_dir(dir, name), 64, &id, &err);
		is_str(id.data, run.run_id, "creator %d has the one run id", i);
		ck_buf_fini(&id);
	}
	is_int(ck_io_list(&ck_io_posix, in_dir(dir, "x/y/run"), &names, &err), 0, "list");
	is_u64(names.count, 1, "run.json and nothing else is left");
	ck_names_fini(&names);
}

/* Another one makes the run, claims it and sweeps, between our file and its link. */
static int forestalled_link(const struct ck_io *io, const char *from, const char *to)
{
	struct ck_run first = {.name = "first"};

	ck_io_posix.ops->unlink(&ck_io_posix, from);
	ok(ck_run_create(&ck_io_posix, io->ctx, &first, NULL) == 0, "another one is first");
	return ck_io_posix.ops->link(&ck_io_posix, from, to);
}

static void test_create_forestalled(void)
{
	struct ck_io_ops ops = *ck_io_posix.ops;
	const char *dir = test_tmpdir();
	const struct ck_io io = {.ops = &ops, .ctx = (void *)dir};
	struct ck_run run = {.name = "second"};
	struct ck_error err = CK_ERROR_INIT;

	ops.link = forestalled_link;
	is_int(ck_run_create(&io, dir, &run, &err), 0, "a file swept away: %s", err.text);
	is_str(run.name, "first", "what stands there is the answer");
}

/* Where run.json is gone: what is known of it, and what others may have put there first. */
static void test_mend(void)
{
	const char *dir = test_tmpdir();
	struct ck_error err = CK_ERROR_INIT;
	struct ck_run run, again;
	bool mended = true;
	char *text;

	make_run(dir);
	is_int(ck_run_load(&ck_io_posix, dir, &run, &err), 0, "run.json");
	run.committed = true;
	is_int(ck_run_mend(&ck_io_posix, dir, &run, &mended, &err), 0, "is there");
	ok(!mended, "so it is left");
	is_int(ck_run_load(&ck_io_posix, dir, &again, &err), 0, "and says");
	ok(!again.committed, "what it said");
	ok(unlink(in_dir(dir, "run.json")) == 0, "it goes");
	is_int(ck_run_mend(&ck_io_posix, dir, &run, &mended, &err), 0, "made again: %s", err.text);
	ok(mended, "which is told");
	is_int(ck_run_load(&ck_io_posix, dir, &again, &err), 0, "it loads");
	is_str(again.run_id, run.run_id, "with the run's id");
	ok(again.committed, "and that there was a commit");
	put_file(in_dir(dir, "run.json"), "of somebody");
	is_int(ck_run_mend(&ck_io_posix, dir, &run, &mended, &err), 0, "something else");
	text = content_of(in_dir(dir, "run.json"));
	is_str(text, "of somebody", "is not written over");
	free(text);
	is_int(ck_run_mend(&ck_io_posix, in_dir(dir, "none"), &run, &mended, &err), CK_ENOENT,
	       "no directory");
}

int main(void)
{
	test_mend();

	test_parse();
	test_print();
	test_create();
	test_create_failures();
	test_parents();
	test_create_race();
	test_create_forestalled();
	return done_testing();
}
