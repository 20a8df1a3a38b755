#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define PIECE_BYTES ((size_t)4 << 20)
#define DIRECT_ALIGN UINT64_C(4096)
#define STALLS_MAX 1000

bool ck_io_again(unsigned *stalls, int errnum)
{
	const struct timespec pause = {.tv_nsec = 1000000};

	if (errnum != EINTR && errnum != EAGAIN)
		return false;
	if (++*stalls > STALLS_MAX)
		return false;
	if (errnum == EAGAIN)
		nanosleep(&pause, NULL);
	return true;
}

static int open_again(const struct ck_io *io, const char *path, int flags)
{
	unsigned stalls = 0;
	int fd;

	do
		fd = io->ops->open(io, path, flags, 0666);
	while (fd < 0 && ck_io_again(&stalls, errno));
	return fd;
}

static int fsync_again(const struct ck_io *io, int fd)
{
	unsigned stalls = 0;
	int rc;

	do
		rc = io->ops->fsync(io, fd);
	while (rc < 0 && ck_io_again(&stalls, errno));
	return rc;
}

const char *ck_io_kind_name(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "a file";
	case S_IFLNK:
		return "a symbolic link";
	case S_IFDIR:
		return "a directory";
	case S_IFIFO:
		return "a FIFO";
	case S_IFSOCK:
		return "a socket";
	default:
		return "a device";
	}
}

static int fail_not_regular(const char *path, mode_t mode, struct ck_error *err)
{
	return ck_fail(err, CK_EFORMAT, "%s: is %s, not a regular file", path,
		       ck_io_kind_name(mode));
}

/* Links, sockets and some devices cannot be opened at all: say what they are, not ELOOP. */
static int fail_open_read(const struct ck_io *io, const char *path, int errnum,
			  struct ck_error *err)
{
	struct stat st;

	if ((errnum == ELOOP || errnum == ENXIO || errnum == ENODEV) &&
	    io->ops->lstat(io, path, &st) == 0 && !S_ISREG(st.st_mode))
		return fail_not_regular(path, st.st_mode, err);
	return ck_fail_errno(err, errnum, "%s: open", path);
}

int ck_io_open_read(const struct ck_io *io, const char *path, int *fd, uint64_t *size,
		    struct ck_error *err)
{
	int opened = open_again(io, path, O_RDONLY);
	struct stat st;
	int rc = CK_OK;

	if (opened < 0)
		return fail_open_read(io, path, errno, err);
	if (io->ops->fstat(io, opened, &st) < 0)
		rc = ck_fail_errno(err, errno, "%s: fstat", path);
	else if (!S_ISREG(st.st_mode))
		rc = fail_not_regular(path, st.st_mode, err);
	if (rc) {
		ck_io_close(io, &opened);
		return rc;
	}
	*fd = opened;
	*size = (uint64_t)st.st_size;
	return CK_OK;
}

int ck_io_create(const struct ck_io *io, const char *path, int *fd, struct ck_error *err)
{
	int created = open_again(io, path, O_WRONLY | O_CREAT | O_EXCL);

	if (created < 0)
		return ck_fail_errno(err, errno, "%s: create", path);
	*fd = created;
	return CK_OK;
}

int ck_io_open_direct(const struct ck_io *io, const char *path, int fd, int flags)
{
	struct stat want, got;
	int direct;

	if (io->ops->fstat(io, fd, &want) < 0)
		return -1;
	direct = open_again(io, path, flags | O_DIRECT);
	if (direct >= 0 && (io->ops->fstat(io, direct, &got) < 0 || got.st_dev != want.st_dev ||
			    got.st_ino != want.st_ino)) {
		ck_io_close(io, &direct);
		errno = ESTALE;
	}
	return direct;
}

int ck_io_reserve(const struct ck_io *io, int fd, const char *path, uint64_t bytes,
		  struct ck_error *err)
{
	unsigned stalls = 0;
	int rc;

