/*
 * SHA-256 of a stream, and zlib's CRC-32 of it and of each of its chunks, in one pass.
 * Several streams can be advanced together, which is faster (sha256.h). Source: FIPS 180-4; crc32.h.
 */
#ifndef CK_DIGEST_H
#define CK_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "sha256.h"

#define CK_CHUNKS_MAX 256
#define CK_CHUNK_MIN (UINT64_C(16) << 20)

/* Smallest power of two >= 16 MiB that gives at most 256 chunks for a file of `bytes` bytes. */
uint64_t ck_chunk_bytes(uint64_t bytes);

/* ceil(bytes / chunk_bytes): how many chunk CRCs a file has. */
uint64_t ck_chunk_count(uint64_t bytes, uint64_t chunk_bytes);

/* What is known of a file when its last byte has been seen. */
struct ck_digests {
	uint64_t bytes;
	char sha256[CK_SHA256_HEX + 1]; /* lower-case hex; "" when not asked for */
	uint32_t crc32;
	uint64_t chunk_bytes;
	uint32_t *chunk_crc32; /* ck_chunk_count(bytes, chunk_bytes) values, malloc'ed */
};

void ck_digests_fini(struct ck_digests *digests);

struct ck_digest; /* a computation under way */

/*
 * total_bytes   length of the stream, known beforehand
 * chunk_bytes   a power of two (ck_chunk_bytes for a writer; the manifest's for a reader)
 * sha           CK_SHA_NONE: CRC-32 only (warm reloads)
 * Returns 0; CK_EARG (chunk_bytes is no power of two); CK_ENOMEM; CK_EIO (libcrypto refuses).
 */
int ck_digest_new(struct ck_digest **out, uint64_t total_bytes, uint64_t chunk_bytes,
		  enum ck_sha sha, struct ck_error *err);
/* The next bytes of the stream. Returns 0; CK_EARG when more than total_bytes come; CK_EIO. */
int ck_digest_update(struct ck_digest *digest, const void *data, size_t bytes,
		     struct ck_error *err);
/* The same for `count` streams, all different, each with its own bytes (0 is fine). */
int ck_digest_update_all(struct ck_digest *const *digests, const void *const *data,
			 const size_t *bytes, size_t count, struct ck_error *err);
/* Ends the stream; out is filled. CK_EARG when fewer than total_bytes came. */
int ck_digest_final(struct ck_digest *digest, struct ck_digests *out, struct ck_error *err);
void ck_digest_free(struct ck_digest *digest);

/* `bytes` random bytes as lower-case hex (2 * bytes + 1 chars). Returns 0 or CK_EIO. */
int ck_random_hex(char *hex, size_t bytes, struct ck_error *err);

#endif
