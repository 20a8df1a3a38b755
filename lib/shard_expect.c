#include <inttypes.h>
#include <string.h>

#include "shard.h"

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
