#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "golden.h"
#include "io_fault.h"
#include "names.h"
#include "random.h"
#include "shard.h"
#include "tap.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static const struct golden golden[] = {
	{"block-far-outside", CK_EFORMAT,
	 "tensor 'w': shape [2, 2] at [9007199254740991, 0] leaves the global shape [4, 2]"},
	{"block-is-empty", CK_EFORMAT, "tensor 'w': an empty block is stored"},
	{"block-larger-than-the-tensor", CK_EFORMAT,
	 "tensor 'w': shape [5, 2] at [0, 0] leaves the global shape [4, 2]"},
	{"block-leaves-the-tensor", CK_EFORMAT,
	 "tensor 'w': shape [2, 2] at [3, 0] leaves the global shape [4, 2]"},
	{"ckpt-entry-is-null", CK_EFORMAT, "tensor 'w': ckpt: not an object"},
	{"ckpt-has-another-name", CK_EFORMAT, "tensor 'w': not in ckpt"},
	{"ckpt-is-not-json", CK_EFORMAT, "ckpt: not JSON: byte 0: '{' wanted"},
	{"ckpt-lacks-a-tensor", CK_EFORMAT, "ckpt has 1 entries for 2 tensors"},
	{"data-cut", CK_EFORMAT, "tensor 'rank-0/rng': bytes [16, 19) end past the data (18)"},
	{"data-not-aligned", CK_EFORMAT, "the data begin at byte 512, not at a multiple of 4096"},
	{"dcp-duplicate-name", CK_EFORMAT, "DCP_SHARDING_INFO: duplicate key 'w'"},
	{"dcp-entry-is-a-list", CK_EFORMAT, "tensor 'w': DCP_SHARDING_INFO: not an object"},
	{"dcp-has-another-name", CK_EFORMAT, "tensor 'w': not in DCP_SHARDING_INFO"},
	{"dcp-has-one-more", CK_EFORMAT, "DCP_SHARDING_INFO has 2 entries for 1 tensor"},
	{"dcp-is-an-array", CK_EFORMAT, "DCP_SHARDING_INFO: not JSON: byte 0: '{' wanted"},
	{"dcp-is-not-json", CK_EFORMAT, "DCP_SHARDING_INFO: not JSON: byte 1: the text ends early"},
	{"dcp-lacks-a-tensor", CK_EFORMAT, "DCP_SHARDING_INFO has 1 entries for 2 tensors"},
	{"dcp-offset-is-a-text", CK_EFORMAT,
	 "tensor 'w': DCP_SHARDING_INFO: saved_offsets: a string, an integer wanted"},
	{"dcp-offset-negative", CK_EFORMAT,
	 "tensor 'w': DCP_SHARDING_INFO: saved_offsets: -1, an integer from 0 to 9007199254740991 "
	 "wanted"},
	{"dcp-offsets-too-few", CK_EFORMAT,
	 "tensor 'w': DCP_SHARDING_INFO: 1 saved_offsets for 2 dimensions"},
	{"dcp-offsets-too-many", CK_EFORMAT,
	 "tensor 'w': DCP_SHARDING_INFO: 3 saved_offsets for 2 dimensions"},
	{"dcp-without-saved-offsets", CK_EFORMAT,
	 "tensor 'w': DCP_SHARDING_INFO: saved_offsets: missing, an array wanted"},
	{"empty-file", CK_EFORMAT, "0 bytes, too short for a safetensors file"},
	{"format-np", CK_EFORMAT, "__metadata__: format is 'np', 'pt' wanted"},
	{"global-shape-missing", CK_EFORMAT,
	 "tensor 'w': ckpt: global_shape: missing, an array wanted"},
	{"global-shape-null", CK_EFORMAT, "tensor 'w': ckpt: global_shape: null, an array wanted"},
	{"global-shape-of-2-to-53-bytes", CK_EFORMAT,
	 "tensor 'w': ckpt: global_shape: 2^53 bytes or more"},
	{"global-shape-of-other-ndim", CK_EFORMAT,
	 "tensor 'w': ckpt: global_shape has 3 dimensions, the tensor 2"},
	{"global-shape-overflows", CK_EFORMAT,
	 "tensor 'w': ckpt: global_shape: 2^53 bytes or more"},
	{"good", 0, NULL},
	{"good-no-tensors", 0, NULL},
	{"good-per-rank-of-no-bytes", 0, NULL},
	{"good-scalar", 0, NULL},
	{"good-unknown-metadata", 0, NULL},
	{"header-longer-than-file", CK_EFORMAT, "header of 4088 bytes ends past the file (2000)"},
	{"kind-is-a-number", CK_EFORMAT, "tensor 'w': ckpt: kind: a number, a string wanted"},
	{"kind-missing", CK_EFORMAT, "tensor 'w': ckpt: kind: missing, a string wanted"},
	{"kind-unknown", CK_EFORMAT, "tensor 'w': unknown kind 'replicated'"},
	{"name-empty", CK_EFORMAT, "tensor '': not a valid item name"},
	{"name-of-1025-bytes", CK_EFORMAT, "nnn...': not a valid item name"},
	{"name-with-a-control-character", CK_EFORMAT, "tensor 'a\\x1b[2J': not a valid item name"},
	{"no-ckpt", CK_EFORMAT, "__metadata__ has no ckpt"},
	{"no-dcp-sharding-info", CK_EFORMAT, "__metadata__ has no DCP_SHARDING_INFO"},
	{"no-format", CK_EFORMAT, "__metadata__: format is '', 'pt' wanted"},
	{"no-metadata", CK_EFORMAT, "__metadata__: format is '', 'pt' wanted"},
	{"per-rank-at-an-offset", CK_EFORMAT,
	 "tensor 'rank-0/rng': DCP_SHARDING_INFO: offset 1, 0 wanted for per-rank"},
	{"per-rank-of-another-rank", CK_EFORMAT,
	 "tensor 'rank-1/rng': per-rank, but not named rank-0/..."},
	{"per-rank-of-floats", CK_EFORMAT,
	 "tensor 'rank-0/rng': per-rank: F32 of 1 dimensions, U8 of 1 wanted"},
	{"per-rank-of-two-dimensions", CK_EFORMAT,
	 "tensor 'rank-0/rng': per-rank: U8 of 2 dimensions, U8 of 1 wanted"},
	{"per-rank-with-a-global-shape", CK_EFORMAT,
	 "tensor 'rank-0/rng': ckpt: global_shape: null wanted for per-rank"},
	{"per-rank-with-a-leading-zero", CK_EFORMAT,
	 "tensor 'rank-00/rng': per-rank, but not named rank-0/..."},
	{"per-rank-with-a-reserved-name", CK_EFORMAT,
	 "tensor 'rank-0/rank-1/rng': not a valid item name"},
	{"per-rank-without-a-name", CK_EFORMAT, "tensor 'rank-0/': not a valid item name"},
	{"per-rank-without-prefix", CK_EFORMAT, "tensor 'rng': per-rank, but not named rank-0/..."},
	{"sharded-with-a-reserved-name", CK_EFORMAT, "tensor 'rank-0/w': not a valid item name"},
	{"trailing-bytes", CK_EFORMAT, "20 bytes of data, the tensors end at 19: trailing bytes"},
};

