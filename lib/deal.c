#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "items.h"
#include "json.h"

/* Ranks named in one message. */
#define RANKS_SHOWN 8

/* A block of one rank. */
struct ref {
	const struct ck_box *box;
	uint32_t rank;
};

struct merge {
	const struct ck_item_list *lists;
	uint32_t world_size;
	struct ck_item_list *table;
	uint32_t *nranks; /* by item of the table: how many ranks have it */
	size_t *first;    /* refs of item i: [first[i], first[i + 1]); needs count + 1 */
	struct ref *refs;
	const struct ck_box **distinct; /* boxes of one item, each once */
	struct ck_deal *deal;
	size_t nholders; /* of deal->holders in use */
};

void ck_deal_fini(struct ck_deal *deal)
{
	ck_item_list_fini(&deal->table);
	free(deal->blocks);
	free(deal->holders);
	free(deal->rank_first);
	free(deal->rank_blocks);
	*deal = (struct ck_deal){0};
}

static void merge_fini(struct merge *m)
{
	free(m->nranks);
	free(m->first);
	free(m->refs);
	free(m->distinct);
}

static int fail_item(struct ck_error *err, const struct ck_item *item, const char *text)
{
	char shown[CK_JSON_SHOW];

	return ck_fail(err, CK_EITEM, "item '%s': %s", ck_json_show(shown, item->name), text);
}

/* calloc of at least one element. */
static void *array_new(size_t count, size_t size, int *rc, struct ck_error *err)
{
	void *array = calloc(count + 1, size);

	if (!array && *rc == 0)
		*rc = ck_fail_nomem(err, count * size);
	return array;
}

/* Every name once, sorted. What the item is, the lowest rank that has it says. */
static int build_table(struct merge *m, struct ck_error *err)
{
	size_t at;
	int rc = 0;

	for (uint32_t r = 0; r < m->world_size; r++) {
		for (size_t i = 0; i < m->lists[r].count && rc == 0; i++) {
			const struct ck_item *item = &m->lists[r].items[i];

			rc = ck_item_list_find(m->table, item->name, &at, NULL);
			if (rc == CK_ENOENT)
				rc = ck_item_list_append(m->table, item, err);
			else if (rc == CK_ENOMEM)
				rc = ck_fail_nomem(err, m->table->count * sizeof(size_t));
		}
	}
	if (rc == 0)
		ck_item_list_sort(m->table);
	return rc;
}

/* The lowest rank that has an item. Linear: for messages. */
static uint32_t lowest_rank(const struct merge *m, const char *name)
{
	for (uint32_t r = 0; r < m->world_size; r++)
		for (size_t i = 0; i < m->lists[r].count; i++)
			if (strcmp(m->lists[r].items[i].name, name) == 0)
				return r;
	return 0;
}

static int fail_differs(const struct merge *m, const struct ck_item *in_table,
			const struct ck_item *item, uint32_t rank, struct ck_error *err)
{
	char a_is[32], b_is[32];

	snprintf(a_is, sizeof(a_is), "rank %" PRIu32, lowest_rank(m, item->name));
	snprintf(b_is, sizeof(b_is), "rank %" PRIu32, rank);
	return ck_item_same(in_table, a_is, item, b_is, CK_EITEM, err);
}

/* Compare each rank's items with the table; first[i + 1] counts the blocks of item i. */
static int count_items(struct merge *m, struct ck_error *err)
{
	size_t at = 0;
	int rc = 0;

	for (uint32_t r = 0; r < m->world_size; r++) {
		for (size_t i = 0; i < m->lists[r].count && rc == 0; i++) {
			const struct ck_item *item = &m->lists[r].items[i];

			rc = ck_item_list_find(m->table, item->name, &at, err);
			if (rc == 0 &&
			    ck_item_same(&m->table->items[at], "", item, "", CK_EITEM, NULL))
				rc = fail_differs(m, &m->table->items[at], item, r, err);
			if (rc)
				break;
			m->nranks[at]++;
			for (size_t b = 0; b < item->nblocks; b++)
				m->first[at + 1] += !ck_box_empty(&item->blocks[b]);
		}
	}
	return rc;
}

