#include "comm_threads.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define EAGER_BYTES 4096
#define TAG_LAST 255 /* as <ckpt.h> says */

/* What the functions of the table return. */
enum { BROKEN = -1, TOO_LONG = -2, NO_MEMORY = -3 };

enum kind { SEND, RECEIVE, REDUCE };

struct request {
	enum kind kind;
	int done;
	int code; /* what test is to return when done */
	struct ckpt_message message;
	/* RECEIVE */
	int peer;
	int tag;
	void *data;
	size_t bytes;
	/* REDUCE */
	struct reduction *reduction;
	uint64_t *out;
	TAILQ_ENTRY(request) posted; /* a receive without a message, in its rank's list */
	TAILQ_ENTRY(request) all;
};

/* A message that nobody has received. */
struct letter {
	int from;
	int tag;
	const void *data;
	size_t bytes;
	void *copy;             /* of an eager one; NULL: data is the sender's */
	struct request *sender; /* to be told; NULL for an eager one */
	TAILQ_ENTRY(letter) next;
};

/* The n-th reduction of each rank. */
struct reduction {
	uint64_t number;
	int count;
	int given;
	int taken;
	TAILQ_ENTRY(reduction) next;
	uint64_t most[];
};

TAILQ_HEAD(requests, request);
TAILQ_HEAD(letters, letter);
TAILQ_HEAD(reductions, reduction);

struct rank {
	struct ck_threads *threads;
	int rank;
	int dead;
	uint64_t reductions; /* posted so far */
	struct requests posted;
	struct letters arrived;
};

struct ck_threads {
	pthread_mutex_t lock; /* guards everything below and each rank */
	int size;
	size_t eager_bytes;
	int aborted;
	int exit_code;
	struct requests requests;
	struct reductions reductions;
	struct rank ranks[];
};

struct ck_threads *ck_threads_new(int size)
{
	struct ck_threads *threads;

	threads = calloc(1, sizeof(*threads) + (size_t)size * sizeof(threads->ranks[0]));
	if (!threads)
		return NULL;
	pthread_mutex_init(&threads->lock, NULL);
	threads->size = size;
	threads->eager_bytes = EAGER_BYTES;
	TAILQ_INIT(&threads->requests);
	TAILQ_INIT(&threads->reductions);
	for (int i = 0; i < size; i++) {
		struct rank *rank = &threads->ranks[i];

		rank->threads = threads;
		rank->rank = i;
		TAILQ_INIT(&rank->posted);
		TAILQ_INIT(&rank->arrived);
	}
	return threads;
}

static void letter_free(struct rank *to, struct letter *letter)
{
	TAILQ_REMOVE(&to->arrived, letter, next);
	free(letter->copy);
	free(letter);
}

static void request_free(struct ck_threads *threads, struct request *request)
{
	TAILQ_REMOVE(&threads->requests, request, all);
	free(request);
}

static void reduction_free(struct ck_threads *threads, struct reduction *reduction)
{
	TAILQ_REMOVE(&threads->reductions, reduction, next);
	free(reduction);
}

/* NOLINTBEGIN(clang-analyzer-unix.Malloc): it loses track of the list */
static void free_letters(struct rank *to)
{
	struct letter *letter, *next;

	for (letter = TAILQ_FIRST(&to->arrived); letter; letter = next) {
		next = TAILQ_NEXT(letter, next);
		free(letter->copy);
		free(letter);
	}
}
/* NOLINTEND(clang-analyzer-unix.Malloc) */

void ck_threads_free(struct ck_threads *threads)
{
	struct reduction *reduction, *next_reduction;
	struct request *request, *next_request;

	if (!threads)
		return;
	for (int i = 0; i < threads->size; i++)
		free_letters(&threads->ranks[i]);
	for (request = TAILQ_FIRST(&threads->requests); request; request = next_request) {
		next_request = TAILQ_NEXT(request, all);
		free(request);
	}
	for (reduction = TAILQ_FIRST(&threads->reductions); reduction; reduction = next_reduction) {
		next_reduction = TAILQ_NEXT(reduction, next);
		free(reduction);
	}
	pthread_mutex_destroy(&threads->lock);
	free(threads);
}

struct ck_threads *ck_threads_of(void *ctx)
{
	return ((struct rank *)ctx)->threads;
}

void ck_threads_set_eager(struct ck_threads *threads, size_t eager_bytes)
{
	pthread_mutex_lock(&threads->lock);
	threads->eager_bytes = eager_bytes;
	pthread_mutex_unlock(&threads->lock);
}

/* Called with the lock held, as all that follows down to the table's functions. */
static void kill_rank(struct ck_threads *threads, int rank)
{
	struct letter *letter, *next;

	threads->ranks[rank].dead = 1;
	for (int i = 0; i < threads->size; i++) {
		for (letter = TAILQ_FIRST(&threads->ranks[i].arrived); letter; letter = next) {
			next = TAILQ_NEXT(letter, next);
			if (letter->from == rank)
				letter_free(&threads->ranks[i], letter);
		}
	}
}

