/*
 * Run directories for tests: small checkpoints, written by the library's own functions, and
 * processes that do something at once.
 */
#ifndef TESTS_RUNDIR_H
#define TESTS_RUNDIR_H

#include <stdbool.h>
#include <stdint.h>

#include "error.h"
#include "io.h"
#include "manifest.h"
#include "names.h"

/* "<dir>/<name>", in one of eight buffers that are used in turn. */
const char *in_dir(const char *dir, const char *name);
bool exists_in(const char *dir, const char *name);
/* How many names a directory has. */
size_t count_in(const char *dir);
/* The content of a small file, NUL-terminated, malloc'ed; NULL when it cannot be read. */
char *content_of(const char *path);
/* Make or replace a file. */
void put_file(const char *path, const char *text);

/*
 * Call work(dir, i) in `count` (at most 16) processes of their own, begun together; results[i] is
 * what it returned (0 to 99), or 128 + the signal that ended it.
 */
void race(int count, int (*work)(const char *dir, int i), const char *dir, int *results);

/* run.json and generation 1. */
void make_run(const char *dir);
/* One more generation, by mkdir alone. */
void make_generation(const char *dir, uint64_t generation);

/* ck_sweep by a listing made now. */
int sweep_now(const struct ck_io *io, const char *dir, uint64_t generation, struct ck_error *err);

/*
 * The state of the tests: "params" F32 [10 * world], flat, ten elements a rank; "w" F32 [4 * world,
 * 3], four rows a rank, rank 0's as two blocks (so it has two files); "scale" F64, a scalar that
 * rank 0 stores; "none" F32 [0, 7], without elements; "rng", per-rank, 5 bytes, 6 of rank 0. Values
 * depend on the step.
 */
struct ck_manifest state_manifest(struct ck_step_id id, uint32_t world);
/* Write the files and the record of one rank, as its writer would; adds them to the manifest. */
int save_rank(const struct ck_io *io, const char *dir, struct ck_manifest *manifest, uint32_t rank,
	      struct ck_error *err);
/* The same, with the blocks of another rank: a writer that errs. */
int save_rank_as(const struct ck_io *io, const char *dir, struct ck_manifest *manifest,
		 uint32_t rank, uint32_t blocks_of, struct ck_error *err);
/* Write one more file of a rank, with its "rng" or with nothing: a writer that errs. */
int save_extra(const struct ck_io *io, const char *dir, struct ck_manifest *manifest, uint32_t rank,
	       bool with_rng, struct ck_error *err);
/* A whole save, from ck_save_begin to ck_save_commit; the first failure ends it. */
int save_step(const struct ck_io *io, const char *dir, struct ck_step_id id, uint32_t world,
	      struct ck_error *warning, struct ck_error *err);
/* A fresh run with one checkpoint. */
const char *run_with(struct ck_step_id id, uint32_t world);

#endif
