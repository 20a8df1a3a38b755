/* Bringing one checkpoint into memory: the same blocks as were saved, by the same ranks. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "restore.h"
#include "share.h"

static int fail_item(const struct ck_shard *shard, const struct ck_stored *stored, const char *what,
		     struct ck_error *err)
{
	struct ck_buf box = CK_BUF_INIT;
	int rc;

	ck_box_print(&box, &stored->box);
	rc = ck_fail(err, CK_EITEM, "%s: item '%s', block %s: %s", shard->path, stored->name,
		     box.data ? box.data : "", what);
	ck_buf_fini(&box);
	return rc;
}

static int compare_name(const void *name, const void *item)
{
	return strcmp(name, ((const struct ck_duty_item *)item)->name);
}

/* The block that this rank would write now and that this is, or is a piece of; NULL: none. */
static const struct ck_duty_block *
find_duty(const struct ck_duty *duty, const struct ck_stored *stored, uint32_t rank, uint64_t *at)
{
	const struct ck_duty_item *item = duty->count
						  ? bsearch(stored->name, duty->items, duty->count,
							    sizeof(*item), compare_name)
						  : NULL;

	for (size_t b = 0; item && b < item->nblocks; b++)
		if (item->blocks[b].writer == rank &&
		    ck_box_run(&item->blocks[b].box, &stored->box, at))
			return &item->blocks[b];
	return NULL;
}

/*
 * Host memory for each block of this rank whose item has a copier, before anything is read: so that the
 * collective part cannot run out of it.
 */
static int make_bounces(ckpt *ck, struct ck_load *load, struct ck_error *err)
{
	const struct ck_registry *registry = &ck->registry;
	const struct ck_duty *duty = &ck->dealt.duty;

	for (size_t i = 0; i < duty->count; i++) {
		size_t item = ck_registry_find(registry, duty->items[i].name);
		size_t count = load->nbounces + duty->items[i].nblocks;
		struct ck_bounce *more;

		if (!ck_registry_copier(registry, duty->items[i].name))
			continue;
		more = realloc(load->bounces, (count + 1) * sizeof(*more));
		if (!more)
			return ck_fail_nomem(err, count * sizeof(*more));
		load->bounces = more;
		for (size_t b = 0; b < duty->items[i].nblocks; b++) {
			struct ck_bounce *bounce = &load->bounces[load->nbounces];

			*bounce = (struct ck_bounce){.item = item,
						     .box = duty->items[i].blocks[b].box};
			bounce->bytes = ck_registry_bytes(registry, item, &bounce->box);
			bounce->host = malloc(bounce->bytes + 1);
			if (!bounce->host)
				return ck_fail_nomem(err, bounce->bytes);
			load->nbounces++;
		}
	}
	return 0;
}

void *ck_load_memory(ckpt *ck, const struct ck_load *load, size_t item, const struct ck_box *box)
{
	for (size_t b = 0; b < load->nbounces; b++)
		if (load->bounces[b].item == item && ck_box_equal(&load->bounces[b].box, box))
			return load->bounces[b].host;
	return ck_registry_block(&ck->registry, item, box);
}

/* Where a stored block, or piece of one, goes in the program's memory. */
static int place_sharded(ckpt *ck, size_t item, const struct ck_shard *shard,
			 const struct ck_stored *stored, const struct ck_load *load, void **dst,
			 struct ck_error *err)
{
	const struct ck_duty_block *block;
	uint64_t at;

	block = find_duty(&ck->dealt.duty, stored, (uint32_t)ck->comm.table.rank, &at);
	if (!block)
		return fail_item(shard, stored,
				 "this rank has registered other blocks than were saved", err);
	*dst = (char *)ck_load_memory(ck, load, item, &block->box) +
	       at * ck_dtype_size((int)stored->dtype);
	return 0;
}

