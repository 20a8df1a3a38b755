/*
 * Pins of checkpoints.
 */
#ifndef CK_PIN_H
#define CK_PIN_H

#include <stdbool.h>

#include "error.h"
#include "io.h"
#include "names.h"

/*
 * Pins: a pinned checkpoint is not counted and never deleted. A pin is an empty file .pin-… in the run
 * directory, beside the checkpoint. Pinning twice, and removing a pin that is not there, is fine.
 * Return 0; CK_ENOENT (pin: no such checkpoint, or it is being deleted, see leave.h); CK_EIO (also: something else has the name).
 */
int ck_pin(const struct ck_io *io, const char *dir, struct ck_step_id id, struct ck_error *err);
int ck_unpin(const struct ck_io *io, const char *dir, struct ck_step_id id, struct ck_error *err);
/* Does a listing of the run directory have a pin of it? */
bool ck_pin_listed(const struct ck_names *names, struct ck_step_id id);
/* When it cannot be known, it counts as pinned. */
bool ck_is_pinned(const struct ck_io *io, const char *dir, struct ck_step_id id);

#endif
