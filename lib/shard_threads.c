#include <pthread.h>
#include <signal.h>

#include "shard_impl.h"

#define THREADS_MAX 64

struct ck_shard_options ck_shard_options_or_default(const struct ck_shard_options *options)
{
	struct ck_shard_options chosen = {.direct = true};

	if (options)
		chosen = *options;
	if (chosen.sha == CK_SHA_NONE)
		chosen.sha = CK_SHA_BEST;
	return chosen;
}

void ck_shard_note(const struct ck_shard_options *options, unsigned note)
{
	if (options->notes)
		*options->notes |= note;
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

void ck_shard_threads(size_t count, void (*work)(void *arg, size_t i), void *arg)
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
