/* Commands that look at a run while its program saves and rotates. */
#include <stdio.h>

#include "command.h"
#include "tap.h"

/* The one checkpoint is replaced while its manifest is being read: it was listed, the newer was not. */
static void replace(void *arg)
{
	const char *dir = arg;

	made_save(dir, 1, 12, 4, true);
	ok(rename(in_step(dir, 1, 9, ""), in(dir, ".deleting-0000000009.g1")) == 0,
	   "it is rotated away");
}

static const char *one_step(void)
{
	const char *dir = made_run("run");

	made_claim(dir);
	made_save(dir, 1, 9, 4, true);
	return dir;
}

static struct manner at_its_manifest(const char *dir)
{
	return (struct manner){.faults =
				       "pread:*step-0000000009.g1/manifest.json:kill=STOP:times=1",
			       .meanwhile = replace,
			       .arg = (void *)dir};
}

static void listing(void)
{
	const char *dir = one_step();
	struct manner manner = at_its_manifest(dir);
	struct said said = ckpt_cmd_as(&manner, "ls", dir);

	is_int(said.exit_code, 0, "ls: %s", said.err);
	like(said.out, "not complete, 1 checkpoint\n", "has the newer one");
	like(said.out, "a start resumes from step 12 ", "and foretells by it");
	said_fini(&said);
}

/* It is looked up once more, and the answer is of the checkpoint that is the latest now. */
static void latest(void)
{
	const char *dir = one_step();
	struct manner manner = at_its_manifest(dir);
	struct said said = ckpt_cmd_as(&manner, "verify", in(dir, "../run@latest"));

	is_int(said.exit_code, 0, "verify: %s", said.err);
	like(said.out, "ok   /", "one is good");
	like(said.out, "/step-0000000012.g1: 4 ranks", "the newer one");
	said_fini(&said);

	dir = one_step();
	manner = at_its_manifest(dir);
	said = ckpt_cmd_as(&manner, "export", in(dir, "../run@latest"), in(dir, "../hf"));
	is_int(said.exit_code, 0, "export: %s", said.err);
	like(said.out, "/hf: 1 tensor, ", "of the newer one");
	said_fini(&said);
}

static void a_step_by_its_number(void)
{
	const char *dir = one_step();
	struct manner manner = at_its_manifest(dir);
	struct said said = ckpt_cmd_as(&manner, "verify", in(dir, "../run@9"));

	like(said.out, "/step-0000000009.g1: gone, removed meanwhile\n", "no other stands for it");
	is_int(said.exit_code, 3, "who asked for it has no answer");
	said_fini(&said);
}

int main(void)
{
	listing();
	latest();
	a_step_by_its_number();
	return done_testing();
}
