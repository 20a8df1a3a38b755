/*
 * The handle behind `ckpt`, shared by the files of the runtime that implement <ckpt.h>.
 */
#ifndef CK_HANDLE_H
#define CK_HANDLE_H

#include <stdarg.h>

#include "agree.h"
#include "catalog.h"
#include "ckpt.h"
#include "comm.h"
#include "error.h"
#include "io.h"
#include "io_fault.h"
#include "items.h"
#include "registry.h"
#include "run.h"
#include "settings.h"

/* The merged registrations of all ranks, as of registry.version == version. */
struct ck_dealt {
	bool valid;
	uint64_t version;
	struct ck_duty duty; /* this rank's part */
	struct ck_deal deal; /* rank 0: all of it */
};

struct ckpt {
	bool off;
	bool has_comm;
	bool opened; /* signals installed, directory claimed */
	int dead;    /* not 0: every later call returns it */
	struct ck_error error;
	struct ck_settings set;
	struct ck_comm comm;
	struct ck_io_fault *fault; /* NULL: the plain io */
	const struct ck_io *io;
	void (*log)(void *log_arg, const char *line);
	void *log_arg;

	struct ck_registry registry;
	struct ck_dealt dealt;
	char *user; /* JSON object or NULL */

	/* The run; all ranks know generation and run_id, the rest is rank 0's. */
	uint64_t generation;
	struct ck_run run;
	struct ck_claim claim;

	/* Where training stands; the same on all ranks. */
	uint64_t step;
	bool stopped;   /* CKPT_STOP has been returned */
	bool has_saved; /* `saved` is committed by this generation, or was resumed from */
	bool saved_here;
	uint64_t saved; /* step */
	bool resumed;   /* this generation loaded resumed_id */
	struct ck_step_id resumed_id;
	unsigned failed_saves;            /* in a row */
	char last_failure[CK_ERROR_TEXT]; /* the last save's, to say each cause once */

	/* Rank 0: checkpoints known to be bad, for rotation. */
	struct ck_step_id *bad;
	size_t nbad;
	bool sized_up; /* those found at the start have been looked at */

	/* Clocks, monotonic seconds. */
	double opened_at;         /* start of training time in this incarnation */
	double wall_clock_before; /* training time of earlier incarnations */
	double last_save_at;
	double save_seconds;  /* longest recent save; 0: none yet */
	double last_call_at;  /* of ckpt_step; 0: not called yet */
	double longest_gap;   /* between recent calls of it */
	double last_alive_at; /* of ckpt_alive */
	bool deadline_seen;
	unsigned saves_seen; /* save signals acted on */

	struct ck_agreement agreement;
};

/* Monotonic seconds. */
double ck_now(void);

/* One line through the log of the program; rank 0 only. "ckpt: " is put in front. */
void ck_log(const ckpt *ck, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Note an event in the generation's events.jsonl; rank 0 only, failures do not matter. */
void ck_note(const ckpt *ck, const char *event, uint64_t step, const char *text);

/* Keep the error for ckpt_error; CK_EPEER and CK_EFENCED make the handle dead. Returns `code`. */
int ck_keep(ckpt *ck, int code, const struct ck_error *err);

static inline bool ck_is_root(const ckpt *ck)
{
	return ck->comm.table.rank == 0;
}

/*
 * Merge the registrations if one of the ranks changed its own since the last time. Collective.
 * Returns 0; CKPT_EARG or CK_EITEM, the same on all ranks; CK_EPEER.
 */
int ck_deal_refresh(ckpt *ck, struct ck_error *err);
void ck_dealt_fini(struct ck_dealt *dealt);

/*
 * Save and commit `step`, synchronously. Collective.
 * Returns 0; the code of the failure, the same on all ranks; nothing of the failed save is left.
 */
int ck_save_now(ckpt *ck, uint64_t step, struct ck_error *err);

/* Rank 0: remember a bad checkpoint. Returns 0 or CK_ENOMEM. */
int ck_mark_bad(ckpt *ck, struct ck_step_id id, struct ck_error *err);

#endif
