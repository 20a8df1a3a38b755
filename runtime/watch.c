#include "watch.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "dirfile.h"
#include "names.h"

struct ck_watch {
	const struct ck_io *io;
	char stop_path[PATH_MAX], save_path[PATH_MAX];
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t end;
	bool ending;
	atomic_bool stop;
	atomic_uint saves;
};

/* Taken note of means removed: whoever removes it, acts on it. */
static bool take(const struct ck_watch *watch, const char *path)
{
	struct stat st;

	return watch->io->ops->lstat(watch->io, path, &st) == 0 &&
	       watch->io->ops->unlink(watch->io, path) == 0;
}

/* Returns false when it is time to end. */
static bool pause_second(struct ck_watch *watch)
{
	struct timespec until;
	bool ending;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	pthread_mutex_lock(&watch->lock);
	while (!watch->ending &&
	       pthread_cond_timedwait(&watch->end, &watch->lock, &until) != ETIMEDOUT)
		;
	ending = watch->ending;
	pthread_mutex_unlock(&watch->lock);
	return !ending;
}

static void *look(void *arg)
{
	struct ck_watch *watch = arg;

	while (pause_second(watch)) {
		if (take(watch, watch->stop_path))
			atomic_store(&watch->stop, true);
		if (take(watch, watch->save_path))
			atomic_fetch_add(&watch->saves, 1);
	}
	return NULL;
}

static int start(struct ck_watch *watch, struct ck_error *err)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&watch->thread, NULL, look, watch);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc ? ck_fail_errno(err, rc, "no thread for requests") : 0;
}

int ck_watch_new(struct ck_watch **out, const struct ck_io *io, const char *dir,
		 struct ck_error *err)
{
	struct ck_watch *watch = calloc(1, sizeof(*watch));
	int rc;

	if (!watch)
		return ck_fail_nomem(err, sizeof(*watch));
	watch->io = io;
	rc = ck_dirfile_path(watch->stop_path, dir, CK_REQUEST_STOP, err);
	if (!rc)
		rc = ck_dirfile_path(watch->save_path, dir, CK_REQUEST_SAVE, err);
	if (!rc) {
		take(watch, watch->stop_path);
		take(watch, watch->save_path);
		pthread_mutex_init(&watch->lock, NULL);
		pthread_cond_init(&watch->end, NULL);
		rc = start(watch, err);
	}
	if (rc)
		free(watch);
	else
		*out = watch;
	return rc;
}

bool ck_watch_stop(const struct ck_watch *watch)
{
	return atomic_load(&watch->stop);
}

unsigned ck_watch_saves(const struct ck_watch *watch)
{
	return atomic_load(&watch->saves);
}

void ck_watch_free(struct ck_watch *watch)
{
	if (!watch)
		return;
	pthread_mutex_lock(&watch->lock);
	watch->ending = true;
	pthread_cond_signal(&watch->end);
	pthread_mutex_unlock(&watch->lock);
	pthread_join(watch->thread, NULL);
	pthread_cond_destroy(&watch->end);
	pthread_mutex_destroy(&watch->lock);
	free(watch);
}
