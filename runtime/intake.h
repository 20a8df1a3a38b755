/*
 * Taking in a checkpoint that was saved by any number of ranks, in whatever blocks.
 *
 * The stored files are dealt to the ranks by bytes. Each rank reads the headers of its files; rank 0
 * gathers them, plans (lib/reshard.h), and tells each reader what goes to whom; then each file is
 * read and verified once, by one rank, and its pieces go to their owners (exchange.h). Beside the
 * memory that is wanted, a rank needs CK_EXCHANGE_BYTES, 32 MiB for reading, and its share of the
 * plan; rank 0 needs the whole plan for a while.
 */
#ifndef CK_INTAKE_H
#define CK_INTAKE_H

#include <stddef.h>
#include <stdint.h>

#include "comm.h"
#include "error.h"
#include "exchange.h"
#include "io.h"
#include "layout.h"
#include "manifest.h"
#include "shard.h"

/* Bytes of an old rank, as they stood in a file that this rank read. */
struct ck_kept {
	uint32_t item; /* in the table */
	uint32_t rank; /* the old one */
	uint64_t bytes;
	void *data;
};

struct ck_intake {
	/* The caller's, to be set. */
	struct ck_comm *comm;
	const struct ck_io *io;
	const char *dir; /* the step directory */
	enum ck_level level;
	const struct ck_shard_options *options; /* how files are read; NULL: by default */
	const struct ck_slot *slots; /* what this rank wants; wanted->blocks[].at counts them */
	size_t nslots;
	/* Rank 0's alone. */
	const struct ck_manifest *manifest;
	const struct ck_layout *wanted; /* sorted; of the items of the manifest; each block once */

	/* Filled in on every rank; ck_intake_fini. */
	struct ck_item_list table; /* the items of the checkpoint */
	uint32_t old_world;
	struct ck_kept *kept; /* per-rank items of the files that this rank read */
	size_t nkept;
};

/*
 * Bring it into the slots. Collective. What is in the slots counts only after a success.
 *
 * Returns 0, or, alike on all ranks, the failure of the lowest rank that failed: CK_ENOENT,
 * CK_EFORMAT, CK_EDIGEST, CK_EIO: the checkpoint is bad (a hole or an overlap in it is CK_EFORMAT
 * too); CK_EITEM: what is wanted does not fit together; CK_ENOMEM; CK_EPEER.
 */
int ck_intake_run(struct ck_intake *intake, struct ck_error *err);
void ck_intake_fini(struct ck_intake *intake);

#endif
