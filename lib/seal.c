#include "seal.h"

#include <inttypes.h>
#include <stdlib.h>

#include "crc32.h"

int ck_seal_begin(struct ck_seal *seal, uint64_t bytes, struct ck_error *err)
{
	size_t count = (size_t)((bytes + CK_SEAL_BYTES - 1) / CK_SEAL_BYTES);
	uint32_t *crc32 = calloc(count + 1, sizeof(*crc32));

	if (!crc32)
		return ck_fail_nomem(err, (count + 1) * sizeof(*crc32));
	free(seal->crc32);
	seal->crc32 = crc32;
	seal->bytes = bytes;
	return 0;
}

/* How many of `left` bytes at `offset` belong to one seal. */
static size_t within_seal(uint64_t offset, size_t left)
{
	uint64_t room = CK_SEAL_BYTES - offset % CK_SEAL_BYTES;

	return left < room ? left : (size_t)room;
}

int ck_seal_take(void *arg, uint64_t offset, const void *data, size_t bytes, struct ck_error *err)
{
	struct ck_seal *seal = arg;

	(void)err;
	for (size_t done = 0, n; done < bytes; done += n) {
		uint32_t *crc = &seal->crc32[(offset + done) / CK_SEAL_BYTES];

		n = within_seal(offset + done, bytes - done);
		*crc = ck_crc32(*crc, (const char *)data + done, n);
	}
	return 0;
}

void ck_seal_range(const struct ck_seal *seal, uint64_t *begin, uint64_t *end)
{
	uint64_t up;

	if (!seal->bytes)
		return;
	up = (*end + CK_SEAL_BYTES - 1) / CK_SEAL_BYTES * CK_SEAL_BYTES;
	*begin -= *begin % CK_SEAL_BYTES;
	*end = up < seal->bytes ? up : seal->bytes;
}

int ck_seal_check(const struct ck_seal *seal, const char *path, uint64_t offset, const void *data,
		  size_t bytes, struct ck_error *err)
{
	if (!seal->bytes)
		return 0;
	for (size_t done = 0, n; done < bytes; done += n) {
		uint64_t at = offset + done;
		uint32_t crc;

		n = within_seal(at, bytes - done);
		crc = ck_crc32(0, (const char *)data + done, n);
		if (crc != seal->crc32[at / CK_SEAL_BYTES])
			return ck_fail(err, CK_EIO,
				       "%s: bytes [%" PRIu64 ", %" PRIu64
				       "): not what they were when the file was verified, a "
				       "moment ago: crc32 is %08" PRIx32 ", was %08" PRIx32,
				       path, at, at + n, crc, seal->crc32[at / CK_SEAL_BYTES]);
	}
	return 0;
}

void ck_seals_fini(struct ck_seals *seals)
{
	for (size_t i = 0; i < seals->count; i++)
		free(seals->files[i].crc32);
	free(seals->files);
	*seals = (struct ck_seals){.count = 0};
}
