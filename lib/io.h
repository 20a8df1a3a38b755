/*
 * The seam: all file-system work of the project goes through a struct ck_io, so that tests can
 * delay it, fail it, cut it short or count it (io_fault.h), and so that another kind of store can
 * be put below later.
 *
 * The `ops` mirror system calls: they return >= 0, or -1 with errno set. Everything above them
 * (the ck_io_* functions) speaks struct ck_error and names path and operation.
 *
 * Paths are absolute or relative to the current directory. No operation follows a symbolic link
 * in the last component, nor blocks on a FIFO or device. (Who wants a link that a user named to be
 * followed resolves it first, with realpath.)
 *
 * All functions are local, keep no state and may be called by several threads.
 */
#ifndef CK_IO_H
#define CK_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "buf.h"
#include "error.h"

struct ck_io;
struct ck_io_queue; /* of an implementation */

/* One transfer of a queue. It stays where it is, and its data too, until it has been reaped. */
struct ck_io_transfer {
	bool write;
	int fd;
	void *data; /* not written to when `write` is set */
	size_t bytes;
	uint64_t offset;
	ssize_t result; /* as of pread and pwrite, but a negated errno for a failure */
	int fault;      /* private to io_fault.h */
	struct ck_io_transfer *next;
};

struct ck_io_ops {
	/* Adds O_CLOEXEC, O_NOFOLLOW, O_NONBLOCK and O_NOCTTY. O_DIRECT may be among the flags. */
	int (*open)(const struct ck_io *io, const char *path, int flags, mode_t mode);
	/* Whatever the answer, the descriptor is gone. */
	int (*close)(const struct ck_io *io, int fd);
	ssize_t (*pread)(const struct ck_io *io, int fd, void *dst, size_t bytes, off_t offset);
	ssize_t (*pwrite)(const struct ck_io *io, int fd, const void *src, size_t bytes,
			  off_t offset);
	int (*fsync)(const struct ck_io *io, int fd);
	int (*fallocate)(const struct ck_io *io, int fd, off_t offset, off_t bytes);
	int (*fstat)(const struct ck_io *io, int fd, struct stat *st);
	int (*lstat)(const struct ck_io *io, const char *path, struct stat *st);
	int (*mkdir)(const struct ck_io *io, const char *path, mode_t mode);
	int (*rmdir)(const struct ck_io *io, const char *path);
	int (*rename)(const struct ck_io *io, const char *from, const char *to);
	int (*link)(const struct ck_io *io, const char *from, const char *to);
	int (*unlink)(const struct ck_io *io, const char *path);
	/*
	 * Call entry(arg, name) for each name but "." and "..", in no order; stop early when it
	 * returns not 0. Returns 0 in both cases.
	 */
	int (*readdir)(const struct ck_io *io, const char *path,
		       int (*entry)(void *arg, const char *name), void *arg);
	/*
	 * The same below an open directory, whatever its name stands for by now: open a directory in it, list it,
	 * unlink (flags 0) or rmdir (AT_REMOVEDIR).
	 */
	int (*open_in)(const struct ck_io *io, int dir, const char *name);
	int (*readdir_of)(const struct ck_io *io, int dir,
			  int (*entry)(void *arg, const char *name), void *arg);
	int (*unlink_in)(const struct ck_io *io, int dir, const char *name, int flags);
	/*
	 * flock, exclusive: -1, EWOULDBLOCK, while another descriptor has the file locked. Goes with
	 * the descriptor, so with the process; ENOSYS and others where there are no locks.
	 */
	int (*lock)(const struct ck_io *io, int fd);
	/*
	 * Transfers that go on beside the caller, of one thread (queue.h is how they are used).
	 * queue_new makes room for `depth` of them; -1 where the system has or allows no such
	 * thing (ENOSYS, EPERM, ENOMEM). queue_submit begins one. queue_reap waits until one has
	 * ended, in any order, and must be called for each before queue_free.
	 */
	int (*queue_new)(const struct ck_io *io, unsigned depth, struct ck_io_queue **queue);
	int (*queue_submit)(const struct ck_io *io, struct ck_io_queue *queue,
			    struct ck_io_transfer *transfer);
	int (*queue_reap)(const struct ck_io *io, struct ck_io_queue *queue,
			  struct ck_io_transfer **ended);
	void (*queue_free)(const struct ck_io *io, struct ck_io_queue *queue);
};

