/* What ranks and others do to a run from outside: fall silent, take its signals, ask with the command. */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "ckpt.h"
#include "env.h"
#include "starts.h"
#include "tap.h"

/* ---- silence ---- */

/* What rank 0 was told, and word to the silent one that it may go. */
struct silence {
	int done;
	char text[512];
};

static int fall_silent(const struct toy *toy)
{
	const struct silence *silence = toy->arg;

	while (!__atomic_load_n(&silence->done, __ATOMIC_SEQ_CST))
		toy_nap_ms(10);
	return 0;
}

static int end_silence(const struct toy *toy, int rc)
{
	struct silence *silence = toy->arg;

	if (toy->rank == 0)
		snprintf(silence->text, sizeof(silence->text), "%s", ckpt_error(toy->ck));
	__atomic_store_n(&silence->done, 1, __ATOMIC_SEQ_CST);
	return rc;
}

/* One of three ranks falls silent. */
static void one_silent(int (*body)(struct toy *toy), const char *what)
{
	struct silence seen = {0};

	setenv(CK_ENV_TIMEOUT, "1", 1);
	toy_run(3, &options, body, &seen, toys, &text);
	unsetenv(CK_ENV_TIMEOUT);
	is_int(toys[0].code, CKPT_EPEER, "%s", what);
	is_int(toys[2].code, CKPT_EPEER, "ends the others");
	like(seen.text, "rank 1", "and is named");
}

static int falls_silent(struct toy *toy)
{
	int rc = 0;

	for (uint64_t step = 1; step < 200 && !rc; step++) {
		toy_nap_ms(10);
		toy_train(toy, step);
		if (step == 20 && toy->rank == 1)
			return fall_silent(toy);
		rc = ckpt_step(toy->ck, step);
	}
	return end_silence(toy, rc);
}

static void silent_rank(void)
{
	fresh_dir("silent");
	one_silent(falls_silent, "a rank that falls silent");
}

/* The same in the middle of a save: it never reports, and answers nobody. */
static int silent_in_a_save(struct toy *toy)
{
	int rc;

	toy_train(toy, 1);
	rc = ckpt_save(toy->ck, 1);
	if (toy->rank == 1)
		return fall_silent(toy);
	if (!rc)
		rc = ckpt_wait(toy->ck);
	return end_silence(toy, rc);
}

static void silent_rank_in_a_save(void)
{
	fresh_dir("silent-save");
	setenv(CK_ENV_IO_FAULT, "pwrite:rank-00001*:delay=6000:times=1", 1);
	one_silent(silent_in_a_save, "a rank that stops in the middle of a save");
	unsetenv(CK_ENV_IO_FAULT);
}

/* ---- a stolen handler ---- */

static void thief(int signum)
{
	(void)signum;
}

static int until_the_limit(struct toy *toy)
{
	int rc = 0;

	signal(SIGTERM, thief); /* a library that comes after us */
	for (uint64_t step = 1; step < 400 && !rc; step++) {
		toy_nap_ms(20);
		toy_train(toy, step);
		if (step == 5)
			raise(SIGTERM);
		rc = ckpt_step(toy->ck, step);
		toy->step = step;
	}
	return rc;
}

static void stolen_handler(void)
{
	char end[32];

	fresh_dir("stolen");
	setenv("SLURM_JOB_ID", "12", 1);
	setenv("SLURM_CLUSTER_NAME", "mini", 1);
	snprintf(end, sizeof(end), "%lld", (long long)time(NULL) + 5);
	setenv(CK_ENV_SEAL, "mini/12/0", 1);
	setenv(CK_ENV_DIR, dir, 1);
	setenv(CK_ENV_END_TIME, end, 1);
	setenv(CK_ENV_MARGIN, "2", 1);
	options.dir = NULL;
	toy_run(2, &options, until_the_limit, NULL, toys, &text);
	is_int(toys[0].code, CKPT_STOP,
	       "a library took the signal handler: the deadline still holds");
	like(text.text, "(time limit)", "for that reason");
	is_u64(toys[1].step, toys[0].step, "all ranks stop at the same step");
	unsetenv(CK_ENV_SEAL);
	unsetenv(CK_ENV_DIR);
	unsetenv(CK_ENV_END_TIME);
	unsetenv(CK_ENV_MARGIN);
	unsetenv("SLURM_JOB_ID");
	unsetenv("SLURM_CLUSTER_NAME");
}

/* ---- the commands ---- */

static int ask(const char *what)
{
	char shell[2 * PATH_MAX], self[PATH_MAX / 2] = "";
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	while (len > 0 && self[len - 1] != '/')
		self[--len] = '\0';
	snprintf(shell, sizeof(shell), "%s../../ckpt %s %s >/dev/null 2>&1", self, what, dir);
	return system(shell);
}

static int asked_from_outside(struct toy *toy)
{
	int rc = 0, saved = -1, stopped = -1;

	for (uint64_t step = 1; step < 1000 && !rc; step++) {
		toy_nap_ms(20);
		toy_train(toy, step);
		rc = ckpt_step(toy->ck, step);
		if (toy->rank == 1 && step == 5)
			saved = ask("save");
		if (toy->rank == 1 && step == 60)
			stopped = ask("stop");
	}
	return toy->rank == 0 || (saved == 0 && stopped == 0) ? rc : -55;
}

static void commands(void)
{
	fresh_dir("commands");
	toy_run(2, &options, asked_from_outside, NULL, toys, &text);
	is_int(toys[0].code, CKPT_STOP, "ckpt save and ckpt stop: %s", text.text);
	is_int(toys[1].code, CKPT_STOP, "both commands were answered");
	like(text.text, "(ckpt stop)", "it stops for that reason");
	is_int(WEXITSTATUS(ask("stop")), 1, "nobody has it open any more: exit 1");
}

int main(void)
{
	unsetenv("SLURM_JOB_ID");
	commands();
	silent_rank();
	silent_rank_in_a_save();
	stolen_handler();
	return done_testing();
}
