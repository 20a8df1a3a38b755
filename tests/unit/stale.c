/* Nothing stale, nothing silent: rotation, choices, holds, requests. */
#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt.h"
#include "rundir.h"
#include "sha256.h"
#include "starts.h"
#include "tap.h"

/* ---- rotation ---- */

static atomic_int watching;

/* Is there, at every instant, a complete checkpoint? */
static void *watcher(void *arg)
{
	int *gaps = arg;

	while (atomic_load(&watching)) {
		bool found = false;
		struct dirent *entry;
		DIR *d = opendir(dir);

		while (d && (entry = readdir(d)))
			found = found || strncmp(entry->d_name, "step-", 5) == 0;
		if (d)
			closedir(d);
		if (!found)
			(*gaps)++;
	}
	return NULL;
}

static void keep_one(void)
{
	pthread_t thread;
	int gaps = 0;

	fresh_dir("one");
	options.keep = 1;
	is_int(run_start(START(1)), 0, "keep 1: a first save");
	atomic_store(&watching, 1);
	pthread_create(&thread, NULL, watcher, &gaps);
	is_int(run_start(START(2, 3, 4, 5, 6, 7, 8, 9)), 0, "and eight more");
	atomic_store(&watching, 0);
	pthread_join(thread, NULL);
	is_int(gaps, 0, "never without a checkpoint");
	is_str(steps_there(), "9.2", "one is kept");
}

static void timelines(void)
{
	fresh_dir("timeline");
	options.keep = 2;
	is_int(run_start(START(4999, 5000)), 0, "a timeline that reached step 5000");
	options.resume = "fresh";
	is_int(run_start(START(100, 200, 300)), 0, "is abandoned");
	is_str(steps_there(), "200.2 300.2", "its step 5000 does not outlive the new step 300");
}

/* Names like ours that are not: no word of them in each save, and they stay. */
static void look_alikes(void)
{
	static const char *const files[] = {".gen-2", "step-0000000005.g1",
					    ".deleting-0000000005.g1", ".saving-0000000005.g1"};

	fresh_dir("alike");
	options.keep = 2;
	is_int(run_start(START(1, 2, 3)), 0, "a run");
	for (size_t i = 0; i < 4; i++)
		put_file(in_dir(dir, files[i]), "mine");
	is_int(run_start(START(4, 6, 7, 8)), 0, "saves beside them: %s", text.text);
	unlike(text.text, "warning", "not one word");
	is_str(steps_there(), "5.1 7.3 8.3", "rotation goes on");
	for (size_t i = 0; i < 4; i++)
		ok(exists(files[i]), "%s stays", files[i]);
	fresh_dir("directory");
	if (mkdir(dir, 0777) || mkdir(in_dir(dir, "run.json"), 0777))
		ok(false, "directories");
	is_int(run_start(START(1)), CKPT_EFORMAT, "a directory for run.json: refused");
	like(text.text, "run.json: is a directory, not a regular file", "saying so");
}

static void pins(void)
{
	fresh_dir("pins");
	options.keep = 2;
	is_int(run_start(START(1, 2)), 0, "two saves");
	put_file(in_dir(dir, ".pin-0000000001.g1"), "");
	is_int(run_start(START(3, 4, 5)), 0, "three more");
	is_str(steps_there(), "1.1 4.2 5.2", "a pinned one stays, and is not counted");
}

static void damage(const char *step)
{
	if (truncate(in_dir(in_dir(dir, step), "rank-00000.0.safetensors"), 77))
		ok(false, "%s can be damaged", step);
}

static void past_two_bad_ones(void)
{
	struct start next = {.save = {7, 8}};

	fresh_dir("bad");
	is_int(run_start(START(1, 2, 3)), 0, "three saves, keep 3");
	damage("step-0000000002.g1");
	damage("step-0000000003.g1");
	is_int(run_start(&next), 0, "two of them bad: %s", text.text);
	is_int(next.restored, CKPT_FELL_BACK, "falls back");
	is_u64(next.from, 1, "to the good one");
	ok(exists("step-0000000007.g2") && exists("step-0000000008.g2"), "and goes on: %s",
	   steps_there());
	ok(exists("step-0000000001.g1"), "rotation kept the good one");
}

