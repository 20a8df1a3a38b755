#include "lost.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "nodeinfo.h"

struct vigil {
	const struct ck_watch *watch;
	struct ck_look look;
	char *list; /* the step's nodes, as Slurm writes them */
	struct ck_node *nodes;
	int64_t began_ms, down_since_ms;
	bool said;
};

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void look_at_job(struct vigil *vigil)
{
	const struct ck_watch *watch = vigil->watch;
	struct ck_look *look = &vigil->look;
	struct ck_jobinfo job;
	char *list = NULL;

	look->loaded = ck_jobinfo_load(watch->start.job_id, &job, NULL) == 0;
	look->changed =
		look->loaded && (job.state != CK_JOB_RUNNING || !ck_watch_same_start(watch, &job));
	look->steps_known = ck_nodeinfo_step(watch->start.job_id, watch->step_id, &look->listed,
					     &list, NULL) == 0;
	if (!list)
		return;
	free(vigil->list);
	vigil->list = list;
}

static void look_at_nodes(struct vigil *vigil)
{
	struct ck_look *look = &vigil->look;
	bool down = false;

	if (!vigil->nodes)
		return;
	/* Without an answer nothing has changed, for us. */
	ck_nodeinfo_load(vigil->nodes, look->count, NULL);
	ck_nodeinfo_probe(vigil->nodes, look->count);
	for (size_t i = 0; i < look->count; i++)
		down = down || vigil->nodes[i].down;
	if (!down)
		vigil->down_since_ms = 0;
	else if (!vigil->down_since_ms)
		vigil->down_since_ms = now_ms();
	look->down_ms = down ? now_ms() - vigil->down_since_ms : 0;
}

/* From now on the nodes are looked at. False: they cannot be known. */
static bool ask_nodes(struct vigil *vigil)
{
	struct ck_look *look = &vigil->look;

	if (!vigil->list || ck_nodeinfo_expand(vigil->list, &vigil->nodes, &look->count))
		return false;
	look->nodes = vigil->nodes;
	look->slurmd_timeout = ck_nodeinfo_slurmd_timeout();
	look_at_nodes(vigil);
	return true;
}

static void say_waiting(struct vigil *vigil, const struct ck_node *node, void (*say)(const char *))
{
	char line[CK_NODE_NAME + 128];

	if (vigil->said)
		return;
	snprintf(line, sizeof(line),
		 "the step failed and %s does not answer; waiting up to %" PRIu32
		 " s for Slurm to decide whether it is down",
		 node ? node->name : "slurmctld", ck_verdict_seconds(vigil->look.slurmd_timeout));
	say(line);
	vigil->said = true;
}

/* Seldom, once it takes long: many jobs may wait for the same dead nodes. */
static void pause_between(const struct ck_look *look)
{
	long ms = look->waited_ms < CK_REPORT_MS ? 50 : look->waited_ms < 30000 ? 500 : 2000;
	struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&pause, NULL);
}

static enum ck_verdict next_verdict(struct vigil *vigil, const struct ck_node **which)
{
	enum ck_verdict verdict;

	vigil->look.waited_ms = now_ms() - vigil->began_ms;
	look_at_job(vigil);
	look_at_nodes(vigil);
	verdict = ck_verdict(&vigil->look, which);
	if (verdict != CK_VERDICT_ASK)
		return verdict;
	return ask_nodes(vigil) ? ck_verdict(&vigil->look, which) : CK_VERDICT_HEALTHY;
}

static enum ck_nodes nodes_of(enum ck_verdict verdict)
{
	switch (verdict) {
	case CK_VERDICT_CHANGED:
		return CK_NODES_UNKNOWN;
	case CK_VERDICT_LOST:
		return CK_NODES_LOST;
	case CK_VERDICT_KEPT:
		return CK_NODES_KEPT;
	default:
		return CK_NODES_HEALTHY;
	}
}

enum ck_nodes ck_lost_wait(const struct ck_watch *watch, void (*say)(const char *line),
			   char node[static CK_NODE_NAME])
{
	struct vigil vigil = {.watch = watch, .look.began = watch->began, .began_ms = now_ms()};
	const struct ck_node *which = NULL;
	enum ck_verdict verdict;

	while ((verdict = next_verdict(&vigil, &which)) <= CK_VERDICT_AWAIT) {
		if (verdict == CK_VERDICT_AWAIT)
			say_waiting(&vigil, which, say);
		pause_between(&vigil.look);
	}
	snprintf(node, CK_NODE_NAME, "%s", which ? which->name : "");
	free(vigil.list);
	free(vigil.nodes);
	return nodes_of(verdict);
}
