#include "sha256.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"
#include "sha256_ni.h"
#include "tap.h"

#define BYTES 100000
#define STREAMS 9

static void hash(enum ck_sha sha, const void *data, size_t bytes, char *hex)
{
	unsigned char raw[CK_SHA256_BYTES];
	struct ck_sha256 *stream = NULL;
	struct ck_error err = CK_ERROR_INIT;

	if (ck_sha256_new(&stream, sha, &err) ||
	    ck_sha256_update(&stream, &data, &bytes, 1, &err) || ck_sha256_final(stream, raw, &err))
		ok(false, "hashing: %s", err.text);
	ck_hex_print(hex, raw, sizeof(raw));
	ck_sha256_free(stream);
}

/* Answers of sha256sum; lengths around the ends of blocks. */
static void test_known(enum ck_sha sha)
{
	static const struct {
		size_t bytes; /* of 'a' */
		const char *hex;
	} rows[] = {
		{0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{1, "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"},
		{55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
		{56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
		{63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"},
		{64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
		{1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
	};
	char *text = malloc(1000000), hex[CK_SHA256_HEX + 1];

	memset(text, 'a', 1000000);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		hash(sha, text, rows[i].bytes, hex);
		is_str(hex, rows[i].hex, "%zu times 'a'", rows[i].bytes);
	}
	is_int(ck_sha256_hex("abc", 3, hex, NULL), 0, "short text");
	is_str(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "abc");
	free(text);
}

struct stream {
	struct ck_sha256 *sha256;
	EVP_MD_CTX *reference;
};

static void begin(struct stream *s, enum ck_sha sha)
{
	if (ck_sha256_new(&s->sha256, sha, NULL))
		ok(false, "a stream");
	s->reference = EVP_MD_CTX_new();
	EVP_DigestInit_ex(s->reference, EVP_sha256(), NULL);
}

static bool end(struct stream *s)
{
	unsigned char got[CK_SHA256_BYTES] = {0}, want[CK_SHA256_BYTES];

	ck_sha256_final(s->sha256, got, NULL);
	EVP_DigestFinal_ex(s->reference, want, NULL);
	ck_sha256_free(s->sha256);
	EVP_MD_CTX_free(s->reference);
	return memcmp(got, want, sizeof(got)) == 0;
}

/* Streams of random pieces at random addresses, advanced together: as libcrypto does each alone. */
static bool as_libcrypto(const unsigned char *data, size_t count, size_t longest, enum ck_sha sha,
			 uint64_t *state)
{
	struct stream streams[STREAMS];
	bool same = true;

	for (size_t k = 0; k < count; k++)
		begin(&streams[k], k == 2 ? CK_SHA_LIBCRYPTO : sha);
	for (int piece = 0; piece < 12; piece++) {
		struct ck_sha256 *sha256[STREAMS];
		const void *at[STREAMS];
		size_t bytes[STREAMS];

		for (size_t k = 0; k < count; k++) {
			bytes[k] = draw(state, longest + 1);
			at[k] = data + draw(state, BYTES - longest);
			sha256[k] = streams[k].sha256;
			EVP_DigestUpdate(streams[k].reference, at[k], bytes[k]);
		}
		same = ck_sha256_update(sha256, at, bytes, count, NULL) == 0 && same;
	}
	for (size_t k = 0; k < count; k++)
		same = end(&streams[k]) && same;
	return same;
}

static void test_as_libcrypto(void)
{
	static const size_t longest[] = {70, 200, 5000, 50000};
	unsigned char *data = malloc(BYTES);
	uint64_t state = 42;

	for (size_t i = 0; i < BYTES; i++)
		data[i] = (unsigned char)next_random(&state);
	for (size_t l = 0; l < sizeof(longest) / sizeof(longest[0]); l++) {
		for (size_t count = 1; count <= STREAMS; count++) {
			bool same = true;

			for (int again = 0; again < 20; again++)
				same = as_libcrypto(data, count, longest[l], CK_SHA_BEST, &state) &&
				       same;
			ok(same, "%zu streams in pieces of up to %zu bytes", count, longest[l]);
		}
	}
	ok(as_libcrypto(data, 3, 5000, CK_SHA_LIBCRYPTO, &state), "without the kernel");
	free(data);
}

int main(void)
{
	if (!ck_sha256_ni_here())
		skip("this CPU has no SHA instructions: libcrypto is compared with itself");
	test_known(CK_SHA_BEST);
	test_known(CK_SHA_LIBCRYPTO);
	test_as_libcrypto();
	return done_testing();
}
