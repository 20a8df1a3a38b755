/* <ckpt.h> as a program sees it, with ranks as threads: save, resume, fall back, refuse, complete. */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ckpt.h"
#include "env.h"
#include "rundir.h"
#include "starts.h"
#include "tap.h"

/* What the body of an incarnation does: from, to, and what it saw. */
struct plan {
	uint64_t to;         /* trains to this step */
	uint64_t save_every; /* 0: never */
	uint64_t raise_at;   /* the last rank raises SIGTERM at this step; 0: never */
	long step_ns;        /* how long a step takes */
	int complete;
	int restored; /* of rank 0 */
	uint64_t from;
	int matches; /* the restored memory is right, on all ranks */
};

static int train(struct toy *toy)
{
	struct plan *plan = toy->arg;
	uint64_t step = 77;
	int rc;

	toy_spoil(toy);
	rc = ckpt_restore(toy->ck, &step);
	if (rc < 0)
		return rc;
	if (rc != CKPT_FRESH && !toy_is(toy, step))
		__atomic_store_n(&plan->matches, 0, __ATOMIC_SEQ_CST);
	if (toy->rank == 0) {
		plan->restored = rc;
		plan->from = step;
	}
	while (step < plan->to) {
		nanosleep(&(struct timespec){.tv_nsec = plan->step_ns}, NULL);
		toy_train(toy, ++step);
		if (plan->save_every && step % plan->save_every == 0)
			if ((rc = ckpt_save(toy->ck, step)))
				return rc;
		if (plan->raise_at == step && toy->rank == toy->size - 1)
			raise(SIGTERM);
		if ((rc = ckpt_step(toy->ck, step))) {
			toy->step = step;
			return rc;
		}
	}
	return plan->complete ? ckpt_complete(toy->ck) : 0;
}

static int run(int size, struct plan *plan)
{
	plan->matches = 1;
	plan->restored = -99;
	toy_run(size, &options, train, plan, toys, &text);
	return toys[0].code;
}

static void resumes(int size)
{
	struct plan plan = {.to = 5, .save_every = 2};
	char line[64];

	fresh_dir("resumes");
	is_int(run(size, &plan), 0, "%d ranks: first incarnation: %s", size, text.text);
	is_int(plan.restored, CKPT_FRESH, "starts afresh");
	like(text.text, "starting afresh", "and says so");
	like(text.text, "saved step 4", "a save says so");
	ok(exists("step-0000000004.g1/manifest.json"), "checkpoint of step 4");
	ok(!exists(".saving-0000000004.g1"), "no staging left");
	ok(!exists(".gen-1/records-0000000004"), "no records left");
	is_int(run(size, &plan), 0, "second incarnation");
	is_int(plan.restored, CKPT_RESUMED, "resumes");
	is_u64(plan.from, 4, "at step 4");
	ok(plan.matches, "bit-exact on all ranks");
	snprintf(line, sizeof(line), "Z by %d rank%s, in ", size, size == 1 ? "" : "s");
	like(text.text, "resumed at step 4", "and says so");
	like(text.text, line, "and by how many it was saved");
}

static void stops(void)
{
	uint64_t stopped_at;
	struct plan plan = {.to = 100, .raise_at = 7, .step_ns = 50000000};

	fresh_dir("stops");
	is_int(run(3, &plan), CKPT_STOP, "SIGTERM on one rank: stop");
	for (int r = 0; r < 3; r++)
		is_u64(toys[r].step, toys[0].step, "rank %d stops at the same step", r);
	ok(toys[0].step >= 7 && toys[0].step <= 10, "at once: steps of 50 ms, step %llu",
	   (unsigned long long)toys[0].step);
	like(text.text, "stopping at step", "and says so");
	like(text.text, "signal 15", "with the reason");
	stopped_at = toys[0].step;
	ok(exists(".gen-1/mark.json"), "the mark for the plugin is there");
	plan = (struct plan){.to = 12, .complete = 1};
	is_int(run(3, &plan), 0, "next incarnation runs to the end");
	is_u64(plan.from, stopped_at, "from the step of the stop");
	like(text.text, "complete at step 12", "it is complete");
	plan = (struct plan){.to = 12};
	is_int(run(3, &plan), 0, "started again");
	is_int(plan.restored, CKPT_COMPLETE, "it says complete");
	is_u64(plan.from, 12, "at step 12");
	ok(plan.matches, "with the state of that step");
}

