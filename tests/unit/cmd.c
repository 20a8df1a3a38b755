/* The `ckpt` command: its command line, and `ckpt ls`. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "scratch.h"
#include "tap.h"

/* --- the command line --- */

static const struct {
	const char *arguments[5];
	const char *text; /* of stderr */
} mistakes[] = {
	{{NULL}, "usage: ckpt VERB"},
	{{"lss"}, "ckpt: unknown verb 'lss', did you mean 'ls'? (see 'ckpt help')\n"},
	{{"sl"}, "did you mean 'ls'?"},
	{{"veryfi"}, "did you mean 'verify'?"},
	{{"ver"}, "did you mean 'verify'?"},
	{{"hlep"}, "did you mean 'help'?"},
	{{"destroy"}, "ckpt: unknown verb 'destroy' (see 'ckpt help')\n"},
	{{"a\033[2Jb"}, "unknown verb 'a\\x1b[2Jb'"},
	{{""}, "unknown verb ''"},
	{{"--versoin"}, "ckpt: unknown option '--versoin', did you mean '--version'?"},
	{{"-q"}, "ckpt: unknown option '-q' (see"},
	{{"help", "lss"}, "unknown verb 'lss', did you mean 'ls'?"},
	{{"help", "ls", "verify"}, "help is about one verb at a time"},
	{{"ls", "--jsno"},
	 "ckpt ls: unknown option '--jsno', did you mean '--json'? (see 'ckpt help ls')\n"},
	{{"ls", "--all"}, "ckpt ls: unknown option '--all' (see 'ckpt help ls')\n"},
	{{"ls", "-x"}, "ckpt ls: unknown option '-x' (see"},
	{{"ls", "--json=1"}, "ckpt ls: option '--json' takes no value (see"},
	{{"ls"},
	 "ckpt ls: no RUN given: SLURM_CKPT_DIR is not set, and the current directory is not"},
	{{"verify"},
	 "ckpt verify: nothing to verify: name a RUN or a checkpoint (see 'ckpt help verify')\n"},
	{{"verify", "--level"}, "ckpt verify: option '--level' needs a value (see"},
	{{"verify", "-j"}, "ckpt verify: option '-j' needs a value (see"},
	{{"verify", "--levle", "sized", "x"}, "unknown option '--levle', did you mean '--level'?"},
	{{"verify", "--levle=sized", "x"}, "unknown option '--levle', did you mean '--level'?"},
	{{"verify", "--level", "md5", "x"},
	 "--level: md5: sized, crc32 or sha256 is expected (see"},
	{{"verify", "--level=sha265", "x"}, "--level: sha265: did you mean 'sha256'?"},
	{{"verify", "-j", "0", "x"}, "--threads: 0: "},
	{{"verify", "-j257", "x"}, "--threads: 257: "},
	{{"verify", "-jfast", "x"}, "--threads: fast: "},
	{{"verify", "run@soon"}, "'@soon': a step's number or 'latest' is expected"},
	{{"verify", ""}, "'': a run directory or a checkpoint is expected (see"},
};

static void refuses_mistakes(void)
{
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		const struct manner manner = {.cwd = made_run("run")};
		struct said said;

		/* An empty directory of its own, with a run beside. */
		said = command(&(struct manner){.cwd = strstr(mistakes[i].text, "@soon")
							       ? in(manner.cwd, "..")
							       : test_tmpdir()},
			       mistakes[i].arguments);
		is_int(said.exit_code, 2, "mistake %zu: usage", i);
		like(said.err, mistakes[i].text, "mistake %zu: told", i);
		is_str(said.out, "", "mistake %zu: nothing on stdout", i);
		said_fini(&said);
	}
}

