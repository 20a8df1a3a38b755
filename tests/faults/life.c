/*
 * A program's life over <ckpt.h>, short enough to be ended at each of its system calls: what tests/faults/sweep
 * strikes at with inject.
 *
 *	life DIR PLAN [NAME=VALUE ...]
 *
 * PLAN is a word of these letters, done in order by each rank (ranks are threads):
 *
 *	r  ckpt_restore, into spoilt memory	s  train a step, ckpt_save, ckpt_wait
 *	t  train a step, ckpt_step		a  train a step, ckpt_save; what comes next runs beside it
 *	b  ckpt_wait, right after an `a`	c  ckpt_complete
 *
 *	world=1  ranks	keep=3	every=TEXT (default 1d)	resume=TEXT	staging=TEXT	takeover=0
 *
 * Prints, each line by one write as soon as it is true:
 *
 *	restored CODE STEP right|WRONG	saved STEP	lost STEP CODE (a save that failed)	done CODE
 *
 * Exits with 0; 1 when something failed that was not a save; 3 when memory was wrong.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ranks.h"

static struct {
	const char *plan;
	int world;
	int wrong;
} life = {.world = 1};

static void tell(const struct toy *toy, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void tell(const struct toy *toy, const char *fmt, ...)
{
	char line[128];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (toy->rank == 0 && write(STDOUT_FILENO, line, (size_t)n) != n)
		abort();
}

static int restore(struct toy *toy)
{
	uint64_t step = 0;
	int rc, right;

	toy_spoil(toy);
	rc = ckpt_restore(toy->ck, &step);
	right = rc <= 0 || toy_is(toy, step);
	if (!right)
		__atomic_store_n(&life.wrong, 1, __ATOMIC_SEQ_CST);
	tell(toy, "restored %d %" PRIu64 " %s\n", rc, step, right ? "right" : "WRONG");
	toy->step = step;
	return rc < 0 ? rc : 0;
}

/* The handle can go on after a save that failed. */
static int judge_save(struct toy *toy, int rc)
{
	if (rc)
		tell(toy, "lost %" PRIu64 " %d\n", toy->step, rc);
	else
		tell(toy, "saved %" PRIu64 "\n", toy->step);
	return rc == CKPT_EFENCED || rc == CKPT_EPEER || rc == CKPT_EREFUSED ? rc : 0;
}

static int save(struct toy *toy)
{
	toy_train(toy, ++toy->step);
	return ckpt_save(toy->ck, toy->step);
}

static int save_and_wait(struct toy *toy)
{
	int rc = save(toy);

	return judge_save(toy, rc ? rc : ckpt_wait(toy->ck));
}

static int act(struct toy *toy, char letter)
{
	int rc;

	switch (letter) {
	case 'r':
		return restore(toy);
	case 's':
		return save_and_wait(toy);
	case 'a':
		rc = save(toy);
		return rc ? judge_save(toy, rc) : 0;
	case 'b':
		return judge_save(toy, ckpt_wait(toy->ck));
	case 't':
		toy_train(toy, ++toy->step);
		return ckpt_step(toy->ck, toy->step);
	case 'c':
		return judge_save(toy, ckpt_complete(toy->ck));
	}
	return CKPT_EARG;
}

static int live(struct toy *toy)
{
	int rc = 0;

	for (const char *letter = life.plan; *letter && !rc; letter++)
		rc = act(toy, *letter);
	return rc;
}

static const char *option(char **argv, const char *name)
{
	size_t length = strlen(name);

	for (; *argv; argv++)
		if (strncmp(*argv, name, length) == 0 && (*argv)[length] == '=')
			return *argv + length + 1;
	return NULL;
}

int main(int argc, char **argv)
{
	static struct toy toys[TOY_RANKS_MAX];
	static struct toy_log log;
	struct ckpt_options options = {.struct_size = sizeof(options), .every = "1d", .keep = 3};

	if (argc < 3) {
		fputs("usage: life DIR PLAN [NAME=VALUE ...]\n", stderr);
		return 2;
	}
	options.dir = argv[1];
	life.plan = argv[2];
	if (option(argv, "world"))
		life.world = atoi(option(argv, "world"));
	if (option(argv, "keep"))
		options.keep = atoi(option(argv, "keep"));
	if (option(argv, "every"))
		options.every = option(argv, "every");
	if (option(argv, "takeover"))
		options.takeover = atoi(option(argv, "takeover"));
	options.resume = option(argv, "resume");
	options.staging = option(argv, "staging");
	toy_run(life.world, &options, live, NULL, toys, &log);
	fputs(log.text, stderr);
	printf("done %d\n", toys[0].code);
	return life.wrong ? 3 : toys[0].code != 0;
}