static bool has_item(const struct ck_item_list *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->items[i].name, name) == 0)
			return true;
	return false;
}

static int fail_missing(const struct merge *m, const struct ck_item *item, uint32_t missing,
			struct ck_error *err)
{
	struct ck_buf text = CK_BUF_INIT;
	uint32_t shown = 0;
	int rc;

	ck_buf_addf(&text, "per-rank, but not registered on rank%s", missing > 1 ? "s" : "");
	for (uint32_t r = 0; r < m->world_size && shown < RANKS_SHOWN; r++)
		if (!has_item(&m->lists[r], item->name))
			ck_buf_addf(&text, "%s %" PRIu32, shown++ ? "," : "", r);
	if (missing > shown)
		ck_buf_addf(&text, " and %" PRIu32 " more", missing - shown);
	rc = ck_buf_check(&text, err);
	if (rc == 0)
		rc = fail_item(err, item, text.data);
	ck_buf_fini(&text);
	return rc;
}

static int check_per_rank(const struct merge *m, struct ck_error *err)
{
	for (size_t i = 0; i < m->table->count; i++) {
		const struct ck_item *item = &m->table->items[i];

		if (item->kind == CK_PER_RANK && m->nranks[i] < m->world_size)
			return fail_missing(m, item, m->world_size - m->nranks[i], err);
	}
	return 0;
}

static const char *flat_of(const struct merge *m, uint32_t rank)
{
	return m->lists[rank].flat ? m->lists[rank].flat : "";
}

static int check_flat(struct merge *m, struct ck_error *err)
{
	char a[CK_JSON_SHOW], b[CK_JSON_SHOW];
	const char *flat = flat_of(m, 0);
	const struct ck_item *item;
	size_t at;

	for (uint32_t r = 1; r < m->world_size; r++)
		if (strcmp(flat, flat_of(m, r)) != 0)
			return ck_fail(err, CK_EITEM,
				       "the flat item is '%s' on rank 0 and '%s' on rank %" PRIu32,
				       ck_json_show(a, flat), ck_json_show(b, flat_of(m, r)), r);
	if (!flat[0])
		return 0;
	if (ck_item_list_find(m->table, flat, &at, NULL))
		return ck_fail(err, CK_EITEM, "the flat item '%s' is not registered",
			       ck_json_show(a, flat));
	item = &m->table->items[at];
	if (item->kind != CK_SHARDED || item->ndim != 1)
		return fail_item(err, item,
				 "is named flat, so it has to be sharded, of one dimension");
	m->table->flat = strdup(flat);
	return m->table->flat ? 0 : ck_fail_nomem(err, strlen(flat) + 1);
}

/* Put each rank's blocks behind those of their item; first[i] then begins the refs of item i. */
static int collect_refs(struct merge *m, struct ck_error *err)
{
	size_t count = m->table->count, at = 0;
	size_t *next;
	int rc = 0;

	for (size_t i = 0; i < count; i++)
		m->first[i + 1] += m->first[i];
	m->refs = array_new(m->first[count], sizeof(*m->refs), &rc, err);
	m->distinct = array_new(m->first[count], sizeof(*m->distinct), &rc, err);
	next = array_new(count, sizeof(*next), &rc, err);
	if (rc == 0)
		memcpy(next, m->first, count * sizeof(*next));
	for (uint32_t r = 0; r < m->world_size && rc == 0; r++) {
		for (size_t i = 0; i < m->lists[r].count && rc == 0; i++) {
			const struct ck_item *item = &m->lists[r].items[i];

			rc = ck_item_list_find(m->table, item->name, &at, err);
			for (size_t b = 0; b < item->nblocks && rc == 0; b++)
				if (!ck_box_empty(&item->blocks[b]))
					m->refs[next[at]++] = (struct ref){&item->blocks[b], r};
		}
	}
	free(next);
	return rc;
}

