#include "values.h"

#include <math.h>
#include <string.h>

/* How a short floating-point type is made: sign, exponent, fraction; and which bits are special. */
struct form {
	int exponent_bits, fraction_bits, bias;
	enum {
		IEEE,   /* the highest exponent: infinity and NaN */
		FINITE, /* all ones: NaN; no infinity */
		FNUZ    /* minus zero is the only NaN; no infinity */
	} specials;
};

static const struct form f16 = {5, 10, 15, IEEE}, bf16 = {8, 7, 127, IEEE};
static const struct form e4m3 = {4, 3, 7, FINITE}, e5m2 = {5, 2, 15, IEEE};
static const struct form e4m3fnuz = {4, 3, 8, FNUZ}, e5m2fnuz = {5, 2, 16, FNUZ};

static double decode(const struct form *form, uint32_t bits)
{
	uint32_t fraction = bits & ((1U << form->fraction_bits) - 1);
	uint32_t top = (1U << form->exponent_bits) - 1;
	uint32_t exponent = (bits >> form->fraction_bits) & top;
	uint32_t negative = bits >> (form->fraction_bits + form->exponent_bits) & 1;
	uint32_t ones = (1U << form->fraction_bits) - 1;
	double value;

	if (form->specials == IEEE && exponent == top)
		value = fraction ? NAN : INFINITY;
	else if (form->specials == FINITE && exponent == top && fraction == ones)
		value = NAN;
	else if (form->specials == FNUZ && negative && !exponent && !fraction)
		value = NAN;
	else if (exponent == 0)
		value = ldexp(fraction, 1 - form->bias - form->fraction_bits);
	else
		value = ldexp((double)fraction + (double)(ones + 1),
			      (int)exponent - form->bias - form->fraction_bits);
	return negative ? -value : value;
}

static uint64_t load(const void *at, size_t bytes)
{
	uint64_t bits = 0;

	memcpy(&bits, at, bytes);
	return bits;
}

static double load_f32(const void *at)
{
	float value;

	memcpy(&value, at, sizeof(value));
	return (double)value;
}

static double load_f64(const void *at)
{
	double value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static double load_float(enum ck_dtype dtype, const void *at)
{
	uint32_t bits = (uint32_t)load(at, ck_dtype_size((int)dtype) == 1 ? 1 : 2);

	switch (dtype) {
	case CK_F16:
		return decode(&f16, bits);
	case CK_BF16:
		return decode(&bf16, bits);
	case CK_F8_E4M3:
		return decode(&e4m3, bits);
	case CK_F8_E5M2:
		return decode(&e5m2, bits);
	case CK_F8_E4M3FNUZ:
		return decode(&e4m3fnuz, bits);
	case CK_F8_E5M2FNUZ:
		return decode(&e5m2fnuz, bits);
	case CK_F8_E8M0:
		return bits == 255 ? NAN : ldexp(1, (int)bits - 127);
	default:
		return dtype == CK_F32 ? load_f32(at) : load_f64(at);
	}
}

static double between(double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) && isnan(b) ? 0 : INFINITY;
	return a == b ? 0 : fabs(a - b);
}

/* In whole numbers, so that nothing is lost before the difference is taken. */
static double between_integers(enum ck_dtype dtype, const void *a, const void *b)
{
	size_t bytes = ck_dtype_size((int)dtype);
	uint64_t x = load(a, bytes), y = load(b, bytes);
	bool is_signed = dtype == CK_I8 || dtype == CK_I16 || dtype == CK_I32 || dtype == CK_I64;
	/* Shifts the signed range onto the unsigned one, in order. */
	uint64_t flip = is_signed ? UINT64_C(1) << (8 * bytes - 1) : 0;

	x ^= flip;
	y ^= flip;
	return (double)(x > y ? x - y : y - x);
}

double ck_value_distance(enum ck_dtype dtype, const void *a, const void *b)
{
	const char *x = a, *y = b;

	switch (dtype) {
	case CK_BOOL:
	case CK_U8:
	case CK_I8:
	case CK_I16:
	case CK_I32:
	case CK_I64:
	case CK_U16:
	case CK_U32:
	case CK_U64:
		return between_integers(dtype, a, b);
	case CK_C64:
		return hypot(between(load_f32(x), load_f32(y)),
			     between(load_f32(x + 4), load_f32(y + 4)));
	default:
		return between(load_float(dtype, a), load_float(dtype, b));
	}
}
