#include "stage.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "parallel.h"

/* Less than this is not worth a thread. */
#define SHARE_MIN ((uint64_t)4 << 20)
#define SHARES_MAX 64
#define LINE 64
/* The kernel's huge pages; the buffer is a multiple of it, so that it need not grow by a few bytes. */
#define HUGE ((uint64_t)2 << 20)

static uint64_t aligned(uint64_t bytes)
{
	return (bytes + CK_STAGE_ALIGN - 1) / CK_STAGE_ALIGN * CK_STAGE_ALIGN;
}

uint64_t ck_stage_bytes(const struct ck_plan *plan)
{
	uint64_t bytes = 0;

	for (size_t p = 0; p < plan->nparts; p++)
		bytes += aligned(plan->parts[p].bytes);
	return bytes;
}

static void *map(uint64_t bytes)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Would the system give that much more? */
static bool can_map(uint64_t bytes)
{
	void *memory = bytes ? map(bytes) : NULL;

	if (memory && memory != MAP_FAILED)
		munmap(memory, bytes);
	return memory != MAP_FAILED;
}

int ck_stage_reserve(struct ck_stage *stage, uint64_t needed, uint64_t spare, struct ck_error *err)
{
	uint64_t grown = (needed + HUGE - 1) / HUGE * HUGE;
	void *memory = MAP_FAILED;

	if (grown <= stage->bytes)
		return 0;
	if (!can_map(grown - stage->bytes + spare))
		;
	else if (stage->memory) /* what is there is warm, and stays */
		memory = mremap(stage->memory, stage->bytes, grown, MREMAP_MAYMOVE);
	else
		memory = map(grown);
	if (memory == MAP_FAILED)
		return ck_fail(err, CK_ENOMEM, "staging: no memory for %llu bytes (%zu are there)",
			       (unsigned long long)needed, stage->bytes);
	madvise(memory, grown, MADV_HUGEPAGE); /* an improvement where it works */
	stage->memory = memory;
	stage->bytes = grown;
	return 0;
}

#ifdef __SSE2__
static void stream_line(unsigned char *to, const unsigned char *from)
{
	const __m128i *src = (const __m128i *)from;
	__m128i *dst = (__m128i *)to;
	__m128i a = _mm_loadu_si128(src), b = _mm_loadu_si128(src + 1);
	__m128i c = _mm_loadu_si128(src + 2), d = _mm_loadu_si128(src + 3);

	_mm_stream_si128(dst, a);
	_mm_stream_si128(dst + 1, b);
	_mm_stream_si128(dst + 2, c);
	_mm_stream_si128(dst + 3, d);
}
#endif

/*
 * memcpy that keeps the copy out of the CPU's caches: nobody reads it soon, the program's own data stay
 * in them, and the target is not read first. libc does so only for some hundred MiB in one piece.
 */
static void copy_past_caches(unsigned char *to, const unsigned char *from, size_t bytes)
{
	size_t at = 0;

#ifdef __SSE2__
	if (bytes >= 4 * LINE) {
		at = LINE - (uintptr_t)to % LINE;
		memcpy(to, from, at);
		for (; at + LINE <= bytes; at += LINE)
			stream_line(to + at, from + at);
		_mm_sfence();
	}
#endif
	memcpy(to + at, from + at, bytes - at);
}

/* Plain memory, that any thread may copy. */
struct piece {
	unsigned char *to;
	const unsigned char *from;
	uint64_t bytes;
};

struct copy {
	struct piece *pieces;
	size_t npieces, shares;
	uint64_t bytes;
};

/* Share i: the bytes of all pieces, one behind the other, are cut into equal shares. */
static void copy_share(void *arg, size_t i)
{
	const struct copy *copy = arg;
	uint64_t begin = copy->bytes * i / copy->shares;
	uint64_t end = copy->bytes * (i + 1) / copy->shares, at = 0;

	for (size_t p = 0; p < copy->npieces && at < end; at += copy->pieces[p++].bytes) {
		const struct piece *piece = &copy->pieces[p];
		uint64_t first = begin > at ? begin - at : 0;
		uint64_t last = end - at < piece->bytes ? end - at : piece->bytes;

		if (first < last)
			copy_past_caches(piece->to + first, piece->from + first, last - first);
	}
}

