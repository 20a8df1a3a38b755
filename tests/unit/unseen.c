/* What cannot be looked at is not bad: never fallen back from, never deleted, tried again, then refused by name. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ckpt.h"
#include "env.h"
#include "rundir.h"
#include "starts.h"
#include "tap.h"

#define CALLS 150 /* more than a start makes */
#define READS "open,fstat,lstat,pread,readdir,submit"

static const char *const causes[] = {"EIO", "ESTALE", "EMFILE", "ENOMEM", "EACCES", "ETIMEDOUT"};
#define NCAUSES (sizeof(causes) / sizeof(causes[0]))

/* A start without saves, with one rule over all of its calls. */
static int start_with(const char *rules, struct start *start)
{
	int rc;

	setenv(CK_ENV_IO_FAULT, rules, 1);
	rc = run_start(start);
	unsetenv(CK_ENV_IO_FAULT);
	return rc;
}

/* ---- a start ---- */

/* The n-th call fails once: the newest is resumed, or the start is refused; nothing else. */
static void each_call_once(const char *what)
{
	unsigned resumed = 0, refused = 0, others = 0, n = 0;
	char before[512], rules[128];

	strcpy(before, steps_there());
	for (; n < CALLS; n++) {
		struct start start = {.save = {0}};
		int rc;

		snprintf(rules, sizeof(rules), READS ":*:errno=%s:after=%u:times=1",
			 causes[n % NCAUSES], n);
		rc = start_with(rules, &start);
		if (rc == 0 && start.restored == CKPT_RESUMED && start.from == 3 && start.right)
			resumed++;
		else if (rc < 0 && start.restored < 0 && *text.text)
			refused++;
		else if (!others++)
			ok(false, "%s: %s: %d, restored %d from %lu: %s", what, rules, rc,
			   start.restored, (unsigned long)start.from, text.text);
	}
	is_u64(others, 0, "%s: %u calls that fail once: %u starts resumed, %u refused", what, n,
	       resumed, refused);
	ok(resumed > refused, "%s: most of them resume all the same", what);
	is_str(steps_there(), before, "%s: no checkpoint has gone", what);
}

static void sweep(void)
{
	fresh_dir("sweep");
	is_int(run_start(START(1, 2, 3)), 0, "three saves");
	each_call_once("a start");
}

/* On one rank, for good: refused by name on all of them. */
static void one_rank(void)
{
	fresh_dir("rank");
	is_int(run_start(START(1, 2, 3)), 0, "three saves");
	setenv(CK_ENV_TIMEOUT, "1", 1);
	for (size_t i = 0; i < NCAUSES; i++) {
		struct start start = {.save = {0}};
		char rules[128];

		snprintf(rules, sizeof(rules), "open:*step-0000000003*rank-00001*:errno=%s",
			 causes[i]);
		ok(start_with(rules, &start) < 0, "%s on rank 1: refused", causes[i]);
		ok(start.restored == CKPT_EIO || start.restored == CKPT_ENOMEM, "%s: not bad: %d",
		   causes[i], start.restored);
		like(text.text, "step-0000000003.g1/rank-00001.0.safetensors", "%s: by name",
		     causes[i]);
		like(text.text, "--ckpt-resume=STEP", "%s: with the remedy", causes[i]);
		unlike(text.text, "refused step", "%s: no checkpoint is called bad", causes[i]);
	}
	unsetenv(CK_ENV_TIMEOUT);
	is_str(steps_there(), "1.1 2.1 3.1", "all are there");
}

static void newest_not_permitted(void)
{
	struct start start = {.save = {0}}, next = {.save = {0}};

	fresh_dir("permission");
	is_int(run_start(START(1, 2, 3)), 0, "three saves");
	setenv(CK_ENV_TIMEOUT, "1", 1);
	ok(start_with("any:*step-0000000003*:errno=EACCES", &start) < 0,
	   "the newest may not be looked into: refused");
	like(text.text, "Permission denied", "with the cause");
	options.resume = "2";
	is_int(start_with("any:*step-0000000003*:errno=EACCES", &next), 0,
	       "an older one, when asked for: %s", text.text);
	is_u64(next.from, 2, "it is resumed");
	unsetenv(CK_ENV_TIMEOUT);
}

/* A rank whose client does not see yet, or any more, what the others see. */
static void old_view(void)
{
	struct start start = {.save = {0}}, next = {.save = {0}};

	fresh_dir("view");
	is_int(run_start(START(1, 2)), 0, "two saves");
	is_int(start_with("open:*step-0000000002*rank-00001*:errno=ENOENT:times=1", &start), 0,
	       "a file that is not seen at first: %s", text.text);
	is_int(start.restored, CKPT_RESUMED, "is not missing");
	is_u64(start.from, 2, "the newest is resumed");
	if (remove(in_dir(dir, "step-0000000002.g1/rank-00001.0.safetensors")))
		ok(false, "remove");
	is_int(run_start(&next), 0, "one that nobody sees: %s", text.text);
	is_int(next.restored, CKPT_FELL_BACK, "is missing");
}