/* Where does one stored block go? */
static int place(ckpt *ck, const struct ck_shard *shard, const struct ck_stored *stored,
		 struct ck_load *load, void **dst, struct ck_error *err)
{
	const struct ck_registry *registry = &ck->registry;
	size_t item = ck_registry_find(registry, stored->name);
	struct ck_rank_bytes *bytes = &load->rank_bytes[load->nrank_bytes];

	if (item == registry->list.count)
		return fail_item(shard, stored, "the program has not registered it", err);
	/* The manifest's item is the program's: what differs is for ck_load_any to tell. */
	if (ck_share_differs(stored, &registry->list.items[item]))
		return fail_item(shard, stored, "it is not as the program has registered it", err);
	if (stored->kind == CK_SHARDED)
		return place_sharded(ck, item, shard, stored, load, dst, err);
	if (load->nrank_bytes == registry->list.count)
		return fail_item(shard, stored, "stored twice", err);
	*bytes = (struct ck_rank_bytes){.item = item, .bytes = stored->bytes};
	bytes->data = malloc(stored->bytes ? stored->bytes : 1);
	if (!bytes->data)
		return ck_fail_nomem(err, stored->bytes);
	load->nrank_bytes++;
	*dst = bytes->data;
	return 0;
}

static int open_file(ckpt *ck, const char *dir, const struct ck_file *file, struct ck_load *load,
		     struct ck_error *err)
{
	struct ck_shard *shard = &load->shards[load->nshards];
	int rc = ck_file_sized(ck->io, dir, file, err);

	if (!rc)
		rc = ck_shard_open(ck->io, dir, file->rank, file->part, shard, err);
	if (rc)
		return rc;
	load->nshards++;
	load->dst[load->nshards - 1] = calloc(shard->nblocks + 1, sizeof(void *));
	if (!load->dst[load->nshards - 1])
		return ck_fail_nomem(err, shard->nblocks * sizeof(void *));
	for (size_t b = 0; !rc && b < shard->nblocks; b++)
		rc = place(ck, shard, &shard->blocks[b], load, &load->dst[load->nshards - 1][b],
			   err);
	return rc;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp((*(const struct ck_stored *const *)a)->name,
		      (*(const struct ck_stored *const *)b)->name);
}

/* No element of one item twice: `pieces` are sorted by name; returns how many are of its first. */
static int check_disjoint(const struct ck_stored **pieces, size_t count, size_t *same,
			  struct ck_error *err)
{
	const struct ck_box **boxes = calloc(count, sizeof(*boxes));
	const struct ck_box *pair[2];
	size_t n = 0;
	int rc;

	if (!boxes)
		return ck_fail_nomem(err, count * sizeof(*boxes));
	for (; n < count && strcmp(pieces[n]->name, pieces[0]->name) == 0; n++)
		boxes[n] = &pieces[n]->box;
	rc = ck_tiling_overlap(pieces[0]->box.ndim, boxes, n, pair, err);
	if (!rc && pair[0])
		rc = ck_fail(err, CK_EITEM, "item '%s': stored blocks overlap", pieces[0]->name);
	*same = n;
	free(boxes);
	return rc;
}

/*
 * Sum up the pieces of sharded items, which must be disjoint. They lie in blocks of this rank, so
 * they are all there if their bytes are as many.
 */
static int sum_pieces(const struct ck_load *load, uint64_t *bytes, struct ck_error *err)
{
	const struct ck_stored **all;
	size_t count = 0, n = 0, same = 0;
	int rc = 0;

	for (size_t f = 0; f < load->nshards; f++)
		count += load->shards[f].nblocks;
	all = calloc(count + 1, sizeof(*all));
	if (!all)
		return ck_fail_nomem(err, count * sizeof(*all));
	*bytes = 0;
	for (size_t f = 0; f < load->nshards; f++) {
		for (size_t b = 0; b < load->shards[f].nblocks; b++) {
			const struct ck_stored *block = &load->shards[f].blocks[b];

			if (block->kind != CK_SHARDED)
				continue;
			all[n++] = block;
			*bytes += block->bytes;
		}
	}
	qsort(all, n, sizeof(*all), compare_names);
	/* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): the first n of them are set */
	for (size_t i = 0; i < n && !rc; i += same)
		rc = check_disjoint(all + i, n - i, &same, err);
	free(all);
	return rc;
}