	if (bytes == 0)
		return CK_OK;
	do
		rc = io->ops->fallocate(io, fd, 0, (off_t)bytes);
	while (rc < 0 && ck_io_again(&stalls, errno));
	if (rc < 0 && errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL)
		return ck_fail_errno(err, errno, "%s: room for %" PRIu64 " bytes", path, bytes);
	return CK_OK;
}

size_t ck_io_step(uint64_t offset, size_t done, size_t wanted)
{
	size_t past = (offset + done) % DIRECT_ALIGN;

	return done < wanted && past < done ? done - past : done;
}

int ck_io_pread_full(const struct ck_io *io, int fd, const char *path, void *dst, size_t bytes,
		     uint64_t offset, struct ck_error *err)
{
	unsigned stalls = 0;
	size_t pos = 0;

	while (pos < bytes) {
		size_t piece = bytes - pos < PIECE_BYTES ? bytes - pos : PIECE_BYTES;
		ssize_t n = io->ops->pread(io, fd, (char *)dst + pos, piece, (off_t)(offset + pos));

		if (n > 0) {
			stalls = 0;
			pos += ck_io_step(offset + pos, (size_t)n, piece);
		} else if (n == 0) {
			return ck_fail(err, CK_EIO,
				       "%s: read at byte %" PRIu64 ": the file ends there, %zu "
				       "more bytes are wanted",
				       path, offset + pos, bytes - pos);
		} else if (!ck_io_again(&stalls, errno)) {
			return ck_fail_errno(err, errno, "%s: read of %zu bytes at byte %" PRIu64,
					     path, piece, offset + pos);
		}
	}
	return CK_OK;
}

int ck_io_pwrite_full(const struct ck_io *io, int fd, const char *path, const void *src,
		      size_t bytes, uint64_t offset, struct ck_error *err)
{
	unsigned stalls = 0;
	size_t pos = 0;

	while (pos < bytes) {
		size_t piece = bytes - pos < PIECE_BYTES ? bytes - pos : PIECE_BYTES;
		ssize_t n = io->ops->pwrite(io, fd, (const char *)src + pos, piece,
					    (off_t)(offset + pos));

		if (n > 0) {
			stalls = 0;
			pos += ck_io_step(offset + pos, (size_t)n, piece);
			continue;
		}
		/* Nothing written and no reason given: as if it were not ready. */
		if (n == 0)
			errno = EAGAIN;
		if (!ck_io_again(&stalls, errno))
			return ck_fail_errno(err, errno, "%s: write of %zu bytes at byte %" PRIu64,
					     path, piece, offset + pos);
	}
	return CK_OK;
}

int ck_io_sync_close(const struct ck_io *io, int *fd, const char *path, struct ck_error *err)
{
	int rc = CK_OK;

	if (fsync_again(io, *fd) < 0)
		rc = ck_fail_errno(err, errno, "%s: fsync", path);
	/* EINTR: the descriptor is gone, and what fsync said about the content stands. */
	if (io->ops->close(io, *fd) < 0 && errno != EINTR && !rc)
		rc = ck_fail_errno(err, errno, "%s: close", path);
	*fd = -1;
	return rc;
}

void ck_io_close(const struct ck_io *io, int *fd)
{
	if (*fd >= 0)
		io->ops->close(io, *fd);
	*fd = -1;
}

int ck_io_read_file(const struct ck_io *io, const char *path, uint64_t max_bytes,
		    struct ck_buf *out, struct ck_error *err)
{
	struct ck_buf content = CK_BUF_INIT;
	uint64_t size = 0;
	int fd = -1, rc;
	void *dst;

