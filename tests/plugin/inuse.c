/* inuse.h: is a run in use by another step? */
#include "inuse.h"

#include <stdio.h>
#include <string.h>

#include "tap.h"

struct row {
	const char *name;
	const char *job, *step, *cluster; /* of the claim */
	uint64_t restart;
	bool ended;
	enum ck_answer answer;
	enum ck_job_state state;
	uint32_t owner_restarts;
	uint32_t steps[2];
	enum ck_holding holding;
};

/* We are step 4 of job 7 of "mini", in its fourth start. */
static const struct row rows[] = {
	{"another job's step that runs",
	 "12",
	 "0",
	 "mini",
	 1,
	 false,
	 CK_ANSWER_JOB,
	 CK_JOB_RUNNING,
	 1,
	 {0, 1},
	 CK_HOLDING_OTHER_JOB},
	{"another job that has gone on to its next step",
	 "12",
	 "0",
	 "mini",
	 1,
	 false,
	 CK_ANSWER_JOB,
	 CK_JOB_RUNNING,
	 1,
	 {1, 2},
	 CK_HOLDING_NONE},
	{"another job, by mpirun: no step is known",
	 "12",
	 "",
	 "mini",
	 1,
	 false,
	 CK_ANSWER_JOB,
	 CK_JOB_RUNNING,
	 1,
	 {1, 2},
	 CK_HOLDING_OTHER_JOB},
	{"another job, started anew since",
	 "12",
	 "0",
	 "mini",
	 1,
	 false,
	 CK_ANSWER_JOB,
	 CK_JOB_RUNNING,
	 2,
	 {0, 1},
	 CK_HOLDING_NONE},
	{"another job that waits",
	 "12",
	 "0",
	 "mini",
	 1,
	 false,
	 CK_ANSWER_JOB,
	 CK_JOB_PENDING,
	 1,
	 {9, 9},
	 CK_HOLDING_NONE},
	{"another job that has ended",
	 "12",
	 "0",
	 "mini",
	 1,
	 false,
	 CK_ANSWER_JOB,
	 CK_JOB_ENDED,
	 1,
	 {9, 9},
	 CK_HOLDING_NONE},
	{"another job that slurmctld has forgotten",
	 "12",
	 "0",
	 "mini",
	 1,
	 false,
	 CK_ANSWER_NO_JOB,
	 CK_JOB_RUNNING,
	 1,
	 {0, 1},
	 CK_HOLDING_NONE},
	{"another user's job that is not shown to us",
	 "12",
	 "0",
	 "mini",
	 1,
	 false,
	 CK_ANSWER_HIDDEN,
	 CK_JOB_RUNNING,
	 1,
	 {0, 1},
	 CK_HOLDING_HIDDEN},
	{"another user's job that closed the run",
	 "12",
	 "0",
	 "mini",
	 1,
	 true,
	 CK_ANSWER_HIDDEN,
	 CK_JOB_RUNNING,
	 1,
	 {0, 1},
	 CK_HOLDING_NONE},
	{"another job, and slurmctld does not answer",
	 "12",
	 "0",
	 "mini",
	 1,
	 false,
	 CK_ANSWER_NONE,
	 CK_JOB_RUNNING,
	 1,
	 {0, 1},
	 CK_HOLDING_UNKNOWN},
	{"an owner that closed the run",
	 "12",
	 "0",
	 "mini",
	 1,
	 true,
	 CK_ANSWER_JOB,
	 CK_JOB_RUNNING,
	 1,
	 {0, 1},
	 CK_HOLDING_NONE},
	{"another cluster's job of the same number",
	 "7",
	 "0",
	 "maxi",
	 1,
	 false,
	 CK_ANSWER_NO_JOB,
	 CK_JOB_RUNNING,
	 1,
	 {0, 1},
	 CK_HOLDING_OTHER_CLUSTER},
	{"another cluster's job that closed the run",
	 "12",
	 "0",
	 "maxi",
	 1,
	 true,
	 CK_ANSWER_NO_JOB,
	 CK_JOB_RUNNING,
	 1,
	 {0, 1},
	 CK_HOLDING_NONE},
	{"a claim from outside of Slurm",
	 "",
	 "",
	 "",
	 0,
	 false,
	 CK_ANSWER_NO_JOB,
	 CK_JOB_RUNNING,
	 0,
	 {0, 1},
	 CK_HOLDING_NONE},
	{"our job's other step, which runs",
	 "7",
	 "1",
	 "mini",
	 3,
	 false,
	 CK_ANSWER_JOB,
	 CK_JOB_RUNNING,
	 3,
	 {1, 4},
	 CK_HOLDING_SAME_JOB},
	{"our job's earlier step",
	 "7",
	 "1",
	 "mini",
	 3,
	 false,
	 CK_ANSWER_JOB,
	 CK_JOB_RUNNING,
	 3,
	 {2, 4},
	 CK_HOLDING_NONE},
	{"our job's step of an earlier start",
	 "7",
	 "1",
	 "mini",
	 2,
	 false,
	 CK_ANSWER_JOB,
	 CK_JOB_RUNNING,
	 3,
	 {1, 4},
	 CK_HOLDING_NONE},
	{"the same, and slurmctld does not answer",
	 "7",
	 "1",
	 "mini",
	 2,
	 false,
	 CK_ANSWER_NONE,
	 CK_JOB_RUNNING,
	 3,
	 {1, 4},
	 CK_HOLDING_NONE},
	{"our own step",
	 "7",
	 "4",
	 "mini",
	 3,
	 false,
	 CK_ANSWER_JOB,
	 CK_JOB_RUNNING,
	 3,
	 {4, 9},
	 CK_HOLDING_NONE},
	{"our own job, by mpirun",
	 "7",
	 "",
	 "mini",
	 3,
	 false,
	 CK_ANSWER_JOB,
	 CK_JOB_RUNNING,
	 3,
	 {4, 9},
	 CK_HOLDING_NONE},
};

