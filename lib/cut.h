/*
 * A box inside a larger box that lies row-major in memory, or in a file: where its bytes are.
 *
 * The bytes of the part, in row-major order of the part, are its stream; they stand in the whole in
 * runs of equal length, in the same order. So whatever piece of the whole has come, its share
 * of the part is one range of the stream, and that range is all that has to be sent along with it.
 * Everything is counted in bytes: pieces may begin and end inside of an element.
 */
#ifndef CK_CUT_H
#define CK_CUT_H

#include <stddef.h>
#include <stdint.h>

#include "tensor.h"

struct ck_cut {
	uint64_t bytes; /* of the part */
	uint64_t run;   /* bytes that stand together; as long as possible */
	uint64_t begin; /* where the first run stands in the whole */
	/* Loops around a run, outermost first. */
	int ndim;
	uint64_t extent[CK_MAX_NDIM];
	uint64_t stride[CK_MAX_NDIM]; /* bytes of the whole */
};

/* `part` lies inside `whole`, of as many dimensions; an element has `element` bytes. */
void ck_cut_init(struct ck_cut *cut, const struct ck_box *whole, const struct ck_box *part,
		 size_t element);

/* The part that two boxes share. False: none; *out is then undefined. Same ndim. */
bool ck_box_meet(const struct ck_box *a, const struct ck_box *b, struct ck_box *out);

/* How many bytes of the stream stand in the first `offset` bytes of the whole. */
uint64_t ck_cut_seek(const struct ck_cut *cut, uint64_t offset);

/* Where byte `at` (< bytes) of the stream stands in the whole. */
uint64_t ck_cut_place(const struct ck_cut *cut, uint64_t at);

/*
 * Copy bytes [at, at + bytes) of the stream
 *
 *   get   out of a piece of the whole, which begins at its byte `base`, to `to`
 *   put   from `from` into the whole
 *   move  out of a piece of one whole into another; both cuts are of the same part
 *
 * The piece has all of these bytes; memory does not overlap.
 */
void ck_cut_get(const struct ck_cut *cut, const void *piece, uint64_t base, uint64_t at, void *to,
		uint64_t bytes);
void ck_cut_put(const struct ck_cut *cut, void *whole, uint64_t at, const void *from,
		uint64_t bytes);
void ck_cut_move(const struct ck_cut *from, const void *piece, uint64_t base,
		 const struct ck_cut *to, void *whole, uint64_t at, uint64_t bytes);

#endif
