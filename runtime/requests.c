#include "requests.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "dirfile.h"
#include "names.h"
#include "parallel.h"

struct ck_requests {
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
static bool take(const struct ck_requests *requests, const char *path)
{
	struct stat st;

	return requests->io->ops->lstat(requests->io, path, &st) == 0 &&
	       (requests->io->ops->unlink(requests->io, path) == 0 ||
		ck_io_is_gone(requests->io, path));
}

/* Returns false when it is time to end. */
static bool pause_second(struct ck_requests *requests)
{
	struct timespec until = ck_cond_deadline(1000);
	bool ending;

	pthread_mutex_lock(&requests->lock);
	while (!requests->ending &&
	       pthread_cond_timedwait(&requests->end, &requests->lock, &until) != ETIMEDOUT)
		;
	ending = requests->ending;
	pthread_mutex_unlock(&requests->lock);
	return !ending;
}

static void *look(void *arg)
{
	struct ck_requests *requests = arg;

	while (pause_second(requests)) {
		if (take(requests, requests->stop_path))
			atomic_store(&requests->stop, true);
		if (take(requests, requests->save_path))
			atomic_fetch_add(&requests->saves, 1);
	}
	return NULL;
}

static int start(struct ck_requests *requests, struct ck_error *err)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&requests->thread, NULL, look, requests);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc ? ck_fail_errno(err, rc, "no thread for requests") : 0;
}

int ck_requests_new(struct ck_requests **out, const struct ck_io *io, const char *dir,
		    struct ck_error *err)
{
	struct ck_requests *requests = calloc(1, sizeof(*requests));
	int rc;

	if (!requests)
		return ck_fail_nomem(err, sizeof(*requests));
	requests->io = io;
	rc = ck_dirfile_path(requests->stop_path, dir, CK_REQUEST_STOP, err);
	if (!rc)
		rc = ck_dirfile_path(requests->save_path, dir, CK_REQUEST_SAVE, err);
	if (!rc) {
		take(requests, requests->stop_path);
		take(requests, requests->save_path);
		pthread_mutex_init(&requests->lock, NULL);
		ck_cond_init(&requests->end);
		rc = start(requests, err);
	}
	if (rc)
		free(requests);
	else
		*out = requests;
	return rc;
}

bool ck_requests_stop(const struct ck_requests *requests)
{
	return atomic_load(&requests->stop);
}

unsigned ck_requests_saves(const struct ck_requests *requests)
{
	return atomic_load(&requests->saves);
}

void ck_requests_free(struct ck_requests *requests)
{
	if (!requests)
		return;
	pthread_mutex_lock(&requests->lock);
	requests->ending = true;
	pthread_cond_signal(&requests->end);
	pthread_mutex_unlock(&requests->lock);
	pthread_join(requests->thread, NULL);
	pthread_cond_destroy(&requests->end);
	pthread_mutex_destroy(&requests->lock);
	free(requests);
}
