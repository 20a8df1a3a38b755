/*
 * Whole checkpoints of random, or any, layouts on disk, written by the library's own functions; with
 * the tensors they were cut from, to compare with whatever comes out of them.
 */
#ifndef TESTS_WRITTEN_H
#define TESTS_WRITTEN_H

#include <limits.h>
#include <stdint.h>

#include "layout.h"
#include "manifest.h"

struct written {
	char run[PATH_MAX];  /* directory */
	char step[PATH_MAX]; /* of the step */
	struct ck_manifest manifest;
	unsigned char **tensors; /* whole, by item of manifest.items; NULL for per-rank */
	size_t ntensors;
};

/*
 * Make a run, save the layout as a step by `ranks` ranks and commit it. `table` may have per-rank
 * items; rank r's bytes are those of written_own. What cannot be made ends the program.
 *
 *   table   sorted; flat may be set
 *   layout  of this table, sharded items only, each block once, `rank` is who stores it
 */
void written_make(struct written *w, const char *run, struct ck_step_id id,
		  const struct ck_item_list *table, const struct ck_layout *layout, uint32_t ranks,
		  uint64_t seed);
void written_free(struct written *w);

/* The bytes of rank `rank` of any per-rank item: how many, and which. At most 64. */
size_t written_own(uint32_t rank, unsigned char out[static 64]);

/* The bytes of a box of a tensor, malloc'ed. */
void *written_part(const struct written *w, size_t item, const struct ck_box *box);

#endif
