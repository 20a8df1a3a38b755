/*
 * Where a run lies and how it is continued by hand: words put together. Pure.
 */
#ifndef CK_PLACE_H
#define CK_PLACE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "error.h"
#include "opts.h"

/*
 * The directory of runs: --ckpt-dir (relative to cwd), else $SCRATCH/ckpt, else <cwd>/ckpt.
 *   scratch  value of $SCRATCH, may be NULL; counts when it is absolute
 *   cwd      absolute
 *   surprise true when it is <cwd>/ckpt, which nobody has named. May be NULL
 * Returns 0; CK_EARG when the path is too long.
 */
int ck_place_base(const struct ck_opts *opts, const char *scratch, const char *cwd,
		  char out[static PATH_MAX], bool *surprise, struct ck_error *err);

/*
 * A command line again, for a shell, that continues this run under another job id: --ckpt-name and
 * --ckpt-dir are put in behind its first word unless they are there.
 *   args  the words, each NUL-terminated, as in /proc/self/cmdline
 */
void ck_place_command(const char *args, size_t len, const char *name, const char *base,
		      struct ck_buf *out);

#endif