static struct ck_owner make_owner(const struct row *row, struct ck_claim *claim)
{
	*claim = (struct ck_claim){.ended = row->ended, .host = "n3"};
	snprintf(claim->job.job_id, sizeof(claim->job.job_id), "%s", row->job);
	snprintf(claim->job.step_id, sizeof(claim->job.step_id), "%s", row->step);
	snprintf(claim->job.cluster, sizeof(claim->job.cluster), "%s", row->cluster);
	claim->job.restart_count = row->restart;
	return (struct ck_owner){
		.claim = claim,
		.cluster = "mini",
		.job_id = 7,
		.restarts = 3,
		.step_id = 4,
		.answer = row->answer,
		.state = row->state,
		.owner_restarts = row->owner_restarts,
		.steps_known = true,
		.steps = row->steps,
		.nsteps = 2,
	};
}

static void steps_unknown(void)
{
	struct ck_claim claim;
	struct ck_owner owner = make_owner(&rows[1], &claim);

	owner.steps_known = false;
	is_int(ck_owner_holding(&owner), CK_HOLDING_OTHER_JOB,
	       "a job that runs, and its steps cannot be told: one of them may hold the run");
}

static void refusals(void)
{
	static const struct {
		const char *row, *says;
	} cases[] = {
		{"our job's other step, which runs",
		 "/c/run: is in use by step 1 of this job, which runs on n3: steps that run at the "
		 "same time need a run each: srun --ckpt-name=<name>; "},
		{"another job's step that runs",
		 "/c/run: is in use by step 0 of job 12, which runs on n3: wait for it, cancel it, "
		 "or take over with --ckpt-takeover"},
		{"another job, by mpirun: no step is known", "by step ? of job 12"},
		{"another user's job that is not shown to us",
		 "/c/run: job 12 of cluster mini has opened it on n3 and not closed it, and "
		 "whether "
		 "that job still runs is not known: it is another user's, and Slurm does not show "
		 "such jobs here (PrivateData). If it does not, take over with --ckpt-takeover"},
		{"another cluster's job of the same number", "job 7 of cluster maxi"},
		{"another job, and slurmctld does not answer", "is not known: no word. If"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ck_error err = CK_ERROR_INIT;
		struct ck_claim claim;

		for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
			struct ck_owner owner = make_owner(&rows[k], &claim);

			if (strcmp(rows[k].name, cases[i].row) == 0)
				is_int(ck_owner_refuse(&owner, "/c/run", "no word", &err),
				       CK_EREFUSED, "refused: %s", rows[k].name);
		}
		like(err.text, cases[i].says, "... in these words");
	}
}

int main(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ck_error err = CK_ERROR_INIT;
		struct ck_claim claim;
		struct ck_owner owner = make_owner(&rows[i], &claim);

		is_int(ck_owner_holding(&owner), rows[i].holding, "%s", rows[i].name);
		is_int(ck_owner_refuse(&owner, "/c/run", "", &err),
		       rows[i].holding == CK_HOLDING_NONE ? 0 : CK_EREFUSED, "... and so refused");
	}
	steps_unknown();
	refusals();
	return done_testing();
}
