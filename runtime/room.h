/*
 * How much memory is there for a copy of the state: what the cgroups of this process and its node say.
 */
#ifndef CK_ROOM_H
#define CK_ROOM_H

#include <stdint.h>

#include "comm.h"
#include "error.h"
#include "io.h"
#include "staging.h"

/*
 * Look at the cgroup that this process is in and those above it (version 1 or 2, found by
 * /proc/self/cgroup and /proc/self/mountinfo), and at MemAvailable in /proc/meminfo. Of the cgroups
 * with a limit the one with the least room counts; memory.high of version 2 is a limit as well. What
 * the page cache holds is not counted as used: the kernel gives it back.
 *
 *   root  what stands before each path: "", or a made-up tree
 *   room  out: all but ranks. What cannot be read or makes no sense sets no limit
 * Local.
 */
void ck_room_look(const struct ck_io *io, const char *root, struct ck_room *room);

/*
 * How many of the ranks run on this rank's node, by the kernel's boot id, itself included. `root` as
 * above. Collective.
 * Returns 0; CK_ENOMEM on all ranks; CK_EPEER.
 */
int ck_room_ranks(struct ck_comm *comm, const struct ck_io *io, const char *root, uint32_t *ranks,
		  struct ck_error *err);

#endif
