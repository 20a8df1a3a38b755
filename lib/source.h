/*
 * A checkpoint to read from by item, whatever blocks it was stored in: for tools that work on one
 * machine. The bytes are not verified on the way: whoever needs that runs ck_verify_sealing first, with the seals that
 * stand here; what is read afterwards is held against these.
 */
#ifndef CK_SOURCE_H
#define CK_SOURCE_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "boxtree.h"
#include "error.h"
#include "io.h"
#include "layout.h"
#include "manifest.h"
#include "seal.h"
#include "shard.h"

struct ck_source {
	const struct ck_io *io;
	char run[PATH_MAX];
	char dir[PATH_MAX]; /* of the step */
	struct ck_manifest manifest;
	struct ck_layout layout; /* of manifest.items, sorted and exact */
	struct ck_seals seals;   /* of manifest.files */
	/* private */
	struct ck_boxtree tree; /* of item `in_tree` - 1 */
	size_t in_tree;
	struct ck_hits hits;
	int fd; /* of file `open_file` - 1 */
	size_t open_file;
	char path[PATH_MAX];
	char *piece;
};

/*
 * Load the manifest, read every header, check that the blocks are exact. Returns 0 (ck_source_close);
 * CK_ENOENT; CK_EFORMAT; CK_EIO; CK_ENOMEM.
 *   progress  counts headers; may be NULL
 */
int ck_source_open(const struct ck_io *io, const char *run, struct ck_step_id id,
		   struct ck_source *out, ck_progress progress, void *progress_arg,
		   struct ck_error *err);
void ck_source_close(struct ck_source *source);

/*
 * Read box `box` of a sharded item to `dst`, row-major. Reads what lies between the first and the last byte
 * that each stored block has of it, so boxes that are whole rows cost no more than they have.
 * Returns 0; CK_EIO, also when the bytes are not those that were sealed; CK_ENOENT; CK_ENOMEM.
 */
int ck_source_read(struct ck_source *source, size_t item, const struct ck_box *box, void *dst,
		   struct ck_error *err);

/* The bytes of an old rank of a per-rank item, malloc'ed, never NULL. The same; CK_EITEM: no such rank. */
int ck_source_read_rank(struct ck_source *source, size_t item, uint32_t rank, void **data,
			uint64_t *bytes, struct ck_error *err);

#endif
