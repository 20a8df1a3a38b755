/*
 * The way out of a run directory. A checkpoint that goes passes through a directory of its owner's generation,
 * .leaving-<n>, which a successor's claim takes away: however late a suspended owner wakes up, its rename then finds no
 * place to go to, and what the successor has resumed from stays.
 *
 *	ck_leave_open   with the claim, before its owner check: mkdir .leaving-<n>
 *	ck_leave_seize  of a claim, behind its mkdir: every lower generation's is renamed away, and what was on its way
 *	                out comes back
 *	ck_leave        step-… to .leaving-<n>/step-…, look for a pin, then to .deleting-…
 *	ck_leave_close  the owner needs it no more
 *
 * A pin is made first and then looks whether its checkpoint is there; a checkpoint leaves first and then looks for its
 * pin: so one of the two sees the other.
 */
#ifndef CK_LEAVE_H
#define CK_LEAVE_H

#include "error.h"
#include "io.h"
#include "names.h"

/* Returns 0, also when it is there; CK_EIO. */
int ck_leave_open(const struct ck_io *io, const char *dir, uint64_t owner, struct ck_error *err);

/* Returns 0; CK_EIO, CK_ENOMEM: one may still be there, and the claim must not be used. */
int ck_leave_seize(const struct ck_io *io, const char *dir, uint64_t owner, struct ck_error *err);

/*
 * Un-publish a checkpoint, for `owner`: its files are .deleting-… then. Gone already, or pinned, is fine: so is what is
 * no directory, and nobody's checkpoint. Returns 0; CK_EFENCED; CK_EIO: it is there still, or comes back with the next
 * claim.
 */
int ck_leave(const struct ck_io *io, const char *dir, struct ck_step_id id, uint64_t owner,
	     struct ck_error *err);

/* Take a commit back, by the same way: `to` is a path that nobody reads. As ck_leave. */
int ck_leave_to(const struct ck_io *io, const char *dir, struct ck_step_id id, uint64_t owner,
		const char *to, struct ck_error *err);

/* Failures do not matter: the next claim sweeps it. */
void ck_leave_close(const struct ck_io *io, const char *dir, uint64_t owner);

#endif
