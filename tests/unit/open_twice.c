/*
 * A run that this process has open already: refused by name, until the handle is closed or taken over from. And
 * one that several processes open at once.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "ckpt.h"
#include "io.h"
#include "run.h"
#include "rundir.h"
#include "tap.h"

#define PROCESSES 4
#define ROUNDS 20

static struct ckpt_options options = {.struct_size = sizeof(options), .every = "1d"};
static char dir[PATH_MAX];

static void quiet(void *arg, const char *line)
{
	(void)arg;
	diag("%s", line);
}

static void fresh_dir(const char *name)
{
	snprintf(dir, sizeof(dir), "%s/%s", test_tmpdir(), name);
	options.takeover = 0;
}

static int save(ckpt *ck)
{
	uint64_t step;
	int rc = ckpt_restore(ck, &step);

	if (rc >= 0)
		rc = ckpt_save(ck, step + 1);
	return rc < 0 ? rc : ckpt_wait(ck);
}

static void refused(void)
{
	ckpt *first, *second;

	fresh_dir("refused");
	is_int(ckpt_open(&first, NULL, &options), 0, "open");
	is_int(ckpt_open(&second, NULL, &options), CKPT_EREFUSED, "a second time: refused");
	like(ckpt_error(second), "/refused: is open already in this process (generation 1)",
	     "with run and generation");
	like(ckpt_error(second), "take over with ckpt_options.takeover", "and the way out");
	ckpt_close(second);
	is_int(save(first), 0, "the first one saves: %s", ckpt_error(first));
	is_int(ckpt_close(first), 0, "and is closed");
	is_int(ckpt_open(&second, NULL, &options), 0, "then the run can be opened");
	is_int(ckpt_close(second), 0, "and closed");
}

static void taken_over(void)
{
	ckpt *first, *second;

	fresh_dir("taken");
	is_int(ckpt_open(&first, NULL, &options), 0, "open");
	options.takeover = 1;
	is_int(ckpt_open(&second, NULL, &options), 0, "a second time, as a takeover");
	is_int(save(first), CKPT_EFENCED, "the first one is fenced");
	is_int(save(second), 0, "the second one saves: %s", ckpt_error(second));
	ckpt_close(first);
	is_int(ckpt_close(second), 0, "and is closed");
	options.takeover = 0;
	is_int(ckpt_open(&second, NULL, &options), 0, "then the run can be opened");
	ckpt_close(second);
}

/* In a container the next process often has the number, and the host, of the one before it. */
static void number_of_the_dead(void)
{
	struct ck_claim claim = {0};
	struct ck_error err = CK_ERROR_INIT;
	ckpt *ck;

	fresh_dir("number");
	is_int(ckpt_open(&ck, NULL, &options), 0, "open");
	is_int(ckpt_close(ck), 0, "close");
	is_int(ck_claim_load(&ck_io_posix, dir, 1, &claim, &err), 0, "its claim");
	claim.ended = false;
	is_int(ck_claim_store(&ck_io_posix, dir, &claim, &err), 0, "as if it had not ended");
	is_int(ckpt_open(&ck, NULL, &options), 0, "a process with nothing open is not the owner");
	ckpt_close(ck);
	ck_claim_fini(&claim);
}

static int open_and_close(const char *run, int i)
{
	ckpt *ck;
	int rc;

	(void)i;
	options.dir = run;
	rc = ckpt_open(&ck, NULL, &options);
	if (rc)
		diag("%s", ckpt_error(ck));
	ckpt_close(ck);
	return -rc;
}

/* Whoever loses is told so, and not that a file of its claim is gone: the winner has swept it away. */
static void at_once(void)
{
	int results[PROCESSES];

	for (int round = 0; round < ROUNDS; round++) {
		int opened = 0, lost = 0;

		fresh_dir("at-once");
		race(PROCESSES, open_and_close, dir, results);
		for (int i = 0; i < PROCESSES; i++) {
			opened += results[i] == 0;
			lost += results[i] == -CKPT_EFENCED || results[i] == -CKPT_EREFUSED;
		}
		ok(opened >= 1 && opened + lost == PROCESSES,
		   "%d of %d processes have opened the run, %d are told who has it", opened,
		   PROCESSES, lost);
	}
}

int main(void)
{
	options.log = quiet;
	options.dir = dir;
	refused();
	taken_over();
	number_of_the_dead();
	at_once();
	return done_testing();
}
