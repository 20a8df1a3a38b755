/*
 * Waits, at the end of a step that failed, until it is known whether a node was lost (verdict.h).
 */
#ifndef CK_LOST_H
#define CK_LOST_H

#include "decide.h"
#include "verdict.h"
#include "watch.h"

/*
 * An ordinary crash is known at once, by one look at slurmctld's list of steps. With a node that does
 * not answer it takes as long as Slurm takes to decide, which `say` is told once. Returns
 * CK_NODES_UNKNOWN when the job has changed: Slurm has decided.
 * `node`: the name of the lost one.
 */
enum ck_nodes ck_lost_wait(const struct ck_watch *watch, void (*say)(const char *line),
			   char node[static CK_NODE_NAME]);

#endif
