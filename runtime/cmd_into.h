/*
 * Where `ckpt reshard` and `export` write: what may be written there, and by whom.
 */
#ifndef CK_CMD_INTO_H
#define CK_CMD_INTO_H

#include "cmd.h"
#include "source.h"

/*
 * Neither a checkpoint's directory nor one that a run keeps for itself (.gen-1), nor anything below one, whether
 * it is there or would be made: a file more makes a checkpoint bad, and what a run keeps goes when it likes.
 * Returns 0; CK_EREFUSED; CK_EARG: no path.
 */
int ck_cmd_place_check(const struct ck_io *io, const char *dir, struct ck_error *err);

/*
 * May a checkpoint of `from` be added to the run directory `dir`, and would it do no harm there? One that is not
 * there yet, or is empty, is fine. Changes nothing. Returns 0; CK_EREFUSED: its place, or it is another
 * run's, or complete, or what a start resumes from there is of another step, which the result would hide; CK_EIO;
 * CK_EFORMAT; CK_ENOMEM.
 */
int ck_cmd_into_check(const struct ck_io *io, const char *dir, const struct ck_source *from,
		      struct ck_error *err);

/*
 * Check once more, make the run if there is none, and claim its next generation. Returns 0; the above;
 * CK_EREFUSED: somebody may still write to it.
 *   claim  out; the caller ends it
 */
int ck_cmd_into_claim(const struct ck_io *io, const char *dir, const struct ck_source *from,
		      uint32_t world, struct ck_claim *claim, struct ck_error *err);

#endif
