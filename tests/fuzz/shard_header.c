/* A shard file of any bytes: opening it ends in blocks that fit the file, or in a refusal. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"
#include "shard.h"

/* One file, in memory. */
struct memory {
	const uint8_t *data;
	size_t size;
};

static int memory_open(const struct ck_io *io, const char *path, int flags, mode_t mode)
{
	(void)io;
	(void)path;
	(void)flags;
	(void)mode;
	return 1000;
}

static int memory_close(const struct ck_io *io, int fd)
{
	(void)io;
	(void)fd;
	return 0;
}

static ssize_t memory_pread(const struct ck_io *io, int fd, void *dst, size_t bytes, off_t offset)
{
	const struct memory *memory = io->ctx;
	size_t at = (size_t)offset;

	(void)fd;
	if (at > memory->size)
		return 0;
	if (bytes > memory->size - at)
		bytes = memory->size - at;
	memcpy(dst, memory->data + at, bytes);
	return (ssize_t)bytes;
}

static int memory_fstat(const struct ck_io *io, int fd, struct stat *st)
{
	const struct memory *memory = io->ctx;

	(void)fd;
	memset(st, 0, sizeof(*st));
	st->st_mode = S_IFREG | 0644;
	st->st_size = (off_t)memory->size;
	return 0;
}

static const struct ck_io_ops ops = {
	.open = memory_open,
	.close = memory_close,
	.pread = memory_pread,
	.fstat = memory_fstat,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct memory memory = {.data = data, .size = size};
	const struct ck_io io = {.ops = &ops, .ctx = &memory};
	struct ck_error err = CK_ERROR_INIT;
	struct ck_shard shard;
	int rc = ck_shard_open(&io, "d", 3, 0, &shard, &err);

	if (rc) {
		fuzz_expect(err.code == rc && err.text[0]);
		return 0;
	}
	for (size_t i = 0; i < shard.nblocks; i++) {
		const struct ck_stored *block = &shard.blocks[i];

		fuzz_expect(block->offset >= shard.data_offset);
		fuzz_expect(block->bytes <= size && block->offset <= size - block->bytes);
		fuzz_expect(block->bytes ==
			    ck_box_volume(&block->box) * ck_dtype_size((int)block->dtype));
	}
	ck_shard_close(&io, &shard);
	return 0;
}
