/*
 * The handle behind `ckpt`, shared by the files of the runtime that implement <ckpt.h>.
 */
#ifndef CK_HANDLE_H
#define CK_HANDLE_H

#include <stdarg.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "agree.h"
#include "background.h"
#include "catalog.h"
#include "ckpt.h"
#include "comm.h"
#include "deal.h"
#include "error.h"
#include "endtime.h"
#include "io.h"
#include "io_fault.h"
#include "items.h"
#include "records.h"
#include "registry.h"
#include "rotation.h"
#include "room.h"
#include "run.h"
#include "settings.h"
#include "shard.h"
#include "stage.h"
#include "requests.h"

/* The merged registrations of all ranks, as of registry.version == version. */
struct ck_dealt {
	bool valid;
	uint64_t version;
	struct ck_duty duty; /* this rank's part */
	struct ck_deal deal; /* rank 0: all of it */
};

struct ck_save;

struct ckpt {
	bool off;
	bool has_comm;
	bool opened; /* signals installed, directory claimed */
	int dead;    /* not 0: every later call returns it */
	pid_t pid; /* that opened it: a forked child has neither its thread nor its place among the ranks */
	struct ck_error error;
	struct ck_settings set;
	struct ck_comm comm;
	struct ck_io_fault *fault; /* NULL: the plain io */
	const struct ck_io *io;
	_Atomic(unsigned) notes; /* bits of enum ck_shard_note, as they turn up */
	unsigned notes_told;
	void (*log)(void *log_arg, const char *line);
	void *log_arg;

	struct ck_registry registry;
	struct ck_dealt dealt;
	char *user; /* JSON object or NULL */

	/* The run; all ranks know generation and nonce, the rest is rank 0's. */
	uint64_t generation;
	char nonce[CK_RUN_ID_HEX + 1];
	struct ck_run run;
	struct ck_claim claim;
	struct ck_names found; /* rank 0: in the run directory, when it became ours */

	/* Where training stands; the same on all ranks. */
	uint64_t step;
	bool stopped;             /* CKPT_STOP has been returned */
	bool has_saved;           /* `saved` is committed by this generation, or was resumed from */
	bool saved_here;          /* this generation has committed one; the last is `saved` */
	uint64_t saved;           /* step */
	uint64_t tried;           /* step of the last save begun */
	struct ck_error no_saves; /* until a ckpt_restore succeeds: why; code 0: saves may begin */
	bool no_saves_told;
	unsigned failed_saves;            /* in a row */
	char last_failure[CK_ERROR_TEXT]; /* rank 0: the last save's, to say each cause once */

	/* Saves. */
	struct ck_background *background;
	struct ck_save *save; /* under way, or NULL; alike on all ranks */
	uint64_t saves_started;
	unsigned skipped; /* periodic saves that fell due meanwhile */
	struct ck_stage stage;
	const char *root;         /* where /proc and /sys are: "", but in tests */
	struct ck_room room;      /* for staging, when it was last looked at */
	bool direct_told;         /* that there is not enough */
	struct ck_parcel *report; /* to rank 0; rank 0: its open receive */
	bool listening;
	struct ck_records *records;  /* rank 0 */
	struct ck_rotation rotation; /* rank 0 */

	/* Clocks, monotonic seconds. */
	double opened_at;         /* start of training time in this incarnation */
	double wall_clock_before; /* training time of earlier incarnations */
	double last_save_at;
	double stall_seconds; /* how long training waited for the last save */
	struct ck_save_times times;
	double last_call_at; /* of ckpt_step; 0: not called yet */
	double longest_gap;  /* between recent calls of it */
	bool deadline_seen;
	struct ck_end_time_query end_query;
	double asked_at;
	unsigned saves_seen;          /* save signals acted on */
	double signalled_at;          /* when one of them began a save */
	struct ck_requests *requests; /* rank 0 */
	unsigned requests_seen;       /* saves asked for and begun */

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

/* Rank 0: tell the plugin what to do with the job when the step ends. The reason is cut where it is long. */
int ck_leave_mark(const ckpt *ck, uint64_t step, enum ck_want want, const char *reason,
		  struct ck_error *err);

/* Rank 0: must the save at a stop begin now, by the time limit? Slurm is asked before it is believed. */
bool ck_deadline_reached(ckpt *ck);

/* Rank 0: learn how long a save takes from the stop of the start before this one, if there was one. */
void ck_deadline_recall(ckpt *ck);

/* How this handle writes shards, and reads them when they are not in memory. */
struct ck_shard_options ck_transfer_options(ckpt *ck);

/* What every call begins with: is it over, with *answer? A handle that is NULL, dead, off, or another process's. */
bool ck_is_idle(ckpt *ck, int *answer);

static inline bool ck_is_root(const ckpt *ck)
{
	return ck->comm.table.rank == 0;
}

/*
 * Merge the registrations if one of the ranks changed its own since the last time. Collective.
 * Returns 0; CKPT_EARG or CK_EITEM, the same on all ranks; CK_EPEER.
 */
int ck_deal_refresh(ckpt *ck, struct ck_error *err);

/* Its two halves: did this rank change nothing (local)? Merge, for whoever has agreed that one did (collective). */
bool ck_deal_is_current(const ckpt *ck);
int ck_deal_renew(ckpt *ck, struct ck_error *err);
void ck_dealt_fini(struct ck_dealt *dealt);

#endif
