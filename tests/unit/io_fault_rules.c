#include "io_fault.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "scratch.h"
#include "tap.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static void test_rules_refused(void)
{
	static const struct {
		const char *rules;
		const char *says;
	} rows[] = {
		{"open", "rule 0: open: wanted is <op>:<glob>"},
		{"open:", "rule 0: open:: wanted is <op>:<glob>"},
		{":*", "rule 0: :*: '': not an operation"},
		{"read:*", "rule 0: read:*: 'read': not an operation: open, pwrite"},
		{"OPEN:*", "'OPEN': not an operation"},
		{"open,:*", "'': not an operation"},
		{"open, close:*", "' close': not an operation"},
		{"open::errno=EIO", "wanted is <op>:<glob>"},
		{"open:*:",
		 "rule 0: open:*:: '': not errno=, done=, cut=, flip=, delay=, until=, after="},
		{"open:*:errno", "'errno': not errno="},
		{"open:*:error=EIO", "'error': not errno="},
		{"open:*:errno=", "errno=: not the name of an error such as ENOSPC"},
		{"open:*:errno=5", "errno=5: not the name of an error"},
		{"open:*:errno=EWHATEVER", "errno=EWHATEVER: not the name of an error"},
		{"open:*:kill=9", "kill=9: not a signal such as SIGKILL"},
		{"open:*:kill=SIG", "kill=SIG: not a signal"},
		{"open:*:after=x", "after: x: not a whole number"},
		{"open:*:after=", "after: empty: a whole number is wanted"},
		{"open:*:after=-1", "after: -1: not a whole number"},
		{"open:*:times=0", "times: 0: not between 1 and"},
		{"open:*:delay=3600001", "delay: 3600001: not between 0 and 3600000"},
		{"open:*:until=here", "until=here: not an absolute path"},
		{"open:*:until=/a:until=", "until=: not an absolute path"},
		{"pread:*:cut=4294967296", "cut: 4294967296: not between 0 and 4294967295"},
		{"open:*:cut=1", "cut= is for pread and pwrite only"},
		{"pread,pwrite:*:flip=1", "flip= is for pread only"},
		{"pread,fsync:*:cut=1", "cut= is for pread and pwrite only"},
		{"any:*:cut=1", "cut= is for pread and pwrite only"},
		{"link:*:done=1", "done=1 needs errno="},
		{"link:*:errno=EIO:done=2", "done: 2: not between 1 and 1"},
		{"open:*;;fsync:a:errno=EIO;close:b:errno=EBAD",
		 "rule 2: close:b:errno=EBAD: errno=EBAD: not the name"},
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct ck_io_fault *fault = NULL;
		struct ck_error err = CK_ERROR_INIT;

		is_int(ck_io_fault_new(&fault, &ck_io_posix, rows[i].rules, &err), CK_EARG,
		       "'%s' is refused", rows[i].rules);
		like(err.text, rows[i].says, "'%s': text", rows[i].rules);
		ok(fault == NULL, "'%s': output untouched", rows[i].rules);
	}
}

static void test_number_of_rules(void)
{
	struct ck_io_fault *fault = NULL;
	struct ck_error err = CK_ERROR_INIT;
	char rules[33 * 7 + 1] = "";

	for (int i = 0; i < 32; i++)
		strcat(rules, "open:*;");
	is_int(ck_io_fault_new(&fault, &ck_io_posix, rules, &err), CK_OK, "32 rules");
	ck_io_fault_free(fault);
	strcat(rules, "open:*");
	is_int(ck_io_fault_new(&fault, &ck_io_posix, rules, &err), CK_EARG, "33 rules");
	like(err.text, "more than 32 rules", "are too many");
}

/* Which of eight lstat calls fail, as a text of '.' and 'x'. */
static const char *pattern_of(struct ck_io_fault *fault, const char *path, char out[static 9])
{
	const struct ck_io *io = ck_io_fault_io(fault);
	struct stat st;

	for (int i = 0; i < 8; i++)
		out[i] = io->ops->lstat(io, path, &st) < 0 ? 'x' : '.';
	out[8] = '\0';
	return out;
}