static void test_golden(void)
{
	golden_complete("shard", golden, ROWS(golden), "");
	for (size_t i = 0; i < ROWS(golden); i++) {
		struct ck_shard shard = {.nblocks = 77};
		struct ck_error err = CK_ERROR_INIT;
		char dir[PATH_MAX];
		int rc;

		snprintf(dir, sizeof(dir), "%s/%s", golden_path("shard"), golden[i].name);
		rc = ck_shard_open(&ck_io_posix, dir, 0, 0, &shard, &err);
		is_int(rc, golden[i].code, "%s: code", golden[i].name);
		if (golden[i].says) {
			like(err.text, golden[i].says, "%s: text", golden[i].name);
			like(err.text, "/rank-00000.0.safetensors: ", "%s: path", golden[i].name);
			is_u64(shard.nblocks, 77, "%s: output untouched", golden[i].name);
		}
		if (rc == 0)
			ck_shard_close(&ck_io_posix, &shard);
	}
}

static void test_good(void)
{
	struct ck_shard shard = {0};
	struct ck_error err = CK_ERROR_INIT;
	char dir[PATH_MAX];
	const struct ck_stored *w, *rng;

	snprintf(dir, sizeof(dir), "%s/good", golden_path("shard"));
	if (!is_int(ck_shard_open(&ck_io_posix, dir, 0, 0, &shard, &err), 0, "opens: %s", err.text))
		return;
	is_u64(shard.nblocks, 2, "two blocks");
	is_u64(shard.data_offset, 4096, "data offset");
	is_u64(shard.bytes, 4096 + 19, "size");
	like(shard.path, "/good/rank-00000.0.safetensors", "path");
	ok(shard.rank == 0 && shard.part == 0, "rank and part");
	w = &shard.blocks[0];
	rng = &shard.blocks[1];
	is_str(w->name, "w", "name");
	ok(w->kind == CK_SHARDED && w->dtype == CK_F32 && w->ndim == 2, "kind, dtype, dimensions");
	ok(w->shape[0] == 4 && w->shape[1] == 2, "global shape");
	ok(w->box.ndim == 2 && w->box.offset[0] == 2 && w->box.offset[1] == 0 &&
		   w->box.extent[0] == 2 && w->box.extent[1] == 2,
	   "box");
	ok(w->bytes == 16 && w->offset == 4096 && w->data == NULL, "place");
	is_str(rng->name, "rng", "a per-rank item has its bare name");
	ok(rng->kind == CK_PER_RANK && rng->dtype == CK_U8 && rng->ndim == 1, "kind, dtype");
	ok(rng->box.offset[0] == 0 && rng->box.extent[0] == 3, "box");
	ok(rng->bytes == 3 && rng->offset == 4096 + 16, "place");
	ck_shard_close(&ck_io_posix, &shard);
	ok(shard.fd == -1 && shard.nblocks == 0, "closed");
	ck_shard_close(&ck_io_posix, &shard);
}

