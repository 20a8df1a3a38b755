/* What befalls a run: cuts, fences, takeovers, claims that cannot be read, full disks. */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ckpt.h"
#include "env.h"
#include "io.h"
#include "rundir.h"
#include "starts.h"
#include "tap.h"

static void with_fault(const char *rules)
{
	setenv(CK_ENV_IO_FAULT, rules, 1);
}

static void without_fault(void)
{
	unsetenv(CK_ENV_IO_FAULT);
}

/* A start in a process of its own, which the rules kill. */
static void run_and_die(struct start *start, const char *rules)
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		with_fault(rules);
		run_start(start);
		_exit(3);
	}
	waitpid(pid, &status, 0);
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "killed by %s", rules);
}

/* ---- cuts ---- */

static void cut_in_the_middle(void)
{
	struct start next = {.save = {4, 6}};

	fresh_dir("cut");
	is_int(run_start(START(2)), 0, "a save of step 2");
	for (int i = 0; i < 3; i++)
		run_and_die(START(4), "pwrite:rank-00001.0*:kill=KILL");
	is_int(run_start(&next), 0, "cut three times at the same step, then not: %s", text.text);
	is_u64(next.from, 2, "resumed from the older one");
	ok(next.right, "bit-exact");
	is_str(steps_there(), "2.1 4.5 6.5", "trained past and saved");
	ok(!exists(".saving-0000000004.g2") && !exists(".deleting-0000000004.g2"), "swept");
}

static void cut_in_a_rename(void)
{
	struct ck_names names;
	struct ck_error err;

	fresh_dir("rename");
	is_int(run_start(START(2)), 0, "a save of step 2");
	run_and_die(START(4), "rename:latest:kill=KILL");
	run_and_die(START(4), "rename:claim.json:kill=KILL");
	is_int(run_start(START(6)), 0, "cut before the renames of small files: %s", text.text);
	if (ck_io_list(&ck_io_posix, dir, &names, &err))
		ok(false, "a listing: %s", err.text);
	for (size_t i = 0; i < names.count; i++)
		unlike(names.names[i], ".tmp-", "%s is no left-over", names.names[i]);
	ck_names_fini(&names);
	is_u64(count_in(in_dir(dir, ".gen-3")), 0, "nor is one in the generation of the dead");
}

static void cut_before_the_commit(void)
{
	struct start next = {.save = {6}};

	fresh_dir("salvage");
	is_int(run_start(START(2)), 0, "a save of step 2");
	run_and_die(START(4), "rename:.saving*:kill=KILL");
	is_int(run_start(&next), 0, "cut after the last byte, before the commit");
	like(text.text, "salvaged step 4", "it is salvaged, and said");
	is_u64(next.from, 4, "and resumed from");
	ok(next.right, "bit-exact");
	is_str(steps_there(), "2.1 4.2 6.3", "it keeps its generation");
}

/* ---- fences ---- */

static int fenced_program(struct toy *toy)
{
	int rc;

	toy_train(toy, 2);
	rc = ckpt_save(toy->ck, 2);
	if (!rc)
		rc = ckpt_wait(toy->ck);
	if (!rc && toy->rank == 0 && mkdir(in_dir(dir, ".gen-7"), 0777))
		rc = -77;
	if (rc)
		return rc;
	toy_train(toy, 4);
	rc = ckpt_save(toy->ck, 4);
	if (!rc)
		rc = ckpt_wait(toy->ck);
	return rc == CKPT_EFENCED && ckpt_step(toy->ck, 5) != CKPT_EFENCED ? -78 : rc;
}

static void fenced(void)
{
	fresh_dir("fenced");
	toy_run(2, &options, fenced_program, NULL, toys, &text);
	is_int(toys[0].code, CKPT_EFENCED, "a newer generation: fenced");
	is_int(toys[1].code, CKPT_EFENCED, "on all ranks");
	like(text.text, "generation 7", "it is named");
	is_str(steps_there(), "2.1", "nothing is published or deleted");
}

/* ---- takeover ---- */

struct hold {
	int ready[2], go[2];
	pid_t pid;
};

static int hold_open(struct toy *toy)
{
	struct hold *hold = toy->arg;
	char byte = 0;

	if (toy->rank == 0 && write(hold->ready[1], &byte, 1) + read(hold->go[0], &byte, 1) != 2)
		return -70;
	toy_train(toy, 9);
	if (ckpt_save(toy->ck, 9))
		return -71;
	return ckpt_wait(toy->ck);
}

