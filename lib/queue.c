#include "queue.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define THREADS 2

/* First in, first out. */
struct list {
	struct ck_transfer *first, **last;
};

struct ck_queue {
	const struct ck_io *io;
	enum ck_queue_kind kind;
	struct ck_io_queue *kernel;
	struct list begun; /* of CK_QUEUE_KERNEL: what the kernel has */
	size_t under_way;
	struct list ended;
	/* Of CK_QUEUE_THREADS; the lock covers `ended`, `todo` and `ending`. */
	pthread_t threads[THREADS];
	size_t nthreads;
	pthread_mutex_t lock;
	pthread_cond_t more, done;
	struct list todo;
	bool ending;
};

static void put(struct list *list, struct ck_transfer *transfer)
{
	transfer->next = NULL;
	*list->last = transfer;
	list->last = &transfer->next;
}

static struct ck_transfer *take(struct list *list)
{
	struct ck_transfer *transfer = list->first;

	if (transfer) {
		list->first = transfer->next;
		if (!list->first)
			list->last = &list->first;
	}
	return transfer;
}

static void drop(struct list *list, const struct ck_transfer *transfer)
{
	struct ck_transfer **at = &list->first;

	while (*at != transfer)
		at = &(*at)->next;
	*at = transfer->next;
	if (!*at)
		list->last = at;
}

/* What is left to do, as a call. */
static void prepare(struct ck_transfer *t)
{
	t->call = (struct ck_io_transfer){.write = t->write,
					  .fd = t->fd,
					  .data = (char *)t->data + t->done,
					  .bytes = t->bytes - t->done,
					  .offset = t->offset + t->done};
}

static void call(const struct ck_io *io, struct ck_transfer *t)
{
	struct ck_io_transfer *c = &t->call;
	ssize_t n = c->write ? io->ops->pwrite(io, c->fd, c->data, c->bytes, (off_t)c->offset)
			     : io->ops->pread(io, c->fd, c->data, c->bytes, (off_t)c->offset);

	c->result = n < 0 ? -errno : n;
}

/* The call has been answered. Is the transfer over? Else it is to be called again. */
static bool is_over(struct ck_transfer *t)
{
	ssize_t n = t->call.result;

	if (n > 0) {
		t->stalls = 0;
		t->done += ck_io_step(t->call.offset, (size_t)n, t->bytes - t->done);
		return t->done >= t->bytes;
	}
	if (n == 0 && !t->write) {
		t->errnum = ENODATA;
		return true;
	}
	/* Opened with O_DIRECT, but not meant so: some file systems say it only here. */
	if (n == -EINVAL && t->fd != t->plain_fd) {
		t->fd = t->plain_fd;
		t->fell_back = true;
		return false;
	}
	/* Nothing written and no reason given: as if it were not ready. */
	if (ck_io_again(&t->stalls, n == 0 ? EAGAIN : (int)-n))
		return false;
	t->errnum = n == 0 ? EAGAIN : (int)-n;
	return true;
}

static void carry_out(const struct ck_io *io, struct ck_transfer *t)
{
	do {
		prepare(t);
		call(io, t);
	} while (!is_over(t));
}

static void end(struct ck_queue *q, struct ck_transfer *t)
{
	pthread_mutex_lock(&q->lock);
	put(&q->ended, t);
	pthread_cond_signal(&q->done);
	pthread_mutex_unlock(&q->lock);
}

static void *work(void *arg)
{
	struct ck_queue *q = arg;
	struct ck_transfer *t;

	pthread_mutex_lock(&q->lock);
	for (;;) {
		while (!(t = take(&q->todo)) && !q->ending)
			pthread_cond_wait(&q->more, &q->lock);
		if (!t)
			break;
		pthread_mutex_unlock(&q->lock);
		carry_out(q->io, t);
		end(q, t);
		pthread_mutex_lock(&q->lock);
	}
	pthread_mutex_unlock(&q->lock);
	return NULL;
}

