/*
 * Is a checkpoint what its manifest says? Everything is checked at every level; the level decides
 * only which bytes are hashed.
 */
#ifndef CK_VERIFY_H
#define CK_VERIFY_H

#include <stddef.h>

#include "error.h"
#include "io.h"
#include "names.h"
#include "seal.h"
#include "shard.h"

enum ck_severity { CK_WARNING = 0, CK_BAD = 1 };

struct ck_finding {
	enum ck_severity severity;
	int code;   /* of a bad one: CK_ENOENT, CK_EFORMAT, CK_EDIGEST, CK_EITEM, CK_EIO */
	char *text; /* names file, item, offset, both values */
};

struct ck_report {
	struct ck_finding *findings;
	size_t count;
	size_t nbad;
	uint64_t bytes; /* of the checkpoint's shard files, as the manifest says; 0 without one */
	uint64_t nfiles;
	uint32_t world_size;
};

void ck_report_fini(struct ck_report *report);

/*
 * Verify one checkpoint: manifest, files and sizes, unknown *.safetensors (bad) and other strays
 * (warning), shard headers, item table, exact tiling, per-rank items of every rank, SHA256SUMS, and
 * bytes by level. Goes on after a finding where that makes sense.
 *
 *   threads   check so many files at a time (>= 1; at most 257)
 *   progress  called from those threads
 * Without a readable manifest that is the only finding; with an unreadable header, tiling is not
 * looked at. Findings of files come in their order, whatever the threads do. Returns 0 with the
 * report (bad or not); CK_ENOENT (no such step); CK_EIO (it cannot be looked for); CK_ENOMEM.
 */
int ck_verify(const struct ck_io *io, const char *dir, struct ck_step_id id, enum ck_level level,
	      int threads, ck_progress progress, void *progress_arg, struct ck_report *out,
	      struct ck_error *err);

/*
 * The same at a level that hashes, and seal each file for whoever reads parts of it afterwards. That the manifest and the
 * headers are the ones that the caller has parsed is checked as well: CK_EIO among the findings.
 *   seals  with manifest_sha256, and of each file head_…; count as in that manifest
 */
int ck_verify_sealing(const struct ck_io *io, const char *dir, struct ck_step_id id,
		      enum ck_level level, int threads, ck_progress progress, void *progress_arg,
		      struct ck_seals *seals, struct ck_report *out, struct ck_error *err);

#endif
