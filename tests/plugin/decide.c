/* Shall the job be requeued? The table of what may be known at a step's end. */
#include "decide.h"
#include "opts.h"
#include "tap.h"

/* A batch job, running, whose step has ended with 75. */
#define BASE                                                                                  \
	.loaded = true, .restarts_noted = 2, .restarts = 2, .start_noted = 100, .start = 100, \
	.state = CK_JOB_RUNNING, .batch = true, .may_requeue = true, .exit_code = 75,         \
	.mark_reason = "signal 15", .most = CK_REQUEUE_AUTO

#define MARK .has_mark = true, .want = CK_WANT_REQUEUE, .mark_step = 40, .library = true
#define STOP .has_mark = true, .want = CK_WANT_STOP, .mark_step = 40, .library = true

#define FAILED .exit_code = 14, .nodes = CK_NODES_LOST, .lost = "n4"

#define HOLD .has_mark = true, .want = CK_WANT_HOLD, .mark_step = 40, .library = true

#pragma GCC diagnostic ignored "-Woverride-init"
static const struct {
	const char *name;
	struct ck_end end;
	enum ck_end_action action;
	const char *reason;
} table[] = {
	/* No work left. */
	{"ended by itself", {BASE, .exit_code = 0}, CK_END_NOTHING, "by itself"},
	{"complete", {BASE, .exit_code = 0, .complete = true}, CK_END_NOTHING, "complete"},
	{"complete outranks 75", {BASE, .complete = true}, CK_END_NOTHING, "complete"},
	{"complete outranks the time limit",
	 {BASE, .state = CK_JOB_TIMEOUT, .complete = true},
	 CK_END_NOTHING,
	 "complete"},
	{"complete at the mark's step",
	 {BASE, MARK, .complete = true, .complete_step = 40},
	 CK_END_NOTHING,
	 "complete"},
	{"marked beyond the complete step",
	 {BASE, MARK, .complete = true, .complete_step = 39},
	 CK_END_REQUEUE,
	 "signal 15, saved at step 40"},
	{"no progress", {BASE, HOLD, .exit_code = 1}, CK_END_HOLD, "signal 15"},
	{"no progress, cancelled",
	 {BASE, HOLD, .state = CK_JOB_CANCELLED},
	 CK_END_SAY,
	 "cancelled"},
	{"no progress, interactive", {BASE, HOLD, .batch = false}, CK_END_SAY, "signal 15"},
	{"no progress, not to be requeued", {BASE, HOLD, .most = 0}, CK_END_FORBID, "requeue=no"},
	{"taken over", {BASE, .superseded = true, .exit_code = 1}, CK_END_SAY, "has taken over"},
	{"taken over, at the limit",
	 {BASE, .superseded = true, .state = CK_JOB_TIMEOUT},
	 CK_END_SAY,
	 "has taken over"},
	{"stop", {BASE, STOP}, CK_END_FORBID, "signal 15, saved at step 40"},
	{"stop outranks the time limit", {BASE, STOP, .state = CK_JOB_TIMEOUT}, CK_END_FORBID, ""},
	{"stop outranks the coming limit",
	 {BASE, STOP, .exit_code = -1, .at_limit = true},
	 CK_END_FORBID,
	 ""},
	{"refused", {BASE, .exit_code = 78}, CK_END_NOTHING, "refused"},
	{"crash, nodes unknown", {BASE, .exit_code = 139}, CK_END_LOOK, "exit code 139"},
	{"crash", {BASE, FAILED, .nodes = CK_NODES_HEALTHY}, CK_END_SAY, "exit code 14"},
	{"a node was lost", {BASE, FAILED}, CK_END_REQUEUE, "node n4 failed"},
	{"a node was lost, as seen before the end",
	 {BASE, FAILED, .exit_code = 0},
	 CK_END_NOTHING,
	 "by itself"},
	{"a node was lost after the stop", {BASE, STOP, FAILED}, CK_END_FORBID, "signal 15"},
	{"a node was lost, complete", {BASE, FAILED, .complete = true}, CK_END_NOTHING, "complete"},
	{"a node was lost, no library, 20 restarts",
	 {BASE, FAILED, .restarts_noted = 20, .restarts = 20},
	 CK_END_FORBID,
	 "20 requeues"},
	{"a node was lost, requeue=no", {BASE, FAILED, .most = 0}, CK_END_FORBID, "requeue=no"},
	{"a node was lost, cancelled",
	 {BASE, FAILED, .state = CK_JOB_CANCELLED},
	 CK_END_SAY,
	 "cancelled"},
	{"a node was lost, --no-kill",
	 {BASE, FAILED, .nodes = CK_NODES_KEPT},
	 CK_END_SAY,
	 "node n4 failed, and the job goes on (--no-kill)"},
	{"crash, --no-requeue: nobody waits for its nodes",
	 {BASE, .exit_code = 139, .may_requeue = false},
	 CK_END_SAY,
	 "exit code 139"},
	{"crash, interactive, no library",
	 {BASE, .exit_code = 139, .batch = false},
	 CK_END_NOTHING,
	 ""},
	{"crash, interactive",
	 {BASE, .exit_code = 139, .batch = false, .library = true},
	 CK_END_RESUME_BY_HAND,
	 ""},

	/* Work left. */
	{"75", {BASE}, CK_END_REQUEUE, "exit code 75"},
	{"mark, exit code 0", {BASE, MARK, .exit_code = 0}, CK_END_REQUEUE, "signal 15"},
	{"mark, exit code 137", {BASE, MARK, .exit_code = 137}, CK_END_REQUEUE, "signal 15"},
	{"time limit",
	 {BASE, .state = CK_JOB_TIMEOUT, .exit_code = 143},
	 CK_END_REQUEUE,
	 "time limit"},
	{"preempted by cancelling",
	 {BASE, .state = CK_JOB_PREEMPTED, .exit_code = 143},
	 CK_END_REQUEUE,
	 "preempted"},
	{"preempted by cancelling, saved",
	 {BASE, MARK, .state = CK_JOB_PREEMPTED, .exit_code = 143},
	 CK_END_REQUEUE,
	 "signal 15, saved at step 40"},
	{"preempted by cancelling, complete",
	 {BASE, .state = CK_JOB_PREEMPTED, .complete = true},
	 CK_END_NOTHING,
	 "complete"},
	{"the limit is near",
	 {BASE, .exit_code = -1, .at_limit = true},
	 CK_END_REQUEUE,
	 "time limit"},
	{"running, nothing special", {BASE, .exit_code = -1}, CK_END_NOTHING, ""},

	/* Slurm's word. */
	{"not loaded", {BASE, .loaded = false}, CK_END_ASK, "does not answer"},
	{"not loaded, with a mark", {BASE, MARK, .loaded = false}, CK_END_ASK, ""},
	{"not loaded, no progress", {BASE, HOLD, .loaded = false}, CK_END_ASK, ""},
	{"not loaded, the limit is near",
	 {BASE, .loaded = false, .exit_code = -1, .at_limit = true},
	 CK_END_ASK,
	 ""},
	{"not loaded, a crash, which may be Slurm's doing",
	 {BASE, .loaded = false, .exit_code = 143},
	 CK_END_ASK,
	 ""},
	{"not loaded, told to stop",
	 {BASE, STOP, .loaded = false},
	 CK_END_FORBID,
	 "saved at step 40"},
	{"not loaded, taken over",
	 {BASE, .superseded = true, .loaded = false},
	 CK_END_SAY,
	 "has taken over"},
	{"not loaded, refused",
	 {BASE, .loaded = false, .exit_code = 78},
	 CK_END_NOTHING,
	 "refused"},
	{"not loaded, not to be requeued",
	 {BASE, .loaded = false, .may_requeue = false, .most = 0},
	 CK_END_FORBID,
	 "--ckpt-requeue=no"},
	{"forgotten by slurmctld",
	 {BASE, MARK, .loaded = false, .forgotten = true},
	 CK_END_SAY,
	 "does not know the job"},
	{"not loaded, no work", {BASE, .loaded = false, .exit_code = 0}, CK_END_NOTHING, ""},
	{"not loaded, whatever state says",
	 {BASE, .loaded = false, .state = CK_JOB_TIMEOUT, .exit_code = 0},
	 CK_END_NOTHING,
	 ""},
	{"cancelled", {BASE, .state = CK_JOB_CANCELLED}, CK_END_SAY, "cancelled"},
	{"cancelled with a mark", {BASE, MARK, .state = CK_JOB_CANCELLED}, CK_END_SAY, "cancelled"},
	{"cancelled at the limit",
	 {BASE, .state = CK_JOB_CANCELLED, .exit_code = -1, .at_limit = true},
	 CK_END_SAY,
	 "cancelled"},
	{"pending", {BASE, .state = CK_JOB_PENDING}, CK_END_WAIT, "already"},
	{"another restart", {BASE, .restarts = 3}, CK_END_WAIT, "already"},
	{"another start", {BASE, .start = 101}, CK_END_WAIT, "already"},
	{"a start that was not known", {BASE, .start_noted = 0}, CK_END_REQUEUE, ""},
	{"another restart, at the limit",
	 {BASE, .restarts = 3, .state = CK_JOB_TIMEOUT},
	 CK_END_WAIT,
	 "already"},
	{"ended", {BASE, .state = CK_JOB_ENDED}, CK_END_SAY, "has ended"},
	{"crash in a cancelled job",
	 {BASE, .exit_code = 143, .state = CK_JOB_CANCELLED},
	 CK_END_SAY,
	 "cancelled"},
	{"crash in a job that starts again",
	 {BASE, .exit_code = 143, .state = CK_JOB_PENDING},
	 CK_END_WAIT,
	 "already"},

	/* Interactive. */
	{"by hand", {BASE, .batch = false}, CK_END_RESUME_BY_HAND, "exit code 75"},
	{"by hand, cancelled",
	 {BASE, MARK, .batch = false, .state = CK_JOB_CANCELLED},
	 CK_END_RESUME_BY_HAND,
	 "signal 15"},
	{"by hand, not loaded", {BASE, .batch = false, .loaded = false}, CK_END_RESUME_BY_HAND, ""},
	{"by hand, finished", {BASE, .batch = false, .exit_code = 0}, CK_END_NOTHING, ""},
	{"by hand, crashed",
	 {BASE, .batch = false, .exit_code = 1, .library = true},
	 CK_END_RESUME_BY_HAND,
	 "exit code 1"},
	{"by hand, any program", {BASE, .batch = false, .exit_code = 1}, CK_END_NOTHING, ""},
	{"by hand, told to stop", {BASE, STOP, .batch = false}, CK_END_NOTHING, ""},

	/* Limits. */
	{"no", {BASE, MARK, .most = 0}, CK_END_FORBID, "--ckpt-requeue=no"},
	{"no, at the limit", {BASE, .most = 0, .state = CK_JOB_TIMEOUT}, CK_END_FORBID, "=no"},
	{"--no-requeue", {BASE, MARK, .may_requeue = false}, CK_END_SAY, "--no-requeue"},
	{"one below the most", {BASE, .most = 3}, CK_END_REQUEUE, ""},
	{"the most", {BASE, MARK, .most = 2}, CK_END_FORBID, "run 3 times, --ckpt-requeue=2"},
	{"beyond the most", {BASE, .most = 1}, CK_END_FORBID, "--ckpt-requeue=1"},
	{"a most above the bound counts",
	 {BASE, .most = 50, .restarts = 30, .restarts_noted = 30},
	 CK_END_REQUEUE,
	 ""},
	{"without the library, 19",
	 {BASE, .restarts = 19, .restarts_noted = 19},
	 CK_END_REQUEUE,
	 ""},
	{"without the library, 20",
	 {BASE, .restarts = 20, .restarts_noted = 20},
	 CK_END_FORBID,
	 "20 requeues"},
	{"with it and progress, 500",
	 {BASE, MARK, .restarts = 500, .restarts_noted = 500, .fruitless = 1},
	 CK_END_REQUEUE,
	 ""},
	{"with it, 20 starts for nothing",
	 {BASE, MARK, .fruitless = 20},
	 CK_END_FORBID,
	 "20 starts without a new checkpoint"},
	{"with it, 19 starts for nothing", {BASE, MARK, .fruitless = 19}, CK_END_REQUEUE, ""},

	{"supervised", {BASE, MARK, .supervised = true}, CK_END_NOTHING, "supervised"},
};

int main(void)
{
	char reason[CK_END_REASON];

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		is_int(ck_end_decide(&table[i].end, reason), table[i].action, "%s", table[i].name);
		like(reason, table[i].reason, "... because");
	}
	return done_testing();
}
