/*
 * A save in which each single operation fails in turn, or in which the process dies before it.
 * Whatever happens: older checkpoints stay as they are, nothing is half published, and the next
 * save succeeds.
 */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "catalog.h"
#include "commit.h"
#include "io_fault.h"
#include "rundir.h"
#include "tap.h"
#include "verify.h"

#define WORLD 2

static const struct ck_step_id older = {.step = 1, .generation = 1};
static const struct ck_step_id tried = {.step = 2, .generation = 1};

static struct ck_io_fault *fault_of(const char *rules)
{
	struct ck_io_fault *fault = NULL;
	struct ck_error err = CK_ERROR_INIT;

	if (ck_io_fault_new(&fault, &ck_io_posix, rules, &err))
		ok(false, "rules: %s", err.text);
	return fault;
}

static const char *run_with_older(void)
{
	const char *dir = test_tmpdir();
	struct ck_error err = CK_ERROR_INIT;

	make_run(dir);
	if (save_step(&ck_io_posix, dir, older, WORLD, NULL, &err) ||
	    ck_save_tidy(&ck_io_posix, dir, older, &err))
		ok(false, "an older checkpoint: %s", err.text);
	return dir;
}

/* The number of operations of a whole save. */
static unsigned count_operations(void)
{
	const char *dir = run_with_older();
	struct ck_io_fault *fault = fault_of("any:*");
	struct ck_error err = CK_ERROR_INIT;
	unsigned count;

	is_int(save_step(ck_io_fault_io(fault), dir, tried, WORLD, NULL, &err), 0, "a save: %s",
	       err.text);
	count = (unsigned)ck_io_fault_count(fault, 0);
	ok(count > 50 && count < 500, "has %u operations", count);
	ck_io_fault_free(fault);
	return count;
}

/* "" when the checkpoint is sound, else why not. */
static const char *unsound(const char *dir, struct ck_step_id id)
{
	static char why[CK_ERROR_TEXT];
	struct ck_error err = CK_ERROR_INIT;
	struct ck_report report = {.findings = NULL};

	why[0] = '\0';
	if (ck_verify(&ck_io_posix, dir, id, CK_LEVEL_SHA256, 1, NULL, NULL, &report, &err))
		snprintf(why, sizeof(why), "%s", err.text);
	else if (report.count)
		snprintf(why, sizeof(why), "%s", report.findings[0].text);
	ck_report_fini(&report);
	return why;
}

/* Which of the two stands there as the newest, in full? Says what is wrong otherwise. */
static uint64_t newest_sound_step(const char *dir, const char *when)
{
	struct ck_catalog catalog = {.steps = NULL};
	struct ck_error err = CK_ERROR_INIT;
	uint64_t step = 0;

	if (ck_catalog_load(&ck_io_posix, dir, &catalog, &err))
		ok(false, "%s: the run can be read: %s", when, err.text);
	for (size_t i = 0; i < catalog.count; i++)
		if (*unsound(dir, catalog.steps[i]))
			ok(false, "%s: step %u is whole: %s", when, (unsigned)catalog.steps[i].step,
			   unsound(dir, catalog.steps[i]));
	if (catalog.count)
		step = catalog.steps[0].step;
	if (catalog.count == 0 || catalog.steps[catalog.count - 1].step != older.step)
		ok(false, "%s: the older checkpoint is there", when);
	ck_catalog_fini(&catalog);
	return step;
}

/* The next save of generation `generation` succeeds and leaves nothing but checkpoints. */
static bool next_save(const char *dir, uint64_t generation, const char *when)
{
	struct ck_step_id id = {.step = 3, .generation = generation};
	struct ck_error err = CK_ERROR_INIT;

	if (save_step(&ck_io_posix, dir, id, WORLD, NULL, &err) ||
	    ck_save_tidy(&ck_io_posix, dir, id, &err))
		return ok(false, "%s: the next save: %s", when, err.text);
	if (*unsound(dir, id))
		return ok(false, "%s: the next checkpoint: %s", when, unsound(dir, id));
	return true;
}

/* --- failures --- */

