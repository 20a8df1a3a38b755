#include "pace.h"

#include <stdio.h>

struct ck_pace ck_pace_next(const struct ck_pace *now, uint64_t step_us)
{
	uint64_t every, most = 2 * now->every;

	if (step_us == 0)
		return *now;
	if (step_us >= CK_PACE_SAME_CALL_US)
		return CK_PACE_FIRST;
	every = CK_PACE_SAME_CALL_US / step_us;
	most = most < CK_PACE_CALLS_MAX ? most : CK_PACE_CALLS_MAX;
	return (struct ck_pace){.every = every < most ? every : most, .same_call = false};
}

uint64_t ck_urge_pack(enum ck_urge urge, enum ck_why why, unsigned detail)
{
	return (uint64_t)urge << 32 | (uint64_t)why << 16 | (detail & 0xffff);
}

void ck_urge_unpack(uint64_t word, enum ck_urge *urge, enum ck_why *why, unsigned *detail)
{
	*urge = (enum ck_urge)(word >> 32);
	*why = (enum ck_why)(word >> 16 & 0xffff);
	*detail = word & 0xffff;
}

char *ck_why_text(enum ck_why why, unsigned detail, char out[static 64])
{
	switch (why) {
	case CK_WHY_INTERVAL:
		snprintf(out, 64, "interval");
		break;
	case CK_WHY_SAVE_SIGNAL:
		snprintf(out, 64, "save signal");
		break;
	case CK_WHY_TIME_LIMIT:
		snprintf(out, 64, "time limit");
		break;
	case CK_WHY_STOP_SIGNAL:
		snprintf(out, 64, "signal %u", detail);
		break;
	case CK_WHY_STOP_REQUEST:
		snprintf(out, 64, "ckpt stop");
		break;
	default:
		snprintf(out, 64, "ckpt save");
		break;
	}
	return out;
}

bool ck_interval_due(const struct ck_interval *every, double now, double last_save,
		     uint64_t steps_since)
{
	if (every->steps)
		return steps_since >= every->steps;
	return every->seconds && now - last_save >= (double)every->seconds;
}

void ck_save_times_add(struct ck_save_times *times, double seconds, uint64_t bytes, bool waited)
{
	times->longest *= 0.9;
	if (seconds > times->longest)
		times->longest = seconds;
	times->bytes = bytes;
	if (waited && bytes) {
		times->all_seconds = seconds;
		times->all_bytes = bytes;
	}
}

double ck_save_times_expect(const struct ck_save_times *times)
{
	if (!times->all_bytes)
		return times->longest;
	if (!times->bytes)
		return times->all_seconds;
	if (times->bytes / 2 > times->all_bytes)
		return times->longest > times->all_seconds ? times->longest : times->all_seconds;
	return times->all_seconds * ((double)times->bytes / (double)times->all_bytes);
}

bool ck_deadline_near(const struct ck_deadline *d)
{
	double needed = 1.5 * d->save + d->rest + d->calls_late * d->longest_gap + d->margin;

	return d->end > 0 && d->now >= d->end - needed;
}
