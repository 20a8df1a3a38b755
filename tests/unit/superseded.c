/*
 * A successor takes the run over while this program saves at a stop: before each call of that save in turn. Whatever
 * it took away, the program learns that it is fenced, or it had left word before; it never asks for a requeue after.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt.h"
#include "handle.h"
#include "hook.h"
#include "rundir.h"
#include "starts.h"
#include "tap.h"

static void quiet(void *arg, const char *line)
{
	(void)arg, (void)line;
}

/* What another process would do: open, resume, end. */
static void succeed(struct hook *hook, const char *op, const char *path)
{
	struct ckpt_options other = options;
	const unsigned *at = hook->arg;
	const uint64_t n = 1;
	uint64_t step;
	float x = 0;
	ckpt *ck;

	(void)op, (void)path;
	if (hook->calls != *at)
		return;
	other.takeover = 1;
	other.log = quiet;
	if (ckpt_open(&ck, NULL, &other) == 0 &&
	    ckpt_add_replicated(ck, "x", CKPT_F32, 1, &n, &x) == 0)
		ckpt_restore(ck,
			     &step); /* another program's items: refused, which does not matter */
	ckpt_close(ck);
}

struct stop {
	unsigned at;    /* the call before which it is superseded */
	unsigned calls; /* how many there were */
	int answer;     /* of ckpt_step */
};

/* Events are written there as well. */
static void wait_until_idle(const ckpt *ck)
{
	while (!ck_background_idle(ck->background))
		toy_nap_ms(1);
}

static int stop_body(struct toy *toy)
{
	struct stop *stop = toy->arg;
	struct hook hook;
	int rc;

	hook_init(&hook, succeed, &stop->at);
	toy_train(toy, 1);
	rc = ckpt_save(toy->ck, 1);
	if (!rc)
		rc = ckpt_wait(toy->ck);
	if (rc)
		return rc;
	wait_until_idle(toy->ck);
	toy->ck->io = &hook.io;
	toy->ck->rotation.io = &hook.io;
	raise(SIGTERM);
	for (uint64_t step = 2; rc == 0 && step < 100; step++) {
		toy_train(toy, step);
		rc = ckpt_step(toy->ck, step);
	}
	stop->answer = rc;
	/* What follows, the events that were noted included, is of no interest. */
	hook_end(&hook);
	ckpt_wait(toy->ck);
	wait_until_idle(toy->ck);
	stop->calls = hook.calls;
	toy->ck->io = toy->ck->rotation.io = &ck_io_posix;
	return rc;
}

static struct stop stop_at(unsigned at)
{
	struct stop stop = {.at = at};

	fresh_dir("stop");
	toy_run(1, &options, stop_body, &stop, toys, &text);
	return stop;
}

int main(void)
{
	unsigned count = stop_at(~0u).calls, fenced = 0;

	unsetenv("SLURM_JOB_ID");
	ok(count > 20, "a save at a stop has %u calls", count);
	is_int(stop_at(~0u).answer, CKPT_STOP, "left alone, it stops");
	for (unsigned at = 0; at < count; at++) {
		struct stop stop = stop_at(at);
		bool marked = exists(".gen-1/mark.json");

		if (stop.answer == CKPT_STOP)
			ok(at > count / 2 && marked && exists("step-0000000002.g1"),
			   "call %u: it had saved, and may ask for a requeue: %s", at, text.text);
		else
			ok(stop.answer == CKPT_EFENCED && !marked &&
				   !strstr(text.text, "resumes from"),
			   "call %u: fenced (%d), and asks for nothing: %s", at, stop.answer,
			   text.text);
		fenced += stop.answer == CKPT_EFENCED;
	}
	ok(fenced > count / 2, "%u of %u were fenced", fenced, count);
	return done_testing();
}
