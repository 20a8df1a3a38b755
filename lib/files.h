/*
 * The file entries ("shards") that manifest.json and the ranks' records share.
 */
#ifndef CK_FILES_H
#define CK_FILES_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "error.h"
#include "io.h"
#include "manifest.h"

void ck_files_free(struct ck_file *files, size_t count);

/*
 * Are these the files of the ranks [rank_begin, rank_end), ordered by rank, then part, each rank
 * with at least one, parts from 0 without gap; and is each entry well-formed: path the one of rank
 * and part, hex digits, sizes below 2^53, a chunk size that is a power of two >= 4096?
 * The number of chunks is the reader's to check, since here it is implied.
 * Returns 0 or CK_EFORMAT naming the entry.
 */
int ck_files_check(const char *where, const struct ck_file *files, size_t count,
		   uint32_t rank_begin, uint32_t rank_end, struct ck_error *err);

/* Append `"shards": [` … `]`, one line per file. The files have passed ck_files_check. */
void ck_files_print(struct ck_buf *out, const struct ck_file *files, size_t count);

/*
 * Read the member "shards". Checks what would be lost in the struct (path's form, number of
 * chunks); the rest is ck_files_check's. Returns 0 (ck_files_free); CK_EFORMAT; CK_ENOMEM.
 */
int ck_files_parse(const char *where, const cJSON *object, struct ck_file **files, size_t *count,
		   struct ck_error *err);

/*
 * The file is there, regular, and has its size. Returns 0; CK_ENOENT; CK_EFORMAT: both sizes;
 * CK_EIO.
 *   step  path of the directory it stands in
 */
int ck_file_sized(const struct ck_io *io, const char *step, const struct ck_file *file,
		  struct ck_error *err);

#endif
