/* Nothing stale, nothing silent: cuts, fences, salvage, takeover, rotation, choices, requests, holds. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ckpt.h"
#include "env.h"
#include "io.h"
#include "ranks.h"
#include "rundir.h"
#include "tap.h"

static struct toy toys[TOY_RANKS_MAX];
static struct toy_log text;
static struct ckpt_options options;
static char dir[PATH_MAX];

static void fresh_dir(const char *name)
{
	snprintf(dir, sizeof(dir), "%s/%s", test_tmpdir(), name);
	options = (struct ckpt_options){
		.struct_size = sizeof(options), .keep = 3, .every = "1d", .dir = dir};
}

static bool exists(const char *name)
{
	return exists_in(dir, name);
}

/* Which steps are there: "2.1 4.1", sorted. */
static const char *steps(void)
{
	static char out[512];
	struct dirent **names;
	int n = scandir(dir, &names, NULL, alphasort);

	out[0] = '\0';
	for (int i = 0; i < n; i++) {
		unsigned long step, generation;

		if (sscanf(names[i]->d_name, "step-%lu.g%lu", &step, &generation) == 2 &&
		    strlen(names[i]->d_name) == 18)
			sprintf(out + strlen(out), "%s%lu.%lu", *out ? " " : "", step, generation);
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	return out;
}

/* A start of the program: resumes, then saves each of the steps listed, in order. */
struct start {
	uint64_t save[16]; /* 0-terminated */
	int restored;
	uint64_t from;
	bool right; /* what was restored is right */
	int complete;
};

static int program(struct toy *toy)
{
	struct start *start = toy->arg;
	uint64_t step = 0;
	int rc;

	toy_spoil(toy);
	rc = ckpt_restore(toy->ck, &step);
	if (toy->rank == 0) {
		start->restored = rc;
		start->from = step;
	}
	if (rc > 0 && !toy_is(toy, step))
		__atomic_store_n(&start->right, false, __ATOMIC_SEQ_CST);
	for (int i = 0; rc >= 0 && start->save[i]; i++) {
		toy_train(toy, start->save[i]);
		rc = ckpt_save(toy->ck, start->save[i]);
		if (!rc)
			rc = ckpt_wait(toy->ck);
	}
	return rc > 0 ? 0 : rc;
}

static int run(struct start *start)
{
	start->right = true;
	start->restored = -99;
	toy_run(2, &options, program, start, toys, &text);
	return toys[0].code;
}

#define START(...) (&(struct start){.save = {__VA_ARGS__}})

static void with_fault(const char *rules)
{
	setenv(CK_ENV_IO_FAULT, rules, 1);
}

static void without_fault(void)
{
	unsetenv(CK_ENV_IO_FAULT);
}

/* The same in a process of its own, which the rules kill. */
static void run_and_die(struct start *start, const char *rules)
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		with_fault(rules);
		run(start);
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
	is_int(run(START(2)), 0, "a save of step 2");
	for (int i = 0; i < 3; i++)
		run_and_die(START(4), "pwrite:rank-00001.0*:kill=KILL");
	is_int(run(&next), 0, "cut three times at the same step, then not: %s", text.text);
	is_u64(next.from, 2, "resumed from the older one");
	ok(next.right, "bit-exact");
	is_str(steps(), "2.1 4.5 6.5", "trained past and saved");
	ok(!exists(".saving-0000000004.g2") && !exists(".deleting-0000000004.g2"), "swept");
}

static void cut_in_a_rename(void)
{
	struct ck_names names;
	struct ck_error err;

	fresh_dir("rename");
	is_int(run(START(2)), 0, "a save of step 2");
	run_and_die(START(4), "rename:latest:kill=KILL");
	run_and_die(START(4), "rename:claim.json:kill=KILL");
	is_int(run(START(6)), 0, "cut before the renames of small files: %s", text.text);
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
	is_int(run(START(2)), 0, "a save of step 2");
	run_and_die(START(4), "rename:.saving*:kill=KILL");
	is_int(run(&next), 0, "cut after the last byte, before the commit");
	like(text.text, "salvaged step 4", "it is salvaged, and said");
	is_u64(next.from, 4, "and resumed from");
	ok(next.right, "bit-exact");
	is_str(steps(), "2.1 4.2 6.3", "it keeps its generation");
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
	is_str(steps(), "2.1", "nothing is published or deleted");
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
	is_int(run(START(2)), CKPT_EREFUSED, "it is refused");
	snprintf(pid_text, sizeof(pid_text), "process %d", (int)hold.pid);
	like(text.text, pid_text, "naming the process");
	options.takeover = 1;
	is_int(run(START(2)), 0, "with a takeover it is superseded");
	is_int(hold_end(&hold), CKPT_EFENCED, "and is fenced");
	is_str(steps(), "2.2", "it publishes nothing");
	options.takeover = 0;
	is_int(run(START(4)), 0, "an owner that has ended is superseded without questions");
}

