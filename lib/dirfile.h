/*
 * Files of a run directory, by directory and name.
 *
 * The directory itself may be a symbolic link that the user named; below it none is followed.
 */
#ifndef CK_DIRFILE_H
#define CK_DIRFILE_H

#include <limits.h>
#include <stdint.h>

#include "buf.h"
#include "error.h"
#include "io.h"

/* "<dir>/<name>". Returns 0 or CK_EIO: too long. */
int ck_dirfile_path(char out[static PATH_MAX], const char *dir, const char *name,
		    struct ck_error *err);

/* "<dir>/.gen-<n>". The same. */
int ck_dirfile_generation(char out[static PATH_MAX], const char *dir, uint64_t generation,
			  struct ck_error *err);

/* The content; `path` (for messages about it) is set on success. As ck_io_read_file. */
int ck_dirfile_read(const struct ck_io *io, const char *dir, const char *name, uint64_t max_bytes,
		    char path[static PATH_MAX], struct ck_buf *out, struct ck_error *err);

/* Replace. As ck_io_write_file. */
int ck_dirfile_write(const struct ck_io *io, const char *dir, const char *name,
		     const struct ck_buf *text, struct ck_error *err);

/* Replace, then fsync the directory. */
int ck_dirfile_store(const struct ck_io *io, const char *dir, const char *name,
		     const struct ck_buf *text, struct ck_error *err);

/* The same, of files in .gen-<n>/. */
int ck_dirfile_read_of(const struct ck_io *io, const char *dir, uint64_t generation,
		       const char *name, uint64_t max_bytes, char path[static PATH_MAX],
		       struct ck_buf *out, struct ck_error *err);
int ck_dirfile_store_of(const struct ck_io *io, const char *dir, uint64_t generation,
			const char *name, const struct ck_buf *text, struct ck_error *err);

/* As ck_io_list and ck_io_sync_dir. */
int ck_dirfile_list(const struct ck_io *io, const char *dir, struct ck_names *out,
		    struct ck_error *err);
int ck_dirfile_sync(const struct ck_io *io, const char *dir, struct ck_error *err);

/*
 * fsync the directory that `path` (without a slash at its end) stands in. One that may be written
 * but not read cannot be fsynced: that is success.
 */
int ck_dirfile_sync_parent(const struct ck_io *io, const char *path, struct ck_error *err);

#endif
