/*
 * A time limit against the margin that is kept free before it. Pure.
 */
#ifndef CK_LIMIT_H
#define CK_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A time as sbatch takes it: "minutes", "minutes:seconds", "hours:minutes:seconds", "days-hours",
 * "days-hours:minutes", "days-hours:minutes:seconds". Returns seconds; 0: no limit, or not such a text,
 * which is sbatch's to refuse.
 */
int64_t ck_limit_parse(const char *text);

#define CK_LIMIT_TEXT 320

/*
 * Does the margin leave a start no time to train? Then the text for the user, with the arithmetic, is
 * in out. limit: seconds, 0: none; margin: seconds.
 */
bool ck_limit_is_short(int64_t limit, uint32_t margin, char out[static CK_LIMIT_TEXT]);

#endif