static const struct {
	const char *arguments[4];
	const char *text; /* of stdout */
} answers[] = {
	{{"--version"}, "ckpt (slurm-ckpt) "},
	{{"-V"}, "checkpoint schema version 1\n"},
	{{"--help"}, "  verify   read checkpoints"},
	{{"-h"}, "usage: ckpt VERB"},
	{{"help"}, "  ls       list checkpoints"},
	{{"help", "ls"}, "usage: ckpt ls [--json] [RUN ...]\n"},
	{{"ls", "-h"}, "usage: ckpt ls [--json] [RUN ...]\n"},
	{{"ls", "nowhere", "--help"}, "Exit code: 0 listed"},
	{{"help", "verify"}, "usage: ckpt verify [--level LEVEL] [-j N] [--json] RUN ...\n"},
	{{"verify", "--help"}, "--level LEVEL  which bytes are hashed"},
};

static void answers_questions(void)
{
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct said said = command(&(struct manner){0}, answers[i].arguments);

		is_int(said.exit_code, 0, "question %zu: fine", i);
		like(said.out, answers[i].text, "question %zu: answered", i);
		is_str(said.err, "", "question %zu: nothing on stderr", i);
		ok(longest_line(said.out) <= 90, "question %zu: fits", i);
		said_fini(&said);
	}
}

static void tells_a_full_disk(void)
{
	const struct manner manner = {.full_disk = true};
	struct said said = ckpt_cmd_as(&manner, "--help");

	is_int(said.exit_code, 3, "/dev/full: could not do all");
	like(said.err, "ckpt: standard output: cannot be written: No space left on device",
	     "and says why");
	said_fini(&said);
}

/* --- ls: one run --- */

static void expect_ls(const char *dir, int exit_code, const char *what, const char *const *texts)
{
	struct said said = ckpt_cmd("ls", dir);

	is_int(said.exit_code, exit_code, "ls, %s: exit code", what);
	is_str(said.err, "", "ls, %s: no complaint", what);
	for (; *texts; texts++)
		like(said.out, *texts, "ls, %s", what);
	said_fini(&said);
}

#define EXPECT_LS(dir, exit_code, what, ...) \
	expect_ls(dir, exit_code, what, (const char *const[]){__VA_ARGS__, NULL})

static void lists_a_good_run(void)
{
	const char *dir = two_steps(), *newer, *older;
	struct said said = ckpt_cmd("ls", dir);
	const char *table = strstr(said.out, "STEP");

	is_int(said.exit_code, 0, "a good run");
	like(said.out, "run train in ", "its name");
	like(said.out, ": not complete, 2 checkpoints\n", "and what it is");
	like(said.out,
	     "last opened by job 4711, restart 2, 2023-11-14 22:23 UTC, as generation 1\n",
	     "who has it");
	newer = strstr(said.out, "2000    1  2023-11-14 23:03      4      4  94.2 KiB  ok\n");
	older = strstr(said.out, "1000    1  2023-11-14 22:46      4      4  94.2 KiB  ok\n");
	ok(newer && older && newer < older, "newest first");
	like(said.out, "\na start resumes from step 2000 if its bytes verify\n", "what comes next");
	if (ok(table != NULL, "a table"))
		ok(longest_line(table) <= 80, "of at most 80 columns: %u", longest_line(table));
	diag("%s", said.out);
	said_fini(&said);
}

static void lists_one_checkpoint(void)
{
	const char *dir = two_steps();
	struct said said = ckpt_cmd("ls", in_step(dir, 1, 1000, ""));

	is_int(said.exit_code, 0, "a step directory");
	like(said.out, "\n1000 ", "its row");
	unlike(said.out, "\n2000 ", "and no other");
	said_fini(&said);
	EXPECT_LS(in(dir, "../run@latest"), 0, "RUN@latest", "\n2000 ");
	said = ckpt_cmd("ls", in(dir, "../run@3000"));
	is_int(said.exit_code, 1, "a step that is not there");
	like(said.err, "no checkpoint of step 3000; there are: 2000, 1000\n", "says what there is");
	said_fini(&said);
}

