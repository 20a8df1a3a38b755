/* What `ckpt pin` and `ls` say of a checkpoint's state: pinned or not, and what stands for a file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "rundir.h"
#include "run.h"
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

/* A process that is dead, and whose number is not given to another soon. */
static pid_t dead_process(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	return pid;
}

/* The last claim becomes one of a process of this host. */
static void claimed_by(const char *dir, uint64_t generation, pid_t pid, const char *job_id)
{
	struct ck_error err = CK_ERROR_INIT;
	struct ck_claim claim;

	ok(ck_claim_load(&ck_io_posix, dir, generation, &claim, &err) == 0, "%s", err.text);
	snprintf(claim.job.job_id, sizeof(claim.job.job_id), "%s", job_id);
	gethostname(claim.host, sizeof(claim.host) - 1);
	claim.pid = (uint64_t)pid;
	claim.time = time(NULL);
	ok(ck_claim_store(&ck_io_posix, dir, &claim, &err) == 0, "%s", err.text);
	ck_claim_fini(&claim);
}

/* Step 5 is saved; the save of step 10 has everything but its commit. */
static const char *cut_at_commit(pid_t pid, const char *job_id)
{
	const char *dir = made_run("run");

	made_save(dir, made_claim(dir), 5, 2, true);
	made_save(dir, 1, 10, 2, false);
	claimed_by(dir, 1, pid, job_id);
	return dir;
}

static void foretells_a_salvage(void)
{
	const char *dir = cut_at_commit(dead_process(), "");
	struct said said;

	expect_out(ckpt_cmd("ls", dir), "its process is dead", "  left over, ");
	expect_out(ckpt_cmd("ls", dir), "the save was complete",
		   "step 10: left over, but its save was complete: the next start commits it\n"
		   "a start resumes from step 10 if its bytes verify\n");
	said = ckpt_cmd("ls", "--json", dir);
	like(said.out, "\"start_from\": \"step-0000000010.g1\"", "JSON says so too");
	like(said.out, "\"state\": \"left-over\"", "and what it is");
	said_fini(&said);
	ok(unlink(in(dir, ".saving-0000000010.g1/rank-00001.0.safetensors")) == 0, "a file goes");
	expect_out(ckpt_cmd("ls", dir), "it was not complete", "the next start removes it: ");
	expect_out(ckpt_cmd("ls", dir), "then the older one", "resumes from step 5 if");
	made_claim(dir);
	expect_out(ckpt_cmd("ls", dir), "a newer start has been", "  left over, ");
}

static void foretells_the_only_salvage(void)
{
	const char *dir = made_run("run");

	made_save(dir, made_claim(dir), 10, 2, false);
	claimed_by(dir, 1, dead_process(), "");
	expect_out(ckpt_cmd("ls", dir), "no checkpoint yet",
		   "a start resumes from step 10 if its bytes verify\n");
}

static void cannot_tell_of_others(void)
{
	const char *alive = cut_at_commit(getpid(), ""), *job = cut_at_commit(dead_process(), "9");
	const struct manner broken = {.faults = "lstat:*.saving*rank-00001*:errno=EIO"};
	struct said said;

	expect_out(ckpt_cmd("ls", alive), "a process that runs", "  saving..., ");
	expect_out(ckpt_cmd("ls", alive), "it is not done", "resumes from step 5 if");
	expect_out(ckpt_cmd("ls", job), "a job's", "  saving..., ");
	claimed_by(job, 1, dead_process(), "");
	said = ckpt_cmd_as(&broken, "ls", job);
	is_int(said.exit_code, 3, "a file that cannot be looked at");
	like(said.out, "left over; not known whether its save was complete: ", "is told");
	like(said.out, "a start tries step 10 first, which could not be read here",
	     "and what comes of it");
	said_fini(&said);
}

/* A start salvages, and dies over it: the next one will. */
static void foretells_a_second_salvage(void)
{
	const char *dir = cut_at_commit(dead_process(), "");
	struct said said;

	ok(rename(in(dir, ".saving-0000000010.g1"), in(dir, ".salvage-0000000010.g1")) == 0,
	   "seized by a start that died");
	made_claim(dir);
	expect_out(ckpt_cmd("ls", dir), "the save was complete",
		   "step 10: left over, but its save was complete: the next start commits it\n"
		   "a start resumes from step 10 if its bytes verify\n");
	said = ckpt_cmd("ls", "--json", dir);
	like(said.out, "\"name\": \".salvage-0000000010.g1\"", "JSON names it");
	said_fini(&said);
	ok(unlink(in(dir, ".salvage-0000000010.g1/rank-00001.0.safetensors")) == 0, "a file goes");
	expect_out(ckpt_cmd("ls", dir), "then the older one", "resumes from step 5 if");
}

