/* Where `ckpt reshard` and `export` write: what they refuse, and that nothing is changed then. */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "rundir.h"
#include "tap.h"

/* Steps 9 and 12 of generation 1, by four ranks; nobody has it open. */
static const char *idle_run(void)
{
	const char *dir = made_run("run");

	make_generation(dir, 1);
	made_save(dir, 1, 9, 4, true);
	made_save(dir, 1, 12, 4, true);
	return dir;
}

static struct said reshard(const char *from, const char *to)
{
	return ckpt_cmd("reshard", from, to, "-w", "2", "--per-rank=drop");
}

static void expect_refusal(struct said said, int code, const char *what, const char *text)
{
	is_int(said.exit_code, code, "%s is refused: %s", what, said.err);
	like(said.err, text, "... and told why");
	said_fini(&said);
}

static void expect_said(struct said said, const char *what, const char *text)
{
	is_int(said.exit_code, 0, "%s: %s", what, said.err);
	like(said.out, text, "... is told");
	said_fini(&said);
}

static void expect_done(struct said said, const char *what)
{
	is_int(said.exit_code, 0, "%s: %s", what, said.err);
	said_fini(&said);
}

/* ---- a result that does not come to be ---- */

static void half_a_run(void)
{
	const char *dir = idle_run(), *to = in_dir(dir, "../other");
	const struct manner full = {.faults = "open:*.saving*rank-00001.0*:errno=ENOSPC"};

	expect_refusal(ckpt_cmd_as(&full, "reshard", in(dir, "../run@12"), to, "-w", "4"), 3,
		       "a full disk", "rank-00001.0.safetensors: create: No space left on device");
	expect_said(ckpt_cmd("ls", to), "what is left",
		    "a start is refused: checkpoints were committed, and none is there now\n");
	expect_done(ckpt_cmd("reshard", in(dir, "../run@12"), to, "-w", "4"), "once more");
	expect_said(ckpt_cmd("ls", to), "the result", "a start resumes from step 12 if");
}

/* ---- a run is not rewound ---- */

static void older_into_its_run(void)
{
	const char *dir = idle_run();
	char link[PATH_MAX];
	size_t entries = count_in(dir);

	expect_refusal(reshard(in(dir, "../run@9"), dir), 1, "an older step into its run",
		       "/run: its newest checkpoint is of step 12, generation 1; a start would "
		       "resume from the result, step 9, instead");
	expect_refusal(ckpt_cmd("reshard", "-n", in(dir, "../run@9"), dir, "-w", "4"), 1,
		       "a dry run of it", "name an empty directory");
	snprintf(link, sizeof(link), "%s", in_dir(dir, "../link"));
	ok(symlink("run", link) == 0, "a link to it");
	expect_refusal(reshard(in(dir, "../run@9"), link), 1, "through a link",
		       "step 12, generation 1");
	is_u64(count_in(dir), entries, "nothing is made there");
	expect_done(reshard(in(dir, "../run@12"), dir), "the newest step");
	expect_done(reshard(in(dir, "step-0000000012.g1"), dir), "and once more, of step 12");
}

/* After a fall-back the newest is of a smaller number. */
static void abandoned_steps(void)
{
	const char *dir = idle_run();

	make_generation(dir, 2);
	made_save(dir, 2, 10, 4, true);
	expect_refusal(reshard(in(dir, "../run@12"), dir), 1, "what the run has turned from",
		       "of step 10, generation 2; a start would resume from the result, step 12");
	expect_done(reshard(in(dir, "../run@10"), dir), "the step it is at");
}

static void other_directories(void)
{
	const char *dir = idle_run();
	char to[PATH_MAX];

	snprintf(to, sizeof(to), "%s", in_dir(dir, "../to"));
	expect_done(reshard(in(dir, "../run@9"), to), "a directory that is made");
	expect_done(reshard(in(dir, "../run@12"), to), "a newer step beside it");
	expect_refusal(reshard(in(dir, "../run@9"), to), 1, "an older one",
		       "/to: its newest checkpoint is of step 12, generation 2");
}

static void complete_run(void)
{
	const char *dir = idle_run();

	made_complete(dir, 12);
	expect_refusal(reshard(in(dir, "../run@12"), dir), 1, "a run that is complete",
		       "/run: the run is complete, at step 12, and nothing resumes there");
	expect_done(reshard(in(dir, "../run@12"), in(dir, "../to")), "out of it");
}

