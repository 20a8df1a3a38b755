/* What `ckpt pin` and `ls` say of a checkpoint's state: pinned or not, and what stands for a file. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "rundir.h"
#include "tap.h"

static const char *one_step(void)
{
	const char *dir = made_run("run");

	make_generation(dir, 1);
	made_save(dir, 1, 9, 4, true);
	return dir;
}

static void expect_out(struct said said, const char *what, const char *text)
{
	is_int(said.exit_code, 0, "%s: %s", what, said.err);
	like(said.out, text, "... says what it is");
	said_fini(&said);
}

static void pins(void)
{
	const char *dir = one_step(), *step = in_step(dir, 1, 9, "");

	expect_out(ckpt_cmd("pin", "-r", step), "no pin is there", "g1: was not pinned\n");
	expect_out(ckpt_cmd("pin", step), "a pin", "g1: pinned: it is kept, and not counted\n");
	expect_out(ckpt_cmd("pin", step), "again", "g1: pinned: it is kept, and not counted\n");
	expect_out(ckpt_cmd("pin", "-r", step), "taken away", "g1: not pinned any more\n");
	expect_out(ckpt_cmd("pin", "-r", step), "and once more", "g1: was not pinned\n");
}

static void expect_no_pin(struct said said, const char *what)
{
	is_int(said.exit_code, 3, "%s", what);
	is_str(said.out, "", "... says nothing of a pin");
	like(said.err,
	     "/.pin-0000000009.g1: is a directory, and a pin is a regular file: remove it",
	     "... but what there is");
	said_fini(&said);
}

static void stands_for_a_pin(void)
{
	const char *dir = one_step();

	ok(mkdir(in(dir, ".pin-0000000009.g1"), 0777) == 0, "a directory stands for a pin");
	expect_no_pin(ckpt_cmd("pin", in_step(dir, 1, 9, "")), "pin");
	expect_no_pin(ckpt_cmd("pin", "-r", in_step(dir, 1, 9, "")), "pin -r");
	ok(rmdir(in(dir, ".pin-0000000009.g1")) == 0, "it is removed");
	expect_out(ckpt_cmd("pin", in_step(dir, 1, 9, "")), "pin", "g1: pinned: it is kept");
}

/* Links, so of the same size or none: "wrong size" would send one looking for bytes. */
static void stands_for_a_file(void)
{
	const char *dir = one_step();
	char file[PATH_MAX];

	snprintf(file, sizeof(file), "%s", in_step(dir, 1, 9, "rank-00002.0.safetensors"));
	ok(rename(file, in(dir, "elsewhere")) == 0, "a file is moved");
	ok(symlink("../elsewhere", file) == 0, "a link stands for it");
	expect_out(ckpt_cmd("ls", dir), "a symbolic link", "  bad: symbolic link\n");
	ok(unlink(file) == 0 && mkdir(file, 0777) == 0, "a directory");
	expect_out(ckpt_cmd("ls", dir), "a directory", "  bad: a directory\n");
	ok(rmdir(file) == 0 && mkfifo(file, 0666) == 0, "a fifo");
	expect_out(ckpt_cmd("ls", dir), "a fifo", "  bad: a fifo\n");
	ok(unlink(file) == 0, "nothing");
	expect_out(ckpt_cmd("ls", dir), "nothing", "  bad: file missing\n");
	put_file(file, "x");
	expect_out(ckpt_cmd("ls", dir), "a shorter file", "  bad: wrong size\n");
}

/* Nobody writes there: a save takes no link for its staging directory. */
static void link_is_no_save(void)
{
	const char *dir = one_step();
	struct said said;

	ok(symlink("elsewhere", in(dir, ".saving-0000000012.g1")) == 0, "a link with its name");
	said = ckpt_cmd("ls", dir);
	is_int(said.exit_code, 0, "ls: %s", said.err);
	unlike(said.out, "saving", "is no save under way");
	said_fini(&said);
}

int main(void)
{
	link_is_no_save();
	pins();
	stands_for_a_pin();
	stands_for_a_file();
	return done_testing();
}
