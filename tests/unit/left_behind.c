/* What a start finds of the one before, and what it must not do to it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ckpt.h"
#include "endtime.h"
#include "env.h"
#include "rundir.h"
#include "starts.h"
#include "tap.h"

/* A start in a process of its own, which the rules kill. */
static void run_and_die(struct start *start, const char *rules)
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		setenv(CK_ENV_IO_FAULT, rules, 1);
		run_start(start);
		_exit(3);
	}
	waitpid(pid, &status, 0);
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "killed by %s", rules);
}

static void lost_save_is_told(void)
{
	fresh_dir("lost");
	run_and_die(START(4), "pwrite:rank-00001.0*:kill=KILL");
	is_int(run_start(START(0)), 0, "a save had begun, and the program ended");
	like(text.text, "the save of step 4 had begun and was not complete",
	     "the next start says so");
	is_int(run_start(START(0)), 0, "another one");
	unlike(text.text, "had begun", "once");
}

static int complete_when_stopped(struct toy *toy)
{
	int rc = 0;

	raise(SIGTERM);
	for (uint64_t step = 1; !rc && step < 100; step++) {
		toy_train(toy, step);
		rc = ckpt_step(toy->ck, step);
	}
	return rc == CKPT_STOP ? ckpt_complete(toy->ck) : -77;
}

/* The step that was its last is that at which it was told to stop. */
static void complete_after_stop(void)
{
	char *mark;

	fresh_dir("complete");
	toy_run(1, &options, complete_when_stopped, NULL, toys, &text);
	is_int(toys[0].code, 0, "complete after CKPT_STOP: %s", text.text);
	mark = content_of(in_dir(dir, ".gen-1/mark.json"));
	like(mark, "\"stop\"", "and the mark asks for no requeue");
	free(mark);
	toy_run(1, &options, toy_resume, NULL, toys, &text);
	is_int(toys[0].code, CKPT_COMPLETE, "the next start finds it complete: %s", text.text);
}

static int open_twice(struct toy *toy)
{
	int status = 0;
	pid_t pid;

	(void)toy;
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		struct ckpt_options other = options;
		ckpt *ck;

		_exit(-ckpt_open(&ck, NULL, &other));
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -99;
}

/* No plugin has looked: the program names the directory itself. */
static void second_process_of_a_job(void)
{
	fresh_dir("job");
	setenv("SLURM_JOB_ID", "4711", 1);
	toy_run(1, &options, open_twice, NULL, toys, &text);
	is_int(toys[0].code, CKPT_EREFUSED, "a second process of the job is refused");
	is_int(run_start(START(1)), 0, "one that comes after it is not: %s", text.text);
	unsetenv("SLURM_JOB_ID");
}

/* keep 2 and back to an older one: the newer ones go when something is committed, not before. */
static void newest_waits_for_a_commit(void)
{
	fresh_dir("back");
	options.keep = 2;
	is_int(run_start(START(1, 2)), 0, "two checkpoints");
	options.resume = "1";
	run_and_die(START(2), "rename:.saving*:kill=KILL");
	is_str(steps_there(), "1.1 2.1", "killed before its commit: both are there");
	options.resume = "1";
	is_int(run_start(START(3, 4)), 0, "not killed: %s", text.text);
	is_str(steps_there(), "3.3 4.3", "they go");
	options.resume = NULL;
}

static int two_tries(struct toy *toy)
{
	int rc = toy_resume(toy);

	for (uint64_t step = 3; rc >= 0 && step <= 4; step++) {
		char *there = toy->arg;

		toy_train(toy, step);
		rc = ckpt_save(toy->ck, step);
		if (!rc)
			rc = ckpt_wait(toy->ck);
		if (rc == CKPT_EIO && step == 3) {
			strcpy(there, steps_there());
			rc = 0;
		}
	}
	return rc;
}

static void newest_goes_for_space(void)
{
	char there[512] = "";

	fresh_dir("space");
	options.keep = 2;
	is_int(run_start(START(1, 2)), 0, "two checkpoints");
	options.resume = "1";
	setenv(CK_ENV_IO_FAULT,
	       "open:*.saving*rank-00000.0*:errno=ENOSPC:times=1;rename:.saving*:errno=EIO", 1);
	options.every = "1d";
	toy_run(1, &options, two_tries, there, toys, &text);
	unsetenv(CK_ENV_IO_FAULT);
	like(text.text, "No space left", "no space for the next one: %s", text.text);
	is_str(there, "1.1 2.1", "nothing has gone for that save");
	is_str(steps_there(), "1.1", "for the one behind it the newer one goes");
	options.resume = NULL;
}