/* Everything this rank would write must have been there, once. */
static int check_all_there(const ckpt *ck, const char *dir, const struct ck_load *load,
			   struct ck_error *err)
{
	const struct ck_duty *duty = &ck->dealt.duty;
	uint32_t rank = (uint32_t)ck->comm.table.rank;
	uint64_t wanted = 0, found = 0;
	size_t wanted_rank = 0;
	int rc = sum_pieces(load, &found, err);

	if (rc) {
		ck_error_prefix(err, "%s: rank %u", dir, rank);
		return rc;
	}
	for (size_t i = 0; i < duty->count; i++)
		for (size_t b = 0; b < duty->items[i].nblocks; b++)
			if (duty->items[i].blocks[b].writer == rank)
				wanted += ck_registry_bytes(&ck->registry,
							    ck_registry_find(&ck->registry,
									     duty->items[i].name),
							    &duty->items[i].blocks[b].box);
	for (size_t i = 0; i < ck->registry.list.count; i++)
		wanted_rank += ck->registry.list.items[i].kind == CK_PER_RANK;
	if (found != wanted || load->nrank_bytes != wanted_rank)
		return ck_fail(err, CK_EITEM,
			       "%s: rank %u has %" PRIu64
			       " bytes and %zu per-rank items there, the "
			       "program has %" PRIu64 " and %zu",
			       dir, rank, found, load->nrank_bytes, wanted, wanted_rank);
	return 0;
}

int ck_load_init(ckpt *ck, struct ck_load *load, struct ck_error *err)
{
	load->rank_bytes = calloc(ck->registry.list.count + 1, sizeof(*load->rank_bytes));
	if (!load->rank_bytes)
		return ck_fail_nomem(err, ck->registry.list.count * sizeof(*load->rank_bytes));
	return make_bounces(ck, load, err);
}

int ck_load_open(ckpt *ck, const char *dir, const struct ck_record *record, struct ck_load *load,
		 struct ck_error *err)
{
	int rc = 0;

	load->shards = calloc(record->nfiles, sizeof(*load->shards));
	load->dst = calloc(record->nfiles, sizeof(*load->dst));
	if (!load->shards || !load->dst)
		return ck_fail_nomem(err, record->nfiles * sizeof(*load->shards));
	for (size_t f = 0; !rc && f < record->nfiles; f++)
		rc = open_file(ck, dir, &record->files[f], load, err);
	return rc ? rc : check_all_there(ck, dir, load, err);
}

int ck_load_read(ckpt *ck, const struct ck_record *record, enum ck_level level,
		 struct ck_load *load, struct ck_error *err)
{
	struct ck_shard_options options = ck_transfer_options(ck);
	struct ck_shard_job *jobs = calloc(load->nshards + 1, sizeof(*jobs));
	struct ck_expected *expected = calloc(load->nshards + 1, sizeof(*expected));
	int rc = 0;

	if (!jobs || !expected)
		rc = ck_fail_nomem(err, load->nshards * sizeof(*jobs));
	for (size_t f = 0; !rc && f < load->nshards; f++) {
		const struct ck_file *file = &record->files[f];

		expected[f] = (struct ck_expected){
			.bytes = file->bytes,
			.sha256 = file->sha256,
			.chunk_bytes = file->chunk_bytes,
			.chunk_crc32 = file->chunk_crc32,
			.crc32 = file->crc32,
		};
		jobs[f] = (struct ck_shard_job){.shard = &load->shards[f],
						.expected = &expected[f],
						.dst = load->dst[f]};
	}
	/* What is warm stands in the page cache. */
	options.direct = level == CK_LEVEL_SHA256;
	if (!rc)
		rc = ck_shard_read_all(ck->io, jobs, load->nshards, level, &options, NULL, NULL,
				       err);
	free(jobs);
	free(expected);
	return rc;
}

