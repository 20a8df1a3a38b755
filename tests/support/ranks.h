/*
 * A toy program over <ckpt.h> with ranks as threads: enough state to tell checkpoints apart, and a
 * captured log.
 */
#ifndef TESTS_RANKS_H
#define TESTS_RANKS_H

#include <stddef.h>
#include <stdint.h>

#include "ckpt.h"

#define TOY_ELEMENTS 1003 /* divides by nothing we use */
#define TOY_RANKS_MAX 16
#define TOY_LOG_BYTES 16384

/* One rank of the toy. */
struct toy {
	ckpt *ck;
	int rank, size;
	void *arg; /* of the test */
	int code;  /* what open returned; what body returned */
	uint64_t step;
	/* The state: a flat partition, a matrix held whole by all, bytes of one rank. */
	float flat[TOY_ELEMENTS];
	uint64_t offset, count;
	double matrix[6];
	unsigned char own[64];
	size_t own_bytes;
	/* What reassign was shown; own became that of the old rank of the same number, modulo. */
	uint32_t seen_world;
	unsigned char seen[TOY_RANKS_MAX][64];
	size_t seen_bytes[TOY_RANKS_MAX];
	int refuse; /* reassign returns it */
};

/* What the ranks of one incarnation said. */
struct toy_log {
	char text[TOY_LOG_BYTES];
	size_t len;
};

/*
 * Run `body` on `size` ranks, each in a thread, with its own opened and registered handle, which is
 * closed afterwards. A rank whose open fails does not run it.
 *
 *   options  dir and whatever else; log is taken over. NULL dir: checkpointing is off
 *   toys     size of them; filled, and left for the test to look at
 */
void toy_run(int size, const struct ckpt_options *options, int (*body)(struct toy *toy), void *arg,
	     struct toy *toys, struct toy_log *log);

/* What a step takes, where a test wants steps that take time. */
void toy_nap_ms(long ms);

/* Make the state of a step: a function of step and position alone. */
void toy_train(struct toy *toy, uint64_t step);

/* Is the memory the state of this step, bit for bit? */
int toy_is(const struct toy *toy, uint64_t step);

/* The same of what does not belong to one rank: after a change of the number of ranks. */
int toy_shares(const struct toy *toy, uint64_t step);

/* Was reassign shown what `ranks` ranks had at this step? */
int toy_saw(const struct toy *toy, int ranks, uint64_t step);

/* Spoil all registered memory. */
void toy_spoil(struct toy *toy);

#endif