static void tells_what_is_bad(void)
{
	const char *dir = two_steps(), *file = in_step(dir, 1, 2000, "rank-00002.0.safetensors");

	ok(truncate(file, 5000) == 0, "a shard is cut");
	EXPECT_LS(dir, 0, "a cut shard", "KiB  bad: wrong size\n",
		  "step 2000: ", "rank-00002.0.safetensors: it has 5000 bytes, the manifest says ",
		  "a start falls back to step 1000 if its bytes verify: what is newer is bad\n");
	ok(unlink(file) == 0, "a shard goes");
	EXPECT_LS(dir, 0, "a missing shard", "KiB  bad: file missing\n",
		  "rank-00002.0.safetensors: the file is missing");
	ok(unlink(in_step(dir, 1, 2000, "rank-00003.0.safetensors")) == 0, "another goes");
	EXPECT_LS(dir, 0, "two missing", "(and files of 1 more rank)\n");
	scratch_put_text(in_step(dir, 1, 2000, "SHA256SUMS"), "none\n");
	EXPECT_LS(dir, 0, "SHA256SUMS of something else", "KiB  bad: bad SHA256SUMS\n",
		  "SHA256SUMS: line 1 is 'none', by the manifest it is '");
	ok(unlink(in_step(dir, 1, 2000, "SHA256SUMS")) == 0, "SHA256SUMS goes");
	EXPECT_LS(dir, 0, "no SHA256SUMS", "KiB  bad: SHA256SUMS missing\n", "falls back to");
	ok(rename(in(dir, "step-0000002000.g1"), in(dir, "away")) == 0 &&
		   symlink("away", in(dir, "step-0000002000.g1")) == 0,
	   "a link in its place");
	EXPECT_LS(dir, 0, "a link", "-  bad: not a directory\n",
		  "step-0000002000.g1: a link or a file, not a directory");
	ok(unlink(in(dir, "step-0000002000.g1")) == 0 &&
		   rename(in(dir, "away"), in(dir, "step-0000002000.g1")) == 0,
	   "and back");
	scratch_put_text(in_step(dir, 1, 2000, "manifest.json"), "{");
	EXPECT_LS(dir, 0, "half a manifest", "2000    1  -                 ",
		  "-  bad: bad manifest\n");
	ok(unlink(in_step(dir, 1, 2000, "manifest.json")) == 0, "the manifest goes");
	EXPECT_LS(dir, 0, "no manifest", "-  bad: manifest missing\n");
	ok(unlink(in_step(dir, 1, 1000, "manifest.json")) == 0, "the other one too");
	EXPECT_LS(dir, 0, "none whole", "a start fails: none of the 2 checkpoints is whole\n");
}

static void recalls_a_refusal(void)
{
	const char *dir = two_steps();
	struct ck_error err = CK_ERROR_INIT;
	char *refused[] = {(char *)"step-0000002000.g1: rank-00000.0.safetensors: crc32 is 1"};
	struct ck_claim claim;

	made_claim(dir);
	ok(ck_claim_load(&ck_io_posix, dir, 2, &claim, &err) == 0, "the last claim");
	ck_claim_fini(&claim);
	claim.refused = refused;
	claim.nrefused = 1;
	ok(ck_claim_store(&ck_io_posix, dir, &claim, &err) == 0, "has refused one: %s", err.text);
	EXPECT_LS(dir, 0, "one that was refused", "94.2 KiB  ok, was refused\n",
		  "\nstep 2000: refused by the last start: rank-00000.0.safetensors: crc32 is 1\n",
		  "a start resumes from step 2000 if its bytes verify\n");
}