/* As many as can be had. */
static void start_threads(struct ck_queue *q, unsigned depth)
{
	sigset_t all, before;

	/* Threads inherit the mask: signals are for the program's own. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (q->nthreads < THREADS && q->nthreads < depth &&
	       pthread_create(&q->threads[q->nthreads], NULL, work, q) == 0)
		q->nthreads++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int ck_queue_new(const struct ck_io *io, unsigned depth, enum ck_queue_kind best,
		 struct ck_queue **out, struct ck_error *err)
{
	struct ck_queue *q = calloc(1, sizeof(*q));

	if (!q)
		return ck_fail_nomem(err, sizeof(*q));
	q->io = io;
	q->begun.last = &q->begun.first;
	q->ended.last = &q->ended.first;
	q->todo.last = &q->todo.first;
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->more, NULL);
	pthread_cond_init(&q->done, NULL);
	if (best >= CK_QUEUE_KERNEL && io->ops->queue_new &&
	    io->ops->queue_new(io, depth, &q->kernel) == 0)
		q->kind = CK_QUEUE_KERNEL;
	else if (best >= CK_QUEUE_THREADS)
		start_threads(q, depth);
	if (q->nthreads)
		q->kind = CK_QUEUE_THREADS;
	*out = q;
	return CK_OK;
}

enum ck_queue_kind ck_queue_kind(const struct ck_queue *queue)
{
	return queue->kind;
}

/* A call that cannot be begun is made here and now. */
static void submit_kernel(struct ck_queue *q, struct ck_transfer *t)
{
	prepare(t);
	if (q->io->ops->queue_submit(q->io, q->kernel, &t->call) == 0) {
		put(&q->begun, t);
		return;
	}
	carry_out(q->io, t);
	end(q, t);
}

void ck_queue_submit(struct ck_queue *q, struct ck_transfer *t)
{
	t->errnum = 0;
	t->done = 0;
	t->stalls = 0;
	t->fell_back = false;
	t->lost = false;
	q->under_way++;
	if (t->bytes == 0) {
		end(q, t);
	} else if (q->kind == CK_QUEUE_KERNEL) {
		submit_kernel(q, t);
	} else if (q->kind == CK_QUEUE_THREADS) {
		pthread_mutex_lock(&q->lock);
		put(&q->todo, t);
		pthread_cond_signal(&q->more);
		pthread_mutex_unlock(&q->lock);
	} else {
		carry_out(q->io, t);
		end(q, t);
	}
}

/* The kernel does not answer: what it has is lost, what comes is done without it. */
static void give_up(struct ck_queue *q, int errnum)
{
	struct ck_transfer *t;

	while ((t = take(&q->begun))) {
		t->errnum = errnum;
		t->lost = true;
		end(q, t);
	}
	q->kind = CK_QUEUE_AT_ONCE;
}

static struct ck_transfer *reap_kernel(struct ck_queue *q)
{
	struct ck_io_transfer *ended = NULL;
	struct ck_transfer *t;
	unsigned stalls = 0;

	while (!(t = take(&q->ended))) {
		if (q->io->ops->queue_reap(q->io, q->kernel, &ended) < 0) {
			int errnum = errno;

			/* Whatever it says, the transfers go on: it may find out. */
			if (!ck_io_again(&stalls, EAGAIN))
				give_up(q, errnum);
			continue;
		}
		t = (struct ck_transfer *)ended; /* its first member */
		drop(&q->begun, t);
		if (is_over(t))
			break;
		submit_kernel(q, t);
	}
	return t;
}

struct ck_transfer *ck_queue_reap(struct ck_queue *q)
{
	struct ck_transfer *t;

	if (q->under_way == 0)
		return NULL;
	if (q->kind == CK_QUEUE_KERNEL) {
		t = reap_kernel(q);
	} else {
		pthread_mutex_lock(&q->lock);
		while (!(t = take(&q->ended)))
			pthread_cond_wait(&q->done, &q->lock);
		pthread_mutex_unlock(&q->lock);
	}
	q->under_way--;
	return t;
}

void ck_queue_free(struct ck_queue *q)
{
	if (!q)
		return;
	while (ck_queue_reap(q))
		;
	pthread_mutex_lock(&q->lock);
	q->ending = true;
	pthread_cond_broadcast(&q->more);
	pthread_mutex_unlock(&q->lock);
	while (q->nthreads > 0)
		pthread_join(q->threads[--q->nthreads], NULL);
	if (q->kernel)
		q->io->ops->queue_free(q->io, q->kernel);
	pthread_cond_destroy(&q->more);
	pthread_cond_destroy(&q->done);
	pthread_mutex_destroy(&q->lock);
	free(q);
}
