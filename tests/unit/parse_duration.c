#include "parse.h"

#include "tap.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static const char *shown(const char *text)
{
	return text ? text : "(NULL)";
}

/* Refused as a duration, whether steps are allowed or not. */
static void test_durations_refused(void)
{
	static const struct {
		const char *text;
		const char *says;
	} rows[] = {
		{NULL, "every: no value: a duration such as 900s, 15min, 2h, 1d or 1:00:00"},
		{"", "every: empty: a duration such as"},
		{"-5m", "every: -5m: negative; wanted is a duration such as 900s"},
		{"-500", "every: -500: negative"},
		{"15 min", "every: 15 min: has a blank"},
		{" 15min", "every:  15min: has a blank"},
		{"15min ", "every: 15min : has a blank"},
		{"15\tmin", "every: 15?min: has a blank"},
		{"+5m", "every: +5m: not a duration such as 900s, 15min, 2h, 1d or 1:00:00"},
		{"min", "every: min: not a duration"},
		{"1.5h", "every: 1.5h: not a duration"},
		{"1h30m", "every: 1h30m: not a duration"},
		{"15M", "every: 15M: not a duration"},
		{"15minutes", "every: 15minutes: not a duration"},
		{"15ms", "every: 15ms: not a duration"},
		{"2hours", "not a duration"},
		{"1w", "not a duration"},
		{"auto", "every: auto: not a duration"},
		{"1e3s", "not a duration"},
		{"1-00:00:00", "not a duration"},
		{"1:", "every: 1:: a clock is h:mm:ss or m:ss, minutes and seconds below 60"},
		{":30", "every: :30: not a duration"},
		{"1:5", "every: 1:5: a clock is"},
		{"1:60", "every: 1:60: a clock is"},
		{"1:00:60", "every: 1:00:60: a clock is"},
		{"1:60:00", "every: 1:60:00: a clock is"},
		{"1:00:", "every: 1:00:: a clock is"},
		{"1:00:0", "a clock is"},
		{"1:00:000", "a clock is"},
		{"1:000", "a clock is"},
		{"1:00:00:", "a clock is"},
		{"1:00:00:00", "a clock is"},
		{"1:00s", "a clock is"},
		{"1:-1", "a clock is"},
		{"1:0x", "a clock is"},
		{"1000000001s", "every: 1000000001s: longer than 1000000000s"},
		{"11575d", "longer than 1000000000s"},
		{"18446744073709551616s", "longer than 1000000000s"},
		{"99999999999999999999999999d", "longer than 1000000000s"},
		{"277778:00:00", "longer than 1000000000s"},
		{"16666667:00", "longer than 1000000000s"},
		{"18446744073709551616:00:00", "longer than 1000000000s"},
		{"307445734561825861:00", "longer than 1000000000s"},
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct ck_interval interval = {7, 8};
		struct ck_error err = CK_ERROR_INIT;
		uint64_t seconds = 77;

		is_int(ck_parse_seconds("every", rows[i].text, false, &seconds, &err), CK_EARG,
		       "duration '%s' is refused", shown(rows[i].text));
		like(err.text, rows[i].says, "duration '%s': text", shown(rows[i].text));
		unlike(err.text, "steps", "duration '%s': no word of steps", shown(rows[i].text));
		is_u64(seconds, 77, "duration '%s': output untouched", shown(rows[i].text));

		err = (struct ck_error)CK_ERROR_INIT;
		is_int(ck_parse_interval("every", rows[i].text, &interval, &err), CK_EARG,
		       "interval '%s' is refused", shown(rows[i].text));
		like(err.text, rows[i].says, "interval '%s': text", shown(rows[i].text));
		ok(interval.seconds == 7 && interval.steps == 8, "interval '%s': output untouched",
		   shown(rows[i].text));
	}
}

static void test_bare_numbers_are_refused_with_their_readings(void)
{
	struct ck_error err = CK_ERROR_INIT;
	struct ck_interval interval;
	uint64_t seconds;

	is_int(ck_parse_interval("--ckpt-every", "500", &interval, &err), CK_EARG, "500");
	is_str(err.text, "--ckpt-every: 500: a number needs a unit: 500s, 500min or 500steps",
	       "shows three readings");
	is_int(ck_parse_seconds("--ckpt-every", "500", true, &seconds, &err), CK_EARG,
	       "500 where steps are possible");
	like(err.text, "500s, 500min or 500steps", "shows three readings");
	is_int(ck_parse_seconds("--ckpt-margin", "60", false, &seconds, &err), CK_EARG,
	       "60 where they are not");
	is_str(err.text, "--ckpt-margin: 60: a number needs a unit: 60s or 60min", "shows two");
	is_int(ck_parse_interval("--ckpt-every", "0", &interval, &err), CK_EARG, "0");
	like(err.text, "0: a number needs a unit", "needs one too");
}

