/* agree.h: every rank decides the same at the same call, at any length of step. */
#include "agree.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "comm_threads.h"
#include "tap.h"

#define RANKS 4
#define CALLS 400

struct rank {
	struct ck_threads *threads;
	int rank;
	uint64_t step_us; /* it pretends that steps take so long */
	int wish_at;      /* call at which this rank begins to want a stop */
	bool evaluates;   /* repeats the number from call 100 on */
	int wrong_at;     /* gives another number from this call on, -1: never */
	int decided_at;   /* call at which the stop was decided, -1: never */
	int code;
	struct ck_error err;
};

/* One call of ckpt_step, as far as the agreement goes. Returns 1 when a stop was decided in it. */
static int one_call(struct rank *r, struct ck_comm *comm, struct ck_agreement *agreement,
		    uint64_t step, const struct ck_say *mine)
{
	struct ck_say said;

	r->code = ck_agreement_collect(comm, agreement, &said, &r->err);
	if (r->code || said.urge)
		return !r->code;
	r->code = ck_agreement_post(comm, agreement, step, r->step_us, mine, &said, &r->err);
	return !r->code && said.urge;
}

static void *run(void *arg)
{
	struct rank *r = arg;
	struct ckpt_comm table;
	struct ck_comm comm;
	struct ck_agreement agreement;
	struct ck_say said;

	ck_threads_comm(r->threads, r->rank, &table);
	ck_comm_init(&comm, &table, 20000, NULL);
	ck_agreement_init(&agreement, NULL);
	r->decided_at = -1;
	r->code = 0;
	for (int call = 0; call < CALLS && r->decided_at < 0 && !r->code; call++) {
		uint64_t step = (uint64_t)(r->evaluates && call > 100 ? 100 : call);
		struct ck_say mine = {.result = (uint64_t)call};

		if (call >= r->wish_at)
			mine.urge = ck_urge_pack(CK_URGE_STOP, CK_WHY_STOP_SIGNAL, 15);
		if (r->wrong_at >= 0 && call >= r->wrong_at)
			step += 1000;
		if (rand_r(&(unsigned){(unsigned)(call * RANKS + r->rank)}) % 16 == 0)
			nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
		if (one_call(r, &comm, &agreement, step, &mine))
			r->decided_at = call;
	}
	if (!r->code)
		r->code = ck_agreement_collect(&comm, &agreement, &said, &r->err);
	ck_agreement_fini(&comm, &agreement);
	ck_comm_fini(&comm);
	return NULL;
}

static void all(struct rank *ranks)
{
	struct ck_threads *threads = ck_threads_new(RANKS);
	pthread_t ids[RANKS];

	for (int r = 0; r < RANKS; r++) {
		ranks[r].threads = threads;
		ranks[r].rank = r;
		pthread_create(&ids[r], NULL, run, &ranks[r]);
	}
	for (int r = 0; r < RANKS; r++)
		pthread_join(ids[r], NULL);
	ck_threads_free(threads);
}

/* One rank wants a stop from call 150 on; when do all agree? */
static void decides(uint64_t step_us, bool evaluates, int at_most)
{
	struct rank ranks[RANKS];

	for (int r = 0; r < RANKS; r++)
		ranks[r] = (struct rank){
			.step_us = step_us,
			.wish_at = r == 2 ? 150 : CALLS,
			.evaluates = evaluates,
			.wrong_at = -1,
		};
	all(ranks);
	for (int r = 0; r < RANKS; r++) {
		is_int(ranks[r].code, 0, "steps of %llu us, rank %d: no error: %s",
		       (unsigned long long)step_us, r, ranks[r].err.text);
		is_int(ranks[r].decided_at, ranks[0].decided_at, "rank %d decides at the same call",
		       r);
	}
	ok(ranks[0].decided_at >= 150 && ranks[0].decided_at <= at_most,
	   "decided at call %d, %d at the latest", ranks[0].decided_at, at_most);
}

static void different_steps(void)
{
	struct rank ranks[RANKS];

	for (int r = 0; r < RANKS; r++)
		ranks[r] = (struct rank){.step_us = 200000,
					 .wish_at = CALLS,
					 .wrong_at = r == 1 ? 7 : -1};
	all(ranks);
	for (int r = 0; r < RANKS; r++) {
		is_int(ranks[r].code, CK_EARG, "rank %d: another number on one rank is an error",
		       r);
		like(ranks[r].err.text, "7 to 1007", "that names both");
	}
}

int main(void)
{
	decides(30000000, false, 150); /* 30 s: in the same call */
	decides(100000, false, 150);
	decides(60000, false, 151); /* posted in one call, completed in the next */
	decides(1000, false, 252);  /* every 100th call */
	decides(1000, true, 152);   /* an evaluation repeats the number: at each call */
	different_steps();
	return done_testing();
}
