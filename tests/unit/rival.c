/* rival.h: of several that open a run at once, one does, and the others are told who. */
#include "rival.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "env.h"
#include "rundir.h"
#include "tap.h"

#define PROCESSES 4
#define ROUNDS 10

struct side {
	const char *cluster, *job, *step;
	uint64_t restart;
	uint32_t world;
};

struct row {
	const char *name;
	struct side owner;
	uint64_t generation; /* the owner's */
	enum ck_process process;
	bool looked; /* up to generation 3 */
	uint32_t tasks;
	enum ck_rival rival;
};

#define UNKNOWN CK_PROCESS_UNKNOWN
#define RUNS CK_PROCESS_RUNS
#define GONE CK_PROCESS_GONE

/* We are step 4 of job 7 of "mini", in its third start, a world of 1. */
static const struct row rows[] = {
	{"a task on another node", {"mini", "7", "4", 2, 1}, 4, UNKNOWN, true, 2, CK_RIVAL_TASK},
	{"a task on this node", {"mini", "7", "4", 2, 1}, 4, RUNS, true, 2, CK_RIVAL_TASK},
	{"a task that is gone", {"mini", "7", "4", 2, 1}, 4, GONE, true, 2, CK_RIVAL_NONE},
	{"half of the tasks, elsewhere",
	 {"mini", "7", "4", 2, 8},
	 4,
	 UNKNOWN,
	 true,
	 16,
	 CK_RIVAL_TASK},
	{"all tasks, elsewhere: their time is over",
	 {"mini", "7", "4", 2, 16},
	 4,
	 UNKNOWN,
	 true,
	 16,
	 CK_RIVAL_NONE},
	{"a task elsewhere, how many is not known",
	 {"mini", "7", "4", 2, 1},
	 4,
	 UNKNOWN,
	 true,
	 0,
	 CK_RIVAL_NONE},
	{"another step, opened since we began",
	 {"mini", "7", "3", 2, 1},
	 4,
	 UNKNOWN,
	 true,
	 1,
	 CK_RIVAL_STEP},
	{"another step, and srun has seen that it is over",
	 {"mini", "7", "3", 2, 1},
	 3,
	 UNKNOWN,
	 true,
	 1,
	 CK_RIVAL_NONE},
	{"the same, and its process still ends",
	 {"mini", "7", "3", 2, 1},
	 3,
	 RUNS,
	 true,
	 1,
	 CK_RIVAL_NONE},
	{"another step, and srun has not looked",
	 {"mini", "7", "3", 2, 1},
	 4,
	 UNKNOWN,
	 false,
	 1,
	 CK_RIVAL_NONE},
	{"another step, which runs on this node",
	 {"mini", "7", "3", 2, 1},
	 4,
	 RUNS,
	 false,
	 1,
	 CK_RIVAL_STEP},
	{"the batch script, which runs on this node",
	 {"mini", "7", "", 2, 1},
	 4,
	 RUNS,
	 true,
	 1,
	 CK_RIVAL_STEP},
	{"the batch script's program before, on another",
	 {"mini", "7", "", 2, 1},
	 4,
	 UNKNOWN,
	 true,
	 1,
	 CK_RIVAL_NONE},
	{"an earlier start", {"mini", "7", "3", 1, 1}, 4, UNKNOWN, true, 1, CK_RIVAL_NONE},
	{"another job, opened since we began",
	 {"mini", "8", "0", 0, 1},
	 4,
	 UNKNOWN,
	 true,
	 1,
	 CK_RIVAL_JOB},
	{"another cluster's job of our number",
	 {"maxi", "7", "4", 2, 1},
	 4,
	 UNKNOWN,
	 true,
	 1,
	 CK_RIVAL_JOB},
	{"another job, before we began",
	 {"mini", "8", "0", 0, 1},
	 2,
	 UNKNOWN,
	 true,
	 1,
	 CK_RIVAL_NONE},
	{"another job, and srun has not looked",
	 {"mini", "8", "0", 0, 1},
	 4,
	 UNKNOWN,
	 false,
	 1,
	 CK_RIVAL_NONE},
	{"a claim from outside of Slurm", {"", "", "", 0, 1}, 4, RUNS, true, 1, CK_RIVAL_NONE},
};

static struct ck_claim make_claim(const struct side *side)
{
	struct ck_claim claim = {.world_size = side->world};

	claim.job.restart_count = side->restart;
	snprintf(claim.job.cluster, sizeof(claim.job.cluster), "%s", side->cluster);
	snprintf(claim.job.job_id, sizeof(claim.job.job_id), "%s", side->job);
	snprintf(claim.job.step_id, sizeof(claim.job.step_id), "%s", side->step);
	return claim;
}

