/* A checkpoint of other blocks, or of another number of ranks: what this rank wants of it, and where. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "intake.h"
#include "load_ranks.h"
#include "parse.h"
#include "restore.h"

/* The blocks that arrive here: those that this rank would write. Numbered as on rank 0. */
static int make_slots(ckpt *ck, const struct ck_load *load, struct ck_slot **slots, size_t *nslots,
		      struct ck_error *err)
{
	const struct ck_registry *registry = &ck->registry;
	const struct ck_duty *duty = &ck->dealt.duty;
	uint32_t rank = (uint32_t)ck->comm.table.rank;
	size_t most = 0;

	for (size_t i = 0; i < duty->count; i++)
		most += duty->items[i].nblocks;
	*slots = calloc(most + 1, sizeof(**slots));
	if (!*slots)
		return ck_fail_nomem(err, most * sizeof(**slots));
	for (size_t i = 0; i < duty->count; i++) {
		size_t item = ck_registry_find(registry, duty->items[i].name);

		for (size_t b = 0; b < duty->items[i].nblocks; b++) {
			const struct ck_duty_block *block = &duty->items[i].blocks[b];
			struct ck_slot *slot = &(*slots)[*nslots];

			if (block->writer != rank)
				continue;
			slot->box = block->box;
			slot->element = ck_dtype_size((int)registry->list.items[item].dtype);
			slot->data = ck_load_memory(ck, load, item, &block->box);
			(*nslots)++;
		}
	}
	return 0;
}

/*
 * Rank 0: where the deal has each block written, it is wanted. Items are counted as the checkpoint does, which
 * may lack per-rank ones.
 */
static int make_wanted(const struct ck_deal *deal, const struct ck_item_list *items,
		       struct ck_layout *wanted, struct ck_error *err)
{
	uint64_t *count = calloc((size_t)deal->world_size + 1, sizeof(*count));
	size_t item = 0;
	int rc = 0;

	ck_layout_init(wanted, items);
	if (!count)
		return ck_fail_nomem(err, deal->world_size * sizeof(*count));
	for (size_t b = 0; b < deal->nblocks && !rc; b++) {
		const struct ck_deal_block *block = &deal->blocks[b];
		struct ck_layout_block to = {.rank = block->writer};
		struct ck_box box;

		/* Both tables are sorted, and so are the blocks. */
		while (item < items->count &&
		       strcmp(items->items[item].name, deal->table.items[block->item].name) != 0)
			item++;
		to.item = (uint32_t)item;
		to.at = count[block->writer]++;
		ck_deal_box(deal, b, &box);
		rc = ck_layout_add(wanted, &to, &box, err);
	}
	free(count);
	return rc ? rc : ck_layout_sort(wanted, err);
}

/* Before a byte moves: can everything be taken over? */
static int check_callbacks(const ckpt *ck, uint32_t old_world, struct ck_error *err)
{
	const struct ck_item_list *list = &ck->registry.list;

	if (old_world == (uint32_t)ck->comm.table.size)
		return 0;
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].kind == CK_PER_RANK &&
		    !ck->registry.behind[i].callbacks.reassign)
			return ck_fail(
				err, CK_EITEM,
				"item '%s' belongs to one rank each, of %" PRIu32
				" that saved; this job has %d: register it with a `reassign` "
				"callback (ckpt.h), or start with %" PRIu32 " rank%s",
				list->items[i].name, old_world, ck->comm.table.size, old_world,
				ck_plural(old_world));
	return 0;
}

int ck_load_any(ckpt *ck, const char *dir, const struct ck_manifest *manifest, uint32_t old_world,
		enum ck_level level, struct ck_load *load, struct ck_error *err)
{
	struct ck_shard_options options = ck_transfer_options(ck);
	struct ck_intake intake = {.comm = &ck->comm, .io = ck->io, .dir = dir, .level = level};
	struct ck_slot *slots = NULL;
	struct ck_layout wanted = {.table = NULL};
	int rc = check_callbacks(ck, old_world, err);

	if (!rc)
		rc = make_slots(ck, load, &slots, &intake.nslots, err);
	if (!rc && ck_is_root(ck))
		rc = make_wanted(&ck->dealt.deal, &manifest->items, &wanted, err);
	rc = ck_comm_agree(&ck->comm, rc, err);
	if (!rc) {
		options.direct = options.direct && level == CK_LEVEL_SHA256;
		intake.options = &options;
		intake.slots = slots;
		intake.manifest = manifest;
		intake.wanted = &wanted;
		rc = ck_intake_run(&intake, err);
	}
	if (!rc)
		rc = ck_load_ranks(ck, &intake, load, err);
	ck_intake_fini(&intake);
	ck_layout_fini(&wanted);
	free(slots);
	return rc;
}
