#include "stage.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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

/* Room for so many bytes: both numbers when there is none. */
static int reserve(struct ck_stage *stage, uint64_t needed, struct ck_error *err)
{
	void *memory;

	if (needed <= stage->bytes)
		return 0;
	memory = mmap(NULL, needed, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return ck_fail(err, CK_ENOMEM, "staging: no memory for %llu bytes (%zu are there)",
			       (unsigned long long)needed, stage->bytes);
	madvise(memory, needed, MADV_HUGEPAGE); /* an improvement where it works */
	ck_stage_fini(stage);
	stage->memory = memory;
	stage->bytes = needed;
	return 0;
}

static int copy_block(unsigned char *to, const struct ck_stored *block,
		      const struct ckpt_copier *copier, struct ck_error *err)
{
	int answer;

	if (!block->bytes)
		return 0;
	if (!copier) {
		memcpy(to, block->data, block->bytes);
		return 0;
	}
	answer = copier->read(copier->arg, to, block->data, block->bytes);
	return answer ? ck_fail(err, CK_EARG, "item '%s': the program's copier returned %d",
				block->name, answer)
		      : 0;
}

int ck_stage_copy(struct ck_stage *stage, struct ck_plan *plan, const struct ck_registry *registry,
		  struct ck_error *err)
{
	unsigned char *image;
	int rc = reserve(stage, ck_stage_bytes(plan), err);

	image = stage->memory;
	for (size_t p = 0; !rc && p < plan->nparts; p++) {
		struct ck_part *part = &plan->parts[p];

		memcpy(image, part->header.data, part->header.len);
		for (size_t b = 0; !rc && b < part->nblocks; b++) {
			struct ck_stored *block = &part->blocks[b];

			rc = copy_block(image + block->offset, block,
					ck_registry_copier(registry, block->name), err);
			block->data = image + block->offset;
		}
		part->image = image;
		image += aligned(part->bytes);
	}
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
	rc = reserve(stage, needed, err);
	for (size_t p = 0; !rc && p < plan->nparts; p++) {
		for (size_t b = 0; !rc && b < plan->parts[p].nblocks; b++) {
			struct ck_stored *block = &plan->parts[p].blocks[b];
			const struct ckpt_copier *copier =
				ck_registry_copier(registry, block->name);

			if (!copier)
				continue;
			rc = copy_block(stage->memory + used, block, copier, err);
			block->data = stage->memory + used;
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
