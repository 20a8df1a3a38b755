#include "hook.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool inside;

static const struct ck_io *below(const struct ck_io *io, const char *op, const char *path)
{
	struct hook *hook = io->ctx;

	if (!inside) {
		inside = true;
		pthread_mutex_lock(&lock);
		if (!hook->off)
			hook->before(hook, op, path);
		hook->calls += !hook->off;
		pthread_mutex_unlock(&lock);
		inside = false;
	}
	return &ck_io_posix;
}

void hook_end(struct hook *hook)
{
	pthread_mutex_lock(&lock);
	hook->off = true;
	pthread_mutex_unlock(&lock);
}

static int hook_open(const struct ck_io *io, const char *path, int flags, mode_t mode)
{
	io = below(io, "open", path);
	return io->ops->open(io, path, flags, mode);
}

static int hook_lstat(const struct ck_io *io, const char *path, struct stat *st)
{
	io = below(io, "lstat", path);
	return io->ops->lstat(io, path, st);
}

static int hook_mkdir(const struct ck_io *io, const char *path, mode_t mode)
{
	io = below(io, "mkdir", path);
	return io->ops->mkdir(io, path, mode);
}

static int hook_rmdir(const struct ck_io *io, const char *path)
{
	io = below(io, "rmdir", path);
	return io->ops->rmdir(io, path);
}

static int hook_rename(const struct ck_io *io, const char *from, const char *to)
{
	io = below(io, "rename", from);
	return io->ops->rename(io, from, to);
}

static int hook_link(const struct ck_io *io, const char *from, const char *to)
{
	io = below(io, "link", from);
	return io->ops->link(io, from, to);
}

static int hook_unlink(const struct ck_io *io, const char *path)
{
	io = below(io, "unlink", path);
	return io->ops->unlink(io, path);
}

static int hook_readdir(const struct ck_io *io, const char *path,
			int (*entry)(void *arg, const char *name), void *arg)
{
	io = below(io, "readdir", path);
	return io->ops->readdir(io, path, entry, arg);
}

static int hook_unlink_in(const struct ck_io *io, int dir, const char *name, int flags)
{
	io = below(io, flags ? "rmdir" : "unlink", name);
	return io->ops->unlink_in(io, dir, name, flags);
}

static struct ck_io_ops ops;

void hook_init(struct hook *hook,
	       void (*before)(struct hook *hook, const char *op, const char *path), void *arg)
{
	ops = *ck_io_posix.ops;
	ops.open = hook_open;
	ops.lstat = hook_lstat;
	ops.mkdir = hook_mkdir;
	ops.rmdir = hook_rmdir;
	ops.rename = hook_rename;
	ops.link = hook_link;
	ops.unlink = hook_unlink;
	ops.readdir = hook_readdir;
	ops.unlink_in = hook_unlink_in;
	*hook = (struct hook){.before = before, .arg = arg};
	hook->io = (struct ck_io){.ops = &ops, .ctx = hook};
}