/* Who holds the run is asked of the newest claim that was written, not of a number alone. */
static void takeover_of_a_number(void)
{
	struct hold hold;

	fresh_dir("number");
	hold_begin(&hold);
	with_fault("pwrite:claim.json*:errno=ENOSPC");
	options.takeover = 1;
	is_int(run(START(2)), CKPT_EIO, "no space for the claim of the one that takes over");
	like(text.text, "No space left on device", "is said");
	options.takeover = 0;
	without_fault();
	ok(!exists(".gen-2"), "and leaves no number");
	if (mkdir(in_dir(dir, ".gen-2"), 0777))
		ok(false, "a number without a claim");
	is_int(run(START(2)), CKPT_EREFUSED, "a number without a claim hides no owner");
	if (rmdir(in_dir(dir, ".gen-2")))
		ok(false, "it goes");
	is_int(hold_end(&hold), 0, "and commits");
	is_str(steps(), "9.1", "its checkpoint is there");
}

static void claim_unreadable(void)
{
	static const char *const claims[] = {"", "{\"schema_version\": 2}"};

	fresh_dir("unreadable");
	is_int(run(START(2)), 0, "a run");
	for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
		put_file(in_dir(dir, ".gen-1/claim.json"), claims[i]);
		is_int(run(START(4)), CKPT_EREFUSED, "a claim that cannot be read: refused");
		like(text.text, ".gen-1/claim.json: ", "naming the file");
		like(text.text, "when nobody does, take over with --ckpt-takeover",
		     "and the way out");
		ok(!exists(".gen-2"), "nothing is claimed");
	}
	options.takeover = 1;
	is_int(run(START(4)), 0, "which opens it: %s", text.text);
	is_str(steps(), "2.1 4.2", "and goes on");
}

/* ---- no space ---- */

static void no_space(void)
{
	struct start next = {.save = {0}};

	fresh_dir("space");
	with_fault("open:manifest.json*:errno=ENOSPC:times=1");
	run(START(2));
	without_fault();
	is_int(toys[0].code, CKPT_EIO, "no space on the manifest: the save fails");
	is_str(steps(), "", "nothing is published");
	is_int(run(START(4)), 0, "the next one succeeds");
	with_fault("open:latest*:errno=ENOSPC");
	is_int(run(START(6)), 0, "no space on `latest` alone: committed all the same");
	without_fault();
	like(text.text, "warning: step 6 is committed, but /", "and said");
	unlike(text.text, "committed, but committed", "once");
	is_int(run(&next), 0, "a resume");
	is_u64(next.from, 6, "still finds the newest");
	with_fault("rename:*/.deleting*:errno=EACCES:times=1");
	is_int(run(START(7, 8, 9)), 0, "an old one cannot be deleted before a save");
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
	toy_run(2, &options, program, &start, toys, &text);
	without_fault();
	is_int(toys[0].code, 0, "no save, no failure");
	options.fail = "never";
	toy_run(2, &options, program, &start, toys, &text);
	is_int(toys[0].code, CKPT_EARG, "--ckpt-fail=never is refused");
	like(text.text, "fail: never: expected warn or error", "saying what was expected");
}

