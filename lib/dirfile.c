#include "dirfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "names.h"

/* The end of such a path would not be seen in a message, so the reason stands first. */
static int fail_too_long(const char *dir, size_t more, struct ck_error *err)
{
	return ck_fail(err, CK_EIO, "a path of %zu bytes, at most %d: %s", strlen(dir) + more,
		       PATH_MAX - 1, dir);
}

int ck_dirfile_path(char out[static PATH_MAX], const char *dir, const char *name,
		    struct ck_error *err)
{
	if (!ck_path_join(out, dir, name))
		return fail_too_long(dir, 1 + strlen(name), err);
	return 0;
}

int ck_dirfile_generation(char out[static PATH_MAX], const char *dir, uint64_t generation,
			  struct ck_error *err)
{
	char name[CK_NAME_MAX];

	return ck_dirfile_path(out, dir, ck_name_generation(generation, name), err);
}

int ck_dirfile_read(const struct ck_io *io, const char *dir, const char *name, uint64_t max_bytes,
		    char path[static PATH_MAX], struct ck_buf *out, struct ck_error *err)
{
	int rc;

	rc = ck_dirfile_path(path, dir, name, err);
	return rc ? rc : ck_io_read_file(io, path, max_bytes, out, err);
}

int ck_dirfile_write(const struct ck_io *io, const char *dir, const char *name,
		     const struct ck_buf *text, struct ck_error *err)
{
	char path[PATH_MAX];
	int rc;

	rc = ck_dirfile_path(path, dir, name, err);
	return rc ? rc : ck_io_write_file(io, path, text->data, text->len, err);
}

int ck_dirfile_store(const struct ck_io *io, const char *dir, const char *name,
		     const struct ck_buf *text, struct ck_error *err)
{
	int rc;

	rc = ck_dirfile_write(io, dir, name, text, err);
	return rc ? rc : ck_dirfile_sync(io, dir, err);
}

int ck_dirfile_read_of(const struct ck_io *io, const char *dir, uint64_t generation,
		       const char *name, uint64_t max_bytes, char path[static PATH_MAX],
		       struct ck_buf *out, struct ck_error *err)
{
	char sub[PATH_MAX];
	int rc;

	rc = ck_dirfile_generation(sub, dir, generation, err);
	return rc ? rc : ck_dirfile_read(io, sub, name, max_bytes, path, out, err);
}

int ck_dirfile_store_of(const struct ck_io *io, const char *dir, uint64_t generation,
			const char *name, const struct ck_buf *text, struct ck_error *err)
{
	char sub[PATH_MAX];
	int rc;

	rc = ck_dirfile_generation(sub, dir, generation, err);
	return rc ? rc : ck_dirfile_store(io, sub, name, text, err);
}

/* With a slash at its end a link is followed. */
static int followed(char out[static PATH_MAX], const char *dir, struct ck_error *err)
{
	if (snprintf(out, PATH_MAX, "%s/", dir) >= PATH_MAX)
		return fail_too_long(dir, 1, err);
	return 0;
}

int ck_dirfile_list(const struct ck_io *io, const char *dir, struct ck_names *out,
		    struct ck_error *err)
{
	char path[PATH_MAX];
	int rc;

	rc = followed(path, dir, err);
	return rc ? rc : ck_io_list(io, path, out, err);
}

int ck_dirfile_sync(const struct ck_io *io, const char *dir, struct ck_error *err)
{
	char path[PATH_MAX];
	int rc;

	rc = followed(path, dir, err);
	return rc ? rc : ck_io_sync_dir(io, path, NULL, err);
}

/* Of a path without slashes at its end. */
static void parent_of(const char *path, char out[static PATH_MAX])
{
	const char *slash = strrchr(path, '/');

	if (slash)
		snprintf(out, PATH_MAX, "%.*s/", (int)(slash - path), path);
	else
		snprintf(out, PATH_MAX, "./");
}

int ck_dirfile_sync_parent(const struct ck_io *io, const char *path, struct ck_error *err)
{
	char parent[PATH_MAX];
	int fd;

	parent_of(path, parent);
	fd = io->ops->open(io, parent, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0 && errno == EACCES)
		return 0;
	ck_io_close(io, &fd);
	return ck_io_sync_dir(io, parent, NULL, err);
}
