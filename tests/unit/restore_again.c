/*
 * ckpt_restore called again in the same handle: what it goes back behind may be saved again, and does not count as
 * newer than what comes.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ckpt.h"
#include "rundir.h"
#include "starts.h"
#include "tap.h"

#define RANKS 2

static int save_now(struct toy *toy, uint64_t step)
{
	int rc;

	toy_train(toy, step);
	rc = ckpt_save(toy->ck, step);
	return rc ? rc : ckpt_wait(toy->ck);
}

/* Restore into spoilt memory, and expect to be there. */
static int restore_at(struct toy *toy, int result, uint64_t at)
{
	int rc = toy_resume(toy);

	if (rc < 0)
		return rc;
	return rc == result && toy->step == at ? 0 : -50;
}

/* Rank 0: a byte of a rank's file becomes another one. Each rank has seen the commit, none reads before the other. */
static void corrupt(const struct toy *toy, const char *step)
{
	int fd;

	if (toy->rank)
		return;
	fd = open(in_dir(in_dir(dir, step), "rank-00000.0.safetensors"), O_WRONLY);
	ok(fd >= 0 && pwrite(fd, "\x55\xaa", 2, 5000) == 2, "%s goes bad", step);
	close(fd);
}

static int falls_back(struct toy *toy)
{
	int rc = restore_at(toy, CKPT_FRESH, 0);

	if (!rc)
		rc = save_now(toy, 5);
	if (!rc)
		rc = save_now(toy, 10);
	corrupt(toy, "step-0000000010.g1");
	if (!rc)
		rc = restore_at(toy, CKPT_FELL_BACK, 5);
	if (!rc)
		rc = ckpt_step(toy->ck, 6);
	if (!rc)
		rc = save_now(toy, 10);
	/* What is the newest of this handle is no going back. */
	return rc ? rc : restore_at(toy, CKPT_RESUMED, 10);
}

static void fallen_back(void)
{
	fresh_dir("fallen-back");
	toy_run(RANKS, &options, falls_back, NULL, toys, &text);
	is_int(toys[0].code, 0, "step 10 is saved again behind a fall-back: %s", text.text);
	is_str(steps_there(), "5.1 10.1 10.2", "as of a new generation");
	ok(!exists(".gen-3"), "one for each going back");
	is_int(run_start(START(11)), 0, "the next start: %s", text.text);
	like(text.text, "resumed at step 10", "resumes from it");
}

/* Step 7 is newer than the step 10 that was given up. */
static int goes_back_as_asked(struct toy *toy)
{
	int rc = restore_at(toy, CKPT_RESUMED, 5);

	if (!rc)
		rc = save_now(toy, 10);
	if (!rc)
		rc = restore_at(toy, CKPT_RESUMED, 5);
	return rc ? rc : save_now(toy, 7);
}

static int completes_behind(struct toy *toy)
{
	int rc = restore_at(toy, CKPT_RESUMED, 5);

	if (!rc)
		rc = save_now(toy, 10);
	if (!rc)
		rc = restore_at(toy, CKPT_RESUMED, 5);
	if (rc)
		return rc;
	toy_train(toy, 10);
	rc = ckpt_step(toy->ck, 10);
	return rc ? rc : ckpt_complete(toy->ck);
}

static void gone_back(void)
{
	struct start next = {.save = {0}};

	fresh_dir("asked");
	options.keep = 9;
	is_int(run_start(START(5, 10)), 0, "steps 5 and 10");
	options.resume = "5";
	toy_run(RANKS, &options, goes_back_as_asked, NULL, toys, &text);
	is_int(toys[0].code, 0, "resume=5, twice in a handle: %s", text.text);
	is_str(steps_there(), "5.1 7.3 10.1 10.2", "step 7 is of a new generation");
	options.resume = NULL;
	is_int(run_start(&next), 0, "the next start");
	is_u64(next.from, 7, "takes it, not the step 10 that was given up");
	options.resume = "5";
	toy_run(RANKS, &options, completes_behind, NULL, toys, &text);
	is_int(toys[0].code, 0, "ckpt_complete saves the same step again: %s", text.text);
	options.resume = NULL;
	is_int(run_start(&next), 0, "the next start");
	is_int(next.restored, CKPT_COMPLETE, "finds the run complete");
	is_u64(next.from, 10, "at step 10");
}

/* Nothing of step 3 is left in the handle: a lower step is none that falls, and step 3 is not saved already. */
static int fresh_twice(struct toy *toy)
{
	int rc = restore_at(toy, CKPT_FRESH, 0);

	if (!rc)
		rc = save_now(toy, 3);
	if (!rc)
		rc = restore_at(toy, CKPT_FRESH, 0);
	toy_train(toy, 1);
	if (!rc)
		rc = ckpt_step(toy->ck, 1);
	return rc ? rc : save_now(toy, 3);
}

static void fresh_again(void)
{
	struct start next = {.save = {0}};

	fresh_dir("fresh");
	is_int(run_start(START(8)), 0, "step 8");
	options.resume = "fresh";
	options.every = "100steps";
	toy_run(RANKS, &options, fresh_twice, NULL, toys, &text);
	is_int(toys[0].code, 0, "resume=fresh, twice in a handle: %s", text.text);
	is_str(steps_there(), "3.2 3.3 8.1", "step 3 is saved anew");
	options.resume = NULL;
	is_int(run_start(&next), 0, "the next start");
	is_u64(next.from, 3, "resumes from it");
	ok(next.right, "bit-exact");
}

/* Another program has taken the run over: a handle that goes back does not take it back. */
static int superseded(struct toy *toy)
{
	int rc = restore_at(toy, CKPT_RESUMED, 5);

	if (!rc)
		rc = save_now(toy, 10);
	if (rc)
		return rc;
	if (toy->rank == 0)
		make_generation(dir, 9);
	return restore_at(toy, CKPT_RESUMED, 5);
}

static void fenced(void)
{
	fresh_dir("fenced");
	is_int(run_start(START(5)), 0, "step 5");
	options.resume = "5";
	toy_run(RANKS, &options, superseded, NULL, toys, &text);
	is_int(toys[0].code, CKPT_EFENCED, "who is superseded cannot go back: %s", text.text);
	is_int(toys[RANKS - 1].code, CKPT_EFENCED, "on all ranks");
	ok(!exists(".gen-10"), "and claims nothing");
}

int main(void)
{
	unsetenv("SLURM_JOB_ID");
	fallen_back();
	gone_back();
	fresh_again();
	fenced();
	return done_testing();
}