static int compare_refs(const void *a, const void *b)
{
	const struct ref *x = a, *y = b;
	int order = ck_box_cmp(x->box, y->box);

	if (order)
		return order;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Sort all refs; how many different blocks are there? */
static size_t sort_refs(struct merge *m)
{
	size_t distinct = 0;

	for (size_t i = 0; i < m->table->count; i++) {
		size_t begin = m->first[i], end = m->first[i + 1];

		qsort(m->refs + begin, end - begin, sizeof(*m->refs), compare_refs);
		for (size_t k = begin; k < end; k++)
			distinct += k == begin || !ck_box_equal(m->refs[k - 1].box, m->refs[k].box);
	}
	return distinct;
}

static uint32_t rank_of(const struct merge *m, size_t item, const struct ck_box *box)
{
	for (size_t k = m->first[item]; k < m->first[item + 1]; k++)
		if (m->refs[k].box == box)
			return m->refs[k].rank;
	return 0;
}

static int fail_tiling(const struct merge *m, size_t at, size_t count, struct ck_error *err)
{
	const struct ck_item *item = &m->table->items[at];
	struct ck_buf text = CK_BUF_INIT;
	const struct ck_box *pair[2];
	struct ck_error why = CK_ERROR_INIT;
	int rc = ck_tiling_overlap(item->ndim, m->distinct, count, pair, err);

	if (rc)
		return rc;
	if (!pair[0]) {
		rc = ck_tiling_check(item->ndim, item->shape, m->distinct, count, &why);
		return rc == CK_EITEM ? fail_item(err, item, why.text)
				      : ck_fail(err, rc, "%s", why.text);
	}
	ck_box_print(&text, pair[0]);
	ck_buf_addf(&text, " (rank %" PRIu32 ") and ", rank_of(m, at, pair[0]));
	ck_box_print(&text, pair[1]);
	ck_buf_addf(&text, " (rank %" PRIu32 ") overlap", rank_of(m, at, pair[1]));
	rc = ck_buf_check(&text, err);
	if (rc == 0)
		rc = fail_item(err, item, text.data);
	ck_buf_fini(&text);
	return rc;
}

/* Merge identical boxes of one item into blocks with holders, and check that they tile it. */
static int merge_item(struct merge *m, size_t at, struct ck_error *err)
{
	const struct ck_item *item = &m->table->items[at];
	struct ck_deal *deal = m->deal;
	size_t count = 0;
	int rc;

	for (size_t k = m->first[at]; k < m->first[at + 1]; k++) {
		const struct ref *ref = &m->refs[k];

		if (count == 0 || !ck_box_equal(m->distinct[count - 1], ref->box)) {
			struct ck_deal_block *block = &deal->blocks[deal->nblocks++];

			block->item = at;
			block->box = *ref->box;
			block->holders = deal->holders + m->nholders;
			m->distinct[count++] = ref->box;
		}
		deal->blocks[deal->nblocks - 1].nholders++;
		deal->holders[m->nholders++] = ref->rank;
	}
	rc = ck_tiling_check(item->ndim, item->shape, m->distinct, count, NULL);
	return rc == 0 ? 0 : fail_tiling(m, at, count, err);
}

static int merge_blocks(struct merge *m, struct ck_error *err)
{
	struct ck_deal *deal = m->deal;
	int rc = 0;

	deal->blocks = array_new(sort_refs(m), sizeof(*deal->blocks), &rc, err);
	deal->holders = array_new(m->first[m->table->count], sizeof(*deal->holders), &rc, err);
	for (size_t i = 0; i < m->table->count && rc == 0; i++)
		if (m->table->items[i].kind == CK_SHARDED)
			rc = merge_item(m, i, err);
	return rc;
}

/* A block that several ranks hold, in the order of dealing. */
struct shared {
	size_t block;
	uint64_t bytes;
};

static int compare_shared(const void *a, const void *b)
{
	const struct shared *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->block < y->block ? -1 : x->block > y->block;
}

static uint32_t least_loaded(const struct ck_deal_block *block, const uint64_t *load)
{
	uint32_t best = block->holders[0];

	for (size_t i = 1; i < block->nholders; i++)
		if (load[block->holders[i]] < load[best])
			best = block->holders[i];
	return best;
}

static int choose_writers(struct ck_deal *deal, struct ck_error *err)
{
	int rc = 0;
	uint64_t *load = array_new(deal->world_size, sizeof(*load), &rc, err);
	struct shared *shared = array_new(deal->nblocks, sizeof(*shared), &rc, err);
	size_t nshared = 0;

	for (size_t i = 0; i < deal->nblocks && rc == 0; i++) {
		struct ck_deal_block *block = &deal->blocks[i];
		uint64_t bytes = ck_box_volume(&block->box) *
				 ck_dtype_size(deal->table.items[block->item].dtype);

		block->writer = block->holders[0];
		if (block->nholders == 1)
			load[block->writer] += bytes;
		else
			shared[nshared++] = (struct shared){i, bytes};
	}
	if (nshared)
		qsort(shared, nshared, sizeof(*shared), compare_shared);
	for (size_t i = 0; i < nshared; i++) {
		struct ck_deal_block *block = &deal->blocks[shared[i].block];

		block->writer = least_loaded(block, load);
		load[block->writer] += shared[i].bytes;
	}
	free(load);
	free(shared);
	return rc;
}

/* Which blocks a rank holds, so that packing all duties looks at each holder once. */
static int index_ranks(struct ck_deal *deal, size_t nholders, struct ck_error *err)
{
	int rc = 0;
	size_t *next = array_new(deal->world_size, sizeof(*next), &rc, err);

	deal->rank_first = array_new(deal->world_size, sizeof(*deal->rank_first), &rc, err);
	deal->rank_blocks = array_new(nholders, sizeof(*deal->rank_blocks), &rc, err);
	if (rc) {
		free(next);
		return rc;
	}
	for (size_t i = 0; i < nholders; i++)
		deal->rank_first[deal->holders[i] + 1]++;
	for (uint32_t r = 0; r < deal->world_size; r++) {
		deal->rank_first[r + 1] += deal->rank_first[r];
		next[r] = deal->rank_first[r];
	}
	for (size_t i = 0; i < deal->nblocks; i++)
		for (size_t h = 0; h < deal->blocks[i].nholders; h++)
			deal->rank_blocks[next[deal->blocks[i].holders[h]]++] = i;
	free(next);
	return 0;
}

static int check_and_merge(struct merge *m, struct ck_error *err)
{
	int rc = build_table(m, err);

	if (rc)
		return rc;
	m->nranks = array_new(m->table->count, sizeof(*m->nranks), &rc, err);
	m->first = array_new(m->table->count, sizeof(*m->first), &rc, err);
	if (rc == 0)
		rc = count_items(m, err);
	if (rc == 0)
		rc = check_per_rank(m, err);
	if (rc == 0)
		rc = check_flat(m, err);
	if (rc == 0)
		rc = collect_refs(m, err);
	return rc ? rc : merge_blocks(m, err);
}

int ck_items_deal(const struct ck_item_list *lists, uint32_t world_size, struct ck_deal *out,
		  struct ck_error *err)
{
	struct ck_deal deal = {.world_size = world_size};
	struct merge merge = {
		.lists = lists, .world_size = world_size, .table = &deal.table, .deal = &deal};
	int rc = check_and_merge(&merge, err);

	if (rc == 0)
		rc = choose_writers(&deal, err);
	if (rc == 0)
		rc = index_ranks(&deal, merge.nholders, err);
	merge_fini(&merge);
	if (rc)
		ck_deal_fini(&deal);
	else
		*out = deal;
	return rc;
}