struct ck_io {
	const struct ck_io_ops *ops;
	void *ctx; /* of the implementation; NULL for the plain one */
};

/* The operating system's calls. */
extern const struct ck_io ck_io_posix;

/*
 * Open a regular file for reading: never a link, FIFO, device or directory.
 * Stores descriptor and size. Returns 0; CK_ENOENT; CK_EFORMAT (not a regular file: the text says
 * what it is); CK_EIO.
 */
int ck_io_open_read(const struct ck_io *io, const char *path, int *fd, uint64_t *size,
		    struct ck_error *err);

/* What a mode of struct stat stands for, for a message: "a file", "a directory", "a symbolic link". */
const char *ck_io_kind_name(mode_t mode);

/*
 * Create a file that must not exist (O_EXCL, mode 0666 & ~umask), for writing.
 * Returns 0; CK_EEXIST; CK_ENOENT (no such directory); CK_EIO.
 */
int ck_io_create(const struct ck_io *io, const char *path, int *fd, struct ck_error *err);

/*
 * A further descriptor of the open regular file `fd`, past the page cache: O_DIRECT and `flags`. -1
 * with errno: EINVAL, EOPNOTSUPP: the file system refuses; ESTALE: another file has that path by now; EMFILE …
 */
int ck_io_open_direct(const struct ck_io *io, const char *path, int fd, int flags);

/* Reserve room for `bytes` bytes. Returns 0, also where that is not supported; CK_EIO. */
int ck_io_reserve(const struct ck_io *io, int fd, const char *path, uint64_t bytes,
		  struct ck_error *err);

/*
 * A call made no progress: wait a little if trying again makes sense (EINTR, EAGAIN); false when it
 * does not, or no longer, about a second into the same stall. Nothing that lasts (a signal storm, a
 * file system that answers EAGAIN for ever) may hold a rank for good. *stalls is 0 at the beginning
 * and whenever something moved.
 */
bool ck_io_again(unsigned *stalls, int errnum);

/*
 * Where to go on after `done` of `wanted` bytes at `offset`: a short transfer is taken up again at
 * a multiple of 4096, since with O_DIRECT nothing else will do. Moving some bytes twice does no
 * harm.
 */
size_t ck_io_step(uint64_t offset, size_t done, size_t wanted);

/*
 * Read exactly `bytes` bytes, in pieces of at most 4 MiB; EINTR, EAGAIN and short reads are handled:
 * about a second without a byte is a failure. CK_EIO names path and offset. Fit for O_DIRECT when
 * dst, bytes and offset are: after a short read it goes on at a multiple of 4096.
 */
int ck_io_pread_full(const struct ck_io *io, int fd, const char *path, void *dst, size_t bytes,
		     uint64_t offset, struct ck_error *err);

/* Write exactly `bytes` bytes: the same promises. */
int ck_io_pwrite_full(const struct ck_io *io, int fd, const char *path, const void *src,
		      size_t bytes, uint64_t offset, struct ck_error *err);

/*
 * fsync and close; both results are part of the answer; *fd becomes -1 in any case.
 * Returns 0; CK_EIO (the content is not known to be on disk, and trying again would not tell).
 */
int ck_io_sync_close(const struct ck_io *io, int *fd, const char *path, struct ck_error *err);

/* Close a descriptor that was only read, or whose content no longer matters. fd < 0 is fine. */
void ck_io_close(const struct ck_io *io, int *fd);