void ck_threads_kill(struct ck_threads *threads, int rank)
{
	pthread_mutex_lock(&threads->lock);
	kill_rank(threads, rank);
	pthread_mutex_unlock(&threads->lock);
}

int ck_threads_aborted(struct ck_threads *threads, int *exit_code)
{
	int aborted;

	pthread_mutex_lock(&threads->lock);
	aborted = threads->aborted;
	if (aborted)
		*exit_code = threads->exit_code;
	pthread_mutex_unlock(&threads->lock);
	return aborted;
}

static struct request *new_request(struct ck_threads *threads, enum kind kind)
{
	struct request *request = calloc(1, sizeof(*request));

	if (!request)
		return NULL;
	request->kind = kind;
	request->message.peer = CKPT_ANY_PEER;
	TAILQ_INSERT_TAIL(&threads->requests, request, all);
	return request;
}

static void deliver(struct request *receive, int from, const void *data, size_t bytes)
{
	receive->done = 1;
	receive->message = (struct ckpt_message){.peer = from, .bytes = bytes};
	if (bytes > receive->bytes)
		receive->code = TOO_LONG;
	else if (bytes)
		memcpy(receive->data, data, bytes);
}

static int valid(const struct rank *me, int peer, int tag)
{
	return !me->dead && peer < me->threads->size && tag >= 0 && tag <= TAG_LAST;
}

static int fits(int wanted_peer, int wanted_tag, int from, int tag)
{
	return wanted_tag == tag && (wanted_peer == CKPT_ANY_PEER || wanted_peer == from);
}

static struct request *find_posted(struct rank *to, int from, int tag)
{
	struct request *receive;

	TAILQ_FOREACH(receive, &to->posted, posted)
	if (fits(receive->peer, receive->tag, from, tag))
		return receive;
	return NULL;
}

static struct letter *find_arrived(struct rank *me, int peer, int tag)
{
	struct letter *letter;

	TAILQ_FOREACH(letter, &me->arrived, next)
	if (fits(peer, tag, letter->from, letter->tag))
		return letter;
	return NULL;
}

/* Lay a message down for a receiver that does not wait for it yet. */
static int leave(struct rank *from, struct rank *to, struct request *send, const void *data,
		 size_t bytes, int tag)
{
	struct letter *letter = calloc(1, sizeof(*letter));

	if (!letter)
		return NO_MEMORY;
	*letter = (struct letter){.from = from->rank, .tag = tag, .data = data, .bytes = bytes};
	if (bytes <= from->threads->eager_bytes) {
		letter->copy = malloc(bytes ? bytes : 1);
		if (!letter->copy) {
			free(letter);
			return NO_MEMORY;
		}
		if (bytes)
			memcpy(letter->copy, data, bytes);
		letter->data = letter->copy;
		send->done = 1;
	} else {
		letter->sender = send;
	}
	TAILQ_INSERT_TAIL(&to->arrived, letter, next);
	return 0;
}

static int start_send(struct rank *me, const void *data, size_t bytes, int peer, int tag,
		      void **out)
{
	struct ck_threads *threads = me->threads;
	struct request *send, *receive;
	int rc = 0;

	if (!valid(me, peer, tag) || peer < 0)
		return BROKEN;
	send = new_request(threads, SEND);
	if (!send)
		return NO_MEMORY;
	receive = find_posted(&threads->ranks[peer], me->rank, tag);
	if (threads->ranks[peer].dead) {
		send->done = bytes <= threads->eager_bytes;
	} else if (receive) {
		TAILQ_REMOVE(&threads->ranks[peer].posted, receive, posted);
		deliver(receive, me->rank, data, bytes);
		send->done = 1;
	} else {
		rc = leave(me, &threads->ranks[peer], send, data, bytes, tag);
	}
	if (rc)
		request_free(threads, send);
	else
		*out = send;
	return rc;
}

static int start_receive(struct rank *me, void *data, size_t bytes, int peer, int tag, void **out)
{
	struct request *receive;
	struct letter *letter;

	if (!valid(me, peer, tag) || peer < CKPT_ANY_PEER)
		return BROKEN;
	receive = new_request(me->threads, RECEIVE);
	if (!receive)
		return NO_MEMORY;
	receive->peer = peer;
	receive->tag = tag;
	receive->data = data;
	receive->bytes = bytes;
	letter = find_arrived(me, peer, tag);
	if (letter) {
		deliver(receive, letter->from, letter->data, letter->bytes);
		if (letter->sender)
			letter->sender->done = 1;
		letter_free(me, letter);
	} else {
		TAILQ_INSERT_TAIL(&me->posted, receive, posted);
	}
	*out = receive;
	return 0;
}