/* Damage `file` of the newest checkpoint, then expect step 2 back and the reason told. */
static void falls_back(const char *name, const char *command, const char *reason)
{
	struct plan plan = {.to = 4, .save_every = 2};
	char shell[2 * PATH_MAX];

	fresh_dir(name);
	is_int(run(2, &plan), 0, "%s: saves of steps 2 and 4", name);
	snprintf(shell, sizeof(shell), "cd %s/step-0000000004.g1 && %s", dir, command);
	is_int(system(shell), 0, "%s: damaged", name);
	plan.to = 2;
	is_int(run(2, &plan), 0, "%s: still resumes: %s", name, text.text);
	is_int(plan.restored, CKPT_FELL_BACK, "%s: falls back", name);
	is_u64(plan.from, 2, "%s: to step 2", name);
	ok(plan.matches, "%s: bit-exact", name);
	like(text.text, reason, "%s: names it", name);
	like(text.text, "fell back to step 2", "%s: one line says so", name);
}

static void corruption(void)
{
	falls_back("missing", "rm rank-00001.0.safetensors", "rank-00001.0.safetensors");
	falls_back("cut", "truncate -s 5000 rank-00000.0.safetensors", "5000");
	falls_back("bit",
		   "printf X | dd of=rank-00001.0.safetensors bs=1 seek=5000 conv=notrunc 2>&1",
		   "rank-00001.0.safetensors");
	falls_back("swapped",
		   "mv rank-00000.0.safetensors a; mv rank-00001.0.safetensors "
		   "rank-00000.0.safetensors; "
		   "mv a rank-00001.0.safetensors",
		   "safetensors");
	falls_back("manifest", "sed -i 's/\"step\": *4/\"step\": 5/' manifest.json",
		   "manifest.json");
	falls_back("empty", "truncate -s 0 manifest.json", "manifest.json");
	falls_back("value", "sed -i 's/\\(\"wall_clock_seconds\": *\\)/\\11/' manifest.json",
		   "SHA256SUMS: line 3 is '");
	falls_back("user", "sed -i 's/\"restart_count\": *0/\"restart_count\": 9/' manifest.json",
		   "SHA256SUMS: line 3 is '");
	falls_back("sums", "sed -i '2s/ rank/ Rank/' SHA256SUMS", "SHA256SUMS: line 2 is '");
	falls_back("link", "mv ../step-0000000004.g1 ../away && ln -s away ../step-0000000004.g1",
		   "step-0000000004.g1: a link or a file, not a directory");
	falls_back("no-sums", "rm SHA256SUMS", "step-0000000004.g1/SHA256SUMS: ");
}

static void nothing_good(void)
{
	struct plan plan = {.to = 2, .save_every = 2};

	fresh_dir("nothing");
	is_int(run(2, &plan), 0, "a save of step 2");
	unlink(in_dir(dir, "step-0000000002.g1/rank-00000.0.safetensors"));
	is_int(run(2, &plan), CKPT_ENOENT, "nothing good is left: a failure, not a fresh start");
	like(text.text, "none of 1 checkpoint is good", "that says so");
	is_int(toys[1].code, toys[0].code, "on all ranks");
	is_int(system("true"), 0, "shell works");
	fresh_dir("gone");
	is_int(run(2, &plan), 0, "a save of step 2");
	is_int(system(strcat(strcpy((char[2 *PATH_MAX]){0}, "rm -r "),
			     in_dir(dir, "step-0000000002.g1"))),
	       0, "which is removed");
	is_int(run(2, &plan), CKPT_ENOENT, "committed once, nothing there now: refused");
	like(text.text, "is the file system mounted", "with the likely cause");
}

static int other_items(struct toy *toy)
{
	static const uint64_t shape[] = {3, 2};
	static double extra[6];
	uint64_t step;

	if (ckpt_add_replicated(toy->ck, "extra", CKPT_F64, 2, shape, extra))
		return -99;
	return ckpt_restore(toy->ck, &step);
}

