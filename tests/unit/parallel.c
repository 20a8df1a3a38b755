/* parallel.h: each share is done once, whatever threads there are; as many CPUs as the task has. */
#include "parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "tap.h"

#define COUNT 200

static _Atomic int done[COUNT];
static _Atomic int blocked;

static void note(void *arg, size_t i)
{
	sigset_t mask;

	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	blocked += pthread_equal(pthread_self(), *(pthread_t *)arg) ||
		   sigismember(&mask, SIGTERM) == 1;
	done[i]++;
}

static void shares(size_t count, const char *name)
{
	pthread_t caller = pthread_self();
	size_t wrong = 0;

	for (size_t i = 0; i < COUNT; i++)
		done[i] = 0;
	blocked = 0;
	ck_parallel(count, note, &caller);
	for (size_t i = 0; i < COUNT; i++)
		wrong += done[i] != (i < count || i == 0);
	is_u64(wrong, 0, "%s: each of %zu shares is done once", name, count);
	is_u64((uint64_t)blocked, count, "%s: no thread but the caller's takes signals", name);
}

static void without_threads(void)
{
	struct rlimit was, none = {0, 0};
	sigset_t mask;

	getrlimit(RLIMIT_AS, &was);
	none.rlim_max = was.rlim_max;
	none.rlim_cur = 1; /* no stack for a thread */
	setrlimit(RLIMIT_AS, &none);
	shares(3, "no memory for threads");
	setrlimit(RLIMIT_AS, &was);
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	ok(!sigismember(&mask, SIGTERM), "the caller's mask is as before");
}

static void cpus(void)
{
	cpu_set_t all, one;
	int first = 0;

	is_int(sched_getaffinity(0, sizeof(all), &all), 0, "affinity");
	is_int((int)ck_parallel_cpus(), CPU_COUNT(&all), "all CPUs of the task");
	while (!CPU_ISSET(first, &all))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	is_int(sched_setaffinity(0, sizeof(one), &one), 0, "bound to one");
	is_int((int)ck_parallel_cpus(), 1, "one CPU, whatever the machine has");
	sched_setaffinity(0, sizeof(all), &all);
}

int main(void)
{
	shares(1, "threads");
	shares(3, "threads");
	shares(COUNT, "more than there may be threads");
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	without_threads();
#else
	skip("the sanitizers need their address space");
	(void)without_threads;
#endif
	cpus();
	return done_testing();
}
