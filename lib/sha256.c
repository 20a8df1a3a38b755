#include "sha256.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "sha256_ni.h"

struct ck_sha256 {
	EVP_MD_CTX *evp; /* libcrypto's; NULL: the kernel's, below */
	uint32_t state[8];
	unsigned char rest[CK_SHA256_BLOCK]; /* of the last, incomplete block */
	size_t used;
	uint64_t bytes;
};

static int fail_crypto(struct ck_error *err, const char *call)
{
	return ck_fail(err, CK_EIO, "SHA-256: %s failed in libcrypto", call);
}

static int begin_evp(struct ck_sha256 *stream, struct ck_error *err)
{
	stream->evp = EVP_MD_CTX_new();
	if (!stream->evp)
		return ck_fail(err, CK_ENOMEM, "out of memory for a SHA-256 context");
	if (EVP_DigestInit_ex(stream->evp, EVP_sha256(), NULL) != 1)
		return fail_crypto(err, "EVP_DigestInit_ex");
	return 0;
}

int ck_sha256_new(struct ck_sha256 **out, enum ck_sha sha, struct ck_error *err)
{
	static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
					    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
	struct ck_sha256 *stream = calloc(1, sizeof(*stream));
	int rc = 0;

	if (!stream)
		return ck_fail_nomem(err, sizeof(*stream));
	memcpy(stream->state, initial, sizeof(initial));
	if (sha != CK_SHA_BEST || !ck_sha256_ni_here())
		rc = begin_evp(stream, err);
	if (rc)
		ck_sha256_free(stream);
	else
		*out = stream;
	return rc;
}

/* Complete the block that an earlier call began. Returns how many bytes that took. */
static size_t top_up(struct ck_sha256 *stream, const unsigned char *data, size_t bytes)
{
	struct ck_sha256_lane lane = {stream->state, stream->rest};
	size_t room = CK_SHA256_BLOCK - stream->used, take = bytes < room ? bytes : room;

	if (stream->used == 0)
		return 0;
	memcpy(stream->rest + stream->used, data, take);
	stream->used += take;
	if (stream->used < CK_SHA256_BLOCK)
		return take;
	ck_sha256_ni(&lane, 1, 1);
	stream->used = 0;
	return take;
}

/* Advance all lanes by the shortest of them, drop those that are done, until none is left. */
static void advance(struct ck_sha256_lane *lanes, size_t *blocks, size_t count)
{
	while (count > 0) {
		size_t shortest = blocks[0], left = 0;

		for (size_t k = 1; k < count; k++)
			shortest = blocks[k] < shortest ? blocks[k] : shortest;
		ck_sha256_ni(lanes, count, shortest);
		for (size_t k = 0; k < count; k++) {
			lanes[left] = lanes[k];
			blocks[left] = blocks[k] - shortest;
			left += blocks[left] > 0;
		}
		count = left;
	}
}

/* At most CK_SHA256_LANES streams, all of the kernel. */
static void update_lanes(struct ck_sha256 *const *streams, const unsigned char *const *data,
			 const size_t *bytes, size_t count)
{
	struct ck_sha256_lane lanes[CK_SHA256_LANES];
	size_t blocks[CK_SHA256_LANES], nlanes = 0;

	for (size_t k = 0; k < count; k++) {
		struct ck_sha256 *stream = streams[k];
		size_t head = top_up(stream, data[k], bytes[k]), left = bytes[k] - head;
		size_t tail = left % CK_SHA256_BLOCK;

		stream->bytes += bytes[k];
		if (left > tail) {
			lanes[nlanes] = (struct ck_sha256_lane){stream->state, data[k] + head};
			blocks[nlanes++] = left / CK_SHA256_BLOCK;
		}
		/* Without a complete block, head is all there was unless nothing was left over. */
		if (tail)
			memcpy(stream->rest, data[k] + head + left - tail, tail);
		if (left)
			stream->used = tail;
	}
	advance(lanes, blocks, nlanes);
}

int ck_sha256_update(struct ck_sha256 *const *streams, const void *const *data, const size_t *bytes,
		     size_t count, struct ck_error *err)
{
	struct ck_sha256 *group[CK_SHA256_LANES];
	const unsigned char *group_data[CK_SHA256_LANES];
	size_t group_bytes[CK_SHA256_LANES], n = 0;

	for (size_t i = 0; i < count; i++) {
		if (bytes[i] == 0)
			continue;
		if (streams[i]->evp) {
			if (EVP_DigestUpdate(streams[i]->evp, data[i], bytes[i]) != 1)
				return fail_crypto(err, "EVP_DigestUpdate");
			continue;
		}
		group[n] = streams[i];
		group_data[n] = data[i];
		group_bytes[n++] = bytes[i];
		if (n == CK_SHA256_LANES) {
			update_lanes(group, group_data, group_bytes, n);
			n = 0;
		}
	}
	update_lanes(group, group_data, group_bytes, n);
	return 0;
}

/* A one bit, zeros, and the length in bits end the last block. */
static void final_lane(struct ck_sha256 *stream, unsigned char *raw)
{
	struct ck_sha256_lane lane = {stream->state, stream->rest};
	uint64_t bits = stream->bytes * 8;

	stream->rest[stream->used++] = 0x80;
	memset(stream->rest + stream->used, 0, CK_SHA256_BLOCK - stream->used);
	if (stream->used > CK_SHA256_BLOCK - sizeof(bits)) {
		ck_sha256_ni(&lane, 1, 1);
		memset(stream->rest, 0, CK_SHA256_BLOCK);
		lane.data = stream->rest;
	}
	for (size_t i = 0; i < sizeof(bits); i++)
		stream->rest[CK_SHA256_BLOCK - 1 - i] = (unsigned char)(bits >> (8 * i));
	ck_sha256_ni(&lane, 1, 1);
	for (size_t i = 0; i < CK_SHA256_BYTES; i++)
		raw[i] = (unsigned char)(stream->state[i / 4] >> (24 - 8 * (i % 4)));
}

int ck_sha256_final(struct ck_sha256 *stream, unsigned char raw[static CK_SHA256_BYTES],
		    struct ck_error *err)
{
	if (!stream->evp)
		final_lane(stream, raw);
	else if (EVP_DigestFinal_ex(stream->evp, raw, NULL) != 1)
		return fail_crypto(err, "EVP_DigestFinal_ex");
	return 0;
}

void ck_sha256_free(struct ck_sha256 *stream)
{
	if (!stream)
		return;
	EVP_MD_CTX_free(stream->evp);
	free(stream);
}

void ck_hex_print(char *hex, const unsigned char *bytes, size_t count)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < count; i++) {
		hex[2 * i] = digits[bytes[i] >> 4];
		hex[2 * i + 1] = digits[bytes[i] & 15];
	}
	hex[2 * count] = '\0';
}

int ck_sha256_hex(const void *data, size_t bytes, char hex[static CK_SHA256_HEX + 1],
		  struct ck_error *err)
{
	unsigned char raw[CK_SHA256_BYTES];

	if (EVP_Digest(bytes ? data : "", bytes, raw, NULL, EVP_sha256(), NULL) != 1)
		return fail_crypto(err, "EVP_Digest");
	ck_hex_print(hex, raw, sizeof(raw));
	return 0;
}
