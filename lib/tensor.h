/*
 * Element types, shapes and boxes. A box is half-open, in elements, row-major.
 */
#ifndef CK_TENSOR_H
#define CK_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "error.h"

#define CK_MAX_NDIM 32
#define CK_ITEM_NAME_MAX 1024

/* Values equal those of enum ckpt_dtype in <ckpt.h>; they travel between ranks, not on disk. */
enum ck_dtype {
	CK_BOOL,
	CK_U8,
	CK_I8,
	CK_I16,
	CK_I32,
	CK_I64,
	CK_F16,
	CK_BF16,
	CK_F32,
	CK_F64,
	CK_U16,
	CK_U32,
	CK_U64,
	CK_C64,
	CK_F8_E4M3,
	CK_F8_E5M2,
	CK_F8_E8M0,
	CK_F8_E4M3FNUZ,
	CK_F8_E5M2FNUZ,
	CK_DTYPES
};

/* Bytes of one element (1, 2, 4, 8); 0 for a value that is no dtype. */
size_t ck_dtype_size(int dtype);
/* Name as in safetensors ("F32"), NULL for a value that is no dtype. */
const char *ck_dtype_name(int dtype);
/* Returns 0 or CK_EFORMAT. */
int ck_dtype_parse(const char *name, enum ck_dtype *out, struct ck_error *err);

struct ck_box {
	int ndim; /* 0: a scalar, one element */
	uint64_t offset[CK_MAX_NDIM];
	uint64_t extent[CK_MAX_NDIM];
};

/* a * b and a + b; false when they overflow. */
bool ck_mul_u64(uint64_t a, uint64_t b, uint64_t *out);
bool ck_add_u64(uint64_t a, uint64_t b, uint64_t *out);

/* Number of elements of a shape; false when it does not fit in 63 bits. A 0 anywhere gives 0. */
bool ck_volume(int ndim, const uint64_t *shape, uint64_t *out);
uint64_t ck_box_volume(const struct ck_box *box); /* of a box that passed ck_volume */
bool ck_box_empty(const struct ck_box *box);
bool ck_box_equal(const struct ck_box *a, const struct ck_box *b);
int ck_box_cmp(const struct ck_box *a, const struct ck_box *b); /* by offsets, then extents */
bool ck_box_overlap(const struct ck_box *a,
		    const struct ck_box *b); /* share an element; same ndim */
/* Offset + extent <= shape in every dimension, without overflow. */
bool ck_box_inside(const struct ck_box *box, const uint64_t *shape);

/*
 * Does `inner` lie in `outer` (same ndim, both not empty) as one contiguous run of its row-major
 * elements? *at: the first of them, counted from the first of outer. For a piece of a cut block.
 */
bool ck_box_run(const struct ck_box *outer, const struct ck_box *inner, uint64_t *at);

/* "[0:4, 8:16]" and "[4, 16]" appended, for messages. */
void ck_box_print(struct ck_buf *out, const struct ck_box *box);
void ck_shape_print(struct ck_buf *out, int ndim, const uint64_t *shape);

/*
 * A name as the format wants it: 1 to CK_ITEM_NAME_MAX bytes of UTF-8 without control characters,
 * not "__metadata__", not beginning with "rank-<digits>/". Returns 0 or CK_EARG (text: what is
 * wrong, at which byte).
 */
int ck_item_name_check(const char *name, struct ck_error *err);

/*
 * Look for two boxes that overlap; identical ones do.
 *
 *   boxes  count non-empty boxes, all of ndim dimensions
 *   pair   out: the two that were found, by ck_box_cmp; NULL and NULL when all are disjoint
 * Returns 0 or CK_ENOMEM. Pure; O(n log n) for grids.
 */
int ck_tiling_overlap(int ndim, const struct ck_box *const *boxes, size_t count,
		      const struct ck_box *pair[static 2], struct ck_error *err);

/*
 * Do these boxes tile `shape` exactly? Identical boxes must have been merged before.
 * Pure; O(n log n) for grids and whatever falls apart into slabs, else a sweep; reorders nothing
 * (works on an index of its own).
 *
 *   boxes   count non-empty boxes, all of ndim dimensions, inside the shape
 *   text    on failure, what is wrong: "[0:4] and [2:6] overlap", "hole: 12 of 100 elements are
 *           in no block, the first at [40]" (in row-major order; left out, or "one at", where
 *           thousands of entangled blocks would make the search long)
 * Returns 0; CK_EITEM; CK_ENOMEM.
 */
int ck_tiling_check(int ndim, const uint64_t *shape, const struct ck_box *const *boxes,
		    size_t count, struct ck_error *err);

#endif