static void test_intervals_refused(void)
{
	static const struct {
		const char *text;
		const char *says;
	} rows[] = {
		{"0s", "every: 0s: more than 0 is wanted"},
		{"0min", "every: 0min: more than 0 is wanted"},
		{"0:00:00", "every: 0:00:00: more than 0 is wanted"},
		{"0steps", "every: 0steps: more than 0 is wanted"},
		{"00step", "every: 00step: more than 0 is wanted"},
		{"-5steps", "every: -5steps: negative"},
		{"500 steps", "every: 500 steps: has a blank"},
		{"500stepss", "every: 500stepss: not a duration such as 900s, 15min, 2h, 1d or "
			      "1:00:00, or 500steps"},
		{"500Steps", "not a duration"},
		{"steps", "every: steps: not a duration"},
		{"1.5steps", "not a duration"},
		{"9007199254740992steps", "every: 9007199254740992steps: more than "
					  "9007199254740991 steps"},
		{"99999999999999999999steps", "more than 9007199254740991 steps"},
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct ck_interval interval = {7, 8};
		struct ck_error err = CK_ERROR_INIT;

		is_int(ck_parse_interval("every", rows[i].text, &interval, &err), CK_EARG,
		       "interval '%s' is refused", rows[i].text);
		like(err.text, rows[i].says, "interval '%s': text", rows[i].text);
		ok(interval.seconds == 7 && interval.steps == 8, "interval '%s': output untouched",
		   rows[i].text);
	}
}

static void test_durations(void)
{
	static const struct {
		const char *text;
		uint64_t want;
	} rows[] = {
		{"1s", 1},
		{"900s", 900},
		{"15m", 900},
		{"15min", 900},
		{"30min", 1800},
		{"015min", 900},
		{"2h", 7200},
		{"1d", 86400},
		{"1:00:00", 3600},
		{"01:00:00", 3600},
		{"100:59:59", 363599},
		{"90:00", 5400},
		{"0:30", 30},
		{"0:00:01", 1},
		{"1000000000s", 1000000000},
		{"277777:46:40", 1000000000},
		{"11574d", UINT64_C(11574) * 86400},
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct ck_interval interval = {7, 8};
		uint64_t seconds = 77;

		is_int(ck_parse_seconds("every", rows[i].text, false, &seconds, NULL), CK_OK,
		       "duration '%s'", rows[i].text);
		is_u64(seconds, rows[i].want, "duration '%s': seconds", rows[i].text);
		is_int(ck_parse_interval("every", rows[i].text, &interval, NULL), CK_OK,
		       "interval '%s'", rows[i].text);
		is_u64(interval.seconds, rows[i].want, "interval '%s': seconds", rows[i].text);
		is_u64(interval.steps, 0, "interval '%s': no steps", rows[i].text);
	}
}

static void test_a_duration_may_be_zero(void)
{
	uint64_t seconds = 77;

	is_int(ck_parse_seconds("margin", "0s", false, &seconds, NULL), CK_OK, "0s is a duration");
	is_u64(seconds, 0, "of no seconds");
}

static void test_steps(void)
{
	static const struct {
		const char *text;
		uint64_t want;
	} rows[] = {
		{"500steps", 500},
		{"1step", 1},
		{"1steps", 1},
		{"0500steps", 500},
		{"9007199254740991steps", UINT64_C(9007199254740991)},
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct ck_interval interval = {7, 8};

		is_int(ck_parse_interval("every", rows[i].text, &interval, NULL), CK_OK,
		       "interval '%s'", rows[i].text);
		is_u64(interval.steps, rows[i].want, "interval '%s': steps", rows[i].text);
		is_u64(interval.seconds, 0, "interval '%s': no seconds", rows[i].text);
	}
}

int main(void)
{
	test_durations_refused();
	test_bare_numbers_are_refused_with_their_readings();
	test_intervals_refused();
	test_durations();
	test_a_duration_may_be_zero();
	test_steps();
	return done_testing();
}
