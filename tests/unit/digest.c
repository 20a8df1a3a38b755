#include "digest.h"

#include <stdlib.h>
#include <string.h>

#include "random.h"
#include "tap.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))
#define MIB (UINT64_C(1) << 20)

static void test_chunk_bytes(void)
{
	static const struct {
		uint64_t bytes, chunk, count;
	} rows[] = {
		{0, 16 * MIB, 0},
		{1, 16 * MIB, 1},
		{16 * MIB, 16 * MIB, 1},
		{16 * MIB + 1, 16 * MIB, 2},
		{4096 * MIB, 16 * MIB, 256},
		{4096 * MIB + 1, 32 * MIB, 129},
		{8192 * MIB, 32 * MIB, 256},
		{8192 * MIB + 1, 64 * MIB, 129},
		{UINT64_MAX, UINT64_C(1) << 56, 256},
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		is_u64(ck_chunk_bytes(rows[i].bytes), rows[i].chunk, "chunk size of %llu bytes",
		       (unsigned long long)rows[i].bytes);
		is_u64(ck_chunk_count(rows[i].bytes, rows[i].chunk), rows[i].count,
		       "chunks of %llu bytes", (unsigned long long)rows[i].bytes);
	}
	is_u64(ck_chunk_count(12289, 4096), 4, "chunks of 4 KiB");
}

static void test_refused(void)
{
	struct ck_digests out = {.bytes = 77};
	struct ck_error err = CK_ERROR_INIT;
	struct ck_digest *digest = NULL;

	is_int(ck_digest_new(&digest, 10, 0, CK_SHA_BEST, &err), CK_EARG, "chunks of 0 bytes");
	like(err.text, "chunks of 0 bytes: not a power of two", "text");
	is_int(ck_digest_new(&digest, 10, 4095, CK_SHA_BEST, &err), CK_EARG,
	       "chunks of 4,095 bytes");
	like(err.text, "chunks of 4095 bytes", "text");
	ok(digest == NULL, "output untouched");
	is_int(ck_digest_new(&digest, UINT64_MAX, 1, CK_SHA_BEST, &err), CK_ENOMEM,
	       "a table that no memory holds");
	like(err.text, "out of memory: 18446744073709551615 chunks", "text");

	is_int(ck_digest_new(&digest, 10, 4096, CK_SHA_BEST, &err), 0, "ten bytes announced");
	is_int(ck_digest_update(digest, "0123456", 7, &err), 0, "seven come");
	is_int(ck_digest_final(digest, &out, &err), CK_EARG, "too few");
	is_str(err.text, "digest: 7 bytes came, 10 were announced", "text");
	is_u64(out.bytes, 77, "output untouched");
	is_int(ck_digest_update(digest, "7890", 4, &err), CK_EARG, "four more are too many");
	is_str(err.text, "digest: 4 bytes at offset 7 go beyond the announced 10", "text");
	is_int(ck_digest_update(digest, "789", 3, &err), 0, "three more are right");
	is_int(ck_digest_final(digest, &out, &err), 0, "and the stream ends");
	is_str(out.sha256, "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882",
	       "refused bytes were not hashed");
	ck_digests_fini(&out);
	ck_digest_free(digest);
	ck_digest_free(NULL);
	ck_digests_fini(&(struct ck_digests){0});
}

static struct ck_digests hash(const void *data, size_t bytes, uint64_t chunk, enum ck_sha sha)
{
	struct ck_error err = CK_ERROR_INIT;
	struct ck_digest *digest = NULL;
	struct ck_digests out = {0};

	if (ck_digest_new(&digest, bytes, chunk, sha, &err) ||
	    ck_digest_update(digest, data, bytes, &err) || ck_digest_final(digest, &out, &err))
		ok(false, "hashing %zu bytes: %s", bytes, err.text);
	ck_digest_free(digest);
	return out;
}