/* Another process opens the run, and then waits. */
static void hold_begin(struct hold *hold)
{
	char byte;

	if (pipe(hold->ready) || pipe(hold->go))
		ok(false, "pipes");
	fflush(stdout);
	hold->pid = fork();
	if (hold->pid == 0) {
		toy_run(2, &options, hold_open, hold, toys, &text);
		_exit(-toys[0].code);
	}
	is_int(read(hold->ready[0], &byte, 1), 1, "another process has the run open");
}

/* It goes on to its save. Returns what became of that. */
static int hold_end(struct hold *hold)
{
	char byte = 0;
	int status = 0;

	is_int(write(hold->go[1], &byte, 1), 1, "the other one goes on");
	waitpid(hold->pid, &status, 0);
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -128;
}

static void takeover(void)
{
	struct hold hold;
	char pid_text[32];

	fresh_dir("takeover");
	hold_begin(&hold);
	is_int(run_start(START(2)), CKPT_EREFUSED, "it is refused");
	snprintf(pid_text, sizeof(pid_text), "process %d", (int)hold.pid);
	like(text.text, pid_text, "naming the process");
	options.takeover = 1;
	is_int(run_start(START(2)), 0, "with a takeover it is superseded");
	is_int(hold_end(&hold), CKPT_EFENCED, "and is fenced");
	is_str(steps_there(), "2.2", "it publishes nothing");
	options.takeover = 0;
	is_int(run_start(START(4)), 0, "an owner that has ended is superseded without questions");
}

/* Who holds the run is asked of the newest claim that was written, not of a number alone. */
static void takeover_of_a_number(void)
{
	struct hold hold;

	fresh_dir("number");
	hold_begin(&hold);
	with_fault("pwrite:claim.json*:errno=ENOSPC");
	options.takeover = 1;
	is_int(run_start(START(2)), CKPT_EIO, "no space for the claim of the one that takes over");
	like(text.text, "No space left on device", "is said");
	options.takeover = 0;
	without_fault();
	ok(!exists(".gen-2"), "and leaves no number");
	if (mkdir(in_dir(dir, ".gen-2"), 0777))
		ok(false, "a number without a claim");
	is_int(run_start(START(2)), CKPT_EREFUSED, "a number without a claim hides no owner");
	if (rmdir(in_dir(dir, ".gen-2")))
		ok(false, "it goes");
	is_int(hold_end(&hold), 0, "and commits");
	is_str(steps_there(), "9.1", "its checkpoint is there");
}

static void claim_unreadable(void)
{
	static const char *const claims[] = {"", "{\"schema_version\": 2}"};

	fresh_dir("unreadable");
	is_int(run_start(START(2)), 0, "a run");
	for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
		put_file(in_dir(dir, ".gen-1/claim.json"), claims[i]);
		is_int(run_start(START(4)), CKPT_EREFUSED, "a claim that cannot be read: refused");
		like(text.text, ".gen-1/claim.json: ", "naming the file");
		like(text.text, "when nobody does, take over with --ckpt-takeover",
		     "and the way out");
		ok(!exists(".gen-2"), "nothing is claimed");
	}
	options.takeover = 1;
	is_int(run_start(START(4)), 0, "which opens it: %s", text.text);
	is_str(steps_there(), "2.1 4.2", "and goes on");
}

/* ---- no space ---- */

static void no_space(void)
{
	struct start next = {.save = {0}};

	fresh_dir("space");
	with_fault("open:manifest.json*:errno=ENOSPC:times=1");
	run_start(START(2));
	without_fault();
	is_int(toys[0].code, CKPT_EIO, "no space on the manifest: the save fails");
	is_str(steps_there(), "", "nothing is published");
	is_int(run_start(START(4)), 0, "the next one succeeds");
	with_fault("open:latest*:errno=ENOSPC");
	is_int(run_start(START(6)), 0, "no space on `latest` alone: committed all the same");
	without_fault();
	like(text.text, "warning: step 6 is committed, but /", "and said");
	unlike(text.text, "committed, but committed", "once");
	is_int(run_start(&next), 0, "a resume");
	is_u64(next.from, 6, "still finds the newest");
	with_fault("rename:*/.deleting*:errno=EACCES:times=1");
	is_int(run_start(START(7, 8, 9)), 0, "an old one cannot be deleted before a save");
	without_fault();
	like(text.text, "is committed, but old checkpoints could not be deleted: ",
	     "the commit does not hide it");
}

static void failures_in_a_row(void)
{
	static struct start start = {.save = {0}};

	fresh_dir("row");
	options.fail = "error";
	options.every = "1step";
	with_fault("open:rank-00001.0*:errno=ENOSPC");
	run_start(&start);
	without_fault();
	is_int(toys[0].code, 0, "no save, no failure");
	options.fail = "never";
	run_start(&start);
	is_int(toys[0].code, CKPT_EARG, "--ckpt-fail=never is refused");
	like(text.text, "fail: never: expected warn or error", "saying what was expected");
}

