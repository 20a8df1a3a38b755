/* Has a failed step lost a node? What may be known, and the order in which two releases tell it. */
#include "verdict.h"
#include "decide.h"
#include "opts.h"
#include "tap.h"

#define BEGAN 1000
#define TIMEOUT 300

/* A node that was up before the step began, and answers. */
#define UP .name = "n1", .answers = true, .boot = 10, .slurmd = 20
#define NODES(...)                                            \
	.nodes = (const struct ck_node[]){{UP}, __VA_ARGS__}, \
	.count = sizeof((const struct ck_node[]){{UP}, __VA_ARGS__}) / sizeof(struct ck_node)

/* srun has ended with a failed step, and slurmctld has the step in its list. */
#define BASE                                                                                 \
	.loaded = true, .steps_known = true, .listed = true, .began = BEGAN, .waited_ms = 0, \
	.slurmd_timeout = TIMEOUT

#define N2 .name = "n2", .answers = true, .boot = 10, .slurmd = 20
#define LIMIT_MS ((TIMEOUT + TIMEOUT / 3 + CK_DECIDE_MARGIN_S) * 1000)

#pragma GCC diagnostic ignored "-Woverride-init"
static const struct {
	const char *name;
	struct ck_look look;
	enum ck_verdict verdict;
	const char *node;
} table[] = {
	/* An ordinary crash. */
	{"every node has reported", {BASE, .listed = false}, CK_VERDICT_HEALTHY, NULL},
	{"not yet", {BASE}, CK_VERDICT_WAIT, NULL},
	{"not for a second", {BASE, .waited_ms = CK_REPORT_MS}, CK_VERDICT_ASK, NULL},
	{"all nodes are up", {BASE, NODES({N2}), .waited_ms = CK_REPORT_MS}, CK_VERDICT_WAIT, NULL},
	{"all nodes are up, and a task does not end",
	 {BASE, NODES({N2}), .waited_ms = CK_PATIENCE_MS},
	 CK_VERDICT_HEALTHY,
	 NULL},
	{"a slurmd is away, but every node has reported",
	 {BASE, NODES({N2, .answers = false}), .listed = false},
	 CK_VERDICT_HEALTHY,
	 NULL},
	{"a slurmd was restarted, and its node reports",
	 {BASE, NODES({N2, .slurmd = BEGAN + 9}), .waited_ms = 2000},
	 CK_VERDICT_WAIT,
	 "n2"},
	{"a slurmd was restarted, and its node has reported",
	 {BASE, NODES({N2, .slurmd = BEGAN + 9}), .listed = false},
	 CK_VERDICT_HEALTHY,
	 NULL},
	{"a slurmd started a moment before the step, by a clock ahead",
	 {BASE, NODES({N2, .slurmd = BEGAN + 1}), .waited_ms = CK_RESTARTED_MS},
	 CK_VERDICT_HEALTHY,
	 NULL},

	/* A node is gone. */
	{"silent", {BASE, NODES({N2, .answers = false})}, CK_VERDICT_AWAIT, "n2"},
	{"silent, slurmctld hears of it, time is over",
	 {BASE, NODES({N2, .answers = false}), .waited_ms = LIMIT_MS},
	 CK_VERDICT_HEALTHY,
	 "n2"},
	{"marked", {BASE, NODES({N2, .not_responding = true})}, CK_VERDICT_AWAIT, "n2"},
	{"marked, a moment before time is over",
	 {BASE, NODES({N2, .not_responding = true}), .waited_ms = LIMIT_MS - 1},
	 CK_VERDICT_AWAIT,
	 "n2"},
	{"marked, time is over",
	 {BASE, NODES({N2, .not_responding = true}), .waited_ms = LIMIT_MS},
	 CK_VERDICT_LOST,
	 "n2"},
	{"silent, SlurmdTimeout=0",
	 {BASE, NODES({N2, .answers = false}), .slurmd_timeout = 0, .waited_ms = 59999},
	 CK_VERDICT_AWAIT,
	 "n2"},
	{"silent, SlurmdTimeout=0, time is over",
	 {BASE, NODES({N2, .answers = false}), .slurmd_timeout = 0, .waited_ms = 60000},
	 CK_VERDICT_LOST,
	 "n2"},
	{"booted",
	 {BASE, NODES({N2, .boot = BEGAN + 30, .slurmd = BEGAN + 60})},
	 CK_VERDICT_LOST,
	 "n2"},
	{"its slurmd was restarted, and it does not report",
	 {BASE, NODES({N2, .slurmd = BEGAN + 60}), .waited_ms = CK_RESTARTED_MS},
	 CK_VERDICT_LOST,
	 "n2"},
	{"one is booted, another silent",
	 {BASE, NODES({N2, .answers = false}, {UP, .name = "n3", .boot = BEGAN + 30})},
	 CK_VERDICT_LOST,
	 "n3"},

	/* Slurm's word. */
	{"requeued", {BASE, .changed = true}, CK_VERDICT_CHANGED, NULL},
	{"cancelled while a node is silent",
	 {BASE, .changed = true, NODES({N2, .answers = false})},
	 CK_VERDICT_CHANGED,
	 NULL},
	{"down, and the job is about to be requeued",
	 {BASE, NODES({N2, .down = true}), .down_ms = CK_DOWN_MS - 1},
	 CK_VERDICT_WAIT,
	 "n2"},
	{"down, and the job goes on",
	 {BASE, NODES({N2, .down = true}), .down_ms = CK_DOWN_MS},
	 CK_VERDICT_KEPT,
	 "n2"},
	{"down, and the step has left the list",
	 {BASE, NODES({N2, .down = true}), .listed = false, .down_ms = CK_DOWN_MS},
	 CK_VERDICT_KEPT,
	 "n2"},

	/* slurmctld is away. */
	{"no answer for the job", {BASE, .loaded = false}, CK_VERDICT_AWAIT, NULL},
	{"no answer for the job, whatever it was",
	 {BASE, .loaded = false, .changed = true},
	 CK_VERDICT_AWAIT,
	 NULL},
	{"no answer for the steps",
	 {BASE, .steps_known = false, .listed = false},
	 CK_VERDICT_AWAIT,
	 NULL},
	{"no answer for too long",
	 {BASE, .loaded = false, .waited_ms = LIMIT_MS},
	 CK_VERDICT_HEALTHY,
	 NULL},
};

