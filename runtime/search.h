/*
 * Rank 0's search for the checkpoint to resume from: which are there, which were asked for, which turned out
 * bad. Local: the ranks are restore.c's business.
 */
#ifndef CK_SEARCH_H
#define CK_SEARCH_H

#include "handle.h"
#include "shard.h"

/* A proposal, as it goes to the other ranks. */
struct ck_offer {
	bool fresh;    /* nothing to load */
	bool foreign;  /* of another run (--ckpt-from) */
	bool complete; /* the run had finished */
	struct ck_step_id id;
	char dir[PATH_MAX]; /* of the checkpoint */
	enum ck_level level;
	double wall_clock_seconds;
	uint32_t world_size; /* that saved it */
};

struct ck_search {
	bool begun;         /* what is there has been listed */
	char run[PATH_MAX]; /* where the candidates are: ours, or the one of --ckpt-from */
	bool foreign;
	struct ck_step_id *steps; /* candidates, in the order in which they are tried */
	size_t count;
	size_t nunused;              /* passed over, since a fresh start was asked for */
	size_t next;                 /* the one to propose */
	size_t nrefused;             /* of those before it: bad, not gone */
	unsigned renewals;           /* how often another run was listed again */
	struct ck_manifest manifest; /* of the one proposed */
	bool has_manifest;
	struct ck_buf reasons; /* of those refused, for the final error */
	int reason_code;       /* the first reason's */
};

/*
 * The next candidate whose manifest can be read and agrees with SHA256SUMS, or fresh. The first call lists them.
 * Returns 0; CK_ENOENT: checkpoints are missing, or the step asked for; the first reason's code when all are bad;
 * CK_EWORLD, CK_EITEM: the newest good one does not fit this program; CK_EREFUSED: no progress; CK_EIO, CK_ENOMEM:
 * something could not be looked at, and the next call begins there again.
 */
int ck_search_propose(ckpt *ck, struct ck_search *search, struct ck_offer *offer,
		      struct ck_error *err);

/*
 * The one proposed could not be loaded, because of `code`: CK_ENOENT, CK_EFORMAT, CK_EDIGEST. It is bad: say so, remember
 * it, go on to the next; or it was removed meanwhile: only go on. Returns 0; CK_ENOMEM; CK_EIO: a rank misses a
 * file that is there.
 */
int ck_search_refuse(ckpt *ck, struct ck_search *search, int code, const struct ck_error *why,
		     struct ck_error *err);

void ck_search_fini(struct ck_search *search);

#endif
