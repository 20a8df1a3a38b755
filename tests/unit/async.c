/* Saves beside training: torn snapshots, several triggers, slow disks, silent ranks, many saves. */
#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt.h"
#include "env.h"
#include "rundir.h"
#include "starts.h"
#include "tap.h"

static void with_fault(const char *rules, int size, int (*body)(struct toy *), void *arg)
{
	setenv(CK_ENV_IO_FAULT, rules, 1);
	toy_run(size, &options, body, arg, toys, &text);
	unsetenv(CK_ENV_IO_FAULT);
}

/* What a resume finds: the step; -1 when the state is not right. */
static long long resumed_step(int size)
{
	toy_run(size, &options, toy_resume, NULL, toys, &text);
	for (int r = 0; r < size; r++)
		if (toys[r].code < 0)
			return toys[r].code;
	return (long long)toys[0].step;
}

/* ---- torn snapshots ---- */

static int overwrite_at_once(struct toy *toy)
{
	int rc;

	toy_train(toy, 5);
	rc = ckpt_save(toy->ck, 5);
	toy_spoil(toy);
	return rc ? rc : ckpt_wait(toy->ck);
}

static void torn_snapshot(const char *how, const char *staging)
{
	fresh_dir(how);
	options.staging = staging;
	with_fault("pwrite:*:delay=100", 3, overwrite_at_once, NULL);
	is_int(toys[0].code, 0, "%s: memory overwritten right after the call that began the save",
	       how);
	is_int(resumed_step(3), 5, "the restored bytes are those at the call");
}

/* ---- slow disks ---- */

#define LET_GO 40

/* The save that is asked for in step 3 comes no further before step 40. */
static int step_through(struct toy *toy)
{
	int rc = 0;

	for (uint64_t step = 1; step <= LET_GO && !rc; step++) {
		toy_nap_ms(25);
		toy_train(toy, step);
		if (step == 3 && toy->rank == 0)
			raise(SIGUSR2);
		if (step == LET_GO && toy->rank == 0) {
			*(bool *)toy->arg = *steps_there() == '\0';
			put_file(in_dir(dir, "go"), "");
		}
		rc = ckpt_step(toy->ck, step);
	}
	return rc;
}

/* If ckpt_step waited for the call, all would stand still, and the alarm ends that. */
static void slow_metadata(const char *call)
{
	char rule[PATH_MAX + 64];
	bool held = false;
	long long step;

	fresh_dir("slow");
	snprintf(rule, sizeof(rule), "%s:until=%s", call, in_dir(dir, "go"));
	with_fault(rule, 3, step_through, &held);
	is_int(toys[0].code, 0, "%s takes long: %s", call, text.text);
	ok(held, "training goes on meanwhile");
	step = resumed_step(3);
	ok(step >= 3 && step < LET_GO, "and the save is committed beside it: step %lld", step);
}

/* ---- a program that is busy elsewhere ---- */

static int busy(struct toy *toy)
{
	double began = seconds(), took;

	toy_train(toy, 1);
	if (ckpt_save(toy->ck, 1))
		return -1;
	while (!exists("step-0000000001.g1"))
		toy_nap_ms(10); /* no call of ours meanwhile */
	took = seconds() - began;
	if (toy->rank == 0)
		*(double *)toy->arg = took;
	toy_nap_ms(1500 + (long)(2000 * took));
	return ckpt_wait(toy->ck);
}

static void busy_program(void)
{
	double longest = 0, told = 0;
	char unit[3] = "";
	const char *line;

	fresh_dir("busy");
	toy_run(3, &options, busy, &longest, toys, &text);
	is_int(toys[0].code, 0,
	       "a commit does not wait for the next ckpt_step: records come from files");
	line = strstr(text.text, "saved step 1 in ");
	if (line && sscanf(line, "saved step 1 in %lf %2s", &told, unit) == 2)
		told /= strcmp(unit, "ms") == 0 ? 1000 : 1;
	ok(told > 0 && told < 2 * longest + 0.75,
	   "its time ends with the commit: %.3f of %.3f s: %s", told, longest, text.text);
	is_int(resumed_step(3), 1, "and resumes");
}

/* ---- stops ---- */