static int many_failures(struct toy *toy)
{
	for (uint64_t step = 1; step <= 12; step++) {
		toy_train(toy, step);
		if (ckpt_save(toy->ck, step) == 0)
			ckpt_wait(toy->ck);
	}
	return 0;
}

/* Each save fails, and so does removing it; then the cause is gone. */
static void failed_saves_leave_nothing(void)
{
	char path[64];
	unsigned left = 0;

	fresh_dir("leave");
	setenv(CK_ENV_IO_FAULT,
	       "open:SHA256SUMS*:errno=EIO:times=10;unlink,rmdir:*:errno=EIO:times=40", 1);
	toy_run(1, &options, many_failures, NULL, toys, &text);
	unsetenv(CK_ENV_IO_FAULT);
	for (unsigned step = 1; step <= 12; step++) {
		snprintf(path, sizeof(path), ".saving-%010u.g1", step);
		left += exists(path);
		snprintf(path, sizeof(path), ".deleting-%010u.g1", step);
		left += exists(path);
		snprintf(path, sizeof(path), ".gen-1/records-%010u", step);
		left += exists(path);
	}
	is_u64(left, 0, "nothing is left of ten failed saves: %s", text.text);
	ok(exists("step-0000000012.g1"), "and saves succeed again");
}

static void pinned_by_the_next_start(void)
{
	fresh_dir("pin");
	setenv("SLURM_CKPT_KEEP_EVERY", "10", 1);
	setenv("SLURM_JOB_ID", "4711", 1);
	setenv(CK_ENV_SEAL, "/4711/0", 1);
	setenv(CK_ENV_DIR, dir, 1);
	options.keep = 1;
	run_and_die(START(9, 10), "open:.pin*:kill=KILL");
	is_int(run_start(START(11, 12)), 0, "killed between commit and pin; the next start: %s",
	       text.text);
	ok(exists(".pin-0000000010.g1"), "pins it");
	is_str(steps_there(), "10.1 12.2", "so that it stays");
	unsetenv("SLURM_CKPT_KEEP_EVERY");
	unsetenv(CK_ENV_SEAL);
	unsetenv(CK_ENV_DIR);
	unsetenv("SLURM_JOB_ID");
}

static void without_hard_links(void)
{
	static const char *const causes[] = {"EPERM", "ENOSYS", "EOPNOTSUPP"};
	char rules[64];

	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		snprintf(rules, sizeof(rules), "link:*:errno=%s", causes[i]);
		fresh_dir("links");
		setenv(CK_ENV_IO_FAULT, rules, 1);
		is_int(run_start(START(1)), 0, "link is %s: a run begins: %s", causes[i],
		       text.text);
		is_int(run_start(START(2)), 0, "and goes on");
		unsetenv(CK_ENV_IO_FAULT);
		is_str(steps_there(), "1.1 2.2", "both are there");
	}
}

/* The program's own wait() has had squeue, and its number is another's by now. */
static void no_stranger_is_killed(void)
{
	struct ck_end_time_query query = {.pid = getppid(), .fd = dup(0)};
	int status, fds[2];
	pid_t child, stranger = 0;

	if (pipe(fds))
		ok(false, "a pipe");
	child = fork();
	if (child == 0) {
		stranger = fork();
		if (stranger == 0) {
			sleep(60);
			_exit(0);
		}
		_exit(write(fds[1], &stranger, sizeof(stranger)) != sizeof(stranger));
	}
	waitpid(child, &status, 0);
	is_int(read(fds[0], &stranger, sizeof(stranger)), sizeof(stranger), "a process");
	query.pid = stranger;
	ck_end_time_forget(&query);
	is_int(kill(stranger, 0), 0, "that is not our child lives on");
	kill(stranger, SIGKILL);
}

int main(void)
{
	unsetenv("SLURM_JOB_ID");
	lost_save_is_told();
	complete_after_stop();
	second_process_of_a_job();
	newest_waits_for_a_commit();
	newest_goes_for_space();
	failed_saves_leave_nothing();
	pinned_by_the_next_start();
	without_hard_links();
	no_stranger_is_killed();
	return done_testing();
}
