#include "verdict.h"

/* Clocks of nodes may differ by this much. */
#define SKEW_SECONDS 1

uint32_t ck_verdict_seconds(uint32_t slurmd_timeout)
{
	return slurmd_timeout + slurmd_timeout / 3 + CK_DECIDE_MARGIN_S;
}

enum trait { DOWN, BOOTED, RESTARTED, MARKED, SILENT };

static bool has_trait(const struct ck_node *node, enum trait trait, int64_t began)
{
	switch (trait) {
	case DOWN:
		return node->down;
	case BOOTED:
		return node->boot > began + SKEW_SECONDS;
	case RESTARTED:
		return node->slurmd > began + SKEW_SECONDS;
	case MARKED:
		return node->not_responding;
	default:
		return !node->answers;
	}
}

static bool find(const struct ck_look *look, enum trait trait, const struct ck_node **which)
{
	for (size_t i = 0; i < look->count; i++) {
		if (has_trait(&look->nodes[i], trait, look->began)) {
			*which = &look->nodes[i];
			return true;
		}
	}
	return false;
}

static bool in_time(const struct ck_look *look)
{
	return look->waited_ms < (int64_t)ck_verdict_seconds(look->slurmd_timeout) * 1000;
}

/* Slurm has not decided in time, or never will. */
static enum ck_verdict without_slurm(const struct ck_look *look, const struct ck_node *node)
{
	if (look->slurmd_timeout && !node->not_responding)
		return CK_VERDICT_HEALTHY; /* slurmctld hears of it: it is there */
	return CK_VERDICT_LOST;
}

static enum ck_verdict judge_nodes(const struct ck_look *look, const struct ck_node **which)
{
	if (find(look, DOWN, which))
		return look->down_ms < CK_DOWN_MS ? CK_VERDICT_WAIT : CK_VERDICT_KEPT;
	if (find(look, BOOTED, which))
		return CK_VERDICT_LOST;
	if (find(look, RESTARTED, which))
		return look->waited_ms < CK_RESTARTED_MS ? CK_VERDICT_WAIT : CK_VERDICT_LOST;
	if (find(look, MARKED, which) || find(look, SILENT, which))
		return in_time(look) ? CK_VERDICT_AWAIT : without_slurm(look, *which);
	return look->waited_ms < CK_PATIENCE_MS ? CK_VERDICT_WAIT : CK_VERDICT_HEALTHY;
}

enum ck_verdict ck_verdict(const struct ck_look *look, const struct ck_node **which)
{
	*which = NULL;
	if (look->loaded && look->changed)
		return CK_VERDICT_CHANGED;
	if (!look->loaded || !look->steps_known)
		return in_time(look) ? CK_VERDICT_AWAIT : CK_VERDICT_HEALTHY;
	if (!look->listed && !find(look, DOWN, which))
		return CK_VERDICT_HEALTHY;
	if (!look->nodes)
		return look->waited_ms < CK_REPORT_MS ? CK_VERDICT_WAIT : CK_VERDICT_ASK;
	return judge_nodes(look, which);
}
