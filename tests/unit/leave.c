/*
 * What deletes is suspended before each of its calls in turn, and others go on meanwhile: a successor that claims the
 * run and resumes, somebody who pins. What they were told is there, stays.
 */
#include "leave.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "catalog.h"
#include "commit.h"
#include "hook.h"
#include "pin.h"
#include "rotation.h"
#include "rundir.h"
#include "tap.h"

#define STEPS 4

static const char *dir;

static struct ck_step_id step_of(uint64_t step)
{
	return (struct ck_step_id){.step = step, .generation = 1};
}

static void run_with_steps(void)
{
	struct ck_error err = CK_ERROR_INIT;

	dir = test_tmpdir();
	make_run(dir);
	for (uint64_t step = 1; step <= STEPS; step++)
		if (save_step(&ck_io_posix, dir, step_of(step), 1, NULL, &err))
			ok(false, "a checkpoint: %s", err.text);
}

static bool is_whole(struct ck_step_id id)
{
	struct ck_manifest m;
	bool whole;

	if (ck_step_load_summed(&ck_io_posix, dir, id, &m, NULL))
		return false;
	whole = ck_step_sized(&ck_io_posix, dir, &m, -1, NULL) == 0;
	ck_manifest_fini(&m);
	return whole;
}

/* Rotation before a save: keep 2, so three of the four go. */
static int rotate_by(const struct ck_io *io)
{
	struct ck_run run = {.name = ""};
	struct ck_rotation rotation = {
		.io = io, .dir = dir, .generation = 1, .keep = 2, .run = &run};
	int rc = ck_rotation_before(&rotation, step_of(STEPS + 1), NULL);

	ck_rotation_fini(&rotation);
	return rc;
}

static void nothing(struct hook *hook, const char *op, const char *path)
{
	(void)hook, (void)op, (void)path;
}

static unsigned count_calls(void)
{
	struct hook hook;

	run_with_steps();
	hook_init(&hook, nothing, NULL);
	is_int(rotate_by(&hook.io), 0, "a rotation");
	ok(hook.calls > 20, "of %u calls", hook.calls);
	ok(!is_whole(step_of(1)) && is_whole(step_of(4)), "deletes the old ones");
	return hook.calls;
}

struct meanwhile {
	unsigned at;
	uint64_t pin; /* who pins: this step; 0: a successor */
	int rc;
	struct ck_catalog seen;
};

static void go_on(struct hook *hook, const char *op, const char *path)
{
	struct meanwhile *m = hook->arg;
	struct ck_claim claim = {.time = 1764448670};

	(void)op, (void)path;
	if (hook->calls != m->at)
		return;
	if (m->pin) {
		m->rc = ck_pin(&ck_io_posix, dir, step_of(m->pin), NULL);
		return;
	}
	m->rc = ck_claim_take(&ck_io_posix, dir, &claim, NULL);
	if (!m->rc)
		m->rc = ck_catalog_load(&ck_io_posix, dir, &m->seen, NULL);
}

/* The successor claims; what it finds then, it may have resumed from. */
static void test_successor(unsigned calls)
{
	for (unsigned at = 0; at < calls; at++) {
		struct meanwhile m = {.at = at};
		struct hook hook;
		bool whole = true;

		run_with_steps();
		hook_init(&hook, go_on, &m);
		rotate_by(&hook.io);
		for (size_t i = 0; i < m.seen.count; i++)
			whole &= is_whole(m.seen.steps[i]);
		ok(m.rc == 0 && m.seen.count && whole,
		   "a successor at call %u: all %zu that it found are there", at, m.seen.count);
		ck_catalog_fini(&m.seen);
	}
}

static void test_pin(unsigned calls)
{
	unsigned pinned = 0;

	for (unsigned at = 0; at < calls; at++) {
		struct meanwhile m = {.at = at, .pin = 1 + at % 2};
		struct hook hook;

		run_with_steps();
		hook_init(&hook, go_on, &m);
		rotate_by(&hook.io);
		pinned += m.rc == 0;
		ok(m.rc == 0 ? is_whole(step_of(m.pin)) : m.rc == CK_ENOENT,
		   "pinned at call %u: it is there, or was told to go (%d)", at, m.rc);
	}
	ok(pinned > 0, "%u of %u came in time", pinned, calls);
}

static void die(struct hook *hook, const char *op, const char *path)
{
	const unsigned *at = hook->arg;

	(void)op, (void)path;
	if (hook->calls == *at)
		_exit(0);
}

/* The owner dies there; then somebody pins, and the next start comes. */
static void test_death(unsigned calls)
{
	for (unsigned at = 0; at < calls; at++) {
		struct ck_claim claim = {.time = 1764448670};
		struct hook hook;
		bool pinned, right = true;
		pid_t pid;

		run_with_steps();
		fflush(NULL);
		pid = fork();
		if (pid == 0) {
			hook_init(&hook, die, &at);
			rotate_by(&hook.io);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
		pinned = ck_pin(&ck_io_posix, dir, step_of(1), NULL) == 0;
		if (ck_claim_take(&ck_io_posix, dir, &claim, NULL) ||
		    sweep_now(&ck_io_posix, dir, claim.generation, NULL))
			ok(false, "the next start");
		for (uint64_t step = 1; step <= STEPS; step++) {
			char name[CK_NAME_MAX];

			right &= is_whole(step_of(step)) ||
				 !exists_in(dir, ck_name_step(step_of(step), name));
			right &= !exists_in(dir, ck_name_deleting(step_of(step), name));
		}
		ok(right && is_whole(step_of(4)) && (!pinned || is_whole(step_of(1))) &&
			   !exists_in(dir, ".leaving-1") && !exists_in(dir, ".left-1"),
		   "dead at call %u: whole or gone, pinned is there, and nothing is left", at);
	}
}

static void test_gate(void)
{
	struct ck_error err = CK_ERROR_INIT;

	run_with_steps();
	is_int(rmdir(in_dir(dir, ".leaving-1")), 0, "somebody removes the owner's way out");
	is_int(ck_leave(&ck_io_posix, dir, step_of(1), 1, &err), 0, "it is made again: %s",
	       err.text);
	ok(!exists_in(dir, "step-0000000001.g1"), "and used");
	is_int(rmdir(in_dir(dir, ".leaving-1")), 0, "once more");
	make_generation(dir, 2);
	is_int(ck_leave(&ck_io_posix, dir, step_of(2), 1, &err), CK_EFENCED,
	       "but not by one that is fenced");
	like(err.text, "generation 2 has taken over", "the text");
	ok(is_whole(step_of(2)), "the checkpoint stays");
}

int main(void)
{
	unsigned calls = count_calls();

	test_gate();
	test_successor(calls);
	test_pin(calls);
	test_death(calls);
	return done_testing();
}
