/*
 * For tests of the `ckpt` command: runs on disk, made with lib/, and the command itself, run as a
 * person would run it. What cannot be made ends the program.
 */
#ifndef TESTS_COMMAND_H
#define TESTS_COMMAND_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "run.h"

/* --- runs --- */

#define MADE_ELEMENTS 5000 /* F32, of each rank */

/* A run directory below a fresh test_tmpdir(), with run.json and nothing else. */
const char *made_run(const char *name);
/* Claim the next generation of a run. Returns its number. */
uint64_t made_claim(const char *dir);
/*
 * Save a step by so many ranks, one file each: a block of the flat item "w" and the per-rank item
 * "rng". Commit it, or leave it as it is before the commit.
 */
void made_save(const char *dir, uint64_t generation, uint64_t step, uint32_t ranks, bool commit);
/* A run with two checkpoints by four ranks: steps 1000 and 2000 of generation 1, which is claimed. */
const char *two_steps(void);
/* Note in run.json that the run is complete. */
void made_complete(const char *dir, uint64_t step);

/* "<dir>/<name>", of the last few calls. */
const char *in(const char *dir, const char *name);
/* "<dir>/step-….g<n>/<name>" */
const char *in_step(const char *dir, uint64_t generation, uint64_t step, const char *name);
/* Turn over one bit of a file. */
void flip_bit(const char *path, uint64_t offset);

/* --- the command --- */

struct said {
	int exit_code; /* 128 + signal when one ended it */
	char *out;     /* stdout; free with said_fini */
	char *err;     /* stderr */
};

/* How to run it; zeros: as anybody would, from the root directory. */
struct manner {
	const char *cwd;
	const char *run_dir; /* SLURM_CKPT_DIR */
	const char *faults;  /* SLURM_CKPT_IO_FAULT */
	bool as_nobody;      /* where we are root; else as we are */
	bool on_terminal;    /* stderr is one, 80 columns wide */
	bool full_disk;      /* stdout is /dev/full */
	bool no_interrupts;  /* SIGINT is ignored when it starts, as in a shell's background */
	/*
	 * Called while it is stopped, by a rule of `faults` with kill=STOP:times=1, at the very call that
	 * the rule names. That it never comes there fails a check.
	 */
	void (*meanwhile)(void *arg);
	void *arg;
};

/* Run `ckpt` with these arguments, NULL-terminated. A run of more than 60 s ends the program. */
struct said command(const struct manner *manner, const char *const *arguments);
void said_fini(struct said *said);

/* command() with the arguments written out. */
#define ckpt_cmd_as(manner, ...) command(manner, (const char *const[]){__VA_ARGS__, NULL})
#define ckpt_cmd(...) ckpt_cmd_as(&(struct manner){0}, __VA_ARGS__)

/* The longest line of a text, in bytes. */
unsigned longest_line(const char *text);

/* A member of what it printed with --json; NULL when there is none. */
const cJSON *json_at(const cJSON *tree, const char *key);
/* The same of a text; "(no string)" when it is none. */
const char *json_text(const cJSON *tree, const char *key);

#endif
