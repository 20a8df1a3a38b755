/* Saves from the program's memory: --ckpt-staging=off, and where memory is short on one rank. */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ckpt.h"
#include "env.h"
#include "handle.h"
#include "rundir.h"
#include "starts.h"
#include "tap.h"

#define RANKS 3
#define MIB ((size_t)1 << 20)

static char scarce[PATH_MAX];

static void run(const char *rules, int (*body)(struct toy *), void *arg)
{
	setenv(CK_ENV_IO_FAULT, rules, 1);
	toy_run(RANKS, &options, body, arg, toys, &text);
	unsetenv(CK_ENV_IO_FAULT);
}

static void resumes_at(uint64_t step)
{
	toy_run(RANKS, &options, toy_resume, NULL, toys, &text);
	for (int r = 0; r < RANKS; r++) {
		is_int(toys[r].code, CKPT_RESUMED, "rank %d resumes, bit for bit", r);
		is_u64(toys[r].step, step, "... at step %llu", (unsigned long long)step);
	}
}

static int count(const char *what)
{
	int n = 0;

	for (const char *p = text.text; (p = strstr(p, what)); p++)
		n++;
	return n;
}

/* ---- off ---- */

/* Every call that saves has to be over, on every rank, with the checkpoint there. */
static int save_and_look(struct toy *toy)
{
	int rc;

	toy_train(toy, 1);
	if ((rc = ckpt_prepare(toy->ck)) || (rc = ckpt_save(toy->ck, 1)))
		return rc;
	if (!exists("step-0000000001.g1"))
		return -50;
	toy_train(toy, 2);
	if (toy->rank == 1)
		raise(SIGUSR2);
	for (int i = 0; i < 3 && !rc; i++)
		rc = ckpt_step(toy->ck, 2);
	if (rc || !exists("step-0000000002.g1"))
		return rc ? rc : -51;
	toy_spoil(toy);
	if (toy->ck->stage.bytes)
		return -52;
	return ckpt_wait(toy->ck);
}

static void off(void)
{
	fresh_dir("off");
	options.staging = "off";
	run("pwrite:*.safetensors:delay=50", save_and_look, NULL);
	for (int r = 0; r < RANKS; r++)
		is_int(toys[r].code, 0, "rank %d: saves are over when the call returns: %s", r,
		       text.text);
	is_int(count("saved step"), 2, "both are told");
	unlike(text.text, "synchronous", "who asked for it is not told");
	unlike(text.text, "training waited", "there is no short wait to tell");
	resumes_at(2);
}

static int save_that_fails(struct toy *toy)
{
	int rc;

	toy_train(toy, 1);
	if ((rc = ckpt_save(toy->ck, 1)) != CKPT_EIO)
		return -60;
	if (!strstr(ckpt_error(toy->ck), "No space left on device"))
		return -61;
	if (toy->rank == 1)
		raise(SIGUSR2);
	for (int i = 0; i < 3; i++)
		if ((rc = ckpt_step(toy->ck, 2)))
			return rc;
	toy_train(toy, 3);
	rc = ckpt_save(toy->ck, 3);
	return rc ? rc : ckpt_wait(toy->ck);
}

static void failures(void)
{
	fresh_dir("full");
	options.staging = "off";
	run("open:rank-00001*:errno=ENOSPC:times=2", save_that_fails, NULL);
	for (int r = 0; r < RANKS; r++)
		is_int(toys[r].code, 0, "rank %d: ckpt_save returns the failure, ckpt_step goes on",
		       r);
	is_int(count("failed"), 1, "the cause is told once: %s", text.text);
	resumes_at(3);
}

/* ---- one rank has too little ---- */

static int scarce_then_not(struct toy *toy)
{
	size_t staged;
	int rc;

	if (toy->rank == 1)
		toy->ck->root = scarce;
	for (uint64_t step = 1; step <= 2; step++) {
		char name[32];

		toy_train(toy, step);
		snprintf(name, sizeof(name), "step-000000000%u.g1", (unsigned)step);
		if ((rc = ckpt_save(toy->ck, step)))
			return rc;
		toy_spoil(toy);
		if (toy->ck->stage.bytes || !exists(name))
			return -70;
	}
	toy->ck->root = "";
	toy_train(toy, 3);
	rc = ckpt_save(toy->ck, 3);
	staged = toy->ck->stage.bytes;
	toy_spoil(toy);
	return rc ? rc : staged ? ckpt_wait(toy->ck) : -71;
}

static void one_lacks_memory(void)
{
	fresh_dir("scarce");
	run("pwrite:*.safetensors:delay=50", scarce_then_not, NULL);
	for (int r = 0; r < RANKS; r++)
		is_int(toys[r].code, 0, "rank %d: all are synchronous, until there is memory", r);
	like(text.text,
	     "needs 8 KiB for staging, 4 KiB available on its node: saves are synchronous",
	     "with both numbers");
	is_int(count("synchronous"), 1, "once: %s", text.text);
	resumes_at(3);
}

/* A share of 4 KiB for each of the ranks. */
static void make_scarce(void)
{
	char meminfo[64];
	uint64_t share = ((uint64_t)4 << 10) + CK_STAGING_RESERVE;

	snprintf(scarce, sizeof(scarce), "%s", test_tmpdir());
	mkdir(in_dir(scarce, "proc"), 0777);
	snprintf(meminfo, sizeof(meminfo), "MemAvailable: %llu kB\n",
		 (unsigned long long)(share * 16 / 15 * RANKS / 1024 + 1));
	put_file(in_dir(scarce, "proc/meminfo"), meminfo);
}

