/* ckpt_step in loops of very short steps: saves keep their distance, and a wish is heard soon. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ckpt.h"
#include "handle.h"
#include "starts.h"
#include "tap.h"

static void nap_us(long us)
{
	nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static void run(const char *name, const char *every, int size, int (*body)(struct toy *), void *arg)
{
	fresh_dir(name);
	options.every = every;
	options.keep = 2;
	toy_run(size, &options, body, arg, toys, &text);
	is_int(toys[0].code, 0, "%s: %s", name, text.text);
}

/* Steps of the saves that the log tells of, in order. */
static size_t saves(uint64_t *steps, size_t max)
{
	const char *at = text.text;
	unsigned long long step;
	size_t count = 0;

	while (count < max && (at = strstr(at, "saved step "))) {
		at += strlen("saved step ");
		if (sscanf(at, "%llu", &step) == 1)
			steps[count++] = step;
	}
	return count;
}

/* ---- --ckpt-every=Nsteps ---- */

#define MAX_SAVES 64

#define LAST 60000

/*
 * A long step now and then changes how often ranks agree. On a slow disk all this may be over within one
 * save, so that is waited for now and then.
 */
static int hurry(struct toy *toy)
{
	int rc = 0;

	for (uint64_t step = 1; step <= LAST && !rc; step++) {
		if (step % 1013 == 0)
			nap_us(3000);
		rc = ckpt_step(toy->ck, step);
		if (!rc && step % (LAST / 3) == 0)
			rc = ckpt_wait(toy->ck);
	}
	return rc;
}

static void keep_their_distance(const char *name, const char *every, uint64_t interval)
{
	uint64_t steps[MAX_SAVES], nearest = UINT64_MAX;
	size_t count;

	run(name, every, 3, hurry, NULL);
	count = saves(steps, MAX_SAVES);
	for (size_t i = 0; i < count; i++) {
		uint64_t distance = i ? steps[i] - steps[i - 1] : steps[i];

		nearest = distance < nearest ? distance : nearest;
	}
	ok(count >= 3, "%s: %zu saves", every, count);
	ok(nearest >= interval, "%s: never sooner than that: %llu", every,
	   (unsigned long long)nearest);
}

/* ---- short steps among long ones ---- */

static int every_other(struct toy *toy)
{
	int rc = 0;

	for (uint64_t step = 1; step <= 60 && !rc; step++) {
		nap_us(step % 2 ? 20000 : 1);
		if (step == 10 && toy->rank == 0)
			raise(SIGUSR2);
		rc = ckpt_step(toy->ck, step);
	}
	return rc ? rc : ckpt_wait(toy->ck);
}

/* Ten reductions a second, by the longest of the recent steps: not by whichever is the last. */
static void among_long_ones(void)
{
	uint64_t steps[MAX_SAVES] = {0};

	run("mixed", "1d", 2, every_other, NULL);
	is_u64(saves(steps, MAX_SAVES), 1, "asked for by a signal at step 10");
	ok(steps[0] >= 10 && steps[0] <= 30, "and done at step %llu", (unsigned long long)steps[0]);
}

/* ---- a signal to all ranks ---- */

/* When the first signal was heard is moved: how long these steps take is the machine's business. */
static int one_after_the_other(struct toy *toy)
{
	double never = toy->ck->signalled_at, heard = never;
	int rc = 0;

	for (uint64_t step = 1; step <= 100 && !rc; step++) {
		nap_us(20000);
		if (heard == never && toy->ck->signalled_at != never)
			heard = toy->ck->signalled_at += 3600; /* just now, for an hour */
		if (step == 60)
			toy->ck->signalled_at = heard - 7200; /* long ago */
		if ((step == 10 && toy->rank == 0) || (step == 40 && toy->rank == 1) ||
		    (step == 85 && toy->rank == 0))
			raise(SIGUSR2);
		rc = ckpt_step(toy->ck, step);
	}
	return rc ? rc : ckpt_wait(toy->ck);
}

static void heard_late(void)
{
	uint64_t steps[MAX_SAVES] = {0};

	run("late", "1d", 2, one_after_the_other, NULL);
	is_u64(saves(steps, MAX_SAVES), 2,
	       "what reaches the second rank a little later is one signal");
	ok(steps[0] < 40 && steps[1] >= 85, "the next one, a while later, is another: %llu, %llu",
	   (unsigned long long)steps[0], (unsigned long long)steps[1]);
}

int main(void)
{
	keep_their_distance("every 7", "7steps", 7);
	keep_their_distance("every 500", "500steps", 500);
	keep_their_distance("every 5000", "5000steps", 5000);
	among_long_ones();
	heard_late();
	return done_testing();
}
