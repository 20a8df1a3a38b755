/*
 * When ranks agree, and on what: pure rules. Everything that steers them has been agreed on before,
 * so that all ranks post the same reductions at the same calls: by count, never by what one rank sees.
 */
#ifndef CK_PACE_H
#define CK_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "parse.h"

/* Steps at least this long are agreed on in the same call. */
#define CK_PACE_SAME_CALL_US 100000
/* Agree at least once in so many calls. */
#define CK_PACE_CALLS_MAX 100

struct ck_pace {
	uint64_t every; /* post at every n-th call */
	bool same_call; /* complete in the call that posts; else in the next */
};

/* As long as nothing is known, and for long steps. */
#define CK_PACE_FIRST ((struct ck_pace){.every = 1, .same_call = true})

/*
 * The pace after an agreement that made the longest recent step of all ranks `step_us` (0: unknown).
 * Short steps: about ten reductions a second, completed one call later, so that a decision comes
 * within 0.2 s and costs less than a thousandth. But n at most doubles from one to the next: it counts
 * calls, and after some short steps the next ones may take as long as they like.
 */
struct ck_pace ck_pace_next(const struct ck_pace *now, uint64_t step_us);

/* What a rank wants, by urgency; the largest wins. */
enum ck_urge { CK_URGE_NONE = 0, CK_URGE_SAVE = 1, CK_URGE_STOP = 2 };

/* Why: for messages and marks. */
enum ck_why {
	CK_WHY_NONE = 0,
	CK_WHY_INTERVAL = 1,
	CK_WHY_SAVE_SIGNAL = 2,
	CK_WHY_TIME_LIMIT = 3,
	CK_WHY_SAVE_REQUEST = 4,
	CK_WHY_STOP_SIGNAL = 5, /* the signal number is in `detail` */
	CK_WHY_STOP_REQUEST = 6 /* by `ckpt stop`: outranks the others, since it means no requeue */
};

/* One word of the reduction: urgency above reason above detail. */
uint64_t ck_urge_pack(enum ck_urge urge, enum ck_why why, unsigned detail);
void ck_urge_unpack(uint64_t word, enum ck_urge *urge, enum ck_why *why, unsigned *detail);

/* Text of a reason: "signal 15", "time limit", "interval". `out` has 64 bytes. Returns out. */
char *ck_why_text(enum ck_why why, unsigned detail, char out[static 64]);

/* Is a periodic save due? now and last in seconds of one clock; steps since the last save. */
bool ck_interval_due(const struct ck_interval *every, double now, double last_save,
		     uint64_t steps_since);

/* What saves have taken so far. */
struct ck_save_times {
	double longest; /* seconds of the longest recent one: it fades by a tenth with each */
	uint64_t bytes; /* of the last one's largest rank; 0: none in this start */
	double all_seconds; /* of the last one made while the program waited, by all CPUs of all ranks */
	uint64_t all_bytes; /* of its largest rank; 0: none is known */
};

/* One has ended well. */
void ck_save_times_add(struct ck_save_times *times, double seconds, uint64_t bytes, bool waited);

/*
 * How many seconds will the save at a stop take? At the rate of the last one for which the program waited (of
 * its largest rank: the ranks write side by side); a much smaller state has told little. The longest
 * recent save without one; 0 when nothing is known.
 */
double ck_save_times_expect(const struct ck_save_times *times);

/* What the deadline rule knows; seconds. */
struct ck_deadline {
	double now, end;     /* of one clock; end <= 0: no time limit */
	double save;         /* how long a save takes */
	double rest;         /* what the save under way still needs */
	double longest_gap;  /* longest recent time between two calls of ckpt_step */
	unsigned calls_late; /* calls from a rank's wish to the save: lag + 1, times `every` */
	double margin;
};

/*
 * True when the save must begin now: end - (1.5 * save + rest + calls_late * longest_gap + margin) is
 * reached. Source: DESIGN section 6, Triggers.
 */
bool ck_deadline_near(const struct ck_deadline *deadline);

#endif