/* ---- a size ---- */

static int save_twice(struct toy *toy)
{
	int rc = 0;

	for (uint64_t step = 1; step <= 2 && !rc; step++) {
		toy_train(toy, step);
		rc = ckpt_save(toy->ck, step);
		if (toy->rank == 0)
			*(size_t *)toy->arg = toy->ck->stage.bytes;
	}
	return rc ? rc : ckpt_wait(toy->ck);
}

static void sizes(void)
{
	size_t staged = 1;

	fresh_dir("size");
	options.staging = "4K";
	toy_run(RANKS, &options, save_twice, &staged, toys, &text);
	is_int(toys[0].code, 0, "a size that the files do not fit in");
	is_u64(staged, 0, "nothing is staged");
	is_int(count("KiB for staging, 4 KiB allowed by --ckpt-staging: saves are synchronous"), 1,
	       "and told once: %s", text.text);
	fresh_dir("tiny");
	options.staging = "1K";
	toy_run(RANKS, &options, save_twice, &staged, toys, &text);
	is_int(count("KiB for staging, 1 KiB allowed by --ckpt-staging: saves are synchronous"), 1,
	       "a size below a page is told as it is: %s", text.text);
	fresh_dir("enough");
	options.staging = "1M";
	toy_run(1, &options, save_twice, &staged, toys, &text);
	is_int(toys[0].code, 0, "a size that they fit in");
	ok(staged > 0, "it is staged");
	unlike(text.text, "synchronous", "and nothing is told");
}

/* ---- stops ---- */

static int stop_at_once(struct toy *toy)
{
	int rc = 0;

	toy_train(toy, 1);
	if (toy->rank == 1)
		raise(SIGTERM);
	for (int i = 0; i < 3 && !rc; i++)
		rc = ckpt_step(toy->ck, 1);
	return rc;
}

/* What rank 0 knows of how long a save takes. */
static int recall(struct toy *toy)
{
	if (toy->rank == 0)
		*(struct ck_save_times *)toy->arg = toy->ck->times;
	return 0;
}

static void stops(void)
{
	struct ck_save_times times = {.longest = 0};

	fresh_dir("stop");
	run("fsync:rank-00001*:delay=100", stop_at_once, NULL);
	for (int r = 0; r < RANKS; r++)
		is_int(toys[r].code, CKPT_STOP, "rank %d stops", r);
	like(text.text, "s, the largest rank 8 KiB at ", "one line tells seconds, bytes and rate");
	unlike(text.text, "training waited", "and not how long training waited");
	toy_run(2, &options, recall, &times, toys, &text);
	is_u64(times.all_bytes, 0, "another number of ranks does not go by it");
	fresh_dir("stop-again");
	run("fsync:rank-00001*:delay=100", stop_at_once, NULL);
	toy_run(RANKS, &options, recall, &times, toys, &text);
	is_u64(times.all_bytes, 8192, "the next start goes by the bytes");
	ok(times.all_seconds >= 0.1 && times.all_seconds < 60, "and by the slowest rank: %g s",
	   times.all_seconds);
	ok(ck_save_times_expect(&times) >= 0.1, "for its own stop");
}

/* ---- memory ---- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

static void memory(void)
{
	skip("peak memory: a sanitizer keeps what was freed");
}

#else

#define STATE (192 * MIB)

static size_t peak(void)
{
	struct ck_buf status = CK_BUF_INIT;
	const char *line = NULL;
	size_t kib = 0;

	if (ck_io_read_stream(&ck_io_posix, "/proc/self/status", 65536, &status, NULL) == 0)
		line = strstr(status.data, "VmHWM:");
	if (line)
		kib = strtoul(line + 6, NULL, 10);
	ck_buf_fini(&status);
	return kib * 1024;
}

static void forget_peak(void)
{
	FILE *f = fopen("/proc/self/clear_refs", "w");

	if (f) {
		fputs("5", f);
		fclose(f);
	}
}

static int save_much(struct toy *toy)
{
	size_t *beside = toy->arg, before;
	uint64_t bytes = STATE;
	unsigned char *state = malloc(STATE);
	int rc;

	if (!state || ckpt_add_replicated(toy->ck, "much", CKPT_U8, 1, &bytes, state))
		return -80;
	memset(state, 7, STATE);
	forget_peak();
	before = peak();
	toy_train(toy, 1);
	rc = ckpt_save(toy->ck, 1);
	*beside = peak() - before;
	free(state);
	return rc;
}

static void memory(void)
{
	size_t beside = 0;

	fresh_dir("much");
	options.staging = "off";
	toy_run(1, &options, save_much, &beside, toys, &text);
	is_int(toys[0].code, 0, "a state of 192 MiB, on no boundary");
	ok(beside <= 64 * MIB, "takes %zu KiB beside it", beside / 1024);
	ok(beside > 0, "which is measured");
}

#endif

int main(void)
{
	make_scarce();
	off();
	failures();
	one_lacks_memory();
	sizes();
	stops();
	memory();
	return done_testing();
}
