/*
 * What sbatch tells about a job besides its id. On a terminal at once. Where its output is parsed,
 * that is with --parsable or where the error output is no terminal, as one line after the id, so that
 * the id is the first thing to read even with 2>&1.
 */
#ifndef CK_NOTICE_H
#define CK_NOTICE_H

#include <stdbool.h>

/* parsed: --parsable was given, and the terminal does not count. Before the first ck_notice. */
void ck_notice_init(bool parsed);

/* Without a ck_notice_init, at once. */
void ck_notice(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
