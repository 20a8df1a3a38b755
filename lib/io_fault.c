#include "io_fault.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "io_fault_impl.h"
#include "names.h"

struct open_file {
	int fd;
	char *path;
};

struct ck_io_fault {
	struct ck_io io;
	const struct ck_io *below;
	pthread_mutex_t lock; /* the counts of the rules, and the open files */
	struct ck_fault_rules rules;
	struct open_file *files;
	size_t file_count;
};

static struct ck_io_fault *fault_of(const struct ck_io *io)
{
	return io->ctx;
}

static void wait_ms(uint64_t ms)
{
	struct timespec left = {.tv_sec = (time_t)(ms / 1000),
				.tv_nsec = (long)(ms % 1000) * 1000000};

	while (ms && nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

/* Without a path there is nothing to wait for. */
static void wait_until(const struct ck_io *io, const char *path)
{
	struct stat st;

	while (path && io->ops->lstat(io, path, &st) < 0)
		wait_ms(1);
}

/* Delivered when it returns, in threads that block signals too. */
static void raise_here(int signum)
{
	sigset_t set, before;

	sigemptyset(&set);
	sigaddset(&set, signum);
	pthread_sigmask(SIG_UNBLOCK, &set, &before);
	raise(signum);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Act as far as that can be done before the call. */
static struct ck_fault_action begin(struct ck_io_fault *fault, enum ck_fault_op op,
				    const char *path, const char *other)
{
	struct ck_fault_action action;

	pthread_mutex_lock(&fault->lock);
	action = ck_fault_rules_decide(&fault->rules, op, path, other);
	pthread_mutex_unlock(&fault->lock);
	wait_ms(action.delay_ms);
	wait_until(fault->below, action.until);
	if (action.signal)
		raise_here(action.signal);
	return action;
}

/* The call is not made at all. */
static bool prevented(const struct ck_fault_action *action)
{
	return action->errnum && !action->done;
}

/* What the caller is told, with `rc` the result of the call if it was made. */
static ssize_t answer(const struct ck_fault_action *action, ssize_t rc)
{
	if (!action->errnum)
		return rc;
	errno = action->errnum;
	return -1;
}

/* Where descriptor `fd` stands in the table, or file_count. Called with the lock held. */
static size_t find_file(const struct ck_io_fault *fault, int fd)
{
	size_t i = 0;

	while (i < fault->file_count && fault->files[i].fd != fd)
		i++;
	return i;
}

/* The path is copied: another thread may close the descriptor at any time. */
static struct ck_fault_action begin_fd(struct ck_io_fault *fault, enum ck_fault_op op, int fd)
{
	char path[PATH_MAX] = "";
	size_t i;

	pthread_mutex_lock(&fault->lock);
	i = find_file(fault, fd);
	if (i < fault->file_count)
		snprintf(path, sizeof(path), "%s", fault->files[i].path);
	pthread_mutex_unlock(&fault->lock);
	return begin(fault, op, path, NULL);
}

const struct ck_io *ck_fault_below(const struct ck_io *io)
{
	return fault_of(io)->below;
}

struct ck_fault_action ck_fault_begin(const struct ck_io *io, enum ck_fault_op op, int fd)
{
	return begin_fd(fault_of(io), op, fd);
}

static bool remember_file(struct ck_io_fault *fault, int fd, const char *path)
{
	char *copy = strdup(path);
	struct open_file *files;

	pthread_mutex_lock(&fault->lock);
	files = reallocarray(fault->files, fault->file_count + 1, sizeof(*files));
	if (files)
		fault->files = files;
	if (files && copy)
		files[fault->file_count++] = (struct open_file){.fd = fd, .path = copy};
	pthread_mutex_unlock(&fault->lock);
	if (!files)
		free(copy);
	return files && copy;
}

static void forget_file(struct ck_io_fault *fault, int fd)
{
	char *path = NULL;
	size_t i;

	pthread_mutex_lock(&fault->lock);
	i = find_file(fault, fd);
	if (i < fault->file_count) {
		path = fault->files[i].path;
		fault->files[i] = fault->files[--fault->file_count];
	}
	pthread_mutex_unlock(&fault->lock);
	free(path);
}

static int fault_open(const struct ck_io *io, const char *path, int flags, mode_t mode)
{
	struct ck_io_fault *fault = fault_of(io);
	struct ck_fault_action action = begin(fault, CK_FAULT_OPEN, path, NULL);
	int fd;

	if (prevented(&action))
		return (int)answer(&action, -1);
	fd = fault->below->ops->open(fault->below, path, flags, mode);
	/* An open whose answer is lost leaves what it created, but no descriptor. */
	if (fd >= 0 && (action.errnum || !remember_file(fault, fd, path))) {
		fault->below->ops->close(fault->below, fd);
		errno = ENOMEM;
		fd = -1;
	}
	return (int)answer(&action, fd);
}

static int fault_close(const struct ck_io *io, int fd)
{
	struct ck_io_fault *fault = fault_of(io);
	struct ck_fault_action action = begin_fd(fault, CK_FAULT_CLOSE, fd);

	/* Before the call: behind it another thread's open may get the same number. */
	forget_file(fault, fd);
	return (int)answer(&action, fault->below->ops->close(fault->below, fd));
}

static size_t cut_bytes(const struct ck_fault_action *action, size_t bytes)
{
	return bytes < action->cut ? bytes : (size_t)action->cut;
}

static ssize_t fault_pread(const struct ck_io *io, int fd, void *dst, size_t bytes, off_t offset)
{
	struct ck_io_fault *fault = fault_of(io);
	struct ck_fault_action action = begin_fd(fault, CK_FAULT_PREAD, fd);

	ssize_t n;

	if (prevented(&action))
		return answer(&action, -1);
	n = fault->below->ops->pread(fault->below, fd, dst, cut_bytes(&action, bytes), offset);
	if (n > 0 && action.flip >= (uint64_t)offset && action.flip - (uint64_t)offset < (size_t)n)
		((unsigned char *)dst)[action.flip - (uint64_t)offset] ^= 1;
	return answer(&action, n);
}

static ssize_t fault_pwrite(const struct ck_io *io, int fd, const void *src, size_t bytes,
			    off_t offset)
{
	struct ck_io_fault *fault = fault_of(io);
	struct ck_fault_action action = begin_fd(fault, CK_FAULT_PWRITE, fd);

	if (prevented(&action))
		return answer(&action, -1);
	return answer(&action, fault->below->ops->pwrite(fault->below, fd, src,
							 cut_bytes(&action, bytes), offset));
}

static int fault_fsync(const struct ck_io *io, int fd)
{
	struct ck_io_fault *fault = fault_of(io);
	struct ck_fault_action action = begin_fd(fault, CK_FAULT_FSYNC, fd);

	if (prevented(&action))
		return (int)answer(&action, -1);
	return (int)answer(&action, fault->below->ops->fsync(fault->below, fd));
}

static int fault_fallocate(const struct ck_io *io, int fd, off_t offset, off_t bytes)
{
	struct ck_io_fault *fault = fault_of(io);
	struct ck_fault_action action = begin_fd(fault, CK_FAULT_FALLOCATE, fd);

	if (prevented(&action))
		return (int)answer(&action, -1);
	return (int)answer(&action, fault->below->ops->fallocate(fault->below, fd, offset, bytes));
}

static int fault_fstat(const struct ck_io *io, int fd, struct stat *st)
{
	struct ck_io_fault *fault = fault_of(io);
	struct ck_fault_action action = begin_fd(fault, CK_FAULT_FSTAT, fd);

	if (prevented(&action))
		return (int)answer(&action, -1);
	return (int)answer(&action, fault->below->ops->fstat(fault->below, fd, st));
}

static int fault_lstat(const struct ck_io *io, const char *path, struct stat *st)
{
	struct ck_io_fault *fault = fault_of(io);
	struct ck_fault_action action = begin(fault, CK_FAULT_LSTAT, path, NULL);

	if (prevented(&action))
		return (int)answer(&action, -1);
	return (int)answer(&action, fault->below->ops->lstat(fault->below, path, st));
}

static int fault_mkdir(const struct ck_io *io, const char *path, mode_t mode)
{
	struct ck_io_fault *fault = fault_of(io);
	struct ck_fault_action action = begin(fault, CK_FAULT_MKDIR, path, NULL);

	if (prevented(&action))
		return (int)answer(&action, -1);
	return (int)answer(&action, fault->below->ops->mkdir(fault->below, path, mode));
}

static int fault_rmdir(const struct ck_io *io, const char *path)
{
	struct ck_io_fault *fault = fault_of(io);
	struct ck_fault_action action = begin(fault, CK_FAULT_RMDIR, path, NULL);

	if (prevented(&action))
		return (int)answer(&action, -1);
	return (int)answer(&action, fault->below->ops->rmdir(fault->below, path));
}

static int fault_rename(const struct ck_io *io, const char *from, const char *to)
{
	struct ck_io_fault *fault = fault_of(io);
	struct ck_fault_action action = begin(fault, CK_FAULT_RENAME, from, to);

	if (prevented(&action))
		return (int)answer(&action, -1);
	return (int)answer(&action, fault->below->ops->rename(fault->below, from, to));
}

static int fault_link(const struct ck_io *io, const char *from, const char *to)
{
	struct ck_io_fault *fault = fault_of(io);
	struct ck_fault_action action = begin(fault, CK_FAULT_LINK, from, to);

	if (prevented(&action))
		return (int)answer(&action, -1);
	return (int)answer(&action, fault->below->ops->link(fault->below, from, to));
}

static int fault_unlink(const struct ck_io *io, const char *path)
{
	struct ck_io_fault *fault = fault_of(io);
	struct ck_fault_action action = begin(fault, CK_FAULT_UNLINK, path, NULL);

	if (prevented(&action))
		return (int)answer(&action, -1);
	return (int)answer(&action, fault->below->ops->unlink(fault->below, path));
}

static int fault_readdir(const struct ck_io *io, const char *path,
			 int (*entry)(void *arg, const char *name), void *arg)
{
	struct ck_io_fault *fault = fault_of(io);
	struct ck_fault_action action = begin(fault, CK_FAULT_READDIR, path, NULL);

	if (prevented(&action))
		return (int)answer(&action, -1);
	return (int)answer(&action, fault->below->ops->readdir(fault->below, path, entry, arg));
}

/* The path of a name in an open directory. */
static void path_in(struct ck_io_fault *fault, int dir, const char *name, char out[static PATH_MAX])
{
	char path[PATH_MAX] = "";
	size_t i;

	pthread_mutex_lock(&fault->lock);
	i = find_file(fault, dir);
	if (i < fault->file_count)
		snprintf(path, sizeof(path), "%s", fault->files[i].path);
	pthread_mutex_unlock(&fault->lock);
	if (!ck_path_join(out, path, name))
		snprintf(out, PATH_MAX, "%s", name);
}

static int fault_open_in(const struct ck_io *io, int dir, const char *name)
{
	struct ck_io_fault *fault = fault_of(io);
	struct ck_fault_action action;
	char path[PATH_MAX];
	int fd;

	path_in(fault, dir, name, path);
	action = begin(fault, CK_FAULT_OPEN, path, NULL);
	if (prevented(&action))
		return (int)answer(&action, -1);
	fd = fault->below->ops->open_in(fault->below, dir, name);
	if (fd >= 0 && (action.errnum || !remember_file(fault, fd, path))) {
		fault->below->ops->close(fault->below, fd);
		errno = ENOMEM;
		fd = -1;
	}
	return (int)answer(&action, fd);
}

static int fault_readdir_of(const struct ck_io *io, int dir,
			    int (*entry)(void *arg, const char *name), void *arg)
{
	struct ck_io_fault *fault = fault_of(io);
	struct ck_fault_action action = begin_fd(fault, CK_FAULT_READDIR, dir);

	if (prevented(&action))
		return (int)answer(&action, -1);
	return (int)answer(&action, fault->below->ops->readdir_of(fault->below, dir, entry, arg));
}

static int fault_unlink_in(const struct ck_io *io, int dir, const char *name, int flags)
{
	struct ck_io_fault *fault = fault_of(io);
	struct ck_fault_action action;
	char path[PATH_MAX];

	path_in(fault, dir, name, path);
	action = begin(fault, flags ? CK_FAULT_RMDIR : CK_FAULT_UNLINK, path, NULL);
	if (prevented(&action))
		return (int)answer(&action, -1);
	return (int)answer(&action, fault->below->ops->unlink_in(fault->below, dir, name, flags));
}

static int fault_lock(const struct ck_io *io, int fd)
{
	struct ck_io_fault *fault = fault_of(io);
	struct ck_fault_action action = begin_fd(fault, CK_FAULT_LOCK, fd);

	if (prevented(&action))
		return (int)answer(&action, -1);
	return (int)answer(&action, fault->below->ops->lock(fault->below, fd));
}

static const struct ck_io_ops fault_ops = {
	.open = fault_open,
	.close = fault_close,
	.pread = fault_pread,
	.pwrite = fault_pwrite,
	.fsync = fault_fsync,
	.fallocate = fault_fallocate,
	.fstat = fault_fstat,
	.lstat = fault_lstat,
	.mkdir = fault_mkdir,
	.rmdir = fault_rmdir,
	.rename = fault_rename,
	.link = fault_link,
	.unlink = fault_unlink,
	.readdir = fault_readdir,
	.open_in = fault_open_in,
	.readdir_of = fault_readdir_of,
	.unlink_in = fault_unlink_in,
	.lock = fault_lock,
	.queue_new = ck_fault_queue_new,
	.queue_submit = ck_fault_queue_submit,
	.queue_reap = ck_fault_queue_reap,
	.queue_free = ck_fault_queue_free,
};

int ck_io_fault_new(struct ck_io_fault **out, const struct ck_io *below, const char *rules,
		    struct ck_error *err)
{
	struct ck_io_fault *fault = calloc(1, sizeof(*fault));
	int rc;

	if (!fault)
		return ck_fail_nomem(err, sizeof(*fault));
	pthread_mutex_init(&fault->lock, NULL);
	fault->below = below;
	fault->io = (struct ck_io){.ops = &fault_ops, .ctx = fault};
	rc = ck_fault_rules_parse(&fault->rules, rules, err);
	if (rc)
		ck_io_fault_free(fault);
	else
		*out = fault;
	return rc;
}

const struct ck_io *ck_io_fault_io(struct ck_io_fault *fault)
{
	return &fault->io;
}

uint64_t ck_io_fault_count(struct ck_io_fault *fault, unsigned rule)
{
	uint64_t count = 0;

	pthread_mutex_lock(&fault->lock);
	if (rule < fault->rules.count)
		count = fault->rules.rules[rule].count;
	pthread_mutex_unlock(&fault->lock);
	return count;
}

void ck_io_fault_free(struct ck_io_fault *fault)
{
	if (!fault)
		return;
	ck_fault_rules_fini(&fault->rules);
	for (size_t i = 0; i < fault->file_count; i++)
		free(fault->files[i].path);
	free(fault->files);
	pthread_mutex_destroy(&fault->lock);
	free(fault);
}