	rc = ck_io_open_read(io, path, &fd, &size, err);
	if (rc)
		return rc;
	if (size > max_bytes) {
		rc = ck_fail(err, CK_EFORMAT,
			     "%s: has %" PRIu64 " bytes, at most %" PRIu64 " are allowed", path,
			     size, max_bytes);
		goto out;
	}
	dst = ck_buf_reserve(&content, size);
	if (!dst) {
		rc = ck_fail(err, CK_ENOMEM, "%s: out of memory: %" PRIu64 " bytes wanted", path,
			     size);
		goto out;
	}
	rc = ck_io_pread_full(io, fd, path, dst, size, 0, err);
	if (rc)
		goto out;
	content.len = size;
	ck_buf_fini(out);
	*out = content;
	content = (struct ck_buf)CK_BUF_INIT;
out:
	ck_buf_fini(&content);
	ck_io_close(io, &fd);
	return rc;
}

#define STREAM_PIECE 4096

int ck_io_read_stream(const struct ck_io *io, const char *path, size_t max_bytes,
		      struct ck_buf *out, struct ck_error *err)
{
	struct ck_buf content = CK_BUF_INIT;
	char piece[STREAM_PIECE];
	int fd = io->ops->open(io, path, O_RDONLY, 0), rc;
	ssize_t got = 0;

	if (fd < 0)
		return ck_fail_errno(err, errno, "%s: open", path);
	do {
		size_t left = max_bytes - content.len;

		got = io->ops->pread(io, fd, piece, left < sizeof(piece) ? left : sizeof(piece),
				     (off_t)content.len);
		if (got > 0)
			ck_buf_add(&content, piece, (size_t)got);
	} while (!content.failed && (got > 0 || (got < 0 && errno == EINTR)));
	rc = got < 0 ? ck_fail_errno(err, errno, "%s: read at byte %zu", path, content.len)
		     : ck_buf_check(&content, err);
	ck_io_close(io, &fd);
	if (!rc) {
		ck_buf_fini(out);
		*out = content;
		content = (struct ck_buf)CK_BUF_INIT;
	}
	ck_buf_fini(&content);
	return rc;
}

/*
 * Answers get lost: a call that was done on a server is told to have failed, or, made once more by the client, fails
 * because it was done. So what a failed call was to bring about is looked at before the failure is believed.
 */

/* Is this content there? */
static bool holds(const struct ck_io *io, const char *path, const void *data, size_t bytes)
{
	struct ck_buf there = CK_BUF_INIT;
	bool same = ck_io_read_file(io, path, bytes, &there, NULL) == 0 && there.len == bytes &&
		    memcmp(there.data, data, bytes) == 0;

	ck_buf_fini(&there);
	return same;
}

bool ck_io_is_gone(const struct ck_io *io, const char *path)
{
	struct stat st;

	return io->ops->lstat(io, path, &st) < 0 && errno == ENOENT;
}

static bool exists(const struct ck_io *io, const char *path)
{
	struct stat st;

	return io->ops->lstat(io, path, &st) == 0;
}

/* Create "<path>.tmp-<random>"; its name goes to `tmp`. */
static int create_tmp(const struct ck_io *io, const char *path, char tmp[static PATH_MAX], int *fd,
		      struct ck_error *err)
{
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return ck_fail_errno(err, errno, "%s: getrandom", path);
	if (snprintf(tmp, PATH_MAX, "%s.tmp-%016" PRIx64, path, random) >= PATH_MAX)
		return ck_fail_errno(err, ENAMETOOLONG, "%s: create", path);
	return ck_io_create(io, tmp, fd, err);
}

/* A durable file of this content under a name of its own; nothing is left after a failure. */
static int write_tmp(const struct ck_io *io, const char *path, const void *data, size_t bytes,
		     char tmp[static PATH_MAX], struct ck_error *err)
{
	int fd = -1, rc;

	tmp[0] = '\0';
	rc = create_tmp(io, path, tmp, &fd, err);
	if (!rc)
		rc = ck_io_pwrite_full(io, fd, tmp, data, bytes, 0, err);
	if (!rc)
		rc = ck_io_sync_close(io, &fd, tmp, err);
	ck_io_close(io, &fd);
	if (rc && *tmp)
		io->ops->unlink(io, tmp);
	return rc;
}