static void foretells_a_start(void)
{
	const char *dir = made_run("run"), *other = two_steps();

	EXPECT_LS(dir, 0, "a fresh run", "not complete, 0 checkpoints\n",
		  "a start begins afresh: no checkpoint yet\n");
	made_save(dir, made_claim(dir), 7, 1, true);
	EXPECT_LS(dir, 0, "one checkpoint", ", 1 checkpoint\n", "resumes from step 7");
	made_complete(dir, 7);
	EXPECT_LS(dir, 0, "a finished one", "complete at step 7\n",
		  "a start has nothing to do: the run is complete\n");
	ok(rename(in_step(dir, 1, 7, ""), in(dir, "away")) == 0, "the checkpoint goes");
	EXPECT_LS(dir, 0, "a loss",
		  "a start is refused: checkpoints were committed, and none is there now\n");
	ok(rename(in_step(other, 1, 2000, ""), in_step(dir, 1, 2000, "")) == 0, "a foreign one");
	EXPECT_LS(dir, 0, "a foreign one", "bad: of another run\n",
		  "a start is refused: the newest whole checkpoint is of another run\n");
	ok(unlink(in(dir, "run.json")) == 0, "run.json goes");
	EXPECT_LS(dir, 0, "no run.json", ": it has no run.json\n",
		  "a start is refused: there is no usable run.json\n");
	scratch_put_text(in(dir, "run.json"), "[]");
	EXPECT_LS(dir, 0, "a bad run.json", "run.json: ", "there is no usable run.json\n");
}

static void tells_saves_under_way(void)
{
	const char *dir = made_run("run");

	made_save(dir, made_claim(dir), 100, 2, true);
	made_save(dir, 1, 200, 2, false);
	EXPECT_LS(dir, 0, "a save under way",
		  "200    1  -                     2      2         -  saving..., ", "h ", " old\n",
		  "1 checkpoint\n", "resumes from step 100");
	ok(unlink(in(dir, ".saving-0000000200.g1/save.json")) == 0, "one that says nothing");
	EXPECT_LS(dir, 0, "no save.json",
		  "200    1  -                     -      2         -  saving..., ", " s old\n");
	made_claim(dir);
	EXPECT_LS(dir, 0, "a newer generation", "left over, ");
}

/* --- ls: several, and which --- */

static void lists_several_runs(void)
{
	const char *dir = made_run("b"), *parent = in(dir, "..");
	const struct manner manner = {.cwd = dir}, above = {.cwd = parent};
	struct said said;

	made_save(dir, made_claim(dir), 12, 3, true);
	ok(mkdir(in(parent, "a"), 0777) == 0, "an empty directory beside it");
	said = ckpt_cmd_as(&above, "ls");
	is_int(said.exit_code, 0, "a directory of one run");
	like(said.out, "run train in b: ", "is that run");
	said_fini(&said);
	said = ckpt_cmd_as(&manner, "ls");
	like(said.out, "run train in .: ", "the current directory, a run");
	said_fini(&said);
	ok(mkdir(in(parent, "c"), 0777) == 0, "another run");
	scratch_put_text(in(parent, "c/run.json"), "{}");
	said = ckpt_cmd_as(&above, "ls");
	is_int(said.exit_code, 0, "two runs");
	like(said.out, "RUN  CKPTS  STEP  SAVED (UTC)           SIZE  STATE\n", "a summary");
	like(said.out, "b        1    12  2023-11-14 22:30  70.7 KiB  ok\n", "the good one");
	like(said.out, "c        0     -  -                        -  bad: start refused\n",
	     "the other");
	unlike(said.out, "\na", "and no other directory");
	ok(longest_line(said.out) <= 80, "in 80 columns");
	said_fini(&said);
	said = ckpt_cmd("ls", parent);
	like(said.out, "/b ", "a directory of runs, named");
	said_fini(&said);
}