static char wrong[1024];

static int bad_registrations(struct toy *toy)
{
	static const uint64_t whole = 10, extent = 6;
	static float x[6];
	uint64_t at = toy->rank == 0 ? 0 : 5;

	if (ckpt_add_sharded(toy->ck, "x", CKPT_F32, 1, &whole, &at, &extent, x) !=
	    (toy->rank == 0 ? 0 : CKPT_EARG))
		return -99;
	at = 4;
	if (toy->rank == 1 && ckpt_add_sharded(toy->ck, "x", CKPT_F32, 1, &whole, &at, &extent, x))
		return -98;
	if (toy->rank == 0) {
		int rc = ckpt_save(toy->ck, 1);

		snprintf(wrong, sizeof(wrong), "%s", ckpt_error(toy->ck));
		return rc;
	}
	return ckpt_save(toy->ck, 1);
}

static int different_steps(struct toy *toy)
{
	toy_train(toy, 1);
	return ckpt_save(toy->ck, 5 + (uint64_t)toy->rank);
}

static int falling_step(struct toy *toy)
{
	int rc;

	toy_train(toy, 5);
	if ((rc = ckpt_step(toy->ck, 5)))
		return rc;
	rc = ckpt_step(toy->ck, 4);
	if (toy->rank == 0)
		snprintf(wrong, sizeof(wrong), "%s", ckpt_error(toy->ck));
	return rc;
}

static void items(void)
{
	struct plan plan = {.to = 2, .save_every = 2};

	fresh_dir("items");
	is_int(run(2, &plan), 0, "saved");
	toy_run(2, &options, other_items, NULL, toys, &text);
	is_int(toys[0].code, CKPT_EITEM, "an item that is not in the checkpoint: refused");
	like(text.text, "extra", "by name");
	fresh_dir("registrations");
	toy_run(2, &options, bad_registrations, NULL, toys, &text);
	is_int(toys[0].code, CKPT_EARG, "blocks of two ranks overlap: an error of the call");
	is_int(toys[1].code, CKPT_EARG, "on all ranks");
	like(wrong, "'x'", "the text names the item");
	like(wrong, "overlap", "and what is wrong with it");
	ok(!exists("step-0000000001.g1"), "nothing was saved");
	toy_run(2, &options, different_steps, NULL, toys, &text);
	is_int(toys[0].code, CKPT_EARG, "ranks that save different steps: an error of the call");
	is_int(toys[1].code, CKPT_EARG, "on all ranks");
	ok(!exists("step-0000000005.g2"), "nothing was saved");
	toy_run(2, &options, falling_step, NULL, toys, &text);
	is_int(toys[0].code, CKPT_EARG, "a step that falls: an error of the call");
	like(wrong, "step 4 is below the last one, 5", "the text names both");
}

/* Each save is over before the next one is due. */
static int no_space(struct toy *toy)
{
	int rc = 0;

	for (uint64_t step = 1; step <= 9 && !rc; step++) {
		nanosleep(&(struct timespec){.tv_nsec = 110000000}, NULL);
		toy_train(toy, step);
		rc = ckpt_step(toy->ck, step);
		if (!rc && ckpt_wait(toy->ck))
			__atomic_add_fetch((int *)toy->arg, 1, __ATOMIC_SEQ_CST);
	}
	return rc;
}

static void failed_saves(void)
{
	struct plan plan = {.to = 0};
	int failures = 0;

	fresh_dir("nospace");
	options.every = "1step";
	setenv(CK_ENV_IO_FAULT, "pwrite:rank-00001*:errno=ENOSPC:after=1:times=1", 1);
	toy_run(2, &options, no_space, &failures, toys, &text);
	unsetenv(CK_ENV_IO_FAULT);
	is_int(failures, 2, "a save fails, on both ranks");
	is_int(toys[0].code, 0, "a full disk does not stop training: %s", text.text);
	like(text.text, "failed: rank 1: ", "the rank is named");
	like(text.text, "No space left on device", "and the cause");
	ok(!exists(".saving-0000000002.g1"), "the failed save left nothing");
	is_int(run(2, &plan), 0, "and resumes");
	ok(plan.from >= 3, "from a later save, which succeeded: step %llu",
	   (unsigned long long)plan.from);
}