struct stop {
	uint64_t save_at, stop_at;
	int everybody; /* all ranks get the signal in the end */
	int twice;
};

static int run_into_stop(struct toy *toy)
{
	const struct stop *stop = toy->arg;
	int rc = 0;

	for (uint64_t step = 1; step <= 200 && !rc; step++) {
		toy_nap_ms(10);
		toy_train(toy, step);
		if (step == stop->save_at && toy->rank == 1)
			raise(SIGUSR2);
		if (step == stop->stop_at && toy->rank == toy->size - 1)
			raise(SIGTERM);
		if (step == stop->stop_at + 1 && stop->twice)
			raise(SIGTERM);
		rc = ckpt_step(toy->ck, step);
		toy->step = step;
	}
	return rc;
}

static void stop_while_saving(void)
{
	struct stop stop = {.save_at = 20, .stop_at = 40};
	uint64_t at;

	fresh_dir("stop-while");
	with_fault("pwrite:*.safetensors:delay=150", 3, run_into_stop, &stop);
	is_int(toys[0].code, CKPT_STOP, "a stop while a save is in flight: %s", text.text);
	at = toys[0].step;
	for (int r = 0; r < 3; r++)
		is_u64(toys[r].step, at, "rank %d stops at the same step", r);
	is_int(resumed_step(3), (long long)at, "the step of the stop is there");
	stop = (struct stop){.stop_at = 30, .twice = 1};
	fresh_dir("twice");
	with_fault("pwrite:*.safetensors:delay=100", 3, run_into_stop, &stop);
	is_int(toys[0].code, CKPT_STOP, "a second SIGTERM changes nothing");
	is_int(resumed_step(3), (long long)toys[0].step, "the step of the stop is there");
}

/* ---- registrations that change ---- */

static int changing(struct toy *toy)
{
	static const uint64_t n = 5;
	static float late[TOY_RANKS_MAX][5];
	uint64_t step = 0;
	int rc, saved = *(int *)toy->arg;

	for (int i = 0; i < 5; i++)
		late[toy->rank][i] = saved ? 0 : (float)i;
	toy_train(toy, 1);
	rc = saved ? 0 : ckpt_save(toy->ck, 1);
	if (!rc)
		rc = ckpt_add_replicated(toy->ck, "late", CKPT_F32, 1, &n, late[toy->rank]);
	if (rc)
		return rc;
	if (!saved) {
		toy_train(toy, 2);
		return ckpt_save(toy->ck, 2);
	}
	rc = ckpt_restore(toy->ck, &step);
	return rc == CKPT_RESUMED && step == 2 && late[toy->rank][4] == 4 ? 0 : -1;
}

static void registrations_change(void)
{
	int saved = 0;

	fresh_dir("change");
	toy_run(3, &options, changing, &saved, toys, &text);
	is_int(toys[0].code, 0, "an item added while a save is in flight");
	saved = 1;
	toy_run(3, &options, changing, &saved, toys, &text);
	for (int r = 0; r < 3; r++)
		is_int(toys[r].code, 0, "rank %d: the later save has it: %s", r, text.text);
}

/* ---- copiers ---- */

/* "Device memory": every byte is stored inverted. */
static int invert(void *arg, void *dst, const void *src, size_t bytes)
{
	(*(int *)arg)++;
	for (size_t i = 0; i < bytes; i++)
		((unsigned char *)dst)[i] = (unsigned char)~((const unsigned char *)src)[i];
	return 0;
}

static int copier_fails(void *arg, void *dst, const void *src, size_t bytes)
{
	(void)arg, (void)dst, (void)src, (void)bytes;
	return 42;
}