static void finds_its_run(void)
{
	const char *dir = two_steps(), *empty = test_tmpdir();
	const struct manner by_env = {.cwd = empty, .run_dir = dir};
	const struct manner gone = {.run_dir = "/nowhere/run"};
	struct said said = ckpt_cmd_as(&by_env, "ls");

	is_int(said.exit_code, 0, "SLURM_CKPT_DIR");
	like(said.out, "resumes from step 2000", "is listed");
	said_fini(&said);
	said = ckpt_cmd_as(&gone, "ls");
	is_int(said.exit_code, 1, "SLURM_CKPT_DIR that is not there");
	like(said.err, "ckpt ls: SLURM_CKPT_DIR: /nowhere/run: no such run directory", "named");
	said_fini(&said);
	said = ckpt_cmd("ls", empty);
	is_int(said.exit_code, 1, "an empty directory");
	like(said.err, "not a run directory, it has no run.json and no checkpoint", "says so");
	said_fini(&said);
	said = ckpt_cmd("ls", in(dir, "run.json"));
	is_int(said.exit_code, 1, "a file");
	like(said.err, "/run.json: not a directory", "is none");
	said_fini(&said);
	said = ckpt_cmd("ls", "/nowhere/run", dir);
	is_int(said.exit_code, 1, "one that is not there, and one that is");
	like(said.err, "/nowhere/run: no such run directory", "the first is told");
	like(said.out, "resumes from step 2000", "the second is listed");
	said_fini(&said);
}

static void escapes_names(void)
{
	const char *dir = made_run("a\033[31m\nb");
	struct said said;

	made_save(dir, made_claim(dir), 3, 1, true);
	said = ckpt_cmd("ls", dir);
	is_int(said.exit_code, 0, "a name with control characters");
	like(said.out, "/a\\x1b[31m\\x0ab: not complete", "is escaped");
	ok(!strchr(said.out, '\033'), "no escape character comes through");
	said_fini(&said);
	said = ckpt_cmd("ls", "--json", dir);
	like(said.out, "/a\\u001b[31m\\nb\"", "and in JSON the JSON way");
	said_fini(&said);
	said = ckpt_cmd("ls", in(dir, "x\033y"));
	like(said.err, "x\\x1by: no such run directory", "messages too");
	said_fini(&said);
}

static void tells_what_it_cannot_see(void)
{
	const char *dir = two_steps(), *step = in_step(dir, 1, 2000, "");
	const struct manner nobody = {.as_nobody = true};
	const struct manner broken = {.faults = "lstat:*rank-00001*:errno=EIO"};
	struct said said;

	ok(chmod(step, 0) == 0, "a checkpoint that we may not enter");
	said = ckpt_cmd_as(&nobody, "ls", dir);
	is_int(said.exit_code, 3, "could not look at everything");
	like(said.out, "-  unknown: unreadable\n", "the row says so");
	like(said.out, "manifest.json: ", "the reason");
	like(said.out, "Permission denied\n", "and why");
	like(said.out,
	     "a start tries step 2000 first, which could not be read here: it is refused if it "
	     "cannot read it either",
	     "and what a start would do");
	said_fini(&said);
	ok(chmod(step, 0755) == 0, "it may be entered");
	ok(chmod(dir, 0) == 0, "a run that we may not enter");
	said = ckpt_cmd_as(&nobody, "ls", in(dir, "below"));
	is_int(said.exit_code, 3, "not to be seen is not missing");
	like(said.err, "ckpt ls: ", "told");
	like(said.err, "run/below: Permission denied\n", "with the reason");
	said_fini(&said);
	ok(chmod(dir, 0755) == 0, "it may be entered");
	said = ckpt_cmd_as(&broken, "ls", dir);
	is_int(said.exit_code, 3, "a file system that fails");
	like(said.out, "unknown: unreadable\n", "is no damage");
	like(said.out, "a start tries step 2000 first, which could not be read here",
	     "nor is it said to be");
	like(said.err,
	     "warning: rehearsing failures: SLURM_CKPT_IO_FAULT=lstat:", "and a rehearsal");
	said_fini(&said);
}

