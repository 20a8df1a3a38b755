#include "parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#define THREADS_MAX 64

unsigned ck_parallel_cpus(void)
{
	cpu_set_t cpus;

	/* It fails where the machine has more CPUs than the set can name. */
	return sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? (unsigned)CPU_COUNT(&cpus) : 1;
}

struct share {
	pthread_t thread;
	void (*work)(void *arg, size_t i);
	void *arg;
	size_t i;
};

static void *run(void *arg)
{
	struct share *share = arg;

	share->work(share->arg, share->i);
	return NULL;
}

void ck_parallel(size_t count, void (*work)(void *arg, size_t i), void *arg)
{
	struct share shares[THREADS_MAX];
	size_t started = 1;
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (; started < count && started < THREADS_MAX; started++) {
		shares[started] = (struct share){.work = work, .arg = arg, .i = started};
		if (pthread_create(&shares[started].thread, NULL, run, &shares[started]))
			break;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	work(arg, 0);
	for (size_t i = started; i < count; i++)
		work(arg, i);
	while (started > 1)
		pthread_join(shares[--started].thread, NULL);
}

void ck_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

struct timespec ck_cond_deadline(unsigned ms)
{
	struct timespec deadline;

	clock_gettime(CLOCK_MONOTONIC, &deadline);
	deadline.tv_sec += ms / 1000;
	deadline.tv_nsec += (long)(ms % 1000) * 1000000;
	if (deadline.tv_nsec >= 1000000000) {
		deadline.tv_sec++;
		deadline.tv_nsec -= 1000000000;
	}
	return deadline;
}
