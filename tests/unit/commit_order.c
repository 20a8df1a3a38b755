/* The order of operations of a save, as ckpt-format(5) gives it with its reasons. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit.h"
#include "rundir.h"
#include "tap.h"

static const struct ck_step_id id = {.step = 7, .generation = 1};

/* Writes down what changes the directories or makes something durable, one word each. */
struct recorder {
	struct ck_buf words;
	char paths[64][PATH_MAX]; /* by descriptor */
};

/* The last component, without the ending of a temporary file. */
static void add_word(const struct ck_io *io, const char *op, const char *path)
{
	struct recorder *recorder = io->ctx;
	char name[PATH_MAX], *tmp, *slash;

	snprintf(name, sizeof(name), "%s", path);
	if (name[strlen(name) - 1] == '/')
		name[strlen(name) - 1] = '\0';
	tmp = strstr(name, ".tmp-");
	if (tmp)
		*tmp = '\0';
	slash = strrchr(name, '/');
	ck_buf_addf(&recorder->words, "%s %s\n", op,
		    strstr(slash, "ckpt-test") ? "<run>" : slash + 1);
}

static int note_open(const struct ck_io *io, const char *path, int flags, mode_t mode)
{
	struct recorder *recorder = io->ctx;
	int fd = ck_io_posix.ops->open(&ck_io_posix, path, flags, mode);

	if (fd >= 0 && fd < 64)
		snprintf(recorder->paths[fd], PATH_MAX, "%s", path);
	return fd;
}

static int note_fsync(const struct ck_io *io, int fd)
{
	struct recorder *recorder = io->ctx;

	add_word(io, "fsync", recorder->paths[fd]);
	return ck_io_posix.ops->fsync(&ck_io_posix, fd);
}

static int note_mkdir(const struct ck_io *io, const char *path, mode_t mode)
{
	add_word(io, "mkdir", path);
	return ck_io_posix.ops->mkdir(&ck_io_posix, path, mode);
}

static int note_rename(const struct ck_io *io, const char *from, const char *to)
{
	add_word(io, "rename", to);
	return ck_io_posix.ops->rename(&ck_io_posix, from, to);
}

static int note_unlink(const struct ck_io *io, const char *path)
{
	add_word(io, "unlink", path);
	return ck_io_posix.ops->unlink(&ck_io_posix, path);
}

static int note_readdir(const struct ck_io *io, const char *path,
			int (*entry)(void *arg, const char *name), void *arg)
{
	add_word(io, "readdir", path);
	return ck_io_posix.ops->readdir(&ck_io_posix, path, entry, arg);
}

static const char order_of_first_save[] =
	/* the staging directory is the entry of our own, after which the owner is looked at */
	"mkdir .saving-0000000007.g1\n"
	"readdir <run>\n"
	"fsync save.json\n"
	"rename save.json\n"
	/* files first, then the record that says they are on disk */
	"fsync rank-00000.0.safetensors\n"
	"fsync rank-00000.1.safetensors\n"
	"mkdir records-0000000007\n"
	"fsync rank-00000.json\n"
	"rename rank-00000.json\n"
	/* the manifest last; save.json goes only then */
	"fsync SHA256SUMS\n"
	"rename SHA256SUMS\n"
	"fsync manifest.json\n"
	"rename manifest.json\n"
	"unlink save.json\n"
	"fsync .saving-0000000007.g1\n"
	/* the commit */
	"readdir <run>\n"
	"rename step-0000000007.g1\n"
	"fsync <run>\n"
	/* what may fail */
	"fsync latest\n"
	"rename latest\n"
	"fsync run.json\n"
	"rename run.json\n"
	"fsync <run>\n";

int main(void)
{
	struct recorder *recorder = calloc(1, sizeof(*recorder));
	struct ck_io_ops ops = *ck_io_posix.ops;
	const struct ck_io io = {.ops = &ops, .ctx = recorder};
	const char *dir = test_tmpdir();
	struct ck_error err = CK_ERROR_INIT;

	ops.open = note_open;
	ops.fsync = note_fsync;
	ops.mkdir = note_mkdir;
	ops.rename = note_rename;
	ops.unlink = note_unlink;
	ops.readdir = note_readdir;
	make_run(dir);
	is_int(save_step(&io, dir, id, 1, NULL, &err), 0, "a save: %s", err.text);
	is_str(recorder->words.data, order_of_first_save, "in the order of the format");
	ck_buf_fini(&recorder->words);
	free(recorder);
	return done_testing();
}
