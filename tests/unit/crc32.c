#include "crc32.h"

#include <stdlib.h>
#include <zlib.h>

#include "random.h"
#include "tap.h"

#define BYTES 100000

static void test_known(void)
{
	is_u64(ck_crc32(0, "123456789", 9), 0xcbf43926, "the check value");
	is_u64(ck_crc32(ck_crc32(0, "1234", 4), "56789", 5), 0xcbf43926, "in two pieces");
	is_u64(ck_crc32(0, "", 0), 0, "nothing");
	is_u64(ck_crc32(0x12345678, NULL, 0), 0x12345678, "nothing more");
	is_u64(ck_crc32_combine(ck_crc32(0, "1234", 4), ck_crc32(0, "56789", 5), 5), 0xcbf43926,
	       "combined");
	diag("crc32 by %s", ck_crc32_name());
}

/* Whatever computes it, at any alignment and length, from any value on: as zlib does. */
static void test_as_zlib(void)
{
	unsigned char *data = malloc(BYTES);
	uint64_t state = 42;
	unsigned differ = 0;

	for (size_t i = 0; i < BYTES; i++)
		data[i] = (unsigned char)next_random(&state);
	for (size_t n = 0; n < 300; n++)
		for (size_t at = 0; at < 64; at += 7)
			differ += ck_crc32((uint32_t)n, data + at, n) !=
				  crc32_z((uLong)n, data + at, n);
	is_u64(differ, 0, "short lengths");
	for (int i = 0; i < 2000; i++) {
		size_t at = draw(&state, BYTES), n = draw(&state, BYTES - at + 1);
		uint32_t from = (uint32_t)next_random(&state);

		differ += ck_crc32(from, data + at, n) != crc32_z(from, data + at, n);
	}
	is_u64(differ, 0, "random lengths");
	free(data);
}

int main(void)
{
	test_known();
	test_as_zlib();
	return done_testing();
}