static void rotation(void)
{
	struct plan plan = {.to = 11, .save_every = 1};

	fresh_dir("rotation");
	options.keep = 2;
	is_int(run(2, &plan), 0, "11 saves, keep 2");
	ok(exists("step-0000000011.g1") && exists("step-0000000010.g1"),
	   "the newest two are there");
	ok(!exists("step-0000000009.g1"), "step 9 is not");
	is_int(mkdir(in_dir(dir, "step_100.bak"), 0777), 0, "a look-alike");
	plan.to = 12;
	is_int(run(2, &plan), 0, "another");
	is_u64(plan.from, 11, "the look-alike is not used");
	ok(exists("step_100.bak"), "nor deleted");
	ok(exists("step-0000000012.g2") && exists("step-0000000011.g1"), "keep 2 over generations");
	ok(!exists("step-0000000010.g1"), "step 10 is gone");
}

static void no_silent_fresh_start(void)
{
	struct plan plan = {.to = 1};

	fresh_dir("silent");
	setenv("SLURM_JOB_ID", "12", 1);
	setenv("SLURM_CLUSTER_NAME", "mini", 1);
	setenv("SLURM_RESTART_COUNT", "1", 1);
	is_int(run(2, &plan), CKPT_EREFUSED, "a restarted job without its directory is refused");
	like(text.text, "this job has run before", "with the reason");
	like(text.text, "create the empty directory", "and what to do");
	is_int(mkdir(dir, 0777), 0, "the empty directory");
	is_int(run(2, &plan), 0, "counts as fresh");
	unsetenv("SLURM_RESTART_COUNT");
	unsetenv("SLURM_JOB_ID");
	unsetenv("SLURM_CLUSTER_NAME");
}

static int everything(struct toy *toy)
{
	uint64_t step = 77;
	int rc = ckpt_restore(toy->ck, &step);

	if (rc != CKPT_FRESH || step != 0)
		return -1;
	if (ckpt_prepare(toy->ck) || ckpt_step(toy->ck, 1) || ckpt_save(toy->ck, 2) ||
	    ckpt_wait(toy->ck) || ckpt_should_stop(toy->ck) || ckpt_alive(toy->ck) ||
	    ckpt_complete(toy->ck))
		return -2;
	return 0;
}

static void off(void)
{
	fresh_dir("off");
	options.dir = NULL;
	toy_run(2, &options, everything, NULL, toys, &text);
	is_int(toys[0].code, 0, "off: every call succeeds, restore says fresh");
	is_str(text.text, "", "and nothing is said");
}

/* ---- the program's own JSON ---- */

#define LIMIT (16 << 20)

/* {"a":"xxx…"} of so many bytes. */
static char *user_of(size_t bytes)
{
	char *json = malloc(bytes + 1);

	if (!json)
		abort();
	memset(json, 'x', bytes);
	memcpy(json, "{\"a\":\"", 6);
	memcpy(json + bytes - 2, "\"}", 3);
	return json;
}

static int refused_user(struct toy *toy)
{
	char *most = user_of(LIMIT), *more = user_of(LIMIT + 1);
	int rc;

	toy_train(toy, 1);
	if (ckpt_set_user(toy->ck, more) != CKPT_EARG)
		return -50;
	snprintf(wrong, sizeof(wrong), "%s", ckpt_error(toy->ck));
	if (ckpt_set_user(toy->ck, "{\"16\": [[[[[[[[[[[[[[[]]]]]]]]]]]]]]]}") != CKPT_EARG)
		return -51;
	if (ckpt_set_user(toy->ck, "{\"seed\": 9007199254740992}") != CKPT_EARG ||
	    ckpt_set_user(toy->ck, "{\"steps\": [1e20, -1.5e300]}"))
		return -53;
	if (ckpt_set_user(toy->ck, "{\"15\": [[[[[[[[[[[[[[]]]]]]]]]]]]]]}") ||
	    ckpt_set_user(toy->ck, most))
		return -52;
	rc = ckpt_save(toy->ck, 1);
	free(most);
	free(more);
	return rc ? rc : ckpt_wait(toy->ck);
}

