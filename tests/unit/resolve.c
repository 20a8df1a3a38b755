/* ck_resolve of catalog.h. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "catalog.h"
#include "rundir.h"
#include "tap.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

/* All paths are relative to a directory with these runs and checkpoints. */
static void make_tree(void)
{
	static const char *const dirs[] = {
		"runs",
		"runs/bert",
		"runs/bert/step-0000000100.g1",
		"runs/bert/step-0000000200.g1",
		"runs/bert/step-0000000150.g2",
		"runs/bert/step-0000000100.g2",
		"runs/empty",
		"runs/a@b",
		"runs/bare",
		"runs/bare/step-0000000001.g1",
		"runs/nothing",
		"runs/many",
	};
	char name[64];

	for (size_t i = 0; i < ROWS(dirs); i++)
		if (mkdir(dirs[i], 0777) < 0)
			ok(false, "%s can be made", dirs[i]);
	put_file("runs/bert/run.json", "{}");
	put_file("runs/empty/run.json", "{}");
	put_file("runs/a@b/run.json", "{}");
	put_file("runs/file", "x");
	is_int(symlink("bert", "runs/link"), 0, "a link");
	for (int i = 1; i <= 20; i++) {
		snprintf(name, sizeof(name), "runs/many/step-%010d.g1", i * 10);
		mkdir(name, 0777);
	}
}

static const struct {
	const char *text;
	const char *run;
	bool has_step;
	uint64_t step, generation;
} good[] = {
	{"runs/bert", "runs/bert", false, 0, 0},
	{"runs/bert///", "runs/bert", false, 0, 0},
	{"runs/empty", "runs/empty", false, 0, 0},
	{"runs/bare", "runs/bare", false, 0, 0},
	{"runs/link", "runs/link", false, 0, 0},
	{"runs/link@latest", "runs/link", true, 150, 2},
	{"runs/bert@latest", "runs/bert", true, 150, 2},
	{"runs/bert@200", "runs/bert", true, 200, 1},
	{"runs/bert@100", "runs/bert", true, 100, 2},
	{"runs/bert@0000000100", "runs/bert", true, 100, 2},
	{"runs/bert/step-0000000100.g1", "runs/bert", true, 100, 1},
	{"runs/bert/step-0000000100.g1/", "runs/bert", true, 100, 1},
	{"runs/a@b", "runs/a@b", false, 0, 0},
};

static const struct {
	const char *text;
	int code;
	const char *says;
} bad[] = {
	{"", CK_EARG, "'': a run directory or a checkpoint is expected"},
	{"runs/bret", CK_ENOENT,
	 "runs/bret: no such run directory; runs in runs: a@b, bert, empty"},
	{"runs/bret@5", CK_ENOENT, "runs/bret: no such run directory; runs in runs: "},
	{"runs", CK_ENOENT,
	 "runs: not a run directory, it has no run.json and no checkpoint; runs in runs: a@b, "
	 "bert"},
	{"runs/nothing", CK_ENOENT, "not a run directory"},
	{"runs/file", CK_EFORMAT, "runs/file: not a directory"},
	{"runs/file/x", CK_ENOENT, "runs/file/x: no such run directory"},
	{"nowhere/run", CK_ENOENT, "nowhere/run: no such run directory"},
	{"runs/bert@", CK_EARG, "runs/bert: '@': a step's number or 'latest' is expected"},
	{"runs/bert@newest", CK_EARG, "'@newest': a step's number or 'latest'"},
	{"runs/bert@-1", CK_EARG, "'@-1': a step's number"},
	{"runs/bert@9007199254740992", CK_EARG, "a step's number"},
	{"runs/bert@\x1b[2J", CK_EARG, "'@\\x1b[2J'"},
	{"runs/bert@300", CK_ENOENT,
	 "runs/bert: no checkpoint of step 300; there are: 150, 100, 200, 100"},
	{"runs/many@7", CK_ENOENT,
	 "there are: 200, 190, 180, 170, 160, 150, 140, 130, ... (20 in all)"},
	{"runs/empty@7", CK_ENOENT, "runs/empty: no checkpoint of step 7; there is none yet"},
	{"runs/empty@latest", CK_ENOENT, "runs/empty: it has no checkpoint yet"},
	{"runs/bert/step-0000000300.g1", CK_ENOENT,
	 "runs/bert: no checkpoint step-0000000300.g1; there are: 150, 100"},
	{"runs/bret/step-0000000300.g1", CK_ENOENT,
	 "runs/bret: no such run directory; runs in runs"},
	{"a@b@c", CK_ENOENT, "a@b: no such run directory"},
};

static void test_bad(void)
{
	for (size_t i = 0; i < ROWS(bad); i++) {
		struct ck_error err = CK_ERROR_INIT;
		struct ck_step_id id = {.step = 77};
		char run[PATH_MAX] = "untouched";
		bool has_step = true;

		is_int(ck_resolve(&ck_io_posix, bad[i].text, run, &has_step, &id, &err),
		       bad[i].code, "'%s'", bad[i].text);
		like(err.text, bad[i].says, "'%s': the text", bad[i].text);
		is_str(run, "untouched", "'%s': run is untouched", bad[i].text);
		ok(has_step && id.step == 77, "'%s': step is untouched", bad[i].text);
	}
}

static void test_good(void)
{
	for (size_t i = 0; i < ROWS(good); i++) {
		struct ck_error err = CK_ERROR_INIT;
		struct ck_step_id id = {.step = 77};
		char run[PATH_MAX] = "";
		bool has_step = !good[i].has_step;

		is_int(ck_resolve(&ck_io_posix, good[i].text, run, &has_step, &id, &err), 0,
		       "'%s': %s", good[i].text, err.text);
		is_str(run, good[i].run, "'%s': the run", good[i].text);
		is_int(has_step, good[i].has_step, "'%s': with a step?", good[i].text);
		is_u64(id.step, good[i].step, "'%s': the step", good[i].text);
		is_u64(id.generation, good[i].generation, "'%s': its generation", good[i].text);
	}
}

static void test_here(void)
{
	struct ck_error err = CK_ERROR_INIT;
	struct ck_step_id id;
	char run[PATH_MAX], deep[PATH_MAX + 8];
	bool has_step;

	memset(deep, 'd', sizeof(deep));
	deep[sizeof(deep) - 1] = '\0';
	is_int(ck_resolve(&ck_io_posix, deep, run, &has_step, &id, &err), CK_EARG, "a long path");
	is_int(chdir("runs/bert"), 0, "within the run");
	is_int(ck_resolve(&ck_io_posix, ".", run, &has_step, &id, &err), 0, "'.': %s", err.text);
	is_str(run, ".", "is the run");
	is_int(ck_resolve(&ck_io_posix, "step-0000000200.g1", run, &has_step, &id, &err), 0,
	       "a bare name: %s", err.text);
	is_str(run, ".", "is of the run here");
	is_u64(id.step, 200, "its step");
}

int main(void)
{
	if (chdir(test_tmpdir()) < 0)
		return 1;
	make_tree();
	test_bad();
	test_good();
	test_here();
	if (chdir("/") < 0)
		return 1;
	return done_testing();
}