static int device(struct toy *toy)
{
	static const uint64_t n = 5;
	static unsigned char memory[TOY_RANKS_MAX][5];
	int mode = *(int *)toy->arg, calls = 0, rc;
	struct ckpt_copier copier = {sizeof(copier), &calls, invert, invert};
	uint64_t step = 0;

	if (mode == 2)
		copier.read = copier_fails;
	if (ckpt_set_copier(toy->ck, "device", &copier) != CKPT_EARG)
		return -5; /* not registered yet */
	if (ckpt_add_replicated(toy->ck, "device", CKPT_U8, 1, &n, memory[toy->rank]) ||
	    ckpt_set_copier(toy->ck, "device", &copier))
		return -6;
	memset(memory[toy->rank], mode == 1 ? 0 : 7, 5);
	if (mode == 1) {
		rc = ckpt_restore(toy->ck, &step);
		return rc < 0 ? rc : memory[toy->rank][4] == 7 && calls == 1 ? 0 : -7;
	}
	toy_train(toy, 1);
	rc = ckpt_save(toy->ck, 1);
	return rc ? rc : ckpt_wait(toy->ck);
}

static void copiers(const char *how, const char *staging)
{
	int mode = 0;

	fresh_dir("copier");
	options.staging = staging;
	toy_run(3, &options, device, &mode, toys, &text);
	is_int(toys[0].code, 0, "%s: an item with a copier is saved", how);
	mode = 1;
	toy_run(3, &options, device, &mode, toys, &text);
	for (int r = 0; r < 3; r++)
		is_int(toys[r].code, 0, "rank %d: and comes back through it", r);
	mode = 2;
	fresh_dir("copier-fails");
	options.staging = staging;
	toy_run(3, &options, device, &mode, toys, &text);
	is_int(toys[0].code, CKPT_EARG, "a copier that fails, fails the save");
	like(text.text, "item 'device': the program's copier returned 42", "by name");
}

/* ---- many saves ---- */

/* Resident pages, descriptors, threads of this process. */
static void usage(long *pages, int *fds, int *threads)
{
	FILE *f = fopen("/proc/self/statm", "r");
	struct dirent *entry;
	DIR *d;

	*pages = 0;
	if (f && fscanf(f, "%*d %ld", pages) != 1)
		*pages = -1;
	if (f)
		fclose(f);
	*fds = *threads = 0;
	for (d = opendir("/proc/self/fd"); d && (entry = readdir(d));)
		(*fds)++;
	if (d)
		closedir(d);
	for (d = opendir("/proc/self/task"); d && (entry = readdir(d));)
		(*threads)++;
	if (d)
		closedir(d);
}

struct growth {
	int saves;
	long pages[2];
	int fds[2], threads[2];
};

static int many(struct toy *toy)
{
	struct growth *g = toy->arg;
	int rc = 0;

	for (int i = 1; i <= g->saves && !rc; i++) {
		toy_train(toy, (uint64_t)i);
		rc = ckpt_save(toy->ck, (uint64_t)i);
		if (!rc && i % 10 == 0)
			rc = ckpt_wait(toy->ck);
		if (!rc && toy->rank == 0 && (i == g->saves / 5 / 10 * 10 || i == g->saves))
			usage(&g->pages[i == g->saves], &g->fds[i == g->saves],
			      &g->threads[i == g->saves]);
	}
	return rc;
}

static void many_saves(void)
{
	struct growth g = {.saves = (int)rounds(500, 100, 50)};

	fresh_dir("many");
	toy_run(2, &options, many, &g, toys, &text);
	is_int(toys[0].code, 0, "%d asynchronous saves", g.saves);
	ok(g.threads[1] <= g.threads[0] + 4, "threads: flat (%d, %d; four may be at clearing up)",
	   g.threads[0], g.threads[1]);
	ok(g.fds[1] <= g.fds[0] + 4, "descriptors: flat (%d, %d; the other rank may be in a save)",
	   g.fds[0], g.fds[1]);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip("resident memory: a sanitizer keeps what was freed");
#else
	ok(g.pages[1] - g.pages[0] < 512, "resident memory: flat (%ld pages, then %ld)", g.pages[0],
	   g.pages[1]);
#endif
	is_int(resumed_step(2), g.saves, "the last is there");
}

int main(void)
{
	alarm(600);
	torn_snapshot("staged", NULL);
	slow_metadata("mkdir:.saving*");
	slow_metadata("open:*.safetensors");
	slow_metadata("fsync:*.safetensors*");
	slow_metadata("rename:.saving*");
	busy_program();
	stop_while_saving();
	registrations_change();
	copiers("staged", NULL);
	torn_snapshot("direct", "off");
	copiers("direct", "off");
	many_saves();
	return done_testing();
}
