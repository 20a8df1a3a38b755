#include "retry.h"

#include <time.h>

#include "error.h"

#define FIRST_PAUSE_MS 10
#define GROWTH 4

struct ck_retry ck_retry_begin(uint64_t timeout_ms)
{
	uint64_t most = timeout_ms / 4;

	return (struct ck_retry){.pause_ms = FIRST_PAUSE_MS,
				 .left_ms = most < CK_RETRY_MS ? most : CK_RETRY_MS};
}

bool ck_retry_wait(struct ck_retry *retry, int code)
{
	uint64_t ms = retry->pause_ms < retry->left_ms ? retry->pause_ms : retry->left_ms;
	struct timespec pause = {.tv_sec = (time_t)(ms / 1000),
				 .tv_nsec = (long)(ms % 1000) * 1000000};

	if (!ck_is_unseen(code) || ms == 0)
		return false;
	while (nanosleep(&pause, &pause) != 0)
		;
	retry->left_ms -= ms;
	retry->pause_ms = GROWTH * ms;
	return true;
}
