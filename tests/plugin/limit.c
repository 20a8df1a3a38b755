/* Time limits as sbatch reads them, and which of them leave no time to train. */
#include "limit.h"
#include "tap.h"

static void parse(void)
{
	static const struct {
		const char *text;
		int64_t seconds;
	} cases[] = {
		{"", 0},
		{"-", 0},
		{":", 0},
		{"-1", 0},
		{"infinite", 0},
		{"UNLIMITED", 0},
		{"5m", 0},
		{"1:", 0},
		{"1:2:3:4", 0},
		{"1-", 0},
		{"1-2:3:4:5", 0},
		{"-2:3", 0},
		{"12345678901", 0},
		{"12345678901-1", 0},
		{"1", 60},
		{"90", 5400},
		{"1:30", 90},
		{"0:45", 45},
		{"1:02:03", 3723},
		{"2-3", 183600},
		{"2-3:04", 183840},
		{"1-00:00:30", 86430},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		is_int(ck_limit_parse(cases[i].text), cases[i].seconds, "'%s'", cases[i].text);
}

static void is_short(void)
{
	char text[CK_LIMIT_TEXT];

	ok(!ck_limit_is_short(0, 60, text), "no limit is not short");
	ok(!ck_limit_is_short(61, 60, text), "a second more than the margin");
	ok(!ck_limit_is_short(60, 0, text), "no margin");
	ok(ck_limit_is_short(60, 60, text), "as long as the margin");
	like(text, "limit of 60 s minus --ckpt-margin of 60 s", "... the arithmetic");
	ok(ck_limit_is_short(60, 600, text), "shorter than the margin");
	like(text, "--ckpt-margin below 60s", "... the remedy");
}

int main(void)
{
	parse();
	is_short();
	return done_testing();
}