int ck_io_write_file(const struct ck_io *io, const char *path, const void *data, size_t bytes,
		     struct ck_error *err)
{
	char tmp[PATH_MAX];
	int rc = write_tmp(io, path, data, bytes, tmp, err);
	int errnum;

	if (rc)
		return rc;
	if (io->ops->rename(io, tmp, path) < 0) {
		errnum = errno;
		if (holds(io, path, data, bytes))
			return CK_OK;
		rc = ck_fail_errno(err, errnum, "%s: rename to %s", tmp, path);
		io->ops->unlink(io, tmp);
	}
	return rc;
}

/* The count of names tells; the content might be another caller's. */
static bool was_linked(const struct ck_io *io, const char *tmp)
{
	struct stat st;

	return io->ops->lstat(io, tmp, &st) == 0 && st.st_nlink == 2;
}

/* Does the file system have no hard links (exFAT, some of FUSE)? */
static bool has_no_links(int errnum)
{
	return errnum == EPERM || errnum == ENOSYS || errnum == EOPNOTSUPP || errnum == EMLINK;
}

/* As good as it gets there: of several callers one wins, but others may see its file before it is whole. */
static int write_in_place(const struct ck_io *io, const char *path, const void *data, size_t bytes,
			  struct ck_error *err)
{
	int fd = -1, rc = ck_io_create(io, path, &fd, err);

	if (rc)
		return rc;
	rc = ck_io_pwrite_full(io, fd, path, data, bytes, 0, err);
	if (!rc)
		rc = ck_io_sync_close(io, &fd, path, err);
	ck_io_close(io, &fd);
	if (rc)
		io->ops->unlink(io, path);
	return rc;
}

int ck_io_write_file_new(const struct ck_io *io, const char *path, const void *data, size_t bytes,
			 struct ck_error *err)
{
	char tmp[PATH_MAX];
	int rc = write_tmp(io, path, data, bytes, tmp, err);
	int errnum;

	if (rc)
		return rc;
	if (io->ops->link(io, tmp, path) < 0) {
		errnum = errno;
		if (has_no_links(errnum))
			rc = write_in_place(io, path, data, bytes, err);
		else if (!was_linked(io, tmp))
			rc = ck_fail_errno(err, errnum, "%s: link", path);
	}
	/* A second name that cannot be removed does not undo what is in place. */
	io->ops->unlink(io, tmp);
	return rc;
}

int ck_io_sync_dir(const struct ck_io *io, const char *path, bool *unsupported,
		   struct ck_error *err)
{
	bool not_supported = false;
	int rc = CK_OK;
	int fd = open_again(io, path, O_RDONLY | O_DIRECTORY);

	if (fd < 0)
		return ck_fail_errno(err, errno, "%s: open directory", path);
	if (fsync_again(io, fd) < 0) {
		not_supported = errno == EINVAL || errno == ENOTSUP;
		if (!not_supported)
			rc = ck_fail_errno(err, errno, "%s: fsync directory", path);
	}
	ck_io_close(io, &fd);
	if (!rc && unsupported)
		*unsupported = not_supported;
	return rc;
}

int ck_io_mkdir(const struct ck_io *io, const char *path, struct ck_error *err)
{
	int errnum;

	if (io->ops->mkdir(io, path, 0777) == 0)
		return CK_OK;
	errnum = errno;
	if (errnum != EEXIST && exists(io, path))
		return ck_fail(err, CK_EEXIST,
			       "%s: mkdir: it is there, but this was the answer: %s", path,
			       strerror(errnum));
	return ck_fail_errno(err, errnum, "%s: mkdir", path);
}

int ck_io_rename(const struct ck_io *io, const char *from, const char *to, struct ck_error *err)
{
	int errnum;

	if (io->ops->rename(io, from, to) == 0)
		return CK_OK;
	errnum = errno;
	if (ck_io_is_gone(io, from) && exists(io, to))
		return CK_OK;
	return ck_fail_errno(err, errnum, "%s: rename to %s", from, to);
}
