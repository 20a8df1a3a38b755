/*
 * A shard: what one rank stores, as one or more safetensors files (parts).
 *
 * Writer: ck_shard_plan lays blocks out into files; ck_shard_write streams one file to disk with
 * digests on the way. Reader: ck_shard_open parses a file's header into blocks; ck_shard_read
 * streams the data of the whole file, verifying it, and hands pieces to where they belong.
 *
 * __metadata__ of each file: "format" = "pt"; "DCP_SHARDING_INFO" = JSON {"<name>":
 * {"saved_offsets": [..]}} for every tensor (zeros for unsharded ones), as PyTorch's
 * HuggingFaceStorageReader reads it; "ckpt" = JSON {"<name>": {"kind", "global_shape"}}.
 * A per-rank item stands in the file as "rank-<r>/<name>", dtype U8, shape [bytes].
 */
#ifndef CK_SHARD_H
#define CK_SHARD_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "digest.h"
#include "error.h"
#include "io.h"
#include "items.h"
#include "tensor.h"

/* A block as it stands, or will stand, in a file. */
struct ck_stored {
	const char *name; /* bare item name; owned by whoever made the struct (see each function) */
	enum ck_kind kind;
	enum ck_dtype dtype;
	int ndim;                    /* of the item; 1 for per-rank */
	uint64_t shape[CK_MAX_NDIM]; /* global shape; unused for per-rank */
	struct ck_box box;           /* per-rank: [0, bytes) */
	uint64_t bytes;
	const void *data; /* writer: where the bytes are; reader: NULL */
	uint64_t offset;  /* in the file, absolute */
};

/* One file of a plan. */
struct ck_part {
	struct ck_stored *blocks; /* in file order */
	size_t nblocks;
	struct ck_buf header; /* prefix + JSON, padded to CK_ST_ALIGN */
	uint64_t bytes;       /* of the whole file */
	const void *image;    /* the file as it will be, in memory at a multiple of 4096, or NULL */
};

struct ck_plan {
	struct ck_part *parts;
	size_t nparts; /* >= 1: a rank without data writes a file without tensors */
};

/*
 * Lay out the blocks of one rank. The k-th block of an item goes to the k-th file, so a name stands
 * at most once in a file; empty sharded blocks are left out, per-rank items of 0 bytes stay.
 *
 * Up to a world of 1,024 ranks, a shard of at least 128 MiB is cut into 2 to 4 files of about equal
 * size, none much below 64 MiB: what stays whole goes to the first file; the largest sharded items
 * are cut into as many pieces as there are files, as few items as it takes for the first file to
 * have no more than its share, the pieces sized to fill the others up. A block is cut along its
 * first dimension longer than one, so each piece is one contiguous run of its memory; pieces count
 * as blocks. Per-rank items are never cut, nor items with more blocks than half the files.
 *
 * In a file, wider element types come first, then names in order, so that every tensor is aligned.
 *
 *   blocks  sharded ones of one item adjacent; names and data must outlive the plan; offset is
 *           not looked at, and set in the plan; bytes must be those of box and dtype
 * Returns 0; CK_EARG (the header or the file would be too large, a name twice); CK_ENOMEM. Pure.
 */
int ck_shard_plan(uint32_t rank, uint32_t world_size, const struct ck_stored *blocks,
		  size_t nblocks, struct ck_plan *out, struct ck_error *err);
void ck_plan_fini(struct ck_plan *plan);

/* What stood in the way of speed: bits, for a caller who wants to say so once. */
enum ck_shard_note {
	CK_NOTE_BUFFERED = 1, /* the file system refuses direct I/O */
	CK_NOTE_NO_QUEUE = 2, /* there is no io_uring: helper threads overlap disk and CPU */
	CK_NOTE_NO_DIRECT =
		4 /* direct I/O was not to be had, for want of descriptors or the like */
};

/* How shards are written and read. NULL for the whole: { .direct = true, .sha = CK_SHA_BEST }. */
struct ck_shard_options {
	unsigned threads;         /* the parts are dealt to so many threads; 0: one, the caller's */
	bool direct;              /* past the page cache, where that is possible */
	enum ck_sha sha;          /* who computes; CK_SHA_NONE stands for CK_SHA_BEST */
	_Atomic(unsigned) *notes; /* bits of enum ck_shard_note are added; may be NULL */
};

/*
 * Write all parts of a plan as new files of `dir` (they must not exist), fsync them, close them.
 * The parts advance together, in blocks of 4 MiB, each hashed while it is on its way to disk. No
 * file is ever longer than its content. digests[i] are of the bytes of part i that went out.
 * After a failure files may be there, incomplete. Returns 0; CK_EEXIST; CK_ENOENT; CK_EIO;
 * CK_ENOMEM.
 *
 * Memory: parts without `image` take up to 8 MiB each, for blocks that are not in one piece.
 */