static void copy_all(struct copy *copy)
{
	uint64_t worth = copy->bytes / SHARE_MIN;
	unsigned cpus = ck_parallel_cpus();

	copy->shares = cpus < SHARES_MAX ? cpus : SHARES_MAX;
	if (worth < copy->shares)
		copy->shares = worth ? worth : 1;
	ck_parallel(copy->shares, copy_share, copy);
}

static int call_copier(unsigned char *to, struct ck_stored *block, const struct ckpt_copier *copier,
		       struct ck_error *err)
{
	int answer = block->bytes ? copier->read(copier->arg, to, block->data, block->bytes) : 0;

	block->data = to;
	return answer ? ck_fail(err, CK_EARG, "item '%s': the program's copier returned %d",
				block->name, answer)
		      : 0;
}

/* The program's copier works here and now; plain memory is noted for later. */
static int take_block(struct copy *copy, unsigned char *to, struct ck_stored *block,
		      const struct ckpt_copier *copier, struct ck_error *err)
{
	if (copier)
		return call_copier(to, block, copier, err);
	if (block->bytes) {
		copy->pieces[copy->npieces++] = (struct piece){to, block->data, block->bytes};
		copy->bytes += block->bytes;
	}
	block->data = to;
	return 0;
}

static int take_part(struct copy *copy, unsigned char *image, struct ck_part *part,
		     const struct ck_registry *registry, struct ck_error *err)
{
	int rc = 0;

	memcpy(image, part->header.data, part->header.len);
	for (size_t b = 0; !rc && b < part->nblocks; b++) {
		struct ck_stored *block = &part->blocks[b];

		rc = take_block(copy, image + block->offset, block,
				ck_registry_copier(registry, block->name), err);
	}
	part->image = image;
	return rc;
}

int ck_stage_copy(struct ck_stage *stage, struct ck_plan *plan, const struct ck_registry *registry,
		  struct ck_error *err)
{
	struct copy copy = {.npieces = 0};
	unsigned char *image;
	size_t blocks = 0;
	int rc = ck_stage_reserve(stage, ck_stage_bytes(plan), 0, err);

	if (rc)
		return rc;
	for (size_t p = 0; p < plan->nparts; p++)
		blocks += plan->parts[p].nblocks;
	copy.pieces = malloc((blocks + 1) * sizeof(*copy.pieces));
	if (!copy.pieces)
		return ck_fail_nomem(err, (blocks + 1) * sizeof(*copy.pieces));
	image = stage->memory;
	for (size_t p = 0; !rc && p < plan->nparts; p++) {
		rc = take_part(&copy, image, &plan->parts[p], registry, err);
		image += aligned(plan->parts[p].bytes);
	}
	if (!rc)
		copy_all(&copy);
	free(copy.pieces);
	return rc;
}

int ck_stage_copy_some(struct ck_stage *stage, struct ck_plan *plan,
		       const struct ck_registry *registry, struct ck_error *err)
{
	uint64_t used = 0, needed = 0;
	int rc;

	for (size_t p = 0; p < plan->nparts; p++)
		for (size_t b = 0; b < plan->parts[p].nblocks; b++)
			if (ck_registry_copier(registry, plan->parts[p].blocks[b].name))
				needed += aligned(plan->parts[p].blocks[b].bytes);
	rc = ck_stage_reserve(stage, needed, 0, err);
	for (size_t p = 0; !rc && p < plan->nparts; p++) {
		for (size_t b = 0; !rc && b < plan->parts[p].nblocks; b++) {
			struct ck_stored *block = &plan->parts[p].blocks[b];
			const struct ckpt_copier *copier =
				ck_registry_copier(registry, block->name);

			if (!copier)
				continue;
			rc = call_copier(stage->memory + used, block, copier, err);
			used += aligned(block->bytes);
		}
	}
	return rc;
}

void ck_stage_fini(struct ck_stage *stage)
{
	if (stage->memory)
		munmap(stage->memory, stage->bytes);
	stage->memory = NULL;
	stage->bytes = 0;
}
