/* Starts that the time limit ends before they were worth it. */
#include "short.h"
#include "tap.h"

#define LIMIT(seconds)                                 \
	{                                              \
		.by_limit = true, .trained = (seconds) \
	}
#define OTHER                     \
	{                         \
		.by_limit = false \
	}

int main(void)
{
	static const struct {
		const char *name;
		size_t count;
		struct ck_short_start starts[CK_SHORT_MAX];
		int64_t overhead;
		bool no_time;
		unsigned wanted;
	} cases[] = {
		{"no start", 0, {OTHER}, 5, true, 0},
		{"one", 1, {LIMIT(2)}, 5, false, 1},
		{"one that trained as long", 1, {LIMIT(5)}, 5, false, 0},
		{"one that the margin leaves no time, however long", 1, {LIMIT(50)}, 5, true, 1},
		{"three", 3, {LIMIT(0), LIMIT(4), LIMIT(1)}, 5, false, 3},
		{"two, and a longer one before", 3, {LIMIT(0), LIMIT(4), LIMIT(60)}, 5, false, 2},
		{"a longer one now", 3, {LIMIT(60), LIMIT(0), LIMIT(0)}, 5, false, 0},
		{"one after a preemption", 3, {LIMIT(0), OTHER, LIMIT(0)}, 5, false, 1},
		{"a preemption now", 3, {OTHER, LIMIT(0), LIMIT(0)}, 5, true, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		is_int(ck_short_count(cases[i].starts, cases[i].count, cases[i].overhead,
				      cases[i].no_time),
		       cases[i].wanted, "%s", cases[i].name);
	return done_testing();
}
