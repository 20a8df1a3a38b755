#include "digest.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <zlib.h>

/* What a manifest can hold (8 digits each in 256 MiB) stays far below it. */
#define CHUNKS_LIMIT (UINT64_C(1) << 32)

struct ck_digest {
	EVP_MD_CTX *sha256; /* NULL: not asked for */
	uint64_t total;
	uint64_t seen;
	uint64_t chunk_bytes;
	uint64_t nchunks;
	uint32_t *chunk_crc32;
};

uint64_t ck_chunk_bytes(uint64_t bytes)
{
	uint64_t chunk = CK_CHUNK_MIN;

	while (ck_chunk_count(bytes, chunk) > CK_CHUNKS_MAX)
		chunk *= 2;
	return chunk;
}

uint64_t ck_chunk_count(uint64_t bytes, uint64_t chunk_bytes)
{
	return bytes / chunk_bytes + (bytes % chunk_bytes != 0);
}

void ck_digests_fini(struct ck_digests *digests)
{
	free(digests->chunk_crc32);
	digests->chunk_crc32 = NULL;
}

static void hex_print(char *hex, const unsigned char *bytes, size_t count)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < count; i++) {
		hex[2 * i] = digits[bytes[i] >> 4];
		hex[2 * i + 1] = digits[bytes[i] & 15];
	}
	hex[2 * count] = '\0';
}

static int fail_crypto(struct ck_error *err, const char *call)
{
	return ck_fail(err, CK_EIO, "SHA-256: %s failed in libcrypto", call);
}

static int sha256_begin(struct ck_digest *digest, struct ck_error *err)
{
	digest->sha256 = EVP_MD_CTX_new();
	if (!digest->sha256)
		return ck_fail(err, CK_ENOMEM, "out of memory for a SHA-256 context");
	if (EVP_DigestInit_ex(digest->sha256, EVP_sha256(), NULL) != 1)
		return fail_crypto(err, "EVP_DigestInit_ex");
	return 0;
}

int ck_digest_new(struct ck_digest **out, uint64_t total_bytes, uint64_t chunk_bytes,
		  bool with_sha256, struct ck_error *err)
{
	uint64_t nchunks;
	struct ck_digest *digest;
	int rc = 0;

	if (chunk_bytes == 0 || (chunk_bytes & (chunk_bytes - 1)))
		return ck_fail(err, CK_EARG, "chunks of %" PRIu64 " bytes: not a power of two",
			       chunk_bytes);
	nchunks = ck_chunk_count(total_bytes, chunk_bytes);
	if (nchunks > CHUNKS_LIMIT)
		return ck_fail(err, CK_ENOMEM, "out of memory: %" PRIu64 " chunks", nchunks);
	digest = calloc(1, sizeof(*digest));
	if (!digest)
		return ck_fail_nomem(err, sizeof(*digest));
	digest->total = total_bytes;
	digest->chunk_bytes = chunk_bytes;
	digest->nchunks = nchunks;
	digest->chunk_crc32 = calloc(nchunks + 1, sizeof(uint32_t));
	if (!digest->chunk_crc32)
		rc = ck_fail_nomem(err, nchunks * sizeof(uint32_t));
	else if (with_sha256)
		rc = sha256_begin(digest, err);
	if (rc)
		ck_digest_free(digest);
	else
		*out = digest;
	return rc;
}

void ck_digest_free(struct ck_digest *digest)
{
	if (!digest)
		return;
	EVP_MD_CTX_free(digest->sha256);
	free(digest->chunk_crc32);
	free(digest);
}

int ck_digest_update(struct ck_digest *digest, const void *data, size_t bytes, struct ck_error *err)
{
	const unsigned char *next = data;

	if (bytes > digest->total - digest->seen)
		return ck_fail(err, CK_EARG,
			       "digest: %zu bytes at offset %" PRIu64
			       " go beyond the announced %" PRIu64,
			       bytes, digest->seen, digest->total);
	if (digest->sha256 && bytes && EVP_DigestUpdate(digest->sha256, data, bytes) != 1)
		return fail_crypto(err, "EVP_DigestUpdate");
	while (bytes > 0) {
		uint32_t *crc = &digest->chunk_crc32[digest->seen / digest->chunk_bytes];
		uint64_t room = digest->chunk_bytes - digest->seen % digest->chunk_bytes;
		size_t take = bytes < room ? bytes : (size_t)room;

		*crc = (uint32_t)crc32_z(*crc, next, take);
		next += take;
		bytes -= take;
		digest->seen += take;
	}
	return 0;
}

/* The CRC of the whole from those of its chunks: no byte is looked at twice. */
static uint32_t combine_chunks(const struct ck_digest *digest)
{
	uint64_t left = digest->total;
	uLong crc = 0;

	for (uint64_t i = 0; i < digest->nchunks; i++) {
		uint64_t bytes = left < digest->chunk_bytes ? left : digest->chunk_bytes;

		crc = crc32_combine(crc, digest->chunk_crc32[i], (z_off_t)bytes);
		left -= bytes;
	}
	return (uint32_t)crc;
}

int ck_digest_final(struct ck_digest *digest, struct ck_digests *out, struct ck_error *err)
{
	struct ck_digests done = {.bytes = digest->total, .chunk_bytes = digest->chunk_bytes};
	unsigned char raw[CK_SHA256_BYTES];

	if (digest->seen != digest->total)
		return ck_fail(err, CK_EARG,
			       "digest: %" PRIu64 " bytes came, %" PRIu64 " were announced",
			       digest->seen, digest->total);
	if (digest->sha256) {
		if (EVP_DigestFinal_ex(digest->sha256, raw, NULL) != 1)
			return fail_crypto(err, "EVP_DigestFinal_ex");
		hex_print(done.sha256, raw, sizeof(raw));
	}
	done.crc32 = combine_chunks(digest);
	done.chunk_crc32 = digest->chunk_crc32;
	digest->chunk_crc32 = NULL;
	*out = done;
	return 0;
}

int ck_sha256_hex(const void *data, size_t bytes, char hex[static CK_SHA256_HEX + 1],
		  struct ck_error *err)
{
	unsigned char raw[CK_SHA256_BYTES];

	if (EVP_Digest(bytes ? data : "", bytes, raw, NULL, EVP_sha256(), NULL) != 1)
		return fail_crypto(err, "EVP_Digest");
	hex_print(hex, raw, sizeof(raw));
	return 0;
}

int ck_random_hex(char *hex, size_t bytes, struct ck_error *err)
{
	unsigned char raw[32];

	while (bytes > 0) {
		size_t take = bytes < sizeof(raw) ? bytes : sizeof(raw);
		ssize_t got = getrandom(raw, take, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return ck_fail(err, CK_EIO, "getrandom: %s", strerrordesc_np(errno));
		hex_print(hex, raw, (size_t)got);
		hex += 2 * got;
		bytes -= (size_t)got;
	}
	*hex = '\0';
	return 0;
}