/* ---- places where nothing else belongs ---- */

static void places(void)
{
	static const struct {
		const char *to, *text;
	} cases[] = {
		{"step-0000000012.g1", "/step-0000000012.g1: is a checkpoint: name another"},
		{"step-0000000012.g1/sub", "/run/step-0000000012.g1, a checkpoint: name another"},
		{"step-0000000012.g1/not/there/", "/step-0000000012.g1, a checkpoint: name"},
		{"step-0000000099.g1/sub", "/run/step-0000000099.g1, a checkpoint: name another"},
		{".gen-1", "/.gen-1: is a directory of a run's own: name another directory"},
		{".gen-1/sub", "/run/.gen-1, a directory of a run's own: name another"},
		{".saving-0000000013.g1/sub", "/.saving-0000000013.g1, a directory of a run's"},
		{"../link/sub", "/run/step-0000000012.g1, a checkpoint: name another"},
		{"../copy/sub", "/copy, a checkpoint: name another directory"},
	};
	const char *dir = idle_run();
	size_t entries = count_in(dir), within = count_in(in_step(dir, 1, 12, ""));

	ok(symlink("run/step-0000000012.g1", in(dir, "../link")) == 0, "a link");
	ok(mkdir(in(dir, "../copy"), 0777) == 0, "a copy of a checkpoint");
	put_file(in(dir, "../copy/manifest.json"), "{}");
	put_file(in(dir, "../copy/SHA256SUMS"), "");
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *to = in_dir(dir, cases[i].to);

		expect_refusal(reshard(in(dir, "../run@12"), to), 1, cases[i].to, cases[i].text);
		expect_refusal(ckpt_cmd("export", in(dir, "../run@12"), to), 1, cases[i].to,
			       "name another directory");
	}
	expect_refusal(ckpt_cmd("export", in(dir, "../run@12"), in(dir, "../not/there")), 3,
		       "a directory below none", "/not/there: mkdir: No such file or directory");
	is_u64(count_in(dir), entries, "nothing is made in the run");
	is_u64(count_in(in_step(dir, 1, 12, "")), within, "nor in the checkpoint");
	is_u64(count_in(in(dir, ".gen-1")), 0, "nor in the generation");
	expect_done(ckpt_cmd("export", in(dir, "../run@12"), in(dir, "hf")),
		    "a directory of another name below a run");
}

/* ---- what an export that was killed has left ---- */

static void partial_files(void)
{
	const char *dir = idle_run();
	char to[PATH_MAX];
	char *text;

	snprintf(to, sizeof(to), "%s", in_dir(dir, "../hf"));
	ok(mkdir(to, 0777) == 0, "a directory");
	put_file(in(to, "model.safetensors.partial"), "half");
	expect_done(ckpt_cmd("export", in(dir, "../run@12"), to), "beside half a file");
	ok(!exists_in(to, "model.safetensors.partial"), "which is gone");
	ok(exists_in(to, "model.safetensors"), "a whole one is there");
	put_file(in(to, "model.safetensors"), "whole");
	put_file(in(to, "model.safetensors.partial"), "half");
	expect_refusal(ckpt_cmd("export", in(dir, "../run@12"), to), 1, "a whole file",
		       "model.safetensors: is there already");
	text = content_of(in(to, "model.safetensors"));
	is_str(text, "whole", "and stays");
	free(text);
	unlink(in(to, "model.safetensors"));
	unlink(in(to, "model.safetensors.partial"));
	ok(mkdir(in(to, "model.safetensors.partial"), 0777) == 0, "a directory of that name");
	expect_refusal(ckpt_cmd("export", in(dir, "../run@12"), to), 3, "what is no file of ours",
		       "model.safetensors.partial: unlink: Is a directory");
}

/* ---- another export ---- */

