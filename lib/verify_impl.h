/*
 * Between the files of verify: verify.c (the directory), verify_files.c (each file, in threads),
 * verify_items.c (what the files hold together).
 */
#ifndef CK_VERIFY_IMPL_H
#define CK_VERIFY_IMPL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "manifest.h"
#include "verify.h"

/* Findings under way; a failed allocation is remembered. */
struct ck_findings {
	struct ck_report report;
	bool failed;
};

void ck_finding_add(struct ck_findings *findings, enum ck_severity severity, int code,
		    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* A failure as a bad finding; lack of memory is none of the checkpoint's. */
void ck_finding_error(struct ck_findings *findings, const struct ck_error *why);

/* A block that stands in a file, of an item of the table that it agrees with. */
struct ck_seen {
	uint32_t item;
	uint32_t file;
	size_t at; /* in coords: ndim offsets, then ndim extents */
};

/* What the check of one file found; written by one thread. */
struct ck_file_result {
	struct ck_findings findings;
	struct ck_buf seen;   /* struct ck_seen */
	struct ck_buf coords; /* uint64_t */
	bool parsed;          /* header read, `seen` is complete */
};

struct ck_verification {
	const struct ck_io *io;
	char step[PATH_MAX];
	const struct ck_manifest *manifest;
	enum ck_level level;
	ck_progress progress;
	void *progress_arg;
	struct ck_seals *seals;         /* or NULL */
	struct ck_file_result *results; /* one per file of the manifest */
	struct ck_findings findings;
};

/* Check every file, `threads` at a time, into results. */
void ck_verify_files(struct ck_verification *v, int threads);

/* Check tiling and per-rank items over the results. Returns 0 or CK_ENOMEM. */
int ck_verify_items(struct ck_verification *v, struct ck_error *err);

#endif
