#include <stdlib.h>
#include <string.h>

#include "shard.h"

/* One write call, and the unit of hashing: large enough for a parallel file system. */
#define PIECE ((size_t)4 << 20)

/* A file under way. Small blocks are gathered, so that every write but the last is one PIECE. */
struct stream {
	const struct ck_io *io;
	const char *path;
	int fd;
	uint64_t offset;
	char *gathered;
	size_t used;
	struct ck_digest *digest;
};

static int emit(struct stream *s, const void *data, size_t bytes, struct ck_error *err)
{
	int rc = ck_digest_update(s->digest, data, bytes, err);

	if (rc == 0)
		rc = ck_io_pwrite_full(s->io, s->fd, s->path, data, bytes, s->offset, err);
	s->offset += bytes;
	return rc;
}

static int flush(struct stream *s, struct ck_error *err)
{
	int rc = s->used ? emit(s, s->gathered, s->used, err) : 0;

	s->used = 0;
	return rc;
}

static int add(struct stream *s, const void *data, uint64_t bytes, struct ck_error *err)
{
	const char *next = data;
	int rc = 0;

	while (bytes > 0 && rc == 0) {
		size_t take = PIECE - s->used;

		if (take > bytes)
			take = (size_t)bytes;
		if (take == PIECE) {
			rc = emit(s, next, take, err);
		} else {
			memcpy(s->gathered + s->used, next, take);
			s->used += take;
			if (s->used == PIECE)
				rc = flush(s, err);
		}
		next += take;
		bytes -= take;
	}
	return rc;
}

static int write_part(struct stream *s, const struct ck_part *part, struct ck_digests *digests,
		      struct ck_error *err)
{
	int rc = add(s, part->header.data, part->header.len, err);

	for (size_t i = 0; i < part->nblocks && rc == 0; i++)
		rc = add(s, part->blocks[i].data, part->blocks[i].bytes, err);
	if (rc == 0)
		rc = flush(s, err);
	if (rc == 0)
		rc = ck_io_sync_close(s->io, &s->fd, s->path, err);
	if (rc == 0)
		rc = ck_digest_final(s->digest, digests, err);
	return rc;
}

int ck_shard_write(const struct ck_io *io, const char *path, const struct ck_part *part,
		   struct ck_digests *digests, struct ck_error *err)
{
	struct stream s = {.io = io, .path = path, .fd = -1};
	int rc;

	s.gathered = malloc(PIECE);
	if (!s.gathered)
		return ck_fail_nomem(err, PIECE);
	rc = ck_digest_new(&s.digest, part->bytes, ck_chunk_bytes(part->bytes), true, err);
	if (rc == 0)
		rc = ck_io_create(io, path, &s.fd, err);
	if (rc == 0)
		rc = write_part(&s, part, digests, err);
	ck_io_close(io, &s.fd);
	ck_digest_free(s.digest);
	free(s.gathered);
	return rc;
}
