/* The clock is set back by an hour right after it was read: no wait takes an hour longer for that. */
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "records.h"
#include "requests.h"
#include "rundir.h"
#include "tap.h"

/* Ours comes before the C library's. What waits by the wall clock has the kernel's, which is an hour behind. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, now);

	if (clock == CLOCK_REALTIME)
		now->tv_sec += 3600;
	return rc;
}

static void nap(void)
{
	const struct timespec pause = {.tv_nsec = 10000000};

	nanosleep(&pause, NULL);
}

int main(void)
{
	struct ck_step_id id = {.step = 1, .generation = 1};
	struct ck_requests *requests = NULL;
	const char *dir = test_tmpdir();
	struct ck_records *records = ck_records_new(1);
	struct ck_error err = CK_ERROR_INIT;

	alarm(60); /* an hour would end here */
	ck_records_begin(records, 1, id, "0123456789abcdef0123456789abcdef");
	is_int(ck_records_wait(records, 50), 0, "a wait for records ends");
	ck_records_free(records);
	is_int(ck_requests_new(&requests, &ck_io_posix, dir, &err), 0, "requests: %s", err.text);
	put_file(in_dir(dir, ".request-stop"), "");
	while (!ck_requests_stop(requests))
		nap();
	ok(true, "ckpt stop is answered");
	ck_requests_free(requests);
	return done_testing();
}