/*
 * Whole content of a regular file, NUL-terminated behind its end (not counted in out->len).
 * `out` is initialised; what it held is replaced on success.
 * Returns 0; CK_ENOENT; CK_EFORMAT (not a regular file, more than max_bytes: both numbers); CK_EIO
 * (also when the file becomes shorter meanwhile); CK_ENOMEM.
 */
int ck_io_read_file(const struct ck_io *io, const char *path, uint64_t max_bytes,
		    struct ck_buf *out, struct ck_error *err);

/*
 * What a file of /proc, /sys or a cgroup says: they have no size, so it is read until nothing comes;
 * what is longer than max_bytes is cut. NUL-terminated, and `out` is treated, as above.
 * Returns 0; CK_ENOENT; CK_EIO; CK_ENOMEM.
 */
int ck_io_read_stream(const struct ck_io *io, const char *path, size_t max_bytes,
		      struct ck_buf *out, struct ck_error *err);

/*
 * Make `path` have this content, all or nothing: write "<path>.tmp-<random>", fsync, rename.
 * A rename that was done although its answer is a failure is found out and counts. The directory is not fsynced. After
 * a failure the temporary file is gone (unless unlinking fails too) and `path` is as before. Returns 0; CK_ENOENT (no such directory); CK_EIO.
 */
int ck_io_write_file(const struct ck_io *io, const char *path, const void *data, size_t bytes,
		     struct ck_error *err);

/*
 * The same, but `path` must not exist: link() instead of rename(), so that of several callers one
 * wins and nobody sees half a file. Where the file system has no hard links, the file is created in place instead, and
 * may be seen before it is whole. A link that was made although its answer is a failure (NFS) is
 * found out and counts. Returns 0; CK_EEXIST; CK_ENOENT (no such directory); CK_EIO.
 */
int ck_io_write_file_new(const struct ck_io *io, const char *path, const void *data, size_t bytes,
			 struct ck_error *err);

/*
 * fsync a directory. "Not supported" (EINVAL, ENOTSUP) is success; *unsupported (may be NULL) says
 * whether it was that. Returns 0; CK_ENOENT; CK_EIO (also: not a directory).
 */
int ck_io_sync_dir(const struct ck_io *io, const char *path, bool *unsupported,
		   struct ck_error *err);

/*
 * mkdir, mode 0777 & ~umask. Returns 0; CK_EEXIST (also: it is there, but the answer is another failure, so that
 * nobody can tell who made it); CK_ENOENT (parent); CK_EIO.
 */
int ck_io_mkdir(const struct ck_io *io, const char *path, struct ck_error *err);

/*
 * rename(2); the text names both. Returns 0, also when it was done although its answer is a failure: `from` is gone,
 * and `to` there; CK_ENOENT; CK_EEXIST; CK_EIO.
 */
int ck_io_rename(const struct ck_io *io, const char *from, const char *to, struct ck_error *err);

/* Sorted (strcmp) names of a directory; not recursive. */
struct ck_names {
	char **names;
	size_t count;
};

/* Free with ck_names_fini. Returns 0; CK_ENOENT; CK_EIO (also: not a directory); CK_ENOMEM. */
int ck_io_list(const struct ck_io *io, const char *path, struct ck_names *out,
	       struct ck_error *err);
void ck_names_fini(struct ck_names *names);

/* Nothing has that name. False when it is not known. */
bool ck_io_is_gone(const struct ck_io *io, const char *path);

/* Something stands there that is no directory; a link is none, wherever it leads. False when it is not known. */
bool ck_io_is_no_dir(const struct ck_io *io, const char *path);

/*
 * Remove a directory and what is in it, at most 8 levels deep (path itself is the first), never
 * following a link. A few threads share its entries, as unlinking a large file takes a while. What is gone
 * already is fine; goes on after a failure and returns the first one of a thread.
 * Returns 0; CK_EFORMAT (path is not a directory, or is too deep: what is below stays); CK_EIO.
 */
int ck_io_remove_tree(const struct ck_io *io, const char *path, struct ck_error *err);

#endif