/* Collective among the holders of one block. */
static int share_block(ckpt *ck, struct ck_load *load, const char *name,
		       const struct ck_duty_block *block, struct ck_error *err)
{
	size_t item = ck_registry_find(&ck->registry, name);
	int *ranks = malloc(block->nholders * sizeof(*ranks));
	int root = 0, rc;

	if (!ranks) /* the others wait for us: only the end of the program can free them */
		return ck_comm_die(&ck->comm, err, "rank %d: out of memory", ck->comm.table.rank);
	for (size_t h = 0; h < block->nholders; h++) {
		ranks[h] = (int)block->holders[h];
		if (block->holders[h] == block->writer)
			root = (int)h;
	}
	rc = ck_comm_bcast_group(&ck->comm, ranks, (int)block->nholders, root,
				 ck_load_memory(ck, load, item, &block->box),
				 ck_registry_bytes(&ck->registry, item, &block->box), err);
	free(ranks);
	return rc;
}

int ck_load_share(ckpt *ck, struct ck_load *load, struct ck_error *err)
{
	const struct ck_duty *duty = &ck->dealt.duty;
	int rc = 0;

	/* Every rank goes through its blocks by item and box, so groups that overlap meet in order. */
	for (size_t i = 0; !rc && i < duty->count; i++)
		for (size_t b = 0; !rc && b < duty->items[i].nblocks; b++)
			if (duty->items[i].blocks[b].nholders > 1)
				rc = share_block(ck, load, duty->items[i].name,
						 &duty->items[i].blocks[b], err);
	return rc;
}

static int hand_over_rank(ckpt *ck, const struct ck_rank_bytes *bytes, struct ck_error *err)
{
	const struct ckpt_rank_callbacks *cb = &ck->registry.behind[bytes->item].callbacks;
	int answer = cb->set(cb->arg, bytes->data, bytes->bytes);

	if (!answer)
		return 0;
	return ck_fail(err, CK_EFORMAT,
		       "item '%s': the program's set callback refused %zu bytes (it returned %d)",
		       ck->registry.list.items[bytes->item].name, bytes->bytes, answer);
}

static int hand_over_block(ckpt *ck, const struct ck_bounce *bounce, struct ck_error *err)
{
	const struct ckpt_copier *copier = &ck->registry.behind[bounce->item].copier;
	void *dst = ck_registry_block(&ck->registry, bounce->item, &bounce->box);
	int answer = copier->write(copier->arg, dst, bounce->host, bounce->bytes);

	if (!answer)
		return 0;
	return ck_fail(err, CK_EARG, "item '%s': the program's copier returned %d",
		       ck->registry.list.items[bounce->item].name, answer);
}

int ck_load_hand_over(ckpt *ck, struct ck_load *load, struct ck_error *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < load->nbounces; i++)
		rc = hand_over_block(ck, &load->bounces[i], err);
	for (size_t i = 0; !rc && i < load->nrank_bytes; i++)
		rc = hand_over_rank(ck, &load->rank_bytes[i], err);
	return rc;
}

void ck_load_fini(ckpt *ck, struct ck_load *load)
{
	for (size_t f = 0; f < load->nshards; f++) {
		ck_shard_close(ck->io, &load->shards[f]);
		free(load->dst[f]);
	}
	free(load->shards);
	free(load->dst);
	ck_rank_bytes_free(load->rank_bytes, load->nrank_bytes);
	for (size_t b = 0; b < load->nbounces; b++)
		free(load->bounces[b].host);
	free(load->bounces);
	*load = (struct ck_load){0};
}
