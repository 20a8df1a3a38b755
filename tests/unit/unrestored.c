/*
 * Nothing is saved from memory that is not the run's: after a ckpt_restore that failed, and before one where the
 * run has a checkpoint. Older checkpoints stay; a ckpt_restore that succeeds sets it right.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ckpt.h"
#include "starts.h"
#include "tap.h"

#define RANKS 2

static const uint64_t steps[] = {9, 11, 13};

/* What an incarnation adds, and what it was told. */
struct seen {
	uint64_t elements; /* of one item more; 0: none */
	int refuse;        /* its per-rank item is refused by `set` */
	int skip_restore;
	int step, save, complete, wait;
	char texts[3][512];
};

static size_t four_bytes(void *arg)
{
	(void)arg;
	return 4;
}

static int get_any(void *arg, void *dst, size_t bytes)
{
	(void)arg;
	memset(dst, 1, bytes);
	return 0;
}

static int set_or_refuse(void *arg, const void *src, size_t bytes)
{
	(void)src;
	return bytes != 4 || __atomic_load_n(&((struct seen *)arg)->refuse, __ATOMIC_SEQ_CST);
}

static int enroll_more(struct toy *toy, struct seen *seen)
{
	static double weights[TOY_RANKS_MAX][8];
	struct ckpt_rank_callbacks callbacks = {.struct_size = sizeof(callbacks),
						.arg = seen,
						.size = four_bytes,
						.get = get_any,
						.set = set_or_refuse};
	int rc = ckpt_add_rank(toy->ck, "more", &callbacks);

	if (!rc && seen->elements)
		rc = ckpt_add_replicated(toy->ck, "weights", CKPT_F64, 1, &seen->elements,
					 weights[toy->rank]);
	return rc;
}

static int save_three(struct toy *toy)
{
	uint64_t step;
	int rc = enroll_more(toy, toy->arg);

	if (!rc)
		rc = ckpt_restore(toy->ck, &step);
	for (size_t i = 0; i < 3 && !rc; i++) {
		toy_train(toy, steps[i]);
		rc = ckpt_save(toy->ck, steps[i]);
	}
	return rc ? rc : ckpt_wait(toy->ck);
}

/* What the last rank was told. */
static void keep(const struct toy *toy, int *place, int code)
{
	if (toy->rank == RANKS - 1)
		*place = code;
}

static void keep_text(struct toy *toy, struct seen *seen, int call)
{
	if (toy->rank == RANKS - 1)
		snprintf(seen->texts[call], sizeof(seen->texts[call]), "%.250s",
			 ckpt_error(toy->ck));
}

/* A program that looks at no return value. */
static int careless(struct toy *toy)
{
	struct seen *seen = toy->arg;
	uint64_t step = 0;
	int rc = enroll_more(toy, seen);

	if (rc)
		return rc;
	if (!seen->skip_restore) {
		rc = ckpt_restore(toy->ck, &step);
		keep_text(toy, seen, 0);
	}
	for (step = 14; step <= 20; step++) {
		toy_train(toy, step);
		keep(toy, &seen->step, ckpt_step(toy->ck, step));
		keep_text(toy, seen, 1);
		keep(toy, &seen->save, ckpt_save(toy->ck, step));
		keep_text(toy, seen, 2);
	}
	keep(toy, &seen->wait, ckpt_wait(toy->ck));
	keep(toy, &seen->complete, ckpt_complete(toy->ck));
	return rc;
}

static bool saved(uint64_t step, int generation)
{
	char name[64];

	snprintf(name, sizeof(name), "step-%010llu.g%d", (unsigned long long)step, generation);
	return exists(name);
}

static void fresh_run(const char *name)
{
	fresh_dir(name);
	options.every = "1step";
}

static void make_three(const char *name, struct seen *seen)
{
	fresh_run(name);
	toy_run(RANKS, &options, save_three, seen, toys, &text);
	is_int(toys[0].code, 0, "%s: steps 9, 11 and 13 are saved: %s", name, text.text);
}

