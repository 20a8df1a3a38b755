/*
 * IEEE 754 half precision in integers, for compilers without _Float16.
 */
#ifndef TRAIN_HALF_H
#define TRAIN_HALF_H

#include <stdint.h>

union half_float {
	float value;
	uint32_t bits;
};

/* Rounds to the nearest, ties to even; too large becomes infinite; a NaN stays one. */
static inline uint16_t half_from_float(float value)
{
	union half_float f = {.value = value};
	uint32_t sign = f.bits >> 16 & 0x8000;

	f.bits &= 0x7fffffff;
	if (f.bits > 0x7f800000)
		return (uint16_t)(sign | 0x7e00);
	if (f.bits >= 0x477ff000) /* 65520: half-way from the largest to 65536 */
		return (uint16_t)(sign | 0x7c00);
	if (f.bits < 0x38800000) { /* below 2^-14 they are 2^-24 apart, as floats from 0.5 on */
		f.value += 0.5f;
		return (uint16_t)(sign | (f.bits - 0x3f000000));
	}
	f.bits += 0xfff + (f.bits >> 13 & 1);
	return (uint16_t)(sign | (f.bits - 0x38000000) >> 13);
}

/* Exact. */
static inline float half_to_float(uint16_t half)
{
	uint32_t sign = (uint32_t)(half & 0x8000) << 16, magnitude = half & 0x7fff;
	union half_float f = {.value = (float)magnitude * 0x1p-24f};

	if (magnitude >= 0x7c00)
		f.bits = 0x7f800000 | (magnitude & 0x3ff) << 13;
	else if (magnitude >= 0x0400)
		f.bits = (magnitude << 13) + 0x38000000;
	f.bits |= sign;
	return f.value;
}

#endif