static void user_that_no_reader_takes(void)
{
	fresh_dir("user");
	toy_run(1, &options, refused_user, NULL, toys, &text);
	is_int(toys[0].code, 0, "JSON of 16 MiB, or of 15 levels, is saved: %s", text.text);
	like(wrong, "ckpt_set_user: user: 16777217 bytes, at most 16777216",
	     "more is refused in the call, with both numbers");
	unlike(text.text, "failed", "and no save fails");
}

static void failed_open(void)
{
	struct ckpt_options bad = {.struct_size = sizeof(bad), .dir = "/proc/none/x", .every = "x"};
	ckpt *ck = NULL;

	is_int(ckpt_open(NULL, NULL, &bad), CKPT_EARG, "no place for the handle");
	is_int(ckpt_open(&ck, NULL, &bad), CKPT_EARG, "a bad option fails the open");
	like(ckpt_error(ck), "every: x", "the text names it");
	is_int(ckpt_step(ck, 1), CKPT_EARG, "the handle is dead");
	is_int(ckpt_close(ck), 0, "and can be closed");
	bad.every = NULL;
	ok(ckpt_open(&ck, NULL, &bad) < 0, "a directory that cannot be made fails the open");
	like(ckpt_error(ck), "/proc/none", "the text names it");
	ckpt_close(ck);
	is_int(ckpt_close(NULL), 0, "closing nothing is fine");
}

static int null_step(struct toy *toy)
{
	int rc = ckpt_restore(toy->ck, NULL);

	if (toy->rank == 0)
		snprintf(wrong, sizeof(wrong), "%s", ckpt_error(toy->ck));
	return rc;
}

static void nulls(void)
{
	const uint64_t n = 1, at = 0;
	uint64_t step = 77;
	float x;

	is_int(ckpt_restore(NULL, &step), CKPT_EARG, "no handle: ckpt_restore");
	is_int(ckpt_restore(NULL, NULL), CKPT_EARG, "ckpt_restore without a step, too");
	is_int(ckpt_step(NULL, 1), CKPT_EARG, "ckpt_step");
	is_int(ckpt_save(NULL, 1), CKPT_EARG, "ckpt_save");
	is_int(ckpt_wait(NULL), CKPT_EARG, "ckpt_wait");
	is_int(ckpt_prepare(NULL), CKPT_EARG, "ckpt_prepare");
	is_int(ckpt_complete(NULL), CKPT_EARG, "ckpt_complete");
	is_int(ckpt_add_sharded(NULL, "x", CKPT_F32, 1, &n, &at, &n, &x), CKPT_EARG,
	       "ckpt_add_sharded");
	is_int(ckpt_add_replicated(NULL, "x", CKPT_F32, 1, &n, &x), CKPT_EARG,
	       "ckpt_add_replicated");
	is_int(ckpt_add_rank(NULL, "x", NULL), CKPT_EARG, "ckpt_add_rank");
	is_int(ckpt_set_copier(NULL, "x", NULL), CKPT_EARG, "ckpt_set_copier");
	is_int(ckpt_set_flat(NULL, "x"), CKPT_EARG, "ckpt_set_flat");
	is_int(ckpt_set_user(NULL, "{}"), CKPT_EARG, "ckpt_set_user");
	is_int(ckpt_should_stop(NULL), 0, "nothing to stop");
	is_int(ckpt_alive(NULL), 0, "nobody who asks");
	like(ckpt_error(NULL), "no handle: ", "the text says so");
	for (int off = 0; off <= 1; off++) {
		fresh_dir("nulls");
		options.dir = off ? NULL : dir;
		toy_run(2, &options, null_step, NULL, toys, &text);
		is_int(toys[0].code, CKPT_EARG, "ckpt_restore without a step, checkpointing %s",
		       off ? "off" : "on");
		like(wrong, "ckpt_restore: step is NULL", "the text says so");
	}
}

int main(void)
{
	off();
	nulls();
	failed_open();
	resumes(1);
	resumes(4);
	stops();
	corruption();
	nothing_good();
	items();
	failed_saves();
	rotation();
	no_silent_fresh_start();
	user_that_no_reader_takes();
	return done_testing();
}
