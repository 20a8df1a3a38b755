/* How far two elements are from each other, by dtype. */
#include "values.h"

#include "tap.h"

static void distances(void)
{
	static const struct {
		const char *what;
		enum ck_dtype dtype;
		uint64_t a, b;
		double want;
	} cases[] = {
		{"u64 at both ends", CK_U64, 0, UINT64_MAX, 18446744073709551615.0},
		{"i8, signs", CK_I8, 0x80, 0x7f, 255},
		{"i64 next to each other", CK_I64, (uint64_t)-5, (uint64_t)-6, 1},
		{"bool", CK_BOOL, 1, 0, 1},
		{"f32 1 and 2", CK_F32, 0x3f800000, 0x40000000, 1},
		{"f32 +0 and -0", CK_F32, 0, 0x80000000, 0},
		{"f16 1 and smallest", CK_F16, 0x3c00, 0x0001, 1 - 0x1p-24},
		{"f16 infinities", CK_F16, 0x7c00, 0xfc00, 1.0 / 0.0},
		{"bf16 1 and -1", CK_BF16, 0x3f80, 0xbf80, 2},
		{"bf16 NaN and 1", CK_BF16, 0x7fc0, 0x3f80, 1.0 / 0.0},
		{"e4m3 largest and 0", CK_F8_E4M3, 0x7e, 0, 448},
		{"e4m3 NaN and NaN", CK_F8_E4M3, 0x7f, 0xff, 0},
		{"e5m2 largest and 0", CK_F8_E5M2, 0x7b, 0, 57344},
		{"e4m3fnuz largest and 0", CK_F8_E4M3FNUZ, 0x7f, 0, 240},
		{"e5m2fnuz NaN and 0", CK_F8_E5M2FNUZ, 0x80, 0, 1.0 / 0.0},
		{"e8m0 2 and 1", CK_F8_E8M0, 128, 127, 1},
		{"c64 3 + 4i and 0", CK_C64, UINT64_C(0x4080000040400000), 0, 5},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		double got = ck_value_distance(cases[i].dtype, &cases[i].a, &cases[i].b);
		double turned = ck_value_distance(cases[i].dtype, &cases[i].b, &cases[i].a);

		ok(got == cases[i].want && turned == got, "%s: %g, got %g", cases[i].what,
		   cases[i].want, got);
	}
}

int main(void)
{
	distances();
	return done_testing();
}
