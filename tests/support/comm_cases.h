/*
 * What the collectives of runtime/comm.h must do over any struct ckpt_comm: run by threads
 * (tests/unit/comm.c) and by processes under MPI (tests/mpi/comm_mpi.c).
 *
 * Every rank runs the same case with its own ck_comm and its own report; the program brings the
 * reports together. A case passes when no rank has anything to say.
 */
#ifndef TESTS_COMM_CASES_H
#define TESTS_COMM_CASES_H

#include <stdint.h>

#include "comm.h"

/* So many still move many MiB. Under ThreadSanitizer that takes minutes, and shows no other races. */
#ifdef __SANITIZE_THREAD__
#define COMM_RANKS_OF_MUCH 3
#else
#define COMM_RANKS_OF_MUCH 16
#endif

struct comm_report {
	char why[512]; /* the first thing that was wrong on this rank, or "" */
};

/* Note that something is wrong, unless `cond` holds. Returns cond. */
int comm_expect(struct comm_report *report, int cond, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

struct comm_case {
	const char *name;
	void (*run)(struct ck_comm *comm, struct comm_report *report);
};

/* All ranks are well; the ck_comm is alive afterwards. */
extern const struct comm_case comm_cases[];
extern const int comm_ncases;

/* 1,000 collectives in a row, chosen at random, with random pauses. */
void comm_case_mixed(struct ck_comm *comm, struct comm_report *report);

/*
 * One rank comes late by more than the timeout, but listens meanwhile. The ck_comm is alive
 * afterwards.
 */
void comm_case_busy(struct ck_comm *comm, struct comm_report *report);

/* At least 2 ranks call what does not fit together. The ck_comm is dead afterwards. */
extern const struct comm_case comm_misfits[];
extern const int comm_nmisfits;

/*
 * One rank says nothing; all others run this, with a collective by number. Each must end in time,
 * dead, with a text that names the silent rank.
 */
extern const int comm_nsilent;
const char *comm_silent_name(int which);
void comm_case_silent(struct ck_comm *comm, int which, int silent, struct comm_report *report);

#endif