/* verify, reshard and export refuse it, so it is not passed over in silence. */
static void tells_of_a_stray_file(void)
{
	const char *dir = made_run("run");
	struct said said;

	made_save(dir, made_claim(dir), 5, 2, true);
	put_file(in_step(dir, 1, 5, "copy.safetensors"), "");
	expect_out(ckpt_cmd("ls", dir), "the row", "ok, unknown file\n");
	expect_out(ckpt_cmd("ls", dir), "the reason",
		   "step 5: warning: copy.safetensors is not in the manifest, but other readers "
		   "would load it: remove it\n");
	expect_out(ckpt_cmd("ls", dir), "a start", "resumes from step 5 if");
	said = ckpt_cmd("verify", dir);
	is_int(said.exit_code, 1, "verify calls it bad");
	said_fini(&said);
}

static void recalls_a_hold(void)
{
	const char *dir = one_step();
	struct ck_error err = CK_ERROR_INIT;
	struct ck_mark mark = {.want = CK_WANT_HOLD, .step = 9, .reason = "no progress: again"};
	struct ck_claim claim;
	struct said said;

	expect_out(ckpt_cmd("ls", "--json", dir), "no hold", "\"held\": null,");
	made_claim(dir);
	ok(ck_claim_load(&ck_io_posix, dir, 2, &claim, &err) == 0, "%s", err.text);
	strcpy(claim.resume, "held");
	ok(ck_claim_store(&ck_io_posix, dir, &claim, &err) == 0, "%s", err.text);
	ck_claim_fini(&claim);
	expect_out(ckpt_cmd("ls", dir), "a hold without its mark",
		   "the last start was held: its reason cannot be read\n");
	ok(ck_mark_store(&ck_io_posix, dir, 2, &mark, &err) == 0, "%s", err.text);
	expect_out(ckpt_cmd("ls", dir), "a hold",
		   "\nthe last start was held: no progress: again\n"
		   "a start resumes from step 9 if its bytes verify\n");
	expect_out(ckpt_cmd("ls", "--json", dir), "in JSON", "\"held\": \"no progress: again\"");
	made_claim(dir);
	said = ckpt_cmd("ls", dir);
	unlike(said.out, "held", "a later start was not");
	said_fini(&said);
}

static void asks_no_dead_process(void)
{
	const char *dir = cut_at_commit(dead_process(), "");
	struct said said = ckpt_cmd("save", dir);

	is_int(said.exit_code, 1, "save: nobody is there");
	like(said.err, ": no program has this run open; the last one, process ", "it is told");
	like(said.err, ", was killed\n", "without waiting for an answer");
	said_fini(&said);
	ok(access(in(dir, ".request-save"), F_OK) < 0, "nothing was asked");
}

static void lists_what_may_be_a_run(void)
{
	const char *dir = one_step(), *parent = in(dir, ".."), *shut = in(parent, "shut");
	const struct manner nobody = {.as_nobody = true};
	struct said said;

	ok(mkdir(shut, 0700) == 0 && mkdir(in(parent, "other"), 0777) == 0, "directories beside");
	put_file(in(shut, "run.json"), "{}");
	ok(chmod(shut, 0) == 0, "one that we may not enter");
	said = ckpt_cmd_as(&nobody, "ls", parent);
	is_int(said.exit_code, 3, "not everything could be looked at");
	like(said.err, "/shut/: ", "it is named");
	like(said.err, "Permission denied\n", "with the reason");
	like(said.out, "/shut      -     -  -                        -  unknown: unreadable\n",
	     "and has a line");
	like(said.out, "/run       1     9  ", "as the others have");
	unlike(said.out, "/other", "what is no run has none");
	said_fini(&said);
	ok(chmod(shut, 0755) == 0, "it may be entered");
}

static void names_the_rules(void)
{
	const struct manner wrong = {.faults = "bogus"};
	struct said said = ckpt_cmd_as(&wrong, "ls", "/");

	is_int(said.exit_code, 2, "rules of no use");
	like(said.err, "ckpt ls: SLURM_CKPT_IO_FAULT: rule 0: bogus: ", "are named");
	said_fini(&said);
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
	names_the_rules();
	lists_what_may_be_a_run();
	asks_no_dead_process();
	recalls_a_hold();
	foretells_a_salvage();
	foretells_the_only_salvage();
	foretells_a_second_salvage();
	tells_of_a_stray_file();
	cannot_tell_of_others();
	link_is_no_save();
	pins();
	stands_for_a_pin();
	stands_for_a_file();
	return done_testing();
}