/* Answers of sha256sum and of Python's zlib.crc32. */
static void test_known(void)
{
	static const struct {
		const char *text, *sha256;
		uint32_t crc32;
	} rows[] = {
		{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", 0},
		{"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
		 0x352441c2},
		{"123456789", "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225",
		 0xcbf43926},
		{"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1", 0x171a3f5f},
	};
	char hex[CK_SHA256_HEX + 1];

	for (size_t i = 0; i < ROWS(rows); i++) {
		size_t bytes = strlen(rows[i].text);
		struct ck_digests got = hash(rows[i].text, bytes, 4096, CK_SHA_BEST);

		is_u64(got.bytes, bytes, "'%s': bytes", rows[i].text);
		is_str(got.sha256, rows[i].sha256, "'%s': sha256", rows[i].text);
		is_u64(got.crc32, rows[i].crc32, "'%s': crc32", rows[i].text);
		is_u64(got.chunk_bytes, 4096, "'%s': chunk size", rows[i].text);
		if (bytes)
			is_u64(got.chunk_crc32[0], rows[i].crc32, "'%s': chunk", rows[i].text);
		ck_digests_fini(&got);
		is_int(ck_sha256_hex(rows[i].text, bytes, hex, NULL), 0, "short text");
		is_str(hex, rows[i].sha256, "'%s': the same", rows[i].text);
	}
	is_int(ck_sha256_hex(NULL, 0, hex, NULL), 0, "no text at all");
	is_str(hex, rows[0].sha256, "is the empty one");
}

static void test_without_sha256(void)
{
	struct ck_digests got = hash("123456789", 9, 4, CK_SHA_NONE);

	is_str(got.sha256, "", "no sha256 unless asked for");
	is_u64(got.crc32, 0xcbf43926, "crc32 all the same");
	is_u64(got.chunk_crc32[0], 0x9be3e0a3, "crc32 of 1234");
	is_u64(got.chunk_crc32[1], 0x7e525607, "crc32 of 5678");
	is_u64(got.chunk_crc32[2], 0x8d076785, "crc32 of 9");
	ck_digests_fini(&got);
}

/* However a stream is cut and whatever the chunks: the same digests, each chunk's as if alone. */
static void compare_split(const unsigned char *data, size_t bytes, uint64_t chunk, uint64_t *state)
{
	struct ck_digests whole = hash(data, bytes, UINT64_C(1) << 30, CK_SHA_BEST), got = {0};
	struct ck_digest *digest = NULL;
	bool chunks_agree = true;
	int rc = ck_digest_new(&digest, bytes, chunk, CK_SHA_BEST, NULL);

	for (size_t at = 0, take; at < bytes && rc == 0; at += take) {
		take = draw(state, 2 * chunk + 2);
		if (take > bytes - at)
			take = bytes - at;
		rc = ck_digest_update(digest, data + at, take, NULL);
	}
	is_int(rc ? rc : ck_digest_final(digest, &got, NULL), 0, "%zu bytes in pieces", bytes);
	is_str(got.sha256, whole.sha256, "%zu bytes in pieces: sha256", bytes);
	is_u64(got.crc32, whole.crc32, "%zu bytes in chunks of %zu: crc32", bytes, (size_t)chunk);
	for (size_t i = 0; i < ck_chunk_count(bytes, chunk); i++) {
		size_t begin = i * chunk, left = bytes - begin;
		struct ck_digests alone = hash(data + begin, left < chunk ? left : chunk,
					       UINT64_C(1) << 30, CK_SHA_NONE);

		chunks_agree = chunks_agree && alone.crc32 == got.chunk_crc32[i];
		ck_digests_fini(&alone);
	}
	ok(chunks_agree, "%zu bytes in chunks of %zu: each chunk", bytes, (size_t)chunk);
	ck_digests_fini(&whole);
	ck_digests_fini(&got);
	ck_digest_free(digest);
}

static void test_splits(void)
{
	static const size_t sizes[] = {1, 4095, 4096, 4097, 8192, 100001};
	unsigned char *data = malloc(100001);
	uint64_t state = 42;

	for (size_t i = 0; i < 100001; i++)
		data[i] = (unsigned char)next_random(&state);
	for (size_t i = 0; i < ROWS(sizes); i++) {
		compare_split(data, sizes[i], 4096, &state);
		compare_split(data, sizes[i], 256, &state);
	}
	free(data);
}

static void test_random_hex(void)
{
	char a[2 * 40 + 1], b[2 * 40 + 1];

	memset(a, 'x', sizeof(a));
	is_int(ck_random_hex(a, 40, NULL), 0, "random");
	is_int(ck_random_hex(b, 40, NULL), 0, "random again");
	is_u64(strspn(a, "0123456789abcdef"), 80, "80 hex digits");
	is_u64(strlen(a), 80, "and a NUL");
	ok(strcmp(a, b) != 0, "two calls differ");
	is_int(ck_random_hex(a, 0, NULL), 0, "none wanted");
	is_str(a, "", "none given");
}

int main(void)
{
	test_chunk_bytes();
	test_refused();
	test_known();
	test_without_sha256();
	test_splits();
	test_random_hex();
	return done_testing();
}