/* A generation whose claim cannot be read may be our own: what was asked for is not done twice. */
static void whose_is_it(void)
{
	struct start start = {.save = {0}}, next = {.save = {0}};

	fresh_dir("whose");
	setenv("SLURM_JOB_ID", "12", 1);
	setenv("SLURM_CLUSTER_NAME", "mini", 1);
	options.resume = "fresh";
	is_int(run_start(START(5)), 0, "a job that asks for a fresh start, and saves");
	setenv("SLURM_RESTART_COUNT", "1", 1);
	is_int(run_start(START(0)), 0, "requeued once");
	setenv("SLURM_RESTART_COUNT", "2", 1);
	is_int(start_with("pread:*.gen-1/claim.json:errno=ESTALE:times=2", &start), 0,
	       "and again, the first claim cannot be read at first: %s", text.text);
	is_int(start.restored, CKPT_RESUMED, "it goes on from its own");
	setenv(CK_ENV_TIMEOUT, "1", 1);
	ok(start_with("pread:*.gen-1/claim.json:errno=ESTALE", &next) < 0,
	   "it can never be read: refused, not fresh");
	unsetenv(CK_ENV_TIMEOUT);
	unsetenv("SLURM_RESTART_COUNT");
	unsetenv("SLURM_JOB_ID");
	unsetenv("SLURM_CLUSTER_NAME");
}

/* ---- the first save of a start, which looks at what is there ---- */

static void rotation(void)
{
	for (size_t i = 0; i < NCAUSES; i++) {
		char name[32], rules[128];

		snprintf(name, sizeof(name), "rotation-%zu", i);
		fresh_dir(name);
		options.keep = 5;
		is_int(run_start(START(1, 2, 3, 4)), 0, "four saves, keep 5");
		snprintf(rules, sizeof(rules),
			 "open:*step-000000000[123]*manifest.json:errno=%s;open:*step-"
			 "0000000004*manifest.json:errno=%s:after=1",
			 causes[i], causes[i]);
		is_int(start_with(rules, START(5)), 0, "%s, while the fifth sizes them up: %s",
		       causes[i], text.text);
		is_str(steps_there(), "1.1 2.1 3.1 4.1 5.2", "%s: none is deleted", causes[i]);
		like(text.text, "one cannot be looked at, and stays: ", "%s: and it is said",
		     causes[i]);
		is_int(run_start(START(6, 7)), 0, "when the cause is gone");
		is_str(steps_there(), "3.1 4.1 5.2 6.3 7.3", "%s: they are rotated", causes[i]);
	}
}

/* In one start: looked at again before the next save. */
static void looked_at_again(void)
{
	fresh_dir("again");
	is_int(run_start(START(1, 2)), 0, "two saves");
	is_int(start_with("open:*step-0000000001*manifest.json:errno=EMFILE:times=1",
			  START(3, 4, 5)),
	       0, "the first is not looked at once: %s", text.text);
	is_str(steps_there(), "3.2 4.2 5.2", "the next save finds it good, and rotates it");
}

/* ---- what an earlier start left ---- */

/* A start in a process of its own, which the rules kill. */
static void run_and_die(struct start *start, const char *rules)
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		start_with(rules, start);
		_exit(3);
	}
	waitpid(pid, &status, 0);
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "killed by %s", rules);
}

static void left_save(void)
{
	struct start start = {.save = {0}}, next = {.save = {0}};

	fresh_dir("left");
	is_int(run_start(START(1)), 0, "a save");
	run_and_die(START(2), "rename:*.saving-0000000002.g2:kill=KILL");
	ok(exists(".saving-0000000002.g2/manifest.json") &&
		   !exists(".saving-0000000002.g2/save.json"),
	   "a save that wants only its commit");
	setenv(CK_ENV_TIMEOUT, "1", 1);
	ok(start_with("open:*-0000000002.g2/manifest.json:errno=EMFILE", &start) < 0,
	   "it cannot be looked at: refused, not passed over");
	like(text.text, "cannot be completed or looked at", "saying so");
	unsetenv(CK_ENV_TIMEOUT);
	is_int(start_with("open:*-0000000002.g2/manifest.json:errno=EMFILE:times=1", &next), 0,
	       "or not at first: %s", text.text);
	is_u64(next.from, 2, "it is salvaged and resumed");
}

int main(void)
{
	unsetenv("SLURM_JOB_ID");
	sweep();
	one_rank();
	newest_not_permitted();
	old_view();
	whose_is_it();
	rotation();
	looked_at_again();
	left_save();
	return done_testing();
}