/* It does no harm to a start; other readers of the directory would load it. */
static void unknown_file(void)
{
	struct start next = {.save = {0}};

	fresh_dir("stray");
	is_int(run_start(START(1)), 0, "a save");
	put_file(in_dir(dir, "step-0000000001.g1/copy.safetensors"), "");
	is_int(run_start(&next), 0, "with one file more: %s", text.text);
	is_int(next.restored, CKPT_RESUMED, "it is resumed");
	like(text.text, "step-0000000001.g1/copy.safetensors is not in the manifest, but other",
	     "with a warning");
}

/* Its item table says what its own files do not: the program is not to blame. */
static void manifest_against_its_files(void)
{
	char digest[CK_SHA256_HEX + 1], *found, *sums;
	struct start next = {.save = {0}};
	const char *manifest;

	fresh_dir("resigned");
	is_int(run_start(START(1, 2)), 0, "two saves");
	manifest = in_dir(dir, "step-0000000002.g1/manifest.json");
	found = content_of(manifest);
	memcpy(strstr(found, "\"matrix\""), "\"matrux\"", 8);
	put_file(manifest, found);
	if (ck_sha256_hex(found, strlen(found), digest, NULL))
		ok(false, "a digest");
	free(found);
	sums = content_of(in_dir(dir, "step-0000000002.g1/SHA256SUMS"));
	memcpy(strstr(sums, "  manifest.json") - CK_SHA256_HEX, digest, CK_SHA256_HEX);
	put_file(in_dir(dir, "step-0000000002.g1/SHA256SUMS"), sums);
	free(sums);
	is_int(run_start(&next), 0, "a manifest that was signed again: %s", text.text);
	is_int(next.restored, CKPT_FELL_BACK, "falls back");
	like(text.text, "refused step 2: ", "and names it");
	like(text.text, "item 'matrix': not in the manifest", "with what is wrong");
}

/* ---- choices ---- */

static void job(const char *id, const char *restart)
{
	setenv("SLURM_JOB_ID", id, 1);
	setenv("SLURM_CLUSTER_NAME", "mini", 1);
	if (restart)
		setenv("SLURM_RESTART_COUNT", restart, 1);
	else
		unsetenv("SLURM_RESTART_COUNT");
}

static void no_job(void)
{
	unsetenv("SLURM_JOB_ID");
	unsetenv("SLURM_CLUSTER_NAME");
	unsetenv("SLURM_RESTART_COUNT");
}

static void resume_fresh(void)
{
	struct start none = {.save = {0}}, some = {.save = {50}}, last = {.save = {0}};

	fresh_dir("fresh");
	job("11", NULL);
	is_int(run_start(START(1, 2)), 0, "an earlier job");
	options.resume = "fresh";
	job("12", NULL);
	is_int(run_start(&none), 0, "a job that asks for a fresh start");
	is_int(none.restored, CKPT_FRESH, "gets it");
	like(text.text, "fresh, as asked for", "and is told");
	unlike(text.text, "no checkpoint yet", "not that there is none");
	job("12", "1");
	is_int(run_start(&some), 0, "preempted before its first commit");
	is_int(some.restored, CKPT_FRESH, "it is fresh again");
	job("12", "2");
	is_int(run_start(&last), 0, "preempted after it");
	is_int(last.restored, CKPT_RESUMED, "it is not");
	is_u64(last.from, 50, "but goes on from its own");
	no_job();
}

static void resume_step(void)
{
	struct start chosen = {.save = {0}};

	fresh_dir("step");
	is_int(run_start(START(1, 2, 3)), 0, "three saves");
	options.resume = "2";
	is_int(run_start(&chosen), 0, "--ckpt-resume=2");
	is_u64(chosen.from, 2, "takes step 2");
	ok(chosen.right, "bit-exact");
	options.resume = "9";
	is_int(run_start(&chosen), CKPT_ENOENT, "--ckpt-resume=9");
	like(text.text, "step 9 was asked for, and is not there; there are: 3, 2, 1",
	     "lists what there is");
}

