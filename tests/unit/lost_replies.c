/*
 * A call of a program's life is done, and answers that it failed, as when a server's reply is lost. Whatever call it
 * is: what the program, the log, the mark and run.json say, is what stands on disk.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ckpt.h"
#include "env.h"
#include "handle.h"
#include "io.h"
#include "run.h"
#include "rundir.h"
#include "starts.h"
#include "tap.h"

/* What the program was told. */
struct told {
	bool wrong;     /* it was told otherwise than what was there then */
	bool failed;    /* a save failed */
	int completed;  /* what ckpt_complete returned */
	uint64_t calls; /* until then, of the kind that the first rule names */
};

static bool has_step(int step)
{
	char names[2][64];

	snprintf(names[0], sizeof(names[0]), "step-%010d.g1", step);
	snprintf(names[1], sizeof(names[1]), "step-%010d.g2", step);
	return exists(names[0]) || exists(names[1]);
}

static int life(struct toy *toy)
{
	struct told *told = toy->arg;
	uint64_t step;
	int rc = ckpt_restore(toy->ck, &step);

	for (int i = 1; rc >= 0 && i <= 2; i++) {
		toy_train(toy, (uint64_t)i);
		rc = ckpt_save(toy->ck, (uint64_t)i);
		if (!rc)
			rc = ckpt_wait(toy->ck);
		told->failed |= rc != 0;
		told->wrong |= (rc == 0) != has_step(i);
		rc = rc == CKPT_EFENCED || rc == CKPT_EPEER ? rc : 0;
	}
	if (rc < 0)
		return rc;
	rc = ckpt_complete(toy->ck);
	told->completed = rc;
	told->calls = ck_io_fault_count(toy->ck->fault, 0);
	return rc;
}

static struct told live(const char *name, const char *rules)
{
	struct told told = {.completed = -99};

	fresh_dir(name);
	options.keep = 3;
	setenv(CK_ENV_IO_FAULT, rules, 1);
	toy_run(1, &options, life, &told, toys, &text);
	unsetenv(CK_ENV_IO_FAULT);
	return told;
}

static bool is_complete(void)
{
	struct ck_run run;

	return ck_run_load(&ck_io_posix, dir, &run, NULL) == 0 && run.complete;
}

static void agrees(const char *rules, const struct told *told)
{
	const char *found = told->completed ? "resumed" : "complete";
	bool right;

	if (told->completed == -99) {
		ok(toys[0].code < 0, "%s: not opened", rules);
		return;
	}
	right = !told->wrong && is_complete() == (told->completed == 0);
	ok(right, "%s: what was told is what is there", rules);
	if (!right)
		diag("%s", text.text);
	right = run_start(START(0)) == 0 && strstr(text.text, found);
	ok(right, "%s: and what the next start finds", rules);
	if (!right)
		diag("%s", text.text);
}

/*
 * Each call of one kind in turn, or every `stride`-th.
 *   harmless  what it was to bring about can be looked up, so that nothing fails, unless in ckpt_open
 */
static void sweep(const char *ops, size_t stride, bool harmless)
{
	struct told told = live("count", ops);
	uint64_t calls = told.calls;
	char rules[96], name[64];

	ok(calls > 0, "%s: %u calls", ops, (unsigned)calls);
	for (uint64_t n = 0; n < calls; n += stride) {
		snprintf(rules, sizeof(rules), "%s:errno=EIO:done=1:after=%u:times=1", ops,
			 (unsigned)n);
		snprintf(name, sizeof(name), "n%u", (unsigned)n);
		told = live(name, rules);
		agrees(rules, &told);
		if (harmless)
			ok(told.completed == 0 && !told.failed, "%s: nothing has failed", rules);
	}
}

int main(void)
{
	unsetenv("SLURM_JOB_ID");
	sweep("rename:*", 1, true);
	sweep("mkdir:*/.*", 1, true);
	sweep("link:*", 1, true);
	sweep("unlink,rmdir:*", 1, true);
	sweep("fsync:*", rounds(1, 3, 6), false);
	sweep("open,close,fallocate:*", rounds(1, 7, 20), false);
	sweep("lstat,fstat,readdir:*", rounds(1, 7, 20), false);
	return done_testing();
}