/* A copy of the good file as another rank's, in a fresh directory. */
static const char *copy_good(const char *name)
{
	const char *dir = test_tmpdir();
	struct ck_buf file = golden_read("shard", "good/rank-00000.0", ".safetensors");
	char path[PATH_MAX];

	ck_path_join(path, dir, name);
	if (ck_io_write_file(&ck_io_posix, path, file.data, file.len, NULL))
		ok(false, "%s can be written", path);
	ck_buf_fini(&file);
	return dir;
}

static void test_not_there(void)
{
	struct ck_error err = CK_ERROR_INIT;
	const char *dir = test_tmpdir();
	char path[PATH_MAX], target[PATH_MAX];
	struct ck_shard shard;
	char *far;

	is_int(ck_shard_open(&ck_io_posix, dir, 7, 1, &shard, &err), CK_ENOENT, "no file");
	like(err.text, "/rank-00007.1.safetensors: open: No such file", "text");
	ck_path_join(path, dir, "rank-00007.1.safetensors");
	mkdir(path, 0777);
	is_int(ck_shard_open(&ck_io_posix, dir, 7, 1, &shard, &err), CK_EFORMAT, "a directory");
	rmdir(path);
	mkfifo(path, 0666);
	is_int(ck_shard_open(&ck_io_posix, dir, 7, 1, &shard, &err), CK_EFORMAT,
	       "a FIFO does not block");
	unlink(path);
	snprintf(target, sizeof(target), "%s/rank-00000.0.safetensors",
		 copy_good("rank-00000.0.safetensors"));
	ck_path_join(path, dir, "rank-00000.0.safetensors");
	ok(symlink(target, path) == 0, "a link to a good file");
	is_int(ck_shard_open(&ck_io_posix, dir, 0, 0, &shard, &err), CK_EFORMAT, "is not followed");
	far = calloc(1, PATH_MAX + 1);
	memset(far, 'd', PATH_MAX);
	is_int(ck_shard_open(&ck_io_posix, far, 0, 0, &shard, &err), CK_EARG, "path too long");
	free(far);
}

static void test_another_rank(void)
{
	struct ck_error err = CK_ERROR_INIT;
	struct ck_shard shard;

	is_int(ck_shard_open(&ck_io_posix, copy_good("rank-00001.0.safetensors"), 1, 0, &shard,
			     &err),
	       CK_EFORMAT, "a file of rank 0 under the name of rank 1");
	like(err.text, "tensor 'rank-0/rng': per-rank, but not named rank-1/...", "text");
}

static void test_read_fails(void)
{
	static const char *const rules[] = {"pread:*:errno=EIO", "pread:*:errno=EIO:after=1",
					    "fstat:*:errno=EIO"};
	const char *dir = copy_good("rank-00000.0.safetensors");

	for (size_t i = 0; i < ROWS(rules); i++) {
		struct ck_io_fault *fault = NULL;
		struct ck_error err = CK_ERROR_INIT;
		struct ck_shard shard;

		is_int(ck_io_fault_new(&fault, &ck_io_posix, rules[i], &err), 0, "rule: %s",
		       err.text);
		is_int(ck_shard_open(ck_io_fault_io(fault), dir, 0, 0, &shard, &err), CK_EIO,
		       "%s: code", rules[i]);
		like(err.text, "/rank-00000.0.safetensors: ", "%s: path", rules[i]);
		like(err.text, "Input/output error", "%s: cause", rules[i]);
		ck_io_fault_free(fault);
	}
}

