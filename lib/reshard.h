/*
 * From the blocks that N ranks stored to those that M ranks want: what goes where.
 *
 * Pure. Costs O(blocks x log + moves) in time, and 4 bytes for each move and 12 for each stored
 * block in memory, beside the two layouts.
 */
#ifndef CK_RESHARD_H
#define CK_RESHARD_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "layout.h"

struct ck_reshard {
	/* Stored block b goes to the wanted blocks to[first[b]] … to[first[b + 1] - 1]. */
	size_t *first;
	uint32_t *to; /* of identical wanted blocks the first; see ck_layout_same_end */
	size_t nmoves;
	/* Stored blocks in the order of reading: of file f order[file_first[f]] … */
	uint32_t *order;
	size_t *file_first; /* nfiles + 1 */
};

/*
 * Check both sides exactly (ck_layout_check) and plan. Blocks of per-rank items move nowhere; they
 * stand in `order` all the same.
 *
 *   stored  sorted; `file` below nfiles, `at` where it begins in there; saved by old_world ranks
 *   wanted  sorted; of the same table; identical blocks of several ranks are fine
 * Returns 0 (ck_reshard_fini); CK_EFORMAT, "checkpoint: item …": what is stored is not exact;
 * CK_EITEM, "program: item …": what is wanted is not; CK_ENOMEM; CK_EARG (2^32 blocks or more).
 */
int ck_reshard_plan(const struct ck_layout *stored, size_t nfiles, uint32_t old_world,
		    const struct ck_layout *wanted, struct ck_reshard *out, struct ck_error *err);
void ck_reshard_fini(struct ck_reshard *plan);

/*
 * Who reads which file: readers[i] below `ranks`, rising with i, so that neighbours stay together
 * (much of what a rank wants is then what it reads) and nobody has more than its share plus one
 * file. A function of the sizes alone.
 */
void ck_reshard_deal(const uint64_t *bytes, size_t nfiles, uint32_t ranks, uint32_t *readers);

#endif