static void from_another_run(void)
{
	struct start first = {.save = {0}}, second = {.save = {0}};
	char other[PATH_MAX], before[512];

	fresh_dir("other");
	is_int(run_start(START(3, 4)), 0, "another run");
	strcpy(other, dir);
	strcpy(before, steps_there());
	fresh_dir("mine");
	options.from = other;
	first.save[0] = 6;
	is_int(run_start(&first), 0, "--ckpt-from: %s", text.text);
	is_u64(first.from, 4, "begins from its newest");
	ok(first.right, "bit-exact");
	like(text.text, "began from step 4 of", "and says so");
	is_int(run_start(&second), 0, "the next start");
	is_u64(second.from, 6, "goes on from its own");
	is_str(steps_there(), "6.1", "which alone is here");
	strcpy(dir, other);
	is_str(steps_there(), before, "the other run is untouched");
	is_int(exists(".gen-2"), 0, "not even claimed");
	fresh_dir("none");
	options.from = "/nowhere/run";
	is_int(run_start(&first), CKPT_ENOENT, "a run that is not there");
	like(text.text, "--ckpt-from (ckpt_options.from): ", "is named");
}

static void bad_run_file(void)
{
	fresh_dir("spoilt");
	is_int(run_start(START(5)), 0, "a first start");
	put_file(in_dir(dir, "run.json"), "[]");
	is_int(run_start(START(6)), CKPT_EFORMAT, "run.json is spoilt");
	like(text.text, "run.json: not JSON: ", "it is named");
	like(text.text, ": restore that file, or move the directory away", "with what to do");
}

static void no_progress(void)
{
	struct start none = {.save = {0}}, next = {.save = {9}};
	char *mark;

	fresh_dir("progress");
	job("12", NULL);
	is_int(run_start(START(5)), 0, "a first start");
	for (int i = 1; i <= 3; i++) {
		job("12", (char[]){(char)('0' + i), 0});
		is_int(run_start(&none), 0, "start %d after it saves nothing", i);
		is_u64(none.from, 5, "from step 5");
	}
	job("12", "4");
	is_int(run_start(&next), CKPT_EREFUSED, "the fourth is held");
	like(text.text, "no progress: started 3 times from step 5", "with the reason");
	mark = content_of(in_dir(dir, ".gen-5/mark.json"));
	like(mark, "\"hold\"", "and leaves word for the plugin");
	free(mark);
	job("12", "5");
	is_int(run_start(&next), 0, "released by somebody, it tries again");
	is_u64(next.from, 5, "from step 5");
	no_job();
}

/* ---- requests ---- */

static int until_stopped(struct toy *toy)
{
	int rc = 0;

	for (uint64_t step = 1; step < 1000 && !rc; step++) {
		toy_nap_ms(20);
		toy_train(toy, step);
		if (step == 5 && toy->rank == 0)
			put_file(in_dir(dir, ".request-save"), "");
		if (toy->rank == 0 && exists(".gen-1") && !exists(".request-save") && step > 5 &&
		    *steps_there() && !exists(".request-stop"))
			put_file(in_dir(dir, ".request-stop"), "");
		rc = ckpt_step(toy->ck, step);
		toy->step = step;
	}
	return rc;
}

static void requests(void)
{
	char *mark;

	fresh_dir("requests");
	toy_run(2, &options, until_stopped, NULL, toys, &text);
	is_int(toys[0].code, CKPT_STOP, "asked to save, then to stop: %s", text.text);
	like(text.text, "(ckpt stop)", "and says why");
	mark = content_of(in_dir(dir, ".gen-1/mark.json"));
	like(mark, "\"stop\"", "the mark says stop, not requeue");
	free(mark);
	put_file(in_dir(dir, ".request-stop"), "");
	is_int(run_start(START(2000)), 0, "a request for an earlier start does not stop the next");
	is_int(exists(".request-stop"), 0, "it is gone");
}

int main(void)
{
	unsetenv("SLURM_JOB_ID");
	keep_one();
	timelines();
	look_alikes();
	pins();
	past_two_bad_ones();
	unknown_file();
	manifest_against_its_files();
	resume_fresh();
	resume_step();
	from_another_run();
	bad_run_file();
	no_progress();
	requests();
	return done_testing();
}