int ck_shard_write_all(const struct ck_io *io, const char *dir, uint32_t rank,
		       const struct ck_plan *plan, const struct ck_shard_options *options,
		       struct ck_digests *digests, struct ck_error *err);

/* The same for one part, by default options, at any path. */
int ck_shard_write(const struct ck_io *io, const char *path, const struct ck_part *part,
		   struct ck_digests *digests, struct ck_error *err);

/* A file opened for reading. */
struct ck_shard {
	char *path;
	int fd;
	uint64_t bytes;
	uint64_t data_offset;
	uint64_t head_bytes; /* of the header as it was parsed, and its CRC-32; 0: none was */
	uint32_t head_crc32;
	struct ck_stored *blocks; /* in file order; names are the shard's */
	size_t nblocks;
	uint32_t rank; /* of the file's name */
	uint32_t part;
};

/*
 * Open a part, parse its header and the metadata, and check everything that one file can tell:
 * "format" is "pt", the data begin on CK_ST_ALIGN, both metadata maps have exactly one entry per
 * tensor, offsets fit the global shape, no empty block is stored, per-rank names carry this rank.
 * Returns 0 (close with ck_shard_close); CK_ENOENT; CK_EFORMAT; CK_EIO; CK_ENOMEM.
 */
int ck_shard_open(const struct ck_io *io, const char *dir, uint32_t rank, uint32_t part,
		  struct ck_shard *out, struct ck_error *err);
void ck_shard_close(const struct ck_io *io, struct ck_shard *shard);

/* What the manifest says a file's bytes must be. */
struct ck_expected {
	uint64_t bytes;
	const char *sha256; /* 64 hex digits */
	uint64_t chunk_bytes;
	const uint32_t *chunk_crc32;
	uint32_t crc32;
};

enum ck_level {
	CK_LEVEL_SIZED = 0, /* files are there, with their sizes */
	CK_LEVEL_CRC32 = 1,
	CK_LEVEL_SHA256 = 2 /* CRC-32 as well */
};

/* Progress of reading or hashing: called after each piece with its bytes. May be NULL. */
typedef void (*ck_progress)(void *arg, uint64_t bytes);

/* Takes the next bytes of a file, header and all. Returns 0, or a code that ends the reading of it. */
typedef int (*ck_consumer)(void *arg, uint64_t offset, const void *data, size_t bytes,
			   struct ck_error *err);

/* A file to read. */
struct ck_shard_job {
	const struct ck_shard *shard; /* with a consumer path, fd, bytes and head_… are enough */
	const struct ck_expected *expected;
	/*
	 * NULL, or takes every byte as soon as it is there, front to back, in the caller's thread:
	 * the file is verified only when the last one is. For whoever knows already what stands where.
	 */
	ck_consumer consumer;
	void *consumer_arg;
	/* dst[i] receives block i (blocks[i].bytes bytes), NULL skips it; NULL: verify only. */
	void *const *dst;
	int rc; /* out: how it went with this one */
	struct ck_error err;
};

/*
 * Read whole files once, front to back, verifying them, and copy blocks to their destinations.
 * Large files advance together, four in each thread, in blocks of 4 MiB, each hashed while the next
 * ones are on their way. A file that fails does not keep the others from being read.
 *
 *   level    CK_LEVEL_CRC32 or CK_LEVEL_SHA256
 *   options  NULL: one thread; past the page cache for SHA-256 (a cold resume), through it for
 *            CRC-32 (a warm reload, from memory)
 *   progress called from the threads
 * Returns 0, or the code of the first file that failed, each with its own in `jobs`: CK_EDIGEST:
 * path and both sizes (then nothing is read), or chunk, byte range and both values; CK_EARG: another
 * level, or a chunk_bytes that is no power of two; CK_EIO: also when the bytes are right, and the header that was
 * parsed is not the one that they have; CK_ENOMEM. After a failure the
 * destinations hold whatever was read. Several threads may read one shard.
 *
 * Memory: up to 12 MiB for each of the files that advance together, for what cannot be read to where
 * it belongs (direct I/O wants memory at multiples of 4096, and alike in the file).
 */
int ck_shard_read_all(const struct ck_io *io, struct ck_shard_job *jobs, size_t count,
		      enum ck_level level, const struct ck_shard_options *options,
		      ck_progress progress, void *progress_arg, struct ck_error *err);

/* The same for one file, by default options. */
int ck_shard_read(const struct ck_io *io, const struct ck_shard *shard,
		  const struct ck_expected *expected, enum ck_level level, void *const *dst,
		  ck_progress progress, void *progress_arg, struct ck_error *err);

/* Are these the digests that were expected? Returns 0; CK_EDIGEST naming path, range and both. */
int ck_expected_check(const char *path, const struct ck_expected *expected,
		      const struct ck_digests *got, enum ck_level level, struct ck_error *err);

#endif