/* Until it fails, if it is to. */
static int failing_loop(struct toy *toy)
{
	uint64_t last = options.fail ? 10000 : 100;
	int rc = 0;

	for (uint64_t step = 1; step < last && !rc; step++) {
		toy_nap_ms(20);
		toy_train(toy, step);
		rc = ckpt_step(toy->ck, step);
		toy->step = step;
	}
	if (rc && toy->arg && toy->rank == 0)
		snprintf(toy->arg, PATH_MAX, "%s", ckpt_error(toy->ck));
	return rc;
}

/* A file's temporary name is another one at each try. */
static void fail_in_a_temporary(void)
{
	char error[PATH_MAX] = "", step[32] = "";
	const char *first;

	fresh_dir("temporary");
	options.fail = "error";
	options.every = "1step";
	with_fault("open:SHA256SUMS*:errno=ENOSPC");
	toy_run(2, &options, failing_loop, error, toys, &text);
	without_fault();
	is_int(toys[0].code, CKPT_EIO, "three saves fail in a file with a temporary name");
	first = strstr(text.text, "failed: ");
	ok(first != NULL, "it is told: %s", text.text);
	is_str(first ? strstr(first + 1, "failed: ") : NULL, NULL, "once");
	ok(first && sscanf(strstr(first, ".saving-"), "%31[^/]", step) == 1, "of %s", step);
	like(error, "the last: ", "the error has the last");
	unlike(error, step, "not the first");
}

static void fail_error(void)
{
	fresh_dir("fail");
	options.fail = "error";
	options.every = "1step";
	with_fault("open:rank-00001.0*:errno=ENOSPC");
	toy_run(2, &options, failing_loop, NULL, toys, &text);
	is_int(toys[0].code, CKPT_EIO,
	       "--ckpt-fail=error: three failed saves in a row are an error");
	is_int(toys[1].code, CKPT_EIO, "on all ranks");
	is_u64(toys[1].step, toys[0].step, "at the same step");
	options.fail = NULL;
	toy_run(2, &options, failing_loop, NULL, toys, &text);
	without_fault();
	is_int(toys[0].code, 0, "by default training goes on");
	is_str(strstr(strstr(text.text, "failed: ") + 1, "failed: "), NULL,
	       "and each cause is told once");
}

/* ---- run.json removed ---- */

static int remove_run_file(struct toy *toy)
{
	int rc = 0;

	for (uint64_t step = 1; step <= 3 && !rc; step++) {
		toy_train(toy, step);
		if (toy->rank == 0 && step < 3)
			ok(unlink(in_dir(dir, "run.json")) == 0, "somebody removes run.json");
		rc = ckpt_save(toy->ck, step);
		if (!rc)
			rc = ckpt_wait(toy->ck);
	}
	if (toy->rank == 0)
		ok(unlink(in_dir(dir, "run.json")) == 0, "and once more, behind the last save");
	return rc ? rc : ckpt_complete(toy->ck);
}

/* Only the program that has the run open knows what stood there. */
static void run_file_removed(void)
{
	struct start next = {.save = {0}};
	char *before, *after;

	fresh_dir("removed");
	is_int(run_start(START(0)), 0, "a run");
	before = content_of(in_dir(dir, "run.json"));
	toy_run(2, &options, remove_run_file, NULL, toys, &text);
	is_int(toys[0].code, 0, "saved and complete all the same: %s", text.text);
	like(text.text, "warning: step 1 is committed, but /",
	     "a line says that something was amiss");
	like(text.text, "/run.json was gone: it has been written again", "what");
	like(text.text, "warning: step 2 is committed", "each time");
	unlike(text.text, "warning: step 3", "it was");
	after = content_of(in_dir(dir, "run.json"));
	is_int(strncmp(before, after, strcspn(before, ",") + 50), 0, "it is the same run");
	like(after, "\"committed\": true", "which has a checkpoint");
	is_int(run_start(&next), 0, "the next start: %s", text.text);
	is_int(next.restored, CKPT_COMPLETE, "finds it complete");
	free(before);
	free(after);
}

int main(void)
{
	unsetenv("SLURM_JOB_ID");
	cut_in_the_middle();
	cut_in_a_rename();
	cut_before_the_commit();
	fenced();
	takeover();
	takeover_of_a_number();
	claim_unreadable();
	no_space();
	run_file_removed();
	failures_in_a_row();
	fail_error();
	fail_in_a_temporary();
	return done_testing();
}
