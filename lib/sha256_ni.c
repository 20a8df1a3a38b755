#include "sha256_ni.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>

#define TARGET __attribute__((target("sha,sse4.1")))
#define INLINE static inline __attribute__((always_inline)) TARGET

static const uint32_t constants[64] __attribute__((aligned(16))) = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

bool ck_sha256_ni_here(void)
{
	unsigned a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) || !(c & bit_SSE4_1))
		return false;
	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}

/* The instructions want the words a, b, e, f and c, d, g, h together. */
INLINE void load_state(const uint32_t *words, __m128i *abef, __m128i *cdgh)
{
	__m128i low = _mm_loadu_si128((const __m128i *)words);
	__m128i high = _mm_loadu_si128((const __m128i *)(words + 4));

	low = _mm_shuffle_epi32(low, 0xb1);
	high = _mm_shuffle_epi32(high, 0x1b);
	*abef = _mm_alignr_epi8(low, high, 8);
	*cdgh = _mm_blend_epi16(high, low, 0xf0);
}

INLINE void store_state(uint32_t *words, __m128i abef, __m128i cdgh)
{
	__m128i low = _mm_shuffle_epi32(abef, 0x1b);
	__m128i high = _mm_shuffle_epi32(cdgh, 0xb1);

	_mm_storeu_si128((__m128i *)words, _mm_blend_epi16(low, high, 0xf0));
	_mm_storeu_si128((__m128i *)(words + 4), _mm_alignr_epi8(high, low, 8));
}

/* Four words of the message schedule: read in the first four groups, then made of the last 16. */
INLINE __m128i schedule(__m128i w[4], int group, const unsigned char *data)
{
	const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
	__m128i last = w[(group + 3) & 3], sum;

	if (group < 4)
		return _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)data + group), swap);
	sum = _mm_sha256msg1_epu32(w[group & 3], w[(group + 1) & 3]);
	sum = _mm_add_epi32(sum, _mm_alignr_epi8(last, w[(group + 2) & 3], 4));
	return _mm_sha256msg2_epu32(sum, last);
}

/* `count` is a constant where this is inlined, so that the loops over the lanes vanish. */
INLINE void compress(struct ck_sha256_lane *lanes, size_t count, size_t blocks)
{
	__m128i abef[CK_SHA256_LANES], cdgh[CK_SHA256_LANES];

	for (size_t k = 0; k < count; k++)
		load_state(lanes[k].state, &abef[k], &cdgh[k]);
	for (; blocks > 0; blocks--) {
		__m128i w[CK_SHA256_LANES][4], abef0[CK_SHA256_LANES], cdgh0[CK_SHA256_LANES];

#pragma GCC unroll 4
		for (size_t k = 0; k < count; k++) {
			abef0[k] = abef[k];
			cdgh0[k] = cdgh[k];
		}
#pragma GCC unroll 16
		for (int group = 0; group < 16; group++) {
			__m128i add = _mm_load_si128((const __m128i *)constants + group);

#pragma GCC unroll 4
			for (size_t k = 0; k < count; k++) {
				__m128i word = schedule(w[k], group, lanes[k].data);

				w[k][group & 3] = word;
				word = _mm_add_epi32(word, add);
				cdgh[k] = _mm_sha256rnds2_epu32(cdgh[k], abef[k], word);
				word = _mm_shuffle_epi32(word, 0x0e);
				abef[k] = _mm_sha256rnds2_epu32(abef[k], cdgh[k], word);
			}
		}
#pragma GCC unroll 4
		for (size_t k = 0; k < count; k++) {
			abef[k] = _mm_add_epi32(abef[k], abef0[k]);
			cdgh[k] = _mm_add_epi32(cdgh[k], cdgh0[k]);
			lanes[k].data += CK_SHA256_BLOCK;
		}
	}
	for (size_t k = 0; k < count; k++)
		store_state(lanes[k].state, abef[k], cdgh[k]);
}

static TARGET __attribute__((noinline)) void compress1(struct ck_sha256_lane *lanes, size_t blocks)
{
	compress(lanes, 1, blocks);
}

static TARGET __attribute__((noinline)) void compress2(struct ck_sha256_lane *lanes, size_t blocks)
{
	compress(lanes, 2, blocks);
}

static TARGET __attribute__((noinline)) void compress3(struct ck_sha256_lane *lanes, size_t blocks)
{
	compress(lanes, 3, blocks);
}

static TARGET __attribute__((noinline)) void compress4(struct ck_sha256_lane *lanes, size_t blocks)
{
	compress(lanes, 4, blocks);
}

void ck_sha256_ni(struct ck_sha256_lane *lanes, size_t count, size_t blocks)
{
	static void (*const by_count[])(struct ck_sha256_lane *, size_t) = {compress1, compress2,
									    compress3, compress4};

	by_count[count - 1](lanes, blocks);
}
#else
bool ck_sha256_ni_here(void)
{
	return false;
}

void ck_sha256_ni(struct ck_sha256_lane *lanes, size_t count, size_t blocks)
{
	(void)lanes;
	(void)count;
	(void)blocks;
}
#endif
