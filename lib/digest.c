#include "digest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "crc32.h"

/* What a manifest can hold (8 digits each in 256 MiB) stays far below it. */
#define CHUNKS_LIMIT (UINT64_C(1) << 32)

/* What both digests look at while it is in the nearest cache, and streams at once in a group. */
#define SLICE ((size_t)32 << 10)
#define GROUP 8

struct ck_digest {
	struct ck_sha256 *sha256; /* NULL: not asked for */
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

int ck_digest_new(struct ck_digest **out, uint64_t total_bytes, uint64_t chunk_bytes,
		  enum ck_sha sha, struct ck_error *err)
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
	else if (sha != CK_SHA_NONE)
		rc = ck_sha256_new(&digest->sha256, sha, err);
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
	ck_sha256_free(digest->sha256);
	free(digest->chunk_crc32);
	free(digest);
}

static int check_room(const struct ck_digest *digest, size_t bytes, struct ck_error *err)
{
	if (bytes <= digest->total - digest->seen)
		return 0;
	return ck_fail(err, CK_EARG,
		       "digest: %zu bytes at offset %" PRIu64 " go beyond the announced %" PRIu64,
		       bytes, digest->seen, digest->total);
}

static void update_crc(struct ck_digest *digest, const unsigned char *next, size_t bytes)
{
	while (bytes > 0) {
		uint32_t *crc = &digest->chunk_crc32[digest->seen / digest->chunk_bytes];
		uint64_t room = digest->chunk_bytes - digest->seen % digest->chunk_bytes;
		size_t take = bytes < room ? bytes : (size_t)room;

		*crc = ck_crc32(*crc, next, take);
		next += take;
		bytes -= take;
		digest->seen += take;
	}
}

/* The bytes [at, at + SLICE) of each of at most GROUP streams. */
static int update_slice(struct ck_digest *const *digests, const void *const *data,
			const size_t *bytes, size_t count, size_t at, struct ck_error *err)
{
	struct ck_sha256 *streams[GROUP];
	const void *slices[GROUP];
	size_t lengths[GROUP], n = 0;

	for (size_t i = 0; i < count; i++) {
		size_t left = bytes[i] > at ? bytes[i] - at : 0;

		lengths[n] = left < SLICE ? left : SLICE;
		if (lengths[n] == 0)
			continue;
		slices[n] = (const char *)data[i] + at;
		streams[n] = digests[i]->sha256;
		update_crc(digests[i], slices[n], lengths[n]);
		n += streams[n] != NULL;
	}
	return ck_sha256_update(streams, slices, lengths, n, err);
}

static int update_group(struct ck_digest *const *digests, const void *const *data,
			const size_t *bytes, size_t count, struct ck_error *err)
{
	size_t longest = 0;
	int rc = 0;

	for (size_t i = 0; i < count; i++)
		longest = bytes[i] > longest ? bytes[i] : longest;
	for (size_t at = 0; at < longest && rc == 0; at += SLICE)
		rc = update_slice(digests, data, bytes, count, at, err);
	return rc;
}

int ck_digest_update_all(struct ck_digest *const *digests, const void *const *data,
			 const size_t *bytes, size_t count, struct ck_error *err)
{
	int rc = 0;

	for (size_t i = 0; i < count && rc == 0; i++)
		rc = check_room(digests[i], bytes[i], err);
	for (size_t i = 0; i < count && rc == 0; i += GROUP)
		rc = update_group(digests + i, data + i, bytes + i,
				  count - i < GROUP ? count - i : GROUP, err);
	return rc;
}

int ck_digest_update(struct ck_digest *digest, const void *data, size_t bytes, struct ck_error *err)
{
	return ck_digest_update_all(&digest, &data, &bytes, 1, err);
}

/* The CRC of the whole from those of its chunks: no byte is looked at twice. */
static uint32_t combine_chunks(const struct ck_digest *digest)
{
	uint64_t left = digest->total;
	uint32_t crc = 0;

	for (uint64_t i = 0; i < digest->nchunks; i++) {
		uint64_t bytes = left < digest->chunk_bytes ? left : digest->chunk_bytes;

		crc = ck_crc32_combine(crc, digest->chunk_crc32[i], bytes);
		left -= bytes;
	}
	return crc;
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
		int rc = ck_sha256_final(digest->sha256, raw, err);

		if (rc)
			return rc;
		ck_hex_print(done.sha256, raw, sizeof(raw));
	}
	done.crc32 = combine_chunks(digest);
	done.chunk_crc32 = digest->chunk_crc32;
	digest->chunk_crc32 = NULL;
	*out = done;
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
		ck_hex_print(hex, raw, (size_t)got);
		hex += 2 * got;
		bytes -= (size_t)got;
	}
	*hex = '\0';
	return 0;
}
