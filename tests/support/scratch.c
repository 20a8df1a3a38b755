#include "scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"

static void need(bool done, const char *what)
{
	if (done)
		return;
	diag("cannot make %s: %s", what, strerror(errno));
	exit(1);
}

struct scratch scratch_new(void)
{
	return (struct scratch){.dir = test_tmpdir()};
}

const char *scratch_path(struct scratch *scratch, const char *name)
{
	int bytes = snprintf(scratch->path, sizeof(scratch->path), "%s/%s", scratch->dir, name);

	errno = ENAMETOOLONG;
	need(bytes < (int)sizeof(scratch->path), name);
	return scratch->path;
}

void scratch_put(const char *path, const void *data, size_t bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	need(fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes && close(fd) == 0, path);
}

void scratch_put_text(const char *path, const char *text)
{
	scratch_put(path, text, strlen(text));
}

const char *scratch_get(const char *path, char out[static SCRATCH_TEXT])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, SCRATCH_TEXT - 1);

	if (fd >= 0)
		close(fd);
	if (n < 0)
		return NULL;
	out[n] = '\0';
	return out;
}

bool scratch_exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

size_t scratch_entries(const char *path)
{
	DIR *dir = opendir(path);
	size_t count = 0;

	need(dir != NULL, path);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2; /* "." and ".." */
}

void scratch_strangers(struct scratch *scratch)
{
	scratch_put_text(scratch_path(scratch, "file"), "content");
	need(mkdir(scratch_path(scratch, "dir"), 0777) == 0, "a directory");
	need(mkfifo(scratch_path(scratch, "fifo"), 0666) == 0, "a FIFO");
	need(mknod(scratch_path(scratch, "socket"), S_IFSOCK | 0666, 0) == 0, "a socket");
	need(symlink("file", scratch_path(scratch, "link")) == 0, "a link");
	need(symlink("dir", scratch_path(scratch, "dirlink")) == 0, "a link");
	need(symlink("nowhere", scratch_path(scratch, "dangling")) == 0, "a link");
	need(symlink("loop", scratch_path(scratch, "loop")) == 0, "a link");
}

unsigned char *scratch_pattern(size_t bytes)
{
	unsigned char *data = malloc(bytes);

	need(data != NULL, "a pattern");
	for (size_t i = 0; i < bytes; i++)
		data[i] = (unsigned char)((uint32_t)i * UINT32_C(2654435761) >> 13);
	return data;
}

struct ck_io_fault *scratch_fault(const char *rules)
{
	struct ck_error err = CK_ERROR_INIT;
	struct ck_io_fault *fault = NULL;

	if (ck_io_fault_new(&fault, &ck_io_posix, rules, &err)) {
		diag("%s", err.text);
		exit(1);
	}
	return fault;
}

void scratch_refused(struct scratch *scratch, const char *what, const struct scratch_refusal *rows,
		     size_t count,
		     int (*call)(const struct ck_io *io, const char *path, struct ck_error *err))
{
	for (size_t i = 0; i < count; i++) {
		struct ck_io_fault *fault = scratch_fault(rows[i].rules);
		struct ck_error err = CK_ERROR_INIT;

		is_int(call(ck_io_fault_io(fault), scratch_path(scratch, rows[i].name), &err),
		       rows[i].code, "%s: %s %s", what, rows[i].name, rows[i].rules);
		like(err.text, rows[i].says, "%s: %s: text", what, rows[i].name);
		ck_io_fault_free(fault);
	}
}
