#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "shard.h"

#define PIECE ((size_t)4 << 20)

static int compare_chunks(const char *path, const struct ck_expected *expected,
			  const struct ck_digests *got, struct ck_error *err)
{
	uint64_t count = ck_chunk_count(got->bytes, got->chunk_bytes);

	for (uint64_t i = 0; i < count; i++) {
		uint64_t begin = i * got->chunk_bytes, end = begin + got->chunk_bytes;

		if (got->chunk_crc32[i] == expected->chunk_crc32[i])
			continue;
		return ck_fail(err, CK_EDIGEST,
			       "%s: chunk %" PRIu64 ", bytes [%" PRIu64 ", %" PRIu64
			       "): crc32 is %08" PRIx32 ", %08" PRIx32 " was written",
			       path, i, begin, end < got->bytes ? end : got->bytes,
			       got->chunk_crc32[i], expected->chunk_crc32[i]);
	}
	return 0;
}

int ck_expected_check(const char *path, const struct ck_expected *expected,
		      const struct ck_digests *got, enum ck_level level, struct ck_error *err)
{
	int rc = compare_chunks(path, expected, got, err);

	if (rc)
		return rc;
	if (got->crc32 != expected->crc32)
		return ck_fail(err, CK_EDIGEST,
			       "%s: bytes [0, %" PRIu64 "): crc32 is %08" PRIx32 ", %08" PRIx32
			       " was written",
			       path, got->bytes, got->crc32, expected->crc32);
	if (level == CK_LEVEL_SHA256 && strcmp(got->sha256, expected->sha256) != 0)
		return ck_fail(err, CK_EDIGEST,
			       "%s: bytes [0, %" PRIu64 "): sha256 is %s, %.64s was written", path,
			       got->bytes, got->sha256, expected->sha256);
	return 0;
}

/* What is read, hashed and handed on. */
struct stream {
	const struct ck_io *io;
	const char *path;
	int fd;
	uint64_t bytes;
	char *piece;
	struct ck_digest *digest;
	ck_consumer consumer;
	void *arg;
};

static int read_all(struct stream *s, struct ck_error *err)
{
	int rc = 0;

	for (uint64_t at = 0; at < s->bytes && !rc; at += PIECE) {
		size_t bytes = s->bytes - at < PIECE ? (size_t)(s->bytes - at) : PIECE;

		rc = ck_io_pread_full(s->io, s->fd, s->path, s->piece, bytes, at, err);
		if (!rc)
			rc = ck_digest_update(s->digest, s->piece, bytes, err);
		if (!rc)
			rc = s->consumer(s->arg, at, s->piece, bytes, err);
	}
	return rc;
}

static int stream(struct stream *s, const struct ck_expected *expected, enum ck_level level,
		  struct ck_error *err)
{
	struct ck_digests got = {0};
	int rc;

	if (s->bytes != expected->bytes)
		return ck_fail(err, CK_EDIGEST, "%s: %" PRIu64 " bytes, %" PRIu64 " were written",
			       s->path, s->bytes, expected->bytes);
	s->piece = malloc(PIECE);
	if (!s->piece)
		return ck_fail_nomem(err, PIECE);
	rc = ck_digest_new(&s->digest, s->bytes, expected->chunk_bytes, level == CK_LEVEL_SHA256,
			   err);
	if (!rc)
		rc = read_all(s, err);
	if (!rc)
		rc = ck_digest_final(s->digest, &got, err);
	if (!rc)
		rc = ck_expected_check(s->path, expected, &got, level, err);
	ck_digests_fini(&got);
	return rc;
}

int ck_shard_stream(const struct ck_io *io, const char *path, const struct ck_expected *expected,
		    enum ck_level level, ck_consumer consumer, void *arg, struct ck_error *err)
{
	struct stream s = {.io = io, .path = path, .fd = -1, .consumer = consumer, .arg = arg};
	int rc;

	if (level != CK_LEVEL_CRC32 && level != CK_LEVEL_SHA256)
		return ck_fail(err, CK_EARG, "%s: level %d cannot be read", path, level);
	rc = ck_io_open_read(io, path, &s.fd, &s.bytes, err);
	if (!rc)
		rc = stream(&s, expected, level, err);
	ck_io_close(io, &s.fd);
	ck_digest_free(s.digest);
	free(s.piece);
	return rc;
}
