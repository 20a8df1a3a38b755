/*
 * The nodes of a step: what slurmctld knows of them, and whether they answer. Calls libslurm, as
 * jobinfo.h does, and each node's slurmd over TCP, as the user.
 */
#ifndef CK_NODEINFO_H
#define CK_NODEINFO_H

#include "error.h"
#include "verdict.h"

/*
 * Is a step in slurmctld's list? *nodes: then its nodes in Slurm's notation, which the caller frees.
 * Returns 0 or CK_EIO.
 */
int ck_nodeinfo_step(uint32_t job_id, uint32_t step_id, bool *listed, char **nodes,
		     struct ck_error *err);

/* The nodes of a list in Slurm's notation, by name alone; the caller frees *out. 0 or CK_ENOMEM. */
int ck_nodeinfo_expand(const char *list, struct ck_node **out, size_t *count);

/* What slurmctld knows of them now. Returns 0 or CK_EIO, then they are as they were. */
int ck_nodeinfo_load(struct ck_node *nodes, size_t count, struct ck_error *err);

/*
 * Sets `answers` of each: a slurmd answers when it closes a connection that we have made and shut
 * down. A host whose slurmd hangs accepts it too, and does not. Takes some milliseconds, and with a
 * node that does not answer CK_PROBE_MS for each 64 of them.
 */
#define CK_PROBE_MS 5000
void ck_nodeinfo_probe(struct ck_node *nodes, size_t count);

/* SlurmdTimeout in seconds; Slurm's default where slurmctld does not say. */
uint32_t ck_nodeinfo_slurmd_timeout(void);

#endif
