#include "reshard.h"

#include <stdlib.h>
#include <string.h>

#include "boxtree.h"

void ck_reshard_fini(struct ck_reshard *plan)
{
	free(plan->first);
	free(plan->to);
	free(plan->order);
	free(plan->file_first);
	*plan = (struct ck_reshard){.nmoves = 0};
}

static int plan_item(const struct ck_layout *stored, const struct ck_layout *wanted, size_t item,
		     struct ck_boxtree *tree, size_t *first, struct ck_hits *moves,
		     struct ck_error *err)
{
	int rc = ck_boxtree_build(tree, wanted, item, err);

	for (size_t b = stored->first[item]; b < stored->first[item + 1] && !rc; b++) {
		const struct ck_layout_block *block = &stored->blocks[b];
		const uint64_t *coords = stored->coords + block->coords;

		rc = ck_boxtree_find(tree, coords, coords + block->ndim, moves, err);
		first[b + 1] = moves->count;
	}
	return rc;
}

static int plan_moves(const struct ck_layout *stored, const struct ck_layout *wanted,
		      struct ck_reshard *plan, struct ck_error *err)
{
	struct ck_boxtree tree = {.layout = NULL};
	struct ck_hits moves = {.blocks = NULL};
	int rc = 0;

	for (size_t i = 0; i < stored->table->count && !rc; i++) {
		if (stored->table->items[i].kind == CK_SHARDED) {
			rc = plan_item(stored, wanted, i, &tree, plan->first, &moves, err);
			continue;
		}
		for (size_t b = stored->first[i]; b < stored->first[i + 1]; b++)
			plan->first[b + 1] = moves.count;
	}
	plan->to = moves.blocks;
	plan->nmoves = moves.count;
	ck_boxtree_fini(&tree);
	return rc;
}

static int compare_places(const void *a, const void *b, void *arg)
{
	const struct ck_layout *stored = arg;
	uint64_t x = stored->blocks[*(const uint32_t *)a].at;
	uint64_t y = stored->blocks[*(const uint32_t *)b].at;

	return (x > y) - (x < y);
}

/* By file, then place. */
static int order_blocks(const struct ck_layout *stored, size_t nfiles, struct ck_reshard *plan,
			struct ck_error *err)
{
	size_t *first = plan->file_first;
	size_t *next = calloc(nfiles + 1, sizeof(*next));

	if (!next)
		return ck_fail_nomem(err, (nfiles + 1) * sizeof(*next));
	for (size_t b = 0; b < stored->nblocks; b++)
		first[stored->blocks[b].file + 1]++;
	for (size_t f = 0; f < nfiles; f++)
		first[f + 1] += first[f];
	memcpy(next, first, nfiles * sizeof(*next));
	for (size_t b = 0; b < stored->nblocks; b++)
		plan->order[next[stored->blocks[b].file]++] = (uint32_t)b;
	for (size_t f = 0; f < nfiles; f++)
		qsort_r(plan->order + first[f], first[f + 1] - first[f], sizeof(*plan->order),
			compare_places, (void *)stored);
	free(next);
	return 0;
}

static int check(const struct ck_layout *layout, uint32_t world, bool stored, struct ck_error *err)
{
	int rc = ck_layout_check(layout, world, stored, err);

	if (rc != CK_EITEM)
		return rc;
	ck_error_prefix(err, stored ? "checkpoint" : "program");
	if (!stored)
		return rc;
	if (err)
		err->code = CK_EFORMAT;
	return CK_EFORMAT;
}

int ck_reshard_plan(const struct ck_layout *stored, size_t nfiles, uint32_t old_world,
		    const struct ck_layout *wanted, struct ck_reshard *out, struct ck_error *err)
{
	struct ck_reshard plan = {.nmoves = 0};
	int rc;

	if (stored->nblocks >= UINT32_MAX || wanted->nblocks >= UINT32_MAX)
		return ck_fail(err, CK_EARG, "2^32 blocks or more");
	rc = check(stored, old_world, true, err);
	if (!rc)
		rc = check(wanted, 0, false, err);
	if (rc)
		return rc;
	plan.first = calloc(stored->nblocks + 1, sizeof(*plan.first));
	plan.order = calloc(stored->nblocks + 1, sizeof(*plan.order));
	plan.file_first = calloc(nfiles + 1, sizeof(*plan.file_first));
	if (!plan.first || !plan.order || !plan.file_first)
		rc = ck_fail_nomem(err, (stored->nblocks + 1) * sizeof(*plan.first));
	if (!rc)
		rc = plan_moves(stored, wanted, &plan, err);
	if (!rc)
		rc = order_blocks(stored, nfiles, &plan, err);
	if (rc)
		ck_reshard_fini(&plan);
	else
		*out = plan;
	return rc;
}

void ck_reshard_deal(const uint64_t *bytes, size_t nfiles, uint32_t ranks, uint32_t *readers)
{
	double total = 0, before = 0;

	for (size_t i = 0; i < nfiles; i++)
		total += (double)bytes[i];
	for (size_t i = 0; i < nfiles; i++) {
		double middle = before + (double)bytes[i] / 2;
		double share = total > 0 ? middle / total : (double)i / (double)nfiles;
		uint32_t reader = (uint32_t)(share * ranks);

		readers[i] = reader < ranks ? reader : ranks - 1;
		before += (double)bytes[i];
	}
}