/* The reduction that this rank's next one belongs to. */
static struct reduction *join(struct rank *me, int count)
{
	struct ck_threads *threads = me->threads;
	size_t bytes = (size_t)count * sizeof(uint64_t);
	struct reduction *reduction;

	TAILQ_FOREACH(reduction, &threads->reductions, next)
	if (reduction->number == me->reductions)
		return reduction;
	reduction = calloc(1, sizeof(*reduction) + bytes);
	if (!reduction)
		return NULL;
	reduction->number = me->reductions;
	reduction->count = count;
	TAILQ_INSERT_TAIL(&threads->reductions, reduction, next);
	return reduction;
}

static int start_reduce(struct rank *me, const uint64_t *in, uint64_t *out, int count,
			void **request_out)
{
	struct reduction *reduction;
	struct request *request;

	if (me->dead || count < 0)
		return BROKEN;
	reduction = join(me, count);
	if (!reduction)
		return NO_MEMORY;
	if (reduction->count != count)
		return BROKEN;
	request = new_request(me->threads, REDUCE);
	if (!request)
		return NO_MEMORY;
	for (int i = 0; i < count; i++)
		if (in[i] > reduction->most[i])
			reduction->most[i] = in[i];
	reduction->given++;
	me->reductions++;
	request->reduction = reduction;
	request->out = out;
	*request_out = request;
	return 0;
}

static int test(struct rank *me, struct request *request, int *done, struct ckpt_message *message)
{
	struct reduction *reduction = request->reduction;

	*done = 0;
	if (me->dead)
		return BROKEN;
	if (reduction && reduction->given == me->threads->size) {
		memcpy(request->out, reduction->most, (size_t)reduction->count * sizeof(uint64_t));
		request->done = 1;
		if (++reduction->taken == me->threads->size)
			reduction_free(me->threads, reduction);
	}
	*done = request->done;
	if (request->done && message)
		*message = request->message;
	return request->done ? request->code : 0;
}

/* ---- the table's functions ---- */

static int iallreduce_max(void *ctx, const uint64_t *in, uint64_t *out, int count, void **request)
{
	struct rank *me = ctx;
	int rc;

	pthread_mutex_lock(&me->threads->lock);
	rc = start_reduce(me, in, out, count, request);
	pthread_mutex_unlock(&me->threads->lock);
	return rc;
}

static int isend(void *ctx, const void *data, size_t bytes, int peer, int tag, void **request)
{
	struct rank *me = ctx;
	int rc;

	pthread_mutex_lock(&me->threads->lock);
	rc = start_send(me, data, bytes, peer, tag, request);
	pthread_mutex_unlock(&me->threads->lock);
	return rc;
}

static int irecv(void *ctx, void *data, size_t bytes, int peer, int tag, void **request)
{
	struct rank *me = ctx;
	int rc;

	pthread_mutex_lock(&me->threads->lock);
	rc = start_receive(me, data, bytes, peer, tag, request);
	pthread_mutex_unlock(&me->threads->lock);
	return rc;
}

static int test_request(void *ctx, void **request, int *done, struct ckpt_message *message)
{
	struct rank *me = ctx;
	int rc;

	pthread_mutex_lock(&me->threads->lock);
	rc = test(me, *request, done, message);
	if (*done) {
		request_free(me->threads, *request);
		*request = NULL;
	}
	pthread_mutex_unlock(&me->threads->lock);
	return rc;
}

static int cancel_recv(void *ctx, void **request)
{
	struct rank *me = ctx;
	struct request *receive = *request;
	int rc = BROKEN;

	pthread_mutex_lock(&me->threads->lock);
	if (!me->dead) {
		if (!receive->done)
			TAILQ_REMOVE(&me->posted, receive, posted);
		request_free(me->threads, receive);
		*request = NULL;
		rc = 0;
	}
	pthread_mutex_unlock(&me->threads->lock);
	return rc;
}

static void abort_all(void *ctx, int exit_code)
{
	struct ck_threads *threads = ck_threads_of(ctx);

	pthread_mutex_lock(&threads->lock);
	if (!threads->aborted) {
		threads->aborted = 1;
		threads->exit_code = exit_code;
	}
	for (int i = 0; i < threads->size; i++)
		kill_rank(threads, i);
	pthread_mutex_unlock(&threads->lock);
}

void ck_threads_comm(struct ck_threads *threads, int rank, struct ckpt_comm *out)
{
	*out = (struct ckpt_comm){
		.struct_size = sizeof(*out),
		.rank = rank,
		.size = threads->size,
		.ctx = &threads->ranks[rank],
		.iallreduce_max = iallreduce_max,
		.isend = isend,
		.irecv = irecv,
		.test = test_request,
		.cancel_recv = cancel_recv,
		.abort = abort_all,
	};
}
