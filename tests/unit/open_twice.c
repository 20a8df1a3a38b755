/* A run that this process has open already: refused by name, until the handle is closed or taken over from. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "ckpt.h"
#include "io.h"
#include "run.h"
#include "tap.h"

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

int main(void)
{
	options.log = quiet;
	options.dir = dir;
	refused();
	taken_over();
	number_of_the_dead();
	return done_testing();
}
