/*
 * A program's state in which each element is a function of its place in the whole item: so any rank of any
 * run can tell whether what it was given is right. Many dtypes and ways to cut, most of them uneven.
 */
#ifndef TESTS_STATE_H
#define TESTS_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ckpt.h"

#define STATE_OWN_MAX 512

struct state_item;

/* A block of this rank; `padding` bytes behind it belong to nobody and must stay as they are. */
struct state_block {
	const struct state_item *item;
	uint64_t shape[4], offset[4], extent[4];
	uint64_t elements;
	size_t padding;
	unsigned char *data;
};

struct state {
	int rank, size;
	struct state_block *blocks;
	size_t nblocks;
	uint64_t bytes; /* of all blocks of this rank */
	int64_t step;   /* registered, too, as an item that all hold */
	/* The item of each rank: what set, or reassign, was given. */
	unsigned char own[STATE_OWN_MAX];
	size_t own_bytes;
	bool was_set;
	uint32_t seen_world; /* by reassign; 0: not called */
	bool own_wrong;      /* what came was not that of the ranks that it was said to be of */
};

/*
 * This rank's blocks, spoilt. What cannot be made ends the program.
 *   big  bytes of one item more, cut into rows on an even number of ranks, into columns on an odd one;
 *        0: none
 */
void state_init(struct state *state, int rank, int size, uint64_t big);
void state_fini(struct state *state);

/* Register everything. `drop`: the item of each rank with ckpt_reassign_drop. Returns 0 or a code. */
int state_register(struct state *state, ckpt *ck, bool drop);

/* Make it what it is to be; make it what nothing ever is. */
void state_fill(struct state *state, int64_t step);
void state_spoil(struct state *state);

/* Elements that are not right, at this step; bytes of padding that have changed count as well. */
uint64_t state_wrong(const struct state *state, int64_t step);
/* Is nothing changed since state_spoil? */
bool state_is_spoilt(const struct state *state);

#endif
