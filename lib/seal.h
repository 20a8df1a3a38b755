/*
 * Seals: what the bytes of a file were when they were verified, as a CRC-32 of every 64 KiB. Whoever reads parts of it
 * again, in another order, holds them against these: so what is copied is what was verified.
 */
#ifndef CK_SEAL_H
#define CK_SEAL_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "sha256.h"

#define CK_SEAL_BYTES (UINT64_C(64) << 10)

/* Of one file. */
struct ck_seal {
	uint64_t head_bytes; /* of the header that the caller has parsed, and its CRC-32 */
	uint32_t head_crc32;
	uint64_t bytes;  /* of the file; 0: not sealed */
	uint32_t *crc32; /* of each CK_SEAL_BYTES of it */
};

/* Of a checkpoint: by the files of its manifest. */
struct ck_seals {
	char manifest_sha256[CK_SHA256_HEX + 1]; /* of the text that the caller has parsed */
	struct ck_seal *files;
	size_t count;
};

/* Room for a file's. Returns 0 or CK_ENOMEM. */
int ck_seal_begin(struct ck_seal *seal, uint64_t bytes, struct ck_error *err);
/* The next bytes, front to back: a ck_consumer. Returns 0. */
int ck_seal_take(void *seal, uint64_t offset, const void *data, size_t bytes, struct ck_error *err);

/* The sealed range that has [*begin, *end): as it is where the file is not sealed. */
void ck_seal_range(const struct ck_seal *seal, uint64_t *begin, uint64_t *end);
/*
 * Are these the bytes, of a range from ck_seal_range, that were verified? Returns 0; CK_EIO: two reads of the file
 * differ, the text names path and place.
 */
int ck_seal_check(const struct ck_seal *seal, const char *path, uint64_t offset, const void *data,
		  size_t bytes, struct ck_error *err);

void ck_seals_fini(struct ck_seals *seals);

#endif
