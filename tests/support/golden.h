/*
 * Golden files: tests/golden/<folder>/<name>, whose name is the defect; made by make.py.
 */
#ifndef TESTS_GOLDEN_H
#define TESTS_GOLDEN_H

#include <stddef.h>

#include "buf.h"

/* One row of a replay: a file, what reading it must return, and the telling part of the text. */
struct golden {
	const char *name; /* without the suffix */
	int code;
	const char *says; /* NULL for the good ones */
};

/* $GOLDEN_DIR/<folder>, default tests/golden/<folder>. Static storage, overwritten by each call. */
const char *golden_path(const char *folder);

/* Content of <folder>/<name><suffix>; a failed check and an empty buf when it cannot be read. */
struct ck_buf golden_read(const char *folder, const char *name, const char *suffix);

/* Check that the folder holds the table's files and no other: no defect without a row. */
void golden_complete(const char *folder, const struct golden *rows, size_t count,
		     const char *suffix);

#endif