static int failing_loop(struct toy *toy)
{
	int rc = 0;

	for (uint64_t step = 1; step < 100 && !rc; step++) {
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

/* ---- rotation ---- */

static atomic_int watching;

/* Is there, at every instant, a complete checkpoint? */
static void *watcher(void *arg)
{
	int *gaps = arg;

	while (atomic_load(&watching)) {
		bool found = false;
		struct dirent *entry;
		DIR *d = opendir(dir);

		while (d && (entry = readdir(d)))
			found = found || strncmp(entry->d_name, "step-", 5) == 0;
		if (d)
			closedir(d);
		if (!found)
			(*gaps)++;
	}
	return NULL;
}

static void keep_one(void)
{
	pthread_t thread;
	int gaps = 0;

	fresh_dir("one");
	options.keep = 1;
	is_int(run(START(1)), 0, "keep 1: a first save");
	atomic_store(&watching, 1);
	pthread_create(&thread, NULL, watcher, &gaps);
	is_int(run(START(2, 3, 4, 5, 6, 7, 8, 9)), 0, "and eight more");
	atomic_store(&watching, 0);
	pthread_join(thread, NULL);
	is_int(gaps, 0, "never without a checkpoint");
	is_str(steps(), "9.2", "one is kept");
}

static void timelines(void)
{
	fresh_dir("timeline");
	options.keep = 2;
	is_int(run(START(4999, 5000)), 0, "a timeline that reached step 5000");
	options.resume = "fresh";
	is_int(run(START(100, 200, 300)), 0, "is abandoned");
	is_str(steps(), "200.2 300.2", "its step 5000 does not outlive the new step 300");
}

/* Names like ours that are not: no word of them in each save, and they stay. */
static void look_alikes(void)
{
	static const char *const files[] = {".gen-2", "step-0000000005.g1",
					    ".deleting-0000000005.g1", ".saving-0000000005.g1"};

	fresh_dir("alike");
	options.keep = 2;
	is_int(run(START(1, 2, 3)), 0, "a run");
	for (size_t i = 0; i < 4; i++)
		put_file(in_dir(dir, files[i]), "mine");
	is_int(run(START(4, 6, 7, 8)), 0, "saves beside them: %s", text.text);
	unlike(text.text, "warning", "not one word");
	is_str(steps(), "5.1 7.3 8.3", "rotation goes on");
	for (size_t i = 0; i < 4; i++)
		ok(exists(files[i]), "%s stays", files[i]);
	fresh_dir("directory");
	if (mkdir(dir, 0777) || mkdir(in_dir(dir, "run.json"), 0777))
		ok(false, "directories");
	is_int(run(START(1)), CKPT_EFORMAT, "a directory for run.json: refused");
	like(text.text, "run.json: is a directory, not a regular file", "saying so");
}

static void pins(void)
{
	fresh_dir("pins");
	options.keep = 2;
	is_int(run(START(1, 2)), 0, "two saves");
	put_file(in_dir(dir, ".pin-0000000001.g1"), "");
	is_int(run(START(3, 4, 5)), 0, "three more");
	is_str(steps(), "1.1 4.2 5.2", "a pinned one stays, and is not counted");
}

static void damage(const char *step)
{
	if (truncate(in_dir(in_dir(dir, step), "rank-00000.0.safetensors"), 77))
		ok(false, "%s can be damaged", step);
}

static void past_two_bad_ones(void)
{
	struct start next = {.save = {7, 8}};

	fresh_dir("bad");
	is_int(run(START(1, 2, 3)), 0, "three saves, keep 3");
	damage("step-0000000002.g1");
	damage("step-0000000003.g1");
	is_int(run(&next), 0, "two of them bad: %s", text.text);
	is_int(next.restored, CKPT_FELL_BACK, "falls back");
	is_u64(next.from, 1, "to the good one");
	ok(exists("step-0000000007.g2") && exists("step-0000000008.g2"), "and goes on: %s",
	   steps());
	ok(exists("step-0000000001.g1"), "rotation kept the good one");
}

/* ---- choices ---- */

static void job(const char *id, const char *restart)
{
	setenv("SLURM_JOB_ID", id, 1);
	setenv("SLURM_CLUSTER_NAME", "mini", 1);
	if (restart)
		setenv("SLURM_RESTART_COUNT", restart, 1);
	else
		unsetenv("SLURM_RESTART_COUNT");
}

static void no_job(void)
{
	unsetenv("SLURM_JOB_ID");
	unsetenv("SLURM_CLUSTER_NAME");
	unsetenv("SLURM_RESTART_COUNT");
}

static void resume_fresh(void)
{
	struct start none = {.save = {0}}, some = {.save = {50}}, last = {.save = {0}};

	fresh_dir("fresh");
	job("11", NULL);
	is_int(run(START(1, 2)), 0, "an earlier job");
	options.resume = "fresh";
	job("12", NULL);
	is_int(run(&none), 0, "a job that asks for a fresh start");
	is_int(none.restored, CKPT_FRESH, "gets it");
	like(text.text, "fresh, as asked for", "and is told");
	job("12", "1");
	is_int(run(&some), 0, "preempted before its first commit");
	is_int(some.restored, CKPT_FRESH, "it is fresh again");
	job("12", "2");
	is_int(run(&last), 0, "preempted after it");
	is_int(last.restored, CKPT_RESUMED, "it is not");
	is_u64(last.from, 50, "but goes on from its own");
	no_job();
}

static void resume_step(void)
{
	struct start chosen = {.save = {0}};

	fresh_dir("step");
	is_int(run(START(1, 2, 3)), 0, "three saves");
	options.resume = "2";
	is_int(run(&chosen), 0, "--ckpt-resume=2");
	is_u64(chosen.from, 2, "takes step 2");
	ok(chosen.right, "bit-exact");
	options.resume = "9";
	is_int(run(&chosen), CKPT_ENOENT, "--ckpt-resume=9");
	like(text.text, "step 9 was asked for, and is not there; there are: 3, 2, 1",
	     "lists what there is");
}

static void from_another_run(void)
{
	struct start first = {.save = {0}}, second = {.save = {0}};
	char other[PATH_MAX], before[512];

	fresh_dir("other");
	is_int(run(START(3, 4)), 0, "another run");
	strcpy(other, dir);
	strcpy(before, steps());
	fresh_dir("mine");
	options.from = other;
	first.save[0] = 6;
	is_int(run(&first), 0, "--ckpt-from: %s", text.text);
	is_u64(first.from, 4, "begins from its newest");
	ok(first.right, "bit-exact");
	like(text.text, "began from step 4 of", "and says so");
	is_int(run(&second), 0, "the next start");
	is_u64(second.from, 6, "goes on from its own");
	is_str(steps(), "6.1", "which alone is here");
	strcpy(dir, other);
	is_str(steps(), before, "the other run is untouched");
	is_int(exists(".gen-2"), 0, "not even claimed");
	fresh_dir("none");
	options.from = "/nowhere/run";
	is_int(run(&first), CKPT_ENOENT, "a run that is not there");
	like(text.text, "--ckpt-from: ", "is named");
}

static void no_progress(void)
{
	struct start none = {.save = {0}}, next = {.save = {9}};
	char *mark;

	fresh_dir("progress");
	job("12", NULL);
	is_int(run(START(5)), 0, "a first start");
	for (int i = 1; i <= 3; i++) {
		job("12", (char[]){(char)('0' + i), 0});
		is_int(run(&none), 0, "start %d after it saves nothing", i);
		is_u64(none.from, 5, "from step 5");
	}
	job("12", "4");
	is_int(run(&next), CKPT_EREFUSED, "the fourth is held");
	like(text.text, "no progress: started 3 times from step 5", "with the reason");
	mark = content_of(in_dir(dir, ".gen-5/mark.json"));
	like(mark, "\"hold\"", "and leaves word for the plugin");
	free(mark);
	job("12", "5");
	is_int(run(&next), 0, "released by somebody, it tries again");
	is_u64(next.from, 5, "from step 5");
	no_job();
}

/* ---- requests ---- */

static int until_stopped(struct toy *toy)
{
	int rc = 0;

	for (uint64_t step = 1; step < 1000 && !rc; step++) {
		toy_nap_ms(20);
		toy_train(toy, step);
		if (step == 5 && toy->rank == 0)
			put_file(in_dir(dir, ".request-save"), "");
		if (toy->rank == 0 && exists(".gen-1") && !exists(".request-save") && step > 5 &&
		    *steps() && !exists(".request-stop"))
			put_file(in_dir(dir, ".request-stop"), "");
		rc = ckpt_step(toy->ck, step);
		toy->step = step;
	}
	return rc;
}

static void requests(void)
{
	char *mark;

	fresh_dir("requests");
	toy_run(2, &options, until_stopped, NULL, toys, &text);
	is_int(toys[0].code, CKPT_STOP, "asked to save, then to stop: %s", text.text);
	like(text.text, "(ckpt stop)", "and says why");
	mark = content_of(in_dir(dir, ".gen-1/mark.json"));
	like(mark, "\"stop\"", "the mark says stop, not requeue");
	free(mark);
	put_file(in_dir(dir, ".request-stop"), "");
	is_int(run(START(2000)), 0, "a request for an earlier start does not stop the next");
	is_int(exists(".request-stop"), 0, "it is gone");
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
	failures_in_a_row();
	fail_error();
	fail_in_a_temporary();
	keep_one();
	timelines();
	look_alikes();
	pins();
	past_two_bad_ones();
	resume_fresh();
	resume_step();
	from_another_run();
	no_progress();
	requests();
	return done_testing();
}
