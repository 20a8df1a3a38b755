/*
 * SHA256SUMS beside the manifest: it has the digest of the manifest itself, which nothing else vouches for.
 */
#ifndef CK_SUMS_H
#define CK_SUMS_H

#include "buf.h"
#include "error.h"
#include "io.h"
#include "manifest.h"

/*
 * SHA256SUMS is, byte for byte, what the manifest says. Returns 0; CK_ENOENT: there is none; CK_EFORMAT naming
 * the line, or what else it is; CK_EIO; CK_ENOMEM.
 *   step  path of the directory of the step
 *   text  of manifest.json, as it was read
 */
int ck_sums_check(const struct ck_io *io, const char *step, const struct ck_manifest *manifest,
		  const struct ck_buf *text, struct ck_error *err);

#endif
