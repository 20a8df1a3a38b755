/*
 * Blocks for the tests of shards.
 */
#ifndef TESTS_STORED_H
#define TESTS_STORED_H

#include "shard.h"

/* Block [offset, offset + count) of a one-dimensional item; `data` may be NULL if not read. */
struct ck_stored stored_block(const char *name, enum ck_dtype dtype, uint64_t extent,
			      uint64_t offset, uint64_t count, const void *data);

struct ck_stored stored_per_rank(const char *name, uint64_t bytes, const void *data);

#endif
