/*
 * Manifests for tests, built in memory.
 */
#ifndef TESTS_MANIFESTS_H
#define TESTS_MANIFESTS_H

#include <stdint.h>

#include "manifest.h"

/* Three files of two ranks, three items of which "params" is flat, a `user`: all of it valid. */
struct ck_manifest manifest_valid(void);

/* Append an item of shape [first, second, second ...]. */
void manifest_add_item(struct ck_manifest *m, const char *name, enum ck_kind kind,
		       enum ck_dtype dtype, int ndim, uint64_t first, uint64_t second);
/* Append a file; its digests depend on rank and part. */
struct ck_file *manifest_add_file(struct ck_manifest *m, uint32_t rank, uint32_t part,
				  uint64_t bytes);
void manifest_drop_files(struct ck_manifest *m);

#endif
