/*
 * What programs over toys share: one run at a time, and starts of a toy in it that resumes and saves.
 */
#ifndef TESTS_STARTS_H
#define TESTS_STARTS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "ckpt.h"
#include "ranks.h"

/* For toy_run: the run's directory, the options of its ranks, and what they were and said. */
extern char dir[PATH_MAX];
extern struct ckpt_options options;
extern struct toy toys[TOY_RANKS_MAX];
extern struct toy_log text;

/* Another run: `dir` is where nothing is yet, `options` are those of a run that saves when told to. */
void fresh_dir(const char *name);
/* Is there such a name in dir? Any thread may ask. */
bool exists(const char *name);
/* Which checkpoints are in dir: "2.1 4.1", step and generation, sorted. Overwritten by each call. */
const char *steps_there(void);

/* A start of the program: it resumes, then saves each of the steps listed, in order. */
struct start {
	uint64_t save[16]; /* 0-terminated */
	int restored;      /* what ckpt_restore returned to rank 0 */
	uint64_t from;
	bool right; /* what was restored is right, on all ranks */
};

#define START(...) (&(struct start){.save = {__VA_ARGS__}})

/* By two ranks. Returns what the program returned on rank 0. */
int run_start(struct start *start);

/* A body that restores, into spoilt memory; toy->step is where. -99 when the memory is not right then. */
int toy_resume(struct toy *toy);

#endif
