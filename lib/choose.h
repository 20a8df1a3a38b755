/*
 * Which checkpoints may this start resume from? Pure rules over what is there and what was asked for.
 */
#ifndef CK_CHOOSE_H
#define CK_CHOOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "names.h"
#include "run.h"

/* --ckpt-resume */
enum ck_resume_mode { CK_RESUME_AUTO = 0, CK_RESUME_FRESH = 1, CK_RESUME_STEP = 2 };

struct ck_resume {
	enum ck_resume_mode mode;
	uint64_t step; /* of CK_RESUME_STEP */
};

/* "auto", "fresh" or a number of steps. Returns 0 or CK_EARG. */
int ck_resume_parse(const char *what, const char *text, struct ck_resume *out,
		    struct ck_error *err);

/* A checkpoint of the run, and whether a generation claimed by this job wrote it. */
struct ck_candidate {
	struct ck_step_id id;
	bool ours;
};

/*
 * The candidates in the order in which they are to be tried.
 *
 * What was asked for holds until this job has committed a checkpoint of its own, since a job's options are
 * frozen when it is submitted and come again at each requeue; from then on it is auto. After `fresh` only
 * our own are taken.
 *
 *   all    newest first
 *   out    at least `count` entries; receives the chosen ones, newest first
 *   fresh  out: start afresh although there may be checkpoints
 * Returns how many; CK_ENOENT: a step was asked for that is not there, the text lists those that are.
 */
int ck_choose(const struct ck_resume *asked, const struct ck_candidate *all, size_t count,
	      struct ck_step_id *out, bool *fresh, struct ck_error *err);

/* The same checkpoint resumed this often in a row by one job, without a newer commit: no progress. */
#define CK_NO_PROGRESS 3

/*
 * Does resuming `id` once more make no sense?
 *
 *   before  the claims before ours, newest first, as many as were looked at
 *   ours    our own: only starts of the same job count, and a start that was held begins a new count
 */
bool ck_no_progress(const struct ck_claim *before, size_t count, const struct ck_claim *ours,
		    struct ck_step_id id);

/* Do both claims belong to one job, whatever its restart? False outside of Slurm. */
bool ck_claim_same_job(const struct ck_claim *a, const struct ck_claim *b);

#endif
