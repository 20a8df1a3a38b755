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
};

struct ck_plan {
	struct ck_part *parts;
	size_t nparts; /* >= 1: a rank without data writes a file without tensors */
};

/*
 * Lay out the blocks of one rank. The k-th block of an item goes to the k-th file, so a name stands
 * at most once in a file; empty sharded blocks are left out, per-rank items of 0 bytes stay.
 * Cutting by size into 2-4 files is not done yet; readers take any number of parts.
 *
 * In a file, wider element types come first, then names in order, so that every tensor is aligned.
 *
 *   blocks  sharded ones of one item adjacent; names and data must outlive the plan; offset is
 *           not looked at, and set in the plan; bytes must be those of box and dtype
 * Returns 0; CK_EARG (the header or the file would be too large, a name twice); CK_ENOMEM. Pure.
 */
int ck_shard_plan(uint32_t rank, const struct ck_stored *blocks, size_t nblocks,
		  struct ck_plan *out, struct ck_error *err);
void ck_plan_fini(struct ck_plan *plan);

/*
 * Write one part as a new file (it must not exist), fsync it, close it. The digests are of the
 * bytes that went out. After a failure the file may be there, incomplete. Returns 0; CK_EEXIST;
 * CK_EIO; CK_ENOMEM.
 */
int ck_shard_write(const struct ck_io *io, const char *path, const struct ck_part *part,
		   struct ck_digests *digests, struct ck_error *err);

/* A file opened for reading. */
struct ck_shard {
	char *path;
	int fd;
	uint64_t bytes;
	uint64_t data_offset;
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

/*
 * Read the whole file once, front to back, verifying it, and copy blocks to their destinations.
 *
 *   dst    dst[i] receives block i (blocks[i].bytes bytes), NULL skips the copy; dst NULL:
 *          verify only
 *   level  CK_LEVEL_CRC32 or CK_LEVEL_SHA256
 * Returns 0; CK_EDIGEST: path and both sizes (then nothing is read), or chunk, byte range and both
 * values; CK_EARG: another level, or a chunk_bytes that is no power of two; CK_EIO; CK_ENOMEM.
 * After a failure the destinations hold whatever was read. Several threads may read one shard.
 */
int ck_shard_read(const struct ck_io *io, const struct ck_shard *shard,
		  const struct ck_expected *expected, enum ck_level level, void *const *dst,
		  ck_progress progress, void *progress_arg, struct ck_error *err);

/* Takes the next bytes of a file. Returns 0, or a code that ends the reading. */
typedef int (*ck_consumer)(void *arg, uint64_t offset, const void *data, size_t bytes,
			   struct ck_error *err);

/*
 * Read the whole file once, front to back, header and all, and hand each piece on as soon as it is
 * there: it is verified only when the last one is, with the answer. For whoever knows already what
 * stands where. Returns as ck_shard_read; CK_ENOENT; what the consumer returned.
 */
int ck_shard_stream(const struct ck_io *io, const char *path, const struct ck_expected *expected,
		    enum ck_level level, ck_consumer consumer, void *arg, struct ck_error *err);

/* Are these the digests that were expected? Returns 0; CK_EDIGEST naming path, range and both. */
int ck_expected_check(const char *path, const struct ck_expected *expected,
		      const struct ck_digests *got, enum ck_level level, struct ck_error *err);

#endif
