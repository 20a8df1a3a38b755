/* The file system as the command sees it: it stops answering once it is to end. */
#include "cmd.h"

#include <errno.h>
#include <signal.h>

#include "env.h"
#include "signals.h"

bool ck_cmd_interrupted(void)
{
	return ck_signals_stop() != 0;
}

/* Our ck_io is the first member, and its ctx is that of the one below. */
const struct ck_io *ck_cmd_io_below(const struct ck_io *io)
{
	return ((const struct ck_cmd_io *)(const void *)io)->below;
}

static const struct ck_io_ops *below(const struct ck_io *io)
{
	return ck_cmd_io_below(io)->ops;
}

static bool is_cancelled(void)
{
	if (!ck_cmd_interrupted())
		return false;
	errno = ECANCELED;
	return true;
}

static int cancel_open(const struct ck_io *io, const char *path, int flags, mode_t mode)
{
	return is_cancelled() ? -1 : below(io)->open(io, path, flags, mode);
}

static ssize_t cancel_pread(const struct ck_io *io, int fd, void *dst, size_t bytes, off_t offset)
{
	return is_cancelled() ? -1 : below(io)->pread(io, fd, dst, bytes, offset);
}

static int cancel_lstat(const struct ck_io *io, const char *path, struct stat *st)
{
	return is_cancelled() ? -1 : below(io)->lstat(io, path, st);
}

static int cancel_readdir(const struct ck_io *io, const char *path,
			  int (*entry)(void *arg, const char *name), void *arg)
{
	return is_cancelled() ? -1 : below(io)->readdir(io, path, entry, arg);
}

/* Who starts us may have it ignored, as a shell does with SIGINT in the background, and means that. */
static int catch_interrupts(struct ck_error *err)
{
	static const int signals[] = {SIGINT, SIGTERM}, none[] = {0};
	int stop[3] = {0};
	struct sigaction now;
	size_t n = 0;

	for (size_t i = 0; i < 2; i++)
		if (sigaction(signals[i], NULL, &now) < 0 || now.sa_handler != SIG_IGN)
			stop[n++] = signals[i];
	return n ? ck_signals_install(stop, none, err) : 0;
}

int ck_cmd_io_init(struct ck_cmd_io *cmd_io, const char *rules, struct ck_error *err)
{
	int rc;

	*cmd_io = (struct ck_cmd_io){.below = &ck_io_posix};
	if (rules && *rules) {
		rc = ck_io_fault_new(&cmd_io->fault, &ck_io_posix, rules, err);
		if (rc) {
			ck_error_prefix(err, CK_ENV_IO_FAULT);
			return rc;
		}
		cmd_io->below = ck_io_fault_io(cmd_io->fault);
	}
	cmd_io->ops = *cmd_io->below->ops;
	cmd_io->ops.open = cancel_open;
	cmd_io->ops.pread = cancel_pread;
	cmd_io->ops.lstat = cancel_lstat;
	cmd_io->ops.readdir = cancel_readdir;
	cmd_io->io = (struct ck_io){.ops = &cmd_io->ops, .ctx = cmd_io->below->ctx};
	return catch_interrupts(err);
}

void ck_cmd_io_fini(struct ck_cmd_io *cmd_io)
{
	ck_io_fault_free(cmd_io->fault);
}
