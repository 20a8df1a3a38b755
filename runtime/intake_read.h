/* The second half of intake.c: reading the files, and handing on what they hold. */
#ifndef CK_INTAKE_READ_H
#define CK_INTAKE_READ_H

#include "intake.h"
#include "share.h"

/*
 * Read this rank's files as its share says (lib/share.h), and take what the others send. Fills in
 * in->kept. Collective; returns as ck_intake_run.
 */
int ck_intake_read(struct ck_intake *in, const struct ck_share_file *files, size_t nfiles,
		   const void *share, uint64_t share_bytes, struct ck_error *err);

#endif
