/*
 * The staging buffer: a copy of what a save writes, laid out as the part files, so that the program may
 * go on while it is written; or, for a save from the program's memory, of what only copiers reach. Grown when needed, then used again and again.
 */
#ifndef CK_STAGE_H
#define CK_STAGE_H

#include <stddef.h>

#include "error.h"
#include "registry.h"
#include "shard.h"

#define CK_STAGE_ALIGN 4096

struct ck_stage {
	unsigned char *memory; /* CK_STAGE_ALIGN-aligned */
	size_t bytes;
};

/* How many bytes of buffer the copy of a plan takes. */
uint64_t ck_stage_bytes(const struct ck_plan *plan);

/*
 * Room for so many bytes; what is there is kept, and moved at most. Where it has to grow, `spare` bytes more must be
 * there as well, of which nothing is taken: what comes next needs memory too.
 * Returns 0 or CK_ENOMEM: both numbers.
 */
int ck_stage_reserve(struct ck_stage *stage, uint64_t needed, uint64_t spare, struct ck_error *err);

/*
 * Copy the plan's headers and blocks into the buffer, in as many threads as the task has CPUs; through the
 * items' copiers where they have one, in the caller's thread. The blocks' data then point there.
 * Returns 0; CK_ENOMEM; CK_EARG (a copier fails).
 */
int ck_stage_copy(struct ck_stage *stage, struct ck_plan *plan, const struct ck_registry *registry,
		  struct ck_error *err);

/*
 * Copy only the blocks of items that have a copier, for a save from the program's memory.
 * Returns 0; CK_ENOMEM; CK_EARG (a copier fails).
 */
int ck_stage_copy_some(struct ck_stage *stage, struct ck_plan *plan,
		       const struct ck_registry *registry, struct ck_error *err);

void ck_stage_fini(struct ck_stage *stage);

#endif
