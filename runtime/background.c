#include "background.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct task {
	struct task *next;
	void (*run)(void *arg);
	void *arg;
};

struct ck_background {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct task *first, **last;
	bool busy, ending;
};

/* The next task, or NULL when it is time to end. */
static struct task *take(struct ck_background *b)
{
	struct task *task;

	pthread_mutex_lock(&b->lock);
	b->busy = false;
	while (!b->first && !b->ending)
		pthread_cond_wait(&b->more, &b->lock);
	task = b->first;
	if (task) {
		b->first = task->next;
		if (!b->first)
			b->last = &b->first;
		b->busy = true;
	}
	pthread_mutex_unlock(&b->lock);
	return task;
}

static void *run_all(void *arg)
{
	struct task *task;

	while ((task = take(arg))) {
		task->run(task->arg);
		free(task);
	}
	return NULL;
}

static int start(struct ck_background *b)
{
	sigset_t all, before;
	int rc;

	/* The thread inherits the mask: signals are for the program's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&b->thread, NULL, run_all, b);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

int ck_background_new(struct ck_background **out, struct ck_error *err)
{
	struct ck_background *b = calloc(1, sizeof(*b));
	int rc;

	if (!b)
		return ck_fail_nomem(err, sizeof(*b));
	b->last = &b->first;
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->more, NULL);
	rc = start(b);
	if (rc) {
		free(b);
		return ck_fail_errno(err, rc, "no thread for saves");
	}
	*out = b;
	return 0;
}

int ck_background_post(struct ck_background *b, void (*run)(void *arg), void *arg,
		       struct ck_error *err)
{
	struct task *task = malloc(sizeof(*task));

	if (!task)
		return ck_fail_nomem(err, sizeof(*task));
	*task = (struct task){.run = run, .arg = arg};
	pthread_mutex_lock(&b->lock);
	*b->last = task;
	b->last = &task->next;
	pthread_cond_signal(&b->more);
	pthread_mutex_unlock(&b->lock);
	return 0;
}

bool ck_background_idle(struct ck_background *b)
{
	bool idle;

	pthread_mutex_lock(&b->lock);
	idle = !b->first && !b->busy;
	pthread_mutex_unlock(&b->lock);
	return idle;
}

void ck_background_free(struct ck_background *b)
{
	if (!b)
		return;
	pthread_mutex_lock(&b->lock);
	b->ending = true;
	pthread_cond_signal(&b->more);
	pthread_mutex_unlock(&b->lock);
	pthread_join(b->thread, NULL);
	pthread_cond_destroy(&b->more);
	pthread_mutex_destroy(&b->lock);
	free(b);
}
