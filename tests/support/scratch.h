/*
 * Files for tests: made and looked at by plain system calls, not by the code under test.
 * What cannot be made ends the program.
 */
#ifndef TESTS_SCRATCH_H
#define TESTS_SCRATCH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "io_fault.h"

/* A directory, and the path that scratch_path made last. */
struct scratch {
	const char *dir;
	char path[PATH_MAX];
};

#define SCRATCH_TEXT 4096

/* In a fresh test_tmpdir(). */
struct scratch scratch_new(void);
/* "<dir>/<name>", kept in scratch->path until the next call. */
const char *scratch_path(struct scratch *scratch, const char *name);

void scratch_put(const char *path, const void *data, size_t bytes);
void scratch_put_text(const char *path, const char *text);
/* What a file holds, up to SCRATCH_TEXT - 1 bytes, or NULL. Returns out. */
const char *scratch_get(const char *path, char out[static SCRATCH_TEXT]);
/* Something is there, be it a dangling link. */
bool scratch_exists(const char *path);
/* How many entries a directory has. */
size_t scratch_entries(const char *dir);

/*
 * One of each: "file" ("content"), "dir", "fifo", "socket", "link" to file, "dirlink" to dir,
 * "dangling" to nowhere, "loop" to itself.
 */
void scratch_strangers(struct scratch *scratch);

/* `bytes` bytes of a fixed pattern without a short period; free() them. */
unsigned char *scratch_pattern(size_t bytes);

/* A call on one path that fails in a certain way. */
struct scratch_refusal {
	const char *rules;
	const char *name; /* in the directory */
	int code;
	const char *says;
};

/* Make each call under its rules, and check code and text. `call` checks what else is to be so. */
void scratch_refused(struct scratch *scratch, const char *what, const struct scratch_refusal *rows,
		     size_t count,
		     int (*call)(const struct ck_io *io, const char *path, struct ck_error *err));

/* A ck_io over the system's that misbehaves by these rules. */
struct ck_io_fault *scratch_fault(const char *rules);

#endif