/* Returns whether the save was told to have failed. */
static bool fail_at(unsigned n, const char *how)
{
	const char *dir = run_with_older();
	struct ck_error err = CK_ERROR_INIT, warning = CK_ERROR_INIT;
	struct ck_io_fault *fault;
	char rules[128], when[160];
	uint64_t newest;
	int rc;

	snprintf(rules, sizeof(rules), "any:*:%s:after=%u:times=1", how, n);
	fault = fault_of(rules);
	rc = save_step(ck_io_fault_io(fault), dir, tried, WORLD, &warning, &err);
	snprintf(when, sizeof(when), "operation %u, %s, %s", n, how, rc ? "failed" : "committed");
	newest = newest_sound_step(dir, when);
	if (newest != (rc ? older.step : tried.step))
		ok(false, "%s: the newest is step %u: %s", when, (unsigned)newest, err.text);
	if (rc && !*err.text)
		ok(false, "%s: a text says why", when);
	if (rc && ck_save_abandon(&ck_io_posix, dir, tried, &err))
		ok(false, "%s: abandoned: %s", when, err.text);
	if (exists_in(dir, ".saving-0000000002.g1"))
		ok(false, "%s: no staging directory is left", when);
	next_save(dir, 1, when);
	ck_io_fault_free(fault);
	return rc != 0;
}

static void test_failures(unsigned count)
{
	static const char *const ways[] = {"errno=EIO", "errno=ENOSPC", "errno=EIO:done=1"};

	for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
		unsigned told = 0;

		for (unsigned n = 0; n < count; n++)
			told += fail_at(n, ways[w]);
		ok(told > count / 2, "%s: %u of %u single failures made the save fail, all told",
		   ways[w], told, count);
	}
}

/* --- deaths --- */

static void save_in_child(const char *dir, const char *rules)
{
	struct ck_io_fault *fault;
	struct ck_error err;

	if (ck_io_fault_new(&fault, &ck_io_posix, rules, &err))
		_exit(90);
	_exit(save_step(ck_io_fault_io(fault), dir, tried, WORLD, NULL, &err) ? 91 : 0);
}

/* The next owner finds a whole checkpoint, and sweeps up what the dead one left. */
static void take_over(const char *dir, const char *when)
{
	struct ck_claim claim = {.time = 1764448670};
	struct ck_error err = CK_ERROR_INIT;
	struct ck_names names = {NULL, 0};
	struct ck_salvaged salvaged = {.steps = NULL};
	struct ck_step_id id;

	if (ck_claim_take(&ck_io_posix, dir, &claim, &err) ||
	    ck_salvage(&ck_io_posix, dir, claim.generation, &salvaged, &err) ||
	    sweep_now(&ck_io_posix, dir, claim.generation, &err) ||
	    ck_io_list(&ck_io_posix, dir, &names, &err))
		ok(false, "%s: taken over: %s", when, err.text);
	for (size_t i = 0; i < names.count; i++)
		if (ck_is_saving(names.names[i], &id) || ck_is_deleting(names.names[i], &id))
			ok(false, "%s: %s is swept", when, names.names[i]);
	ck_names_fini(&names);
	if (salvaged.count)
		ok(newest_sound_step(dir, when) == tried.step, "%s: the complete save is salvaged",
		   when);
	ck_salvaged_fini(&salvaged);
	if (exists_in(dir, ".gen-1/records-0000000002"))
		ok(false, "%s: the records are swept", when);
	next_save(dir, claim.generation, when);
}

/* Returns the step that a reader finds afterwards. */
static uint64_t die_at(unsigned n)
{
	const char *dir = run_with_older();
	char rules[128], when[64];
	uint64_t newest;
	int status = 0;
	pid_t pid;

	snprintf(rules, sizeof(rules), "any:*:kill=KILL:after=%u:times=1", n);
	snprintf(when, sizeof(when), "killed before operation %u", n);
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		save_in_child(dir, rules);
	if (waitpid(pid, &status, 0) < 0 || !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		ok(false, "%s: it died: status %d", when, status);
	newest = newest_sound_step(dir, when);
	take_over(dir, when);
	return newest;
}

static void test_deaths(unsigned count)
{
	unsigned before = 0, after = 0, changes = 0;
	uint64_t newest, last = older.step;

	for (unsigned n = 0; n < count; n++) {
		newest = die_at(n);
		before += newest == older.step;
		after += newest == tried.step;
		changes += newest != last;
		last = newest;
	}
	is_int(before + after, count, "after each death there is the old or the new checkpoint");
	ok(before > 0 && after > 0, "%u times the old, %u times the new one", before, after);
	is_int(changes, 1, "there is one instant before which it is the old one, then the new");
}

int main(void)
{
	unsigned count;

	/* Hundreds of saves, none of which need outlive the machine. */
	if (access("/dev/shm", W_OK) == 0)
		setenv("TEST_TMPDIR", "/dev/shm", 0);
	count = count_operations();
	test_failures(count);
	test_deaths(count);
	return done_testing();
}
