/*
 * Is the owner of a run still running? What can be told without Slurm: its process on this host.
 */
#ifndef CK_TAKEOVER_H
#define CK_TAKEOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "io.h"
#include "run.h"

/*
 * Who we are, into a claim: host, pid, time, and what tells this process from a later one of its pid, whatever
 * becomes of the clock.
 */
void ck_claim_sign(const struct ck_io *io, struct ck_claim *claim);

enum ck_process { CK_PROCESS_UNKNOWN = 0, CK_PROCESS_RUNS, CK_PROCESS_GONE };

/*
 * The process of a claim: on another host nothing can be told of it. One that is ours is gone, too: whoever has a run
 * open asks ck_owner_is_us first.
 */
enum ck_process ck_owner_process(const struct ck_io *io, const struct ck_claim *owner,
				 const struct ck_claim *ours);

/*
 * True when the owner's claim was not ended, was made by another process of this host, and that very process
 * still runs: no zombie, and not begun after the claim (then its number was given to another; by its start and the boot
 * where the claim has them, else by the clock). Of other hosts nothing is known: false.
 *
 *   ours  our own claim: host and pid
 */
bool ck_owner_seems_alive(const struct ck_io *io, const struct ck_claim *owner,
			  const struct ck_claim *ours);

/*
 * True when the owner's claim was not ended and was made by this very process. Only for one that has a run open:
 * a process begun at once after an owner that died may have its number.
 */
bool ck_owner_is_us(const struct ck_io *io, const struct ck_claim *owner,
		    const struct ck_claim *ours);

/*
 * From /proc/<pid>/stat and /proc/uptime: does the process run, and since when? Pure.
 *   now    seconds since 1970
 *   since  out: when it began
 * False: it is dead (a zombie), or the texts are not what they should be.
 */
bool ck_process_runs(const char *stat, const char *uptime, long ticks, int64_t now, int64_t *since);

/*
 * True when nobody holds the run any more, as far as can be told here: the claim was ended, or its process was one
 * of this host and is dead. Of a Slurm job that was not ended, and of other hosts, nothing can be told: false.
 *
 *   host  ours
 */
bool ck_owner_is_gone(const struct ck_io *io, const struct ck_claim *owner, const char *host);

#endif