static void judges(void)
{
	static const struct side us = {"mini", "7", "4", 2, 1};
	struct ck_claim ours = make_claim(&us);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ck_claim owner = make_claim(&rows[i].owner);
		struct ck_rivals rivals = {
			.owner = &owner,
			.ours = &ours,
			.process = rows[i].process,
			.looked = rows[i].looked,
			.generation = 3,
			.tasks = rows[i].tasks,
		};

		owner.generation = rows[i].generation;
		is_int(ck_rival_judge(&rivals), rows[i].rival, "%s", rows[i].name);
		owner.ended = true;
		is_int(ck_rival_judge(&rivals), CK_RIVAL_NONE, "... and none once it is closed");
	}
}

/* ---- processes that open the run at once, and keep it open until all have tried */

static struct {
	atomic_int tried;
	char text[PROCESSES][512];
} * shared;

static bool own_steps;
static struct ckpt_options options = {.struct_size = sizeof(options)};

static void quiet(void *arg, const char *line)
{
	(void)arg;
	(void)line;
}

static int open_and_keep(const char *dir, int i)
{
	const struct timespec pause = {.tv_nsec = 5 * 1000 * 1000};
	char step[16];
	ckpt *ck;
	int rc;

	snprintf(step, sizeof(step), "%d", own_steps ? i : 0);
	setenv("SLURM_STEP_ID", step, 1);
	setenv(CK_ENV_DIR, dir, 1);
	rc = ckpt_open(&ck, NULL, &options);
	snprintf(shared->text[i], sizeof(shared->text[i]), "%s", rc ? ckpt_error(ck) : "");
	shared->tried++;
	while (shared->tried < PROCESSES)
		nanosleep(&pause, NULL);
	ckpt_close(ck);
	return -rc;
}

static void at_once(const char *what, const char *says)
{
	int results[PROCESSES];
	char dir[PATH_MAX];

	for (int round = 0; round < ROUNDS; round++) {
		int opened = 0, refused = 0;

		snprintf(dir, sizeof(dir), "%.*s/run", PATH_MAX - 64, test_tmpdir());
		shared->tried = 0;
		race(PROCESSES, open_and_keep, dir, results);
		for (int i = 0; i < PROCESSES; i++) {
			opened += results[i] == 0;
			refused += results[i] == -CKPT_EREFUSED &&
				   strstr(shared->text[i], says) != NULL;
			if (results[i])
				diag("%s", shared->text[i]);
		}
		ok(opened == 1 && refused == PROCESSES - 1,
		   "%s: one of %d has the run (%d), the others are refused by name (%d)", what,
		   PROCESSES, opened, refused);
	}
}

/* The one that has the run, saves when the step is ended for the others' failure: that is no reason to requeue. */
static void refusal_is_left(void)
{
	struct ck_mark mark = {.want = CK_WANT_REQUEUE, .reason = "signal 15", .step = 3};
	struct ck_error err = CK_ERROR_INIT;
	int results[PROCESSES];
	char dir[PATH_MAX];

	snprintf(dir, sizeof(dir), "%.*s/run", PATH_MAX - 64, test_tmpdir());
	shared->tried = 0;
	race(PROCESSES, open_and_keep, dir, results);
	snprintf(mark.job.cluster, sizeof(mark.job.cluster), "mini");
	snprintf(mark.job.job_id, sizeof(mark.job.job_id), "12");
	snprintf(mark.job.step_id, sizeof(mark.job.step_id), "0");
	is_int(ck_mark_store(&ck_io_posix, dir, 1, &mark, &err), 0, "a mark of the owner's");
	is_int(ck_mark_find(&ck_io_posix, dir, &mark.job, &mark, &err), 0, "the step's mark (%s)",
	       err.text);
	is_int(mark.want, CK_WANT_REFUSE, "... is the refusal");
	like(mark.reason, "several tasks have opened the run, on ", "... with the reason");
	snprintf(mark.job.step_id, sizeof(mark.job.step_id), "1");
	is_int(ck_mark_find(&ck_io_posix, dir, &mark.job, &mark, &err), CK_ENOENT,
	       "another step has none");
}

int main(void)
{
	options.log = quiet;
	judges();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	setenv("SLURM_JOB_ID", "12", 1);
	setenv("SLURM_CLUSTER_NAME", "mini", 1);
	setenv(CK_ENV_SEAL, "mini/12/0", 1);
	setenv(CK_ENV_GENERATION, "0", 1);
	setenv("SLURM_STEP_NUM_TASKS", "4", 1);
	at_once("tasks of one step", "has opened it for this step, and this is process");
	own_steps = true;
	at_once("steps of one job", "need a run each: srun --ckpt-name=<name>");
	own_steps = false;
	refusal_is_left();
	return done_testing();
}