static void ends_when_interrupted(void)
{
	const char *dir = two_steps();
	const struct manner manner = {.faults = "lstat:*.safetensors:kill=INT:times=1"};
	struct said said = ckpt_cmd_as(&manner, "ls", dir);

	is_int(said.exit_code, 130, "interrupted");
	like(said.err, "ckpt ls: interrupted: the list is not complete\n", "and says so");
	unlike(said.err, "anceled", "and no more");
	is_str(said.out, "", "no half a list");
	said_fini(&said);
}

static void shows_progress(void)
{
	const char *dir = two_steps();
	const struct manner terminal = {.faults = "lstat:*.safetensors:delay=200",
					.on_terminal = true};
	struct said said = ckpt_cmd_as(&terminal, "ls", dir);

	is_int(said.exit_code, 0, "on a terminal");
	like(said.err, "\rckpt ls  ", "it tells how far it is");
	like(said.err, " files\033[K", "in files");
	said_fini(&said);
}

/* --- ls: for programs --- */

static void json_of_a_run(void)
{
	const char *dir = two_steps();
	const cJSON *run, *rows, *row;
	struct said said;
	cJSON *tree;

	made_save(dir, 1, 3000, 2, false);
	ok(unlink(in_step(dir, 1, 2000, "rank-00000.0.safetensors")) == 0, "a shard goes");
	said = ckpt_cmd("ls", "--json", dir, "/nowhere");
	is_int(said.exit_code, 1, "JSON of a run and of none");
	tree = cJSON_Parse(said.out);
	run = cJSON_GetArrayItem(json_at(tree, "runs"), 0);
	is_int(cJSON_GetArraySize(json_at(tree, "runs")), 1, "one run");
	is_str(json_text(run, "dir"), dir, "dir");
	is_str(json_text(run, "name"), "train", "name");
	is_int((long long)strlen(json_text(run, "run_id")), 32, "run_id");
	is_str(json_text(run, "job_id"), "4711", "job_id");
	ok(cJSON_IsTrue(json_at(run, "committed")), "committed");
	ok(cJSON_IsNull(json_at(run, "complete_step")), "complete_step");
	is_str(json_text(run, "start"), "fell-back", "start");
	is_str(json_text(run, "start_from"), "step-0000001000.g1", "start_from");
	is_int((int)cJSON_GetNumberValue(json_at(json_at(run, "claim"), "restart_count")), 2,
	       "claim");
	rows = json_at(run, "checkpoints");
	is_int(cJSON_GetArraySize(rows), 3, "three rows");
	row = cJSON_GetArrayItem(rows, 0);
	is_str(json_text(row, "name"), ".saving-0000003000.g1", "the save under way");
	is_str(json_text(row, "state"), "saving", "is one");
	is_str(json_text(row, "began"), "2023-11-14T23:20:00Z", "since when");
	row = cJSON_GetArrayItem(rows, 1);
	is_str(json_text(row, "state"), "bad", "the bad one");
	like(json_text(row, "reason"), "the file is missing", "and why");
	row = cJSON_GetArrayItem(rows, 2);
	is_str(json_text(row, "state"), "ok", "the good one");
	ok(cJSON_IsNull(json_at(row, "reason")), "no reason");
	is_int((int)cJSON_GetNumberValue(json_at(row, "world_size")), 4, "world_size");
	is_int((int)cJSON_GetNumberValue(json_at(row, "files")), 4, "files");
	is_int((int)cJSON_GetNumberValue(json_at(row, "bytes")), 4 * 24120, "bytes");
	is_str(json_text(row, "created"), "2023-11-14T22:46:40Z", "created");
	cJSON_Delete(tree);
	said_fini(&said);
}

int main(void)
{
	refuses_mistakes();
	answers_questions();
	tells_a_full_disk();
	lists_a_good_run();
	lists_one_checkpoint();
	tells_what_is_bad();
	recalls_a_refusal();
	foretells_a_start();
	tells_saves_under_way();
	lists_several_runs();
	finds_its_run();
	escapes_names();
	tells_what_it_cannot_see();
	ends_when_interrupted();
	shows_progress();
	json_of_a_run();
	return done_testing();
}
