/* pace.h: pure rules of when ranks agree, and what is due. */
#include "pace.h"

#include <signal.h>

#include "tap.h"

static void paces(void)
{
	static const struct {
		uint64_t before, step_us, every;
		bool same_call;
	} rows[] = {
		{64, 30000000, 1, true}, /* 30 s */
		{64, 100000, 1, true},   /* 100 ms */
		{64, 99999, 1, false},   {64, 50000, 2, false}, {64, 1000, 100, false},
		{100, 10, 100, false},   {100, 1, 100, false},  {1, 1, 2, false},
		{8, 1000, 16, false},    {8, 10000, 10, false},
	};
	struct ck_pace pace = CK_PACE_FIRST;

	pace = ck_pace_next(&pace, 0);
	is_u64(pace.every, 1, "unknown yet: every call");
	ok(pace.same_call, "unknown yet: in the same call");
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ck_pace before = {.every = rows[i].before};

		pace = ck_pace_next(&before, rows[i].step_us);
		is_u64(pace.every, rows[i].every, "steps of %llu us, every %llu-th before: every",
		       (unsigned long long)rows[i].step_us, (unsigned long long)rows[i].before);
		is_int(pace.same_call, rows[i].same_call, "steps of %llu us: in the same call",
		       (unsigned long long)rows[i].step_us);
		ok(pace.every * rows[i].step_us <= 100000 || rows[i].step_us >= 100000,
		   "a decision is never more than 0.1 s and a step away");
		pace = ck_pace_next(&before, 0);
		is_u64(pace.every, before.every, "unknown: as before");
	}
}

static void urges(void)
{
	enum ck_urge urge;
	enum ck_why why;
	unsigned detail;
	char text[64];
	uint64_t save = ck_urge_pack(CK_URGE_SAVE, CK_WHY_SAVE_SIGNAL, 0);
	uint64_t stop = ck_urge_pack(CK_URGE_STOP, CK_WHY_TIME_LIMIT, 0);
	uint64_t term = ck_urge_pack(CK_URGE_STOP, CK_WHY_STOP_SIGNAL, SIGTERM);

	ok(save < stop && stop < term, "a stop outranks a save, a signal the time limit");
	ck_urge_unpack(term, &urge, &why, &detail);
	is_int(urge, CK_URGE_STOP, "urge comes back");
	is_int(why, CK_WHY_STOP_SIGNAL, "reason comes back");
	is_int((int)detail, SIGTERM, "detail comes back");
	is_str(ck_why_text(why, detail, text), "signal 15", "and has a text");
	is_str(ck_why_text(CK_WHY_TIME_LIMIT, 0, text), "time limit", "so has the time limit");
	ck_urge_unpack(0, &urge, &why, &detail);
	is_int(urge, CK_URGE_NONE, "0 is no wish");
}

static void intervals(void)
{
	struct ck_interval time = {.seconds = 30}, steps = {.steps = 500};

	ok(!ck_interval_due(&time, 129.9, 100, 100000), "29.9 of 30 s: not due");
	ok(ck_interval_due(&time, 130, 100, 0), "30 of 30 s: due");
	ok(!ck_interval_due(&steps, 1e9, 0, 499), "499 of 500 steps: not due, whatever the time");
	ok(ck_interval_due(&steps, 0, 0, 500), "500 of 500 steps: due");
}

static void deadlines(void)
{
	/* end 1000, save 20 s -> 30, two calls of 5 s -> 10, margin 60: begin at 900 */
	struct ck_deadline d = {
		.end = 1000, .save = 20, .longest_gap = 5, .calls_late = 2, .margin = 60};

	d.now = 899.9;
	ok(!ck_deadline_near(&d), "just before");
	d.now = 900;
	ok(ck_deadline_near(&d), "just in time");
	d.end = 0;
	ok(!ck_deadline_near(&d), "no time limit: never");
}

static void save_times(void)
{
	static const struct {
		const char *what;
		struct ck_save_times times;
		double expected;
	} rows[] = {
		{"nothing known", {.longest = 0}, 0},
		{"staged ones alone: the longest", {.longest = 40, .bytes = 100}, 40},
		{"of the start before, no save yet", {.all_seconds = 8, .all_bytes = 100}, 8},
		{"at the rate of the last stop",
		 {.longest = 40, .bytes = 100, .all_seconds = 8, .all_bytes = 100},
		 8},
		{"a larger state",
		 {.longest = 40, .bytes = 150, .all_seconds = 8, .all_bytes = 100},
		 12},
		{"a smaller state",
		 {.longest = 40, .bytes = 50, .all_seconds = 8, .all_bytes = 100},
		 4},
		{"a state that was much smaller",
		 {.longest = 40, .bytes = 1000, .all_seconds = 8, .all_bytes = 100},
		 40},
		{"much smaller, and slower",
		 {.longest = 4, .bytes = 1000, .all_seconds = 8, .all_bytes = 100},
		 8},
	};
	struct ck_save_times times = {.longest = 0};
	struct ck_deadline d = {.now = 1000, .end = 1100, .margin = 20};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		double got = ck_save_times_expect(&rows[i].times);

		ok(got > rows[i].expected - 1e-9 && got < rows[i].expected + 1e-9,
		   "%s: %g s expected", rows[i].what, got);
	}
	ck_save_times_add(&times, 60, 100, false);
	ck_save_times_add(&times, 10, 100, false);
	d.save = ck_save_times_expect(&times);
	ok(d.save > 53 && d.save < 55, "a long save is remembered, and fades: %g s", d.save);
	ok(ck_deadline_near(&d), "by it the time has come");
	ck_save_times_add(&times, 10, 100, true);
	d.save = ck_save_times_expect(&times);
	ok(d.save > 9.9 && d.save < 10.1, "one by all CPUs counts alone: %g s", d.save);
	ok(!ck_deadline_near(&d), "by it there is time");
	ck_save_times_add(&times, 12, 0, true);
	is_u64(times.all_bytes, 100, "one of no bytes tells no rate");
}

int main(void)
{
	paces();
	urges();
	intervals();
	deadlines();
	save_times();
	return done_testing();
}
