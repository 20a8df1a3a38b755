/*
 * Trying again what could not be looked at (ck_is_unseen): with pauses that grow, within a bound. By counting
 * pauses, not by a clock, so that ranks that agree on the failures agree on when it is over.
 */
#ifndef CK_RETRY_H
#define CK_RETRY_H

#include <stdbool.h>
#include <stdint.h>

/* All pauses together; less where ranks may be silent for less (SLURM_CKPT_TIMEOUT). */
#define CK_RETRY_MS 15000

struct ck_retry {
	uint64_t pause_ms; /* the next one */
	uint64_t left_ms;
};

/* timeout_ms: how long a rank may be silent; a quarter of it is the most that is waited here. */
struct ck_retry ck_retry_begin(uint64_t timeout_ms);

/*
 * That failed with `code`: wait, if trying again makes sense. False: it is no such failure (or none), or the time is
 * over.
 */
bool ck_retry_wait(struct ck_retry *retry, int code);

#endif