static void locked_place(void)
{
	const char *dir = idle_run();
	char to[PATH_MAX];
	int fd;

	snprintf(to, sizeof(to), "%s", in_dir(dir, "../hf"));
	ok(mkdir(to, 0777) == 0, "a directory");
	put_file(in(to, "model.safetensors.partial"), "half");
	fd = open(in(to, ".ckpt-export"), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	is_int(flock(fd, LOCK_EX), 0, "where another export is at work");
	expect_refusal(ckpt_cmd("export", in(dir, "../run@12"), to), 1, "a second one",
		       "/hf: another export writes there: wait for its end");
	ok(exists_in(to, "model.safetensors.partial"), "what the first one writes stays");
	ok(exists_in(to, ".ckpt-export"), "and so does its lock");
	close(fd);
	expect_done(ckpt_cmd("export", in(dir, "../run@12"), to), "once that is over");
	is_u64(count_in(to), 1, "nothing but the result is there");
	unlink(in(to, "model.safetensors"));
	expect_done(ckpt_cmd_as(&(struct manner){.faults = "lock:*:errno=ENOLCK"}, "export",
				in(dir, "../run@12"), to),
		    "a file system without locks");
}

static int export_again(const char *dir, int i)
{
	struct said said = ckpt_cmd("export", in(dir, i % 2 ? "run@12" : "run@9"), in(dir, "both"));
	int code = said.exit_code;

	said_fini(&said);
	return code;
}

/* Whoever comes first, its file is whole, and of one checkpoint. */
static void exports_at_once(void)
{
	const char *dir = idle_run();
	int results[6], done = 0, same = 0;
	char place[PATH_MAX];

	snprintf(place, sizeof(place), "%s", in_dir(dir, ".."));
	race(6, export_again, place, results);
	for (int i = 0; i < 6; i++) {
		done += results[i] == 0;
		ok(results[i] == 0 || results[i] == 1, "done or refused: %d", results[i]);
	}
	is_int(done, 1, "one of them is done");
	is_u64(count_in(in(place, "both")), 1, "and has left its file alone");
	for (int i = 0; i < 2; i++) {
		char line[3 * PATH_MAX];

		expect_done(ckpt_cmd("export", in(place, i ? "run@12" : "run@9"),
				     in(place, i ? "12" : "9")),
			    "alone");
		snprintf(line, sizeof(line), "cmp -s '%s' '%s'",
			 in(place, "both/model.safetensors"),
			 in(place, i ? "12/model.safetensors" : "9/model.safetensors"));
		same += system(line) == 0;
	}
	is_int(same, 1, "which is that of one of the two checkpoints");
}

/* ---- a reshard that is interrupted ---- */

/* By a signal in the middle of its first write. */
static void interrupted_reshard(void)
{
	static const char *const faults[] = {"pwrite:rank-0*:kill=INT:times=1",
					     "pwrite:rank-0*:kill=TERM:times=1"};

	for (size_t i = 0; i < 2; i++) {
		const char *dir = idle_run();
		const struct manner manner = {.faults = faults[i]};
		struct said said;
		char to[PATH_MAX];

		snprintf(to, sizeof(to), "%s", in_dir(dir, "../to"));
		said = ckpt_cmd_as(&manner, "reshard", in(dir, "../run@12"), to, "-w", "2",
				   "--per-rank=drop");
		is_int(said.exit_code, 130, "interrupted");
		like(said.err, "ckpt reshard: interrupted: no checkpoint was made in /",
		     "it says so");
		unlike(said.err, "anceled", "... and nothing else");
		said_fini(&said);
		ok(!exists_in(to, ".saving-0000000012.g1"), "nothing is left of it");
		ok(!exists_in(to, ".gen-1/records-0000000012"), "nor its records");
		expect_done(reshard(in(dir, "../run@12"), to), "another one");
	}
}

static void leftovers(void)
{
	const char *dir = idle_run(), *half = ".saving-0000000012.g1",
		   *whole = ".saving-0000000013.g1";
	char to[PATH_MAX];
	struct said said;

	snprintf(to, sizeof(to), "%s", in_dir(dir, "../to"));
	said = ckpt_cmd_as(&(struct manner){.faults = "pwrite:rank-00001*:kill=KILL"}, "reshard",
			   in(dir, "../run@12"), to, "-w", "2", "--per-rank=drop");
	is_int(said.exit_code, 128 + SIGKILL, "one is killed");
	said_fini(&said);
	ok(exists_in(to, half), "its save is left over");
	made_save(to, 1, 13, 4, false);
	ok(exists_in(to, whole), "beside one that only wants its commit");
	expect_done(reshard(in(dir, "../run@12"), to), "another one");
	ok(!exists_in(to, half), "sweeps the one");
	ok(exists_in(to, whole), "and not the other");
}

int main(void)
{
	leftovers();
	interrupted_reshard();
	locked_place();
	exports_at_once();
	partial_files();
	places();
	half_a_run();
	older_into_its_run();
	abandoned_steps();
	other_directories();
	complete_run();
	return done_testing();
}