static void test_after_and_times(void)
{
	static const struct {
		const char *rules;
		const char *fails;
		uint64_t counts[3];
	} rows[] = {
		{"lstat:*:errno=EIO", "xxxxxxxx", {8, 0, 0}},
		{"lstat:*:errno=EIO:after=3", "...xxxxx", {8, 0, 0}},
		{"lstat:*:errno=EIO:times=2", "xx......", {8, 0, 0}},
		{"lstat:*:errno=EIO:after=2:times=1", "..x.....", {8, 0, 0}},
		{"lstat:*:times=1:errno=EIO:after=7", ".......x", {8, 0, 0}},
		{"lstat:*:errno=EIO:after=8", "........", {8, 0, 0}},
		/* A rule that does not act leaves the call to the next. */
		{"lstat:*:errno=EIO:times=2;lstat:*:errno=EIO:after=1", "xx.xxxxx", {8, 6, 0}},
		{"lstat:*:errno=EIO:after=4;lstat:*:errno=EIO:times=1", "x...xxxx", {8, 4, 0}},
		/* One without keys shields from those behind it. */
		{"lstat:*:times=3;lstat:*:errno=EIO", "...xxxxx", {8, 5, 0}},
		{"lstat:*;lstat:*:errno=EIO", "........", {8, 0, 0}},
		/* What does not match is not counted. */
		{"open:*:errno=EIO;lstat:x:errno=EIO;lstat:*", "........", {0, 0, 8}},
	};
	struct scratch files = scratch_new();
	char fails[9];

	scratch_put_text(scratch_path(&files, "file"), "");
	for (size_t i = 0; i < ROWS(rows); i++) {
		struct ck_io_fault *fault = scratch_fault(rows[i].rules);

		is_str(pattern_of(fault, files.path, fails), rows[i].fails, "'%s'", rows[i].rules);
		for (unsigned rule = 0; rule < 3; rule++)
			is_u64(ck_io_fault_count(fault, rule), rows[i].counts[rule],
			       "'%s': count of rule %u", rows[i].rules, rule);
		is_u64(ck_io_fault_count(fault, 1000), 0, "a rule that does not exist");
		ck_io_fault_free(fault);
	}
}

static void test_globs(void)
{
	static const struct {
		const char *glob;
		const char *path;
		bool matches;
	} rows[] = {
		{"file", "/run/file", true},
		{"file", "file", true},
		{"file", "/run/file/x", false},
		{"file", "/run/file2", false},
		{"*.safetensors", "/run/step-0000000001.g1/rank-00000.0.safetensors", true},
		{"*.safetensors", "/run/x.safetensors.tmp-1", false},
		{"*", "/run/.saving-0000000001.g1", true},
		{"*", "", true},
		{"?*", "", false},
		{"/run/*", "/run/a/b", true},
		{"/run/?", "/run/a", true},
		{"*/step-*/*", "/run/step-1/file", true},
		{"rank-0000[13].*", "/run/rank-00003.0.safetensors", true},
		{"rank-0000[13].*", "/run/rank-00002.0.safetensors", false},
	};
	struct stat st;

	for (size_t i = 0; i < ROWS(rows); i++) {
		char rules[128];
		struct ck_io_fault *fault;
		const struct ck_io *io;

		snprintf(rules, sizeof(rules), "lstat:%s:errno=EXDEV", rows[i].glob);
		fault = scratch_fault(rules);
		io = ck_io_fault_io(fault);
		errno = 0;
		(void)!io->ops->lstat(io, rows[i].path, &st);
		is_int(errno == EXDEV, rows[i].matches, "'%s' and '%s'", rows[i].glob,
		       rows[i].path);
		ck_io_fault_free(fault);
	}
}

int main(void)
{
	test_rules_refused();
	test_number_of_rules();
	test_after_and_times();
	test_globs();
	return done_testing();
}
