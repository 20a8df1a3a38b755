#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "shard.h"

#define PIECE ((size_t)4 << 20)

struct reading {
	const struct ck_io *io;
	const struct ck_shard *shard;
	void *const *dst;
	size_t next; /* first block that ends behind the bytes read so far */
	char *bounce;
	struct ck_digest *digest;
};

/* Where a piece can be read to directly: it lies within one block that is wanted. Else NULL. */
static void *direct(const struct reading *r, uint64_t offset, size_t bytes)
{
	const struct ck_stored *block = &r->shard->blocks[r->next];

	if (!r->dst || r->next == r->shard->nblocks || !r->dst[r->next])
		return NULL;
	if (offset < block->offset || offset + bytes > block->offset + block->bytes)
		return NULL;
	return (char *)r->dst[r->next] + (offset - block->offset);
}

/* Copy what a bounced piece has of block i. */
static void copy_out(const struct reading *r, size_t i, uint64_t offset, size_t bytes)
{
	const struct ck_stored *block = &r->shard->blocks[i];
	uint64_t begin = block->offset > offset ? block->offset : offset;
	uint64_t end = block->offset + block->bytes;

	if (end > offset + bytes)
		end = offset + bytes;
	if (end > begin)
		memcpy((char *)r->dst[i] + (begin - block->offset), r->bounce + (begin - offset),
		       end - begin);
}

static void scatter(const struct reading *r, uint64_t offset, size_t bytes)
{
	for (size_t i = r->next; r->dst && i < r->shard->nblocks; i++) {
		if (r->shard->blocks[i].offset >= offset + bytes)
			return;
		if (r->dst[i])
			copy_out(r, i, offset, bytes);
	}
}

static int read_piece(struct reading *r, uint64_t offset, size_t bytes, struct ck_error *err)
{
	const struct ck_shard *shard = r->shard;
	void *to = direct(r, offset, bytes);
	int rc;

	rc = ck_io_pread_full(r->io, shard->fd, shard->path, to ? to : r->bounce, bytes, offset,
			      err);
	if (rc == 0)
		rc = ck_digest_update(r->digest, to ? to : r->bounce, bytes, err);
	if (rc)
		return rc;
	if (!to)
		scatter(r, offset, bytes);
	while (r->next < shard->nblocks &&
	       shard->blocks[r->next].offset + shard->blocks[r->next].bytes <= offset + bytes)
		r->next++;
	return 0;
}

static int read_all(struct reading *r, ck_progress progress, void *progress_arg,
		    struct ck_error *err)
{
	uint64_t total = r->shard->bytes, offset = 0;
	int rc = 0;

	while (offset < total && rc == 0) {
		size_t bytes = total - offset < PIECE ? (size_t)(total - offset) : PIECE;

		rc = read_piece(r, offset, bytes, err);
		if (rc == 0 && progress)
			progress(progress_arg, bytes);
		offset += bytes;
	}
	return rc;
}

int ck_shard_read(const struct ck_io *io, const struct ck_shard *shard,
		  const struct ck_expected *expected, enum ck_level level, void *const *dst,
		  ck_progress progress, void *progress_arg, struct ck_error *err)
{
	struct reading r = {.io = io, .shard = shard, .dst = dst};
	struct ck_digests got = {0};
	int rc;

	if (level != CK_LEVEL_CRC32 && level != CK_LEVEL_SHA256)
		return ck_fail(err, CK_EARG, "%s: level %d cannot be read", shard->path, level);
	if (shard->bytes != expected->bytes)
		return ck_fail(err, CK_EDIGEST, "%s: %" PRIu64 " bytes, %" PRIu64 " were written",
			       shard->path, shard->bytes, expected->bytes);
	r.bounce = malloc(PIECE);
	if (!r.bounce)
		return ck_fail_nomem(err, PIECE);
	rc = ck_digest_new(&r.digest, shard->bytes, expected->chunk_bytes, level == CK_LEVEL_SHA256,
			   err);
	if (rc == 0)
		rc = read_all(&r, progress, progress_arg, err);
	if (rc == 0)
		rc = ck_digest_final(r.digest, &got, err);
	if (rc == 0)
		rc = ck_expected_check(shard->path, expected, &got, level, err);
	ck_digests_fini(&got);
	ck_digest_free(r.digest);
	free(r.bounce);
	return rc;
}