static void test_table(void)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct ck_node *which = NULL;

		is_int(ck_verdict(&table[i].look, &which), table[i].verdict, "%s", table[i].name);
		is_str(which ? which->name : NULL, table[i].node, "... %s", "which node");
	}
}

/*
 * 24.11 with Open MPI 5, SlurmdTimeout=10, as a cluster told it: n2 dies at 0 s, the rank on n1 exits
 * with 14 in the same second, srun ends at 7 s; slurmctld marks n2 at 15 s, and at 25 s sets it down
 * and requeues the job in one go.
 */
static void test_order_24_11(void)
{
	struct ck_node nodes[] = {{UP}, {N2, .answers = false}};
	struct ck_look look = {BASE, .slurmd_timeout = 10};
	const struct ck_node *which;

	is_int(ck_verdict(&look, &which), CK_VERDICT_WAIT, "24.11: srun ends, the step is listed");
	look.waited_ms = 1050;
	is_int(ck_verdict(&look, &which), CK_VERDICT_ASK, "... and still is");
	look.nodes = nodes;
	look.count = 2;
	is_int(ck_verdict(&look, &which), CK_VERDICT_AWAIT, "... n2 does not answer");
	look.waited_ms = 8000;
	nodes[1].not_responding = true;
	is_int(ck_verdict(&look, &which), CK_VERDICT_AWAIT, "... it is marked");
	look.waited_ms = 18000;
	look.changed = true;
	nodes[1].down = true;
	is_int(ck_verdict(&look, &which), CK_VERDICT_CHANGED,
	       "... it is down, the job is requeued");
}

/*
 * 22.05 with Open MPI 4.1: the other ranks wait for the dead one, and srun for them, until slurmctld
 * has set n2 down and requeued the job; srun's end is of that.
 */
static void test_order_22_05(void)
{
	struct ck_end end = {.loaded = true,
			     .restarts_noted = 0,
			     .restarts = 1,
			     .start_noted = 5,
			     .start = 5,
			     .state = CK_JOB_PENDING,
			     .batch = true,
			     .may_requeue = true,
			     .exit_code = 137,
			     .most = CK_REQUEUE_AUTO};
	struct ck_look look = {BASE, .changed = true};
	char reason[CK_END_REASON];
	const struct ck_node *which;

	is_int(ck_end_decide(&end, reason), CK_END_WAIT, "22.05: requeued before srun ends");
	is_int(ck_verdict(&look, &which), CK_VERDICT_CHANGED, "... or as it looks");
}

/* A node that comes back before Slurm has missed it. */
static void test_order_reboot(void)
{
	struct ck_node nodes[] = {{UP}, {N2, .answers = false}};
	struct ck_look look = {BASE, .nodes = nodes, .count = 2, .waited_ms = 2000};
	const struct ck_node *which;

	is_int(ck_verdict(&look, &which), CK_VERDICT_AWAIT, "a node is silent");
	nodes[1].answers = true;
	look.waited_ms = 40000;
	is_int(ck_verdict(&look, &which), CK_VERDICT_HEALTHY,
	       "... and answers again: a short outage");
	nodes[1].slurmd = BEGAN + 38;
	is_int(ck_verdict(&look, &which), CK_VERDICT_LOST,
	       "... with another slurmd: it has lost its tasks");
}

int main(void)
{
	test_table();
	test_order_24_11();
	test_order_22_05();
	test_order_reboot();
	is_u64(ck_verdict_seconds(300), 460, "Slurm's time to decide, by default");
	return done_testing();
}