/* One file in memory, so that many can be tried. */
struct memory {
	const char *data;
	size_t bytes;
	int open; /* descriptors not closed */
};

static int memory_open(const struct ck_io *io, const char *path, int flags, mode_t mode)
{
	(void)path;
	(void)flags;
	(void)mode;
	((struct memory *)io->ctx)->open++;
	return 1000;
}

static int memory_close(const struct ck_io *io, int fd)
{
	(void)fd;
	((struct memory *)io->ctx)->open--;
	return 0;
}

static ssize_t memory_pread(const struct ck_io *io, int fd, void *dst, size_t bytes, off_t offset)
{
	const struct memory *memory = io->ctx;

	(void)fd;
	if ((size_t)offset >= memory->bytes)
		return 0;
	if (bytes > memory->bytes - (size_t)offset)
		bytes = memory->bytes - (size_t)offset;
	memcpy(dst, memory->data + offset, bytes);
	return (ssize_t)bytes;
}

static int memory_fstat(const struct ck_io *io, int fd, struct stat *st)
{
	(void)fd;
	*st = (struct stat){.st_mode = S_IFREG | 0644,
			    .st_size = (off_t)((struct memory *)io->ctx)->bytes};
	return 0;
}

/* What the contract promises of an opened shard, computed the simple way. */
static bool is_sound(const struct ck_shard *shard)
{
	uint64_t at = shard->data_offset;
	bool sound = at % 4096 == 0;

	for (size_t i = 0; i < shard->nblocks; i++) {
		const struct ck_stored *b = &shard->blocks[i];
		unsigned __int128 bytes = ck_dtype_size(b->dtype);

		sound = sound && ck_item_name_check(b->name, NULL) == 0 && b->offset == at &&
			b->box.ndim == b->ndim;
		for (int d = 0; d < b->ndim; d++) {
			bytes *= b->box.extent[d];
			sound = sound && (b->kind == CK_PER_RANK ||
					  ((unsigned __int128)b->box.offset[d] + b->box.extent[d] <=
						   b->shape[d] &&
					   b->box.extent[d] > 0));
		}
		if (b->kind == CK_PER_RANK)
			sound = sound && b->ndim == 1 && b->dtype == CK_U8 && b->box.offset[0] == 0;
		sound = sound && bytes == b->bytes;
		at += b->bytes;
	}
	return sound && at == shard->bytes;
}

static void test_mutations(void)
{
	static const char bytes[] = "{}[]\",:0123456789e.- rankw/\\\xff";
	struct ck_io_ops ops = {.open = memory_open,
				.close = memory_close,
				.pread = memory_pread,
				.fstat = memory_fstat};
	struct ck_buf good = golden_read("shard", "good/rank-00000.0", ".safetensors");
	struct memory memory = {.bytes = good.len};
	struct ck_io io = {.ops = &ops, .ctx = &memory};
	size_t json_bytes;
	uint64_t state = 2024, accepted = 0, unsound = 0;
	char *copy = malloc(good.len);

	memory.data = copy;
	json_bytes = (size_t)(strstr(good.data + 8, "}}  ") + 2 - (good.data + 8));
	for (int i = 0; i < 20000; i++) {
		struct ck_shard shard;

		memcpy(copy, good.data, good.len);
		for (uint64_t k = draw(&state, 3) + 1; k > 0; k--)
			copy[8 + draw(&state, json_bytes)] = bytes[draw(&state, sizeof(bytes) - 1)];
		if (draw(&state, 16) == 0)
			copy[draw(&state, 8)] = (char)next_random(&state);
		memory.bytes = draw(&state, 16) ? good.len : draw(&state, good.len);
		if (ck_shard_open(&io, "d", 0, 0, &shard, NULL) == 0) {
			accepted++;
			unsound += !is_sound(&shard);
			ck_shard_close(&io, &shard);
		}
	}
	ok(accepted > 100 && accepted < 10000, "%lu of 20,000 mutations accepted",
	   (unsigned long)accepted);
	is_u64(unsound, 0, "all of those are sound");
	is_int(memory.open, 0, "no descriptor is left open");
	free(copy);
	ck_buf_fini(&good);
}

int main(void)
{
	test_golden();
	test_good();
	test_not_there();
	test_another_rank();
	test_read_fails();
	test_mutations();
	return done_testing();
}
