/*
 * Is the owner of a run still running? What can be told without Slurm: its process on this host.
 */
#ifndef CK_TAKEOVER_H
#define CK_TAKEOVER_H

#include <stdbool.h>

#include "run.h"

/*
 * True when the owner's claim was not ended, was made by another process of this host, and that process
 * exists. A claim of a Slurm job, or by one, is never said to be alive: the plugin judges those.
 *
 *   ours  our own claim: host, pid and job
 */
bool ck_owner_seems_alive(const struct ck_claim *owner, const struct ck_claim *ours);

#endif