static void expect_refusals(const char *name, const struct seen *seen, int code, const char *why)
{
	is_int(seen->step, code, "%s: ckpt_step fails", name);
	like(seen->texts[1], why, "%s: ... and says why", name);
	is_int(seen->save, code, "%s: ckpt_save fails", name);
	like(seen->texts[2], why, "%s: ... and says why", name);
	is_int(seen->complete, code, "%s: ckpt_complete fails", name);
	is_int(seen->wait, 0, "%s: ckpt_wait has nothing to wait for", name);
	ok(saved(9, 1) && saved(11, 1) && saved(13, 1), "%s: the checkpoints stay", name);
	for (uint64_t step = 14; step <= 20; step++)
		if (saved(step, 2))
			ok(0, "%s: step %d was saved", name, (int)step);
	like(text.text, "ckpt: nothing is saved: ", "%s: a line says so", name);
}

static void fails(const char *name, struct seen *saver, struct seen *taker, const char *spoil,
		  int code)
{
	char shell[2 * PATH_MAX];

	make_three(name, saver);
	snprintf(shell, sizeof(shell), "cd %s && %s", dir, spoil);
	is_int(system(shell), 0, "%s: %s", name, spoil);
	toy_run(RANKS, &options, careless, taker, toys, &text);
	for (int r = 0; r < RANKS; r++)
		is_int(toys[r].code, code, "%s: rank %d: ckpt_restore fails", name, r);
	taker->texts[0][200] = '\0';
	like(taker->texts[1], taker->texts[0], "%s: the failure is in the refusal's text", name);
	expect_refusals(name, taker, code, "the restore failed: ");
}

static void failures(void)
{
	struct seen four = {.elements = 4}, five = {.elements = 5}, none = {0}, bad = {0},
		    refuses = {.refuse = 1};

	fails("shape", &four, &five, "true", CKPT_EITEM);
	fails("damage", &none, &bad, "truncate -s 5000 step*/rank-00000.0.safetensors",
	      CKPT_EFORMAT);
	fails("set", &none, &refuses, "true", CKPT_EFORMAT);
}

static void not_called(void)
{
	struct seen saver = {0}, taker = {.skip_restore = 1}, first = {.skip_restore = 1};

	make_three("uncalled", &saver);
	toy_run(RANKS, &options, careless, &taker, toys, &text);
	expect_refusals("uncalled", &taker, CKPT_EREFUSED,
			"call ckpt_restore first: the run has a checkpoint, step 13");
	fresh_run("first");
	toy_run(RANKS, &options, careless, &first, toys, &text);
	is_int(first.complete, 0, "a run without a checkpoint needs no ckpt_restore");
	ok(saved(20, 1), "and is saved");
}

/* The callback has refused; then it takes what is there. */
static int mends(struct toy *toy)
{
	struct seen *seen = toy->arg;
	uint64_t step = 77;
	int rc = enroll_more(toy, seen);

	if (rc)
		return rc;
	if (ckpt_restore(toy->ck, &step) != CKPT_EFORMAT || step != 77)
		return -50;
	if (ckpt_save(toy->ck, 14) != CKPT_EFORMAT)
		return -51;
	if (toy->rank == 0) /* the other one reads it behind the collective call below */
		__atomic_store_n(&seen->refuse, 0, __ATOMIC_SEQ_CST);
	if (ckpt_prepare(toy->ck))
		return -52;
	rc = ckpt_restore(toy->ck, &step);
	if (rc != CKPT_RESUMED || step != 13 || !toy_is(toy, 13))
		return -53;
	toy_train(toy, 14);
	rc = ckpt_save(toy->ck, 14);
	return rc ? rc : ckpt_wait(toy->ck);
}

static void mended(void)
{
	struct seen saver = {0}, refuses = {.refuse = 1};

	make_three("mended", &saver);
	toy_run(RANKS, &options, mends, &refuses, toys, &text);
	is_int(toys[0].code, 0, "a ckpt_restore that succeeds lets saves begin again: %s",
	       text.text);
	ok(saved(14, 2), "step 14 is saved");
	ok(saved(13, 1) && saved(11, 1) && !saved(9, 1),
	   "no checkpoint counts as bad that only the callback had refused");
}

int main(void)
{
	failures();
	not_called();
	mended();
	return done_testing();
}
