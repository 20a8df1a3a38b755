#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "io_posix.h"

static int posix_open(const struct ck_io *io, const char *path, int flags, mode_t mode)
{
	(void)io;
	/* O_NONBLOCK: opening a FIFO would wait for its other end; a regular file ignores it. */
	return open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, mode);
}

static int posix_close(const struct ck_io *io, int fd)
{
	(void)io;
	return close(fd);
}

static ssize_t posix_pread(const struct ck_io *io, int fd, void *dst, size_t bytes, off_t offset)
{
	(void)io;
	return pread(fd, dst, bytes, offset);
}

static ssize_t posix_pwrite(const struct ck_io *io, int fd, const void *src, size_t bytes,
			    off_t offset)
{
	(void)io;
	return pwrite(fd, src, bytes, offset);
}

static int posix_fsync(const struct ck_io *io, int fd)
{
	(void)io;
	return fsync(fd);
}

static int posix_fallocate_call(const struct ck_io *io, int fd, off_t offset, off_t bytes)
{
	(void)io;
	return fallocate(fd, 0, offset, bytes);
}

static int posix_fstat(const struct ck_io *io, int fd, struct stat *st)
{
	(void)io;
	return fstat(fd, st);
}

static int posix_lstat(const struct ck_io *io, const char *path, struct stat *st)
{
	(void)io;
	return lstat(path, st);
}

static int posix_mkdir(const struct ck_io *io, const char *path, mode_t mode)
{
	(void)io;
	return mkdir(path, mode);
}

static int posix_rmdir(const struct ck_io *io, const char *path)
{
	(void)io;
	return rmdir(path);
}

static int posix_rename(const struct ck_io *io, const char *from, const char *to)
{
	(void)io;
	return rename(from, to);
}

static int posix_link(const struct ck_io *io, const char *from, const char *to)
{
	(void)io;
	return link(from, to);
}

static int posix_unlink(const struct ck_io *io, const char *path)
{
	(void)io;
	return unlink(path);
}

static bool is_self_or_parent(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Returns 0, or the errno of the readdir that failed. */
static int each_entry(DIR *dir, int (*entry)(void *arg, const char *name), void *arg)
{
	struct dirent *found;

	for (;;) {
		errno = 0;
		found = readdir(dir);
		if (!found)
			return errno;
		if (!is_self_or_parent(found->d_name) && entry(arg, found->d_name))
			return 0;
	}
}

/* Takes the descriptor. */
static int list_dir(int fd, int (*entry)(void *arg, const char *name), void *arg)
{
	DIR *dir = fdopendir(fd);
	int error;

	if (!dir) {
		error = errno;
		close(fd);
		errno = error;
		return -1;
	}
	error = each_entry(dir, entry, arg);
	closedir(dir);
	errno = error;
	return error ? -1 : 0;
}

static int posix_readdir(const struct ck_io *io, const char *path,
			 int (*entry)(void *arg, const char *name), void *arg)
{
	int fd = posix_open(io, path, O_RDONLY | O_DIRECTORY, 0);

	return fd < 0 ? -1 : list_dir(fd, entry, arg);
}

static int posix_open_in(const struct ck_io *io, int dir, const char *name)
{
	(void)io;
	return openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

static int posix_readdir_of(const struct ck_io *io, int dir,
			    int (*entry)(void *arg, const char *name), void *arg)
{
	int fd = posix_open_in(io, dir, "."); /* with a position of its own */

	return fd < 0 ? -1 : list_dir(fd, entry, arg);
}

static int posix_unlink_in(const struct ck_io *io, int dir, const char *name, int flags)
{
	(void)io;
	return unlinkat(dir, name, flags);
}

static int posix_lock(const struct ck_io *io, int fd)
{
	(void)io;
	return flock(fd, LOCK_EX | LOCK_NB);
}

static const struct ck_io_ops posix_ops = {
	.open = posix_open,
	.close = posix_close,
	.pread = posix_pread,
	.pwrite = posix_pwrite,
	.fsync = posix_fsync,
	.fallocate = posix_fallocate_call,
	.fstat = posix_fstat,
	.lstat = posix_lstat,
	.mkdir = posix_mkdir,
	.rmdir = posix_rmdir,
	.rename = posix_rename,
	.link = posix_link,
	.unlink = posix_unlink,
	.readdir = posix_readdir,
	.open_in = posix_open_in,
	.readdir_of = posix_readdir_of,
	.unlink_in = posix_unlink_in,
	.lock = posix_lock,
	.queue_new = ck_posix_queue_new,
	.queue_submit = ck_posix_queue_submit,
	.queue_reap = ck_posix_queue_reap,
	.queue_free = ck_posix_queue_free,
};

const struct ck_io ck_io_posix = {.ops = &posix_ops, .ctx = NULL};
