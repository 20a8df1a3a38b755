#include "deal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "parse.h"

/* Ranks named in one message. */
#define RANKS_SHOWN 8

/* What is known of an item of the table while the ranks are gone through. */
struct seen {
	uint32_t first_rank; /* that has it */
	uint32_t nranks;
};

struct merge {
	ck_deal_next next;
	void *arg;
	struct ck_deal *deal;
	struct seen *seen; /* by item, in the order of being seen */
	size_t seen_capacity;
	char *flat; /* of rank 0, "" for none */
};

void ck_deal_fini(struct ck_deal *deal)
{
	ck_item_list_fini(&deal->table);
	ck_layout_fini(&deal->layout);
	free(deal->blocks);
	free(deal->rank_first);
	free(deal->rank_blocks);
	*deal = (struct ck_deal){0};
}

void ck_deal_box(const struct ck_deal *deal, size_t block, struct ck_box *out)
{
	ck_layout_box(&deal->layout, deal->blocks[block].first, out);
}

uint32_t ck_deal_holder(const struct ck_deal *deal, const struct ck_deal_block *block, size_t h)
{
	return deal->layout.blocks[block->first + h].rank;
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

/* ---- going through the ranks ---- */

/* Where an item stands in the table; a new one goes to its end. What it is, its first rank says. */
static int look_up(struct merge *m, const struct ck_item *item, uint32_t rank, size_t *at,
		   struct ck_error *err)
{
	struct ck_item_list *table = &m->deal->table;
	int rc = ck_item_list_find(table, item->name, at, NULL);

	if (rc != CK_ENOENT)
		return rc ? ck_fail_nomem(err, table->count * sizeof(size_t)) : 0;
	if (table->count == m->seen_capacity) {
		size_t capacity = m->seen_capacity ? 2 * m->seen_capacity : 64;
		struct seen *seen = reallocarray(m->seen, capacity, sizeof(*seen));

		if (!seen)
			return ck_fail_nomem(err, capacity * sizeof(*seen));
		m->seen = seen;
		m->seen_capacity = capacity;
	}
	m->seen[table->count] = (struct seen){.first_rank = rank};
	*at = table->count;
	return ck_item_list_append(table, item, err);
}

static int check_same(const struct merge *m, size_t at, const struct ck_item *item, uint32_t rank,
		      struct ck_error *err)
{
	char a_is[32], b_is[32];

	if (ck_item_same(&m->deal->table.items[at], "", item, "", CK_EITEM, NULL) == 0)
		return 0;
	snprintf(a_is, sizeof(a_is), "rank %" PRIu32, m->seen[at].first_rank);
	snprintf(b_is, sizeof(b_is), "rank %" PRIu32, rank);
	return ck_item_same(&m->deal->table.items[at], a_is, item, b_is, CK_EITEM, err);
}

static int add_item(struct merge *m, const struct ck_item *item, uint32_t rank,
		    struct ck_error *err)
{
	struct ck_layout_block block = {.rank = rank};
	size_t at = 0;
	int rc = look_up(m, item, rank, &at, err);

	if (!rc)
		rc = check_same(m, at, item, rank, err);
	if (rc)
		return rc;
	m->seen[at].nranks++;
	block.item = (uint32_t)at;
	for (size_t b = 0; b < item->nblocks && !rc; b++)
		rc = ck_layout_add(&m->deal->layout, &block, &item->blocks[b], err);
	return rc;
}

static int add_flat(struct merge *m, const char *flat, uint32_t rank, struct ck_error *err)
{
	char a[CK_JSON_SHOW], b[CK_JSON_SHOW];

	flat = flat ? flat : "";
	if (rank == 0) {
		m->flat = strdup(flat);
		return m->flat ? 0 : ck_fail_nomem(err, strlen(flat) + 1);
	}
	if (strcmp(flat, m->flat) == 0)
		return 0;
	return ck_fail(err, CK_EITEM, "the flat item is '%s' on rank 0 and '%s' on rank %" PRIu32,
		       ck_json_show(a, m->flat), ck_json_show(b, flat), rank);
}

static int add_rank(struct merge *m, uint32_t rank, struct ck_error *err)
{
	struct ck_item_list list = {.count = 0};
	int rc = m->next(m->arg, rank, &list, err);

	for (size_t i = 0; i < list.count && !rc; i++)
		rc = add_item(m, &list.items[i], rank, err);
	if (!rc)
		rc = add_flat(m, list.flat, rank, err);
	ck_item_list_fini(&list);
	return rc;
}

/* ---- checking ---- */

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
	int rc = 0;

	ck_buf_addf(&text, "per-rank, but not registered on rank%s", ck_plural(missing));
	for (uint32_t r = 0;
	     r < m->deal->world_size && shown < missing && shown < RANKS_SHOWN && !rc; r++) {
		struct ck_item_list list = {.count = 0};

		rc = m->next(m->arg, r, &list, err);
		if (!rc && !has_item(&list, item->name))
			ck_buf_addf(&text, "%s %" PRIu32, shown++ ? "," : "", r);
		ck_item_list_fini(&list);
	}
	if (missing > shown)
		ck_buf_addf(&text, " and %" PRIu32 " more", missing - shown);
	if (!rc)
		rc = ck_buf_check(&text, err);
	if (!rc)
		rc = fail_item(err, item, text.data);
	ck_buf_fini(&text);
	return rc;
}

/* Of several, the first by name. */
static int check_per_rank(const struct merge *m, struct ck_error *err)
{
	const struct ck_item_list *table = &m->deal->table;
	size_t first = table->count;

	for (size_t i = 0; i < table->count; i++)
		if (table->items[i].kind == CK_PER_RANK &&
		    m->seen[i].nranks < m->deal->world_size &&
		    (first == table->count ||
		     strcmp(table->items[i].name, table->items[first].name) < 0))
			first = i;
	if (first == table->count)
		return 0;
	return fail_missing(m, &table->items[first], m->deal->world_size - m->seen[first].nranks,
			    err);
}

static int check_flat(struct merge *m, struct ck_error *err)
{
	struct ck_item_list *table = &m->deal->table;
	char shown[CK_JSON_SHOW];
	const struct ck_item *item;
	size_t at;

	if (!m->flat || !m->flat[0])
		return 0;
	if (ck_item_list_find(table, m->flat, &at, NULL))
		return ck_fail(err, CK_EITEM, "the flat item '%s' is not registered",
			       ck_json_show(shown, m->flat));
	item = &table->items[at];
	if (item->kind != CK_SHARDED || item->ndim != 1)
		return fail_item(err, item,
				 "is named flat, so it has to be sharded, of one dimension");
	table->flat = m->flat;
	m->flat = NULL;
	return 0;
}

/* ---- bringing it into order ---- */

/* Sort the table by name, and count the blocks' items anew. */
static int sort_table(struct merge *m, struct ck_error *err)
{
	struct ck_item_list *table = &m->deal->table;
	int rc = 0;
	const char **names = array_new(table->count, sizeof(*names), &rc, err);
	uint32_t *now = array_new(table->count, sizeof(*now), &rc, err);

	for (size_t i = 0; i < table->count && !rc; i++)
		names[i] = table->items[i].name;
	if (!rc)
		ck_item_list_sort(table);
	for (size_t i = 0; i < table->count && !rc; i++) {
		size_t at = 0;

		rc = ck_item_list_find(table, names[i], &at, err);
		now[i] = (uint32_t)at;
	}
	for (size_t b = 0; b < m->deal->layout.nblocks && !rc; b++)
		m->deal->layout.blocks[b].item = now[m->deal->layout.blocks[b].item];
	free(names);
	free(now);
	return rc;
}

/* Identical boxes of one item are one block with several holders. */
static int group_blocks(struct ck_deal *deal, struct ck_error *err)
{
	const struct ck_layout *layout = &deal->layout;
	size_t count = 0, end;
	int rc = 0;

	for (size_t i = 0; i < layout->nblocks; i = ck_layout_same_end(layout, i))
		count++;
	deal->blocks = array_new(count, sizeof(*deal->blocks), &rc, err);
	for (size_t i = 0; i < layout->nblocks && !rc; i = end) {
		end = ck_layout_same_end(layout, i);
		deal->blocks[deal->nblocks++] = (struct ck_deal_block){
			.item = layout->blocks[i].item, .first = i, .nholders = end - i};
	}
	return rc;
}

/* ---- dealing ---- */

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

static uint32_t least_loaded(const struct ck_deal *deal, const struct ck_deal_block *block,
			     const uint64_t *load)
{
	uint32_t best = ck_deal_holder(deal, block, 0);

	for (size_t i = 1; i < block->nholders; i++) {
		uint32_t holder = ck_deal_holder(deal, block, i);

		best = load[holder] < load[best] ? holder : best;
	}
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
		uint64_t bytes = ck_layout_bytes(&deal->layout, block->first);

		block->writer = ck_deal_holder(deal, block, 0);
		if (block->nholders == 1)
			load[block->writer] += bytes;
		else
			shared[nshared++] = (struct shared){i, bytes};
	}
	if (nshared)
		qsort(shared, nshared, sizeof(*shared), compare_shared);
	for (size_t i = 0; i < nshared; i++) {
		struct ck_deal_block *block = &deal->blocks[shared[i].block];

		block->writer = least_loaded(deal, block, load);
		load[block->writer] += shared[i].bytes;
	}
	free(load);
	free(shared);
	return rc;
}

/* Which blocks a rank holds, so that packing all duties looks at each holder once. */
static int index_ranks(struct ck_deal *deal, struct ck_error *err)
{
	size_t nholders = deal->layout.nblocks;
	int rc = 0;
	size_t *next = array_new(deal->world_size, sizeof(*next), &rc, err);

	deal->rank_first = array_new(deal->world_size, sizeof(*deal->rank_first), &rc, err);
	deal->rank_blocks = array_new(nholders, sizeof(*deal->rank_blocks), &rc, err);
	if (rc) {
		free(next);
		return rc;
	}
	for (size_t i = 0; i < nholders; i++)
		deal->rank_first[deal->layout.blocks[i].rank + 1]++;
	for (uint32_t r = 0; r < deal->world_size; r++) {
		deal->rank_first[r + 1] += deal->rank_first[r];
		next[r] = deal->rank_first[r];
	}
	for (size_t i = 0; i < deal->nblocks; i++)
		for (size_t h = 0; h < deal->blocks[i].nholders; h++)
			deal->rank_blocks[next[ck_deal_holder(deal, &deal->blocks[i], h)]++] = i;
	free(next);
	return 0;
}

static int merge(struct merge *m, struct ck_error *err)
{
	int rc = 0;

	for (uint32_t r = 0; r < m->deal->world_size && !rc; r++)
		rc = add_rank(m, r, err);
	if (!rc)
		rc = check_per_rank(m, err);
	if (!rc)
		rc = check_flat(m, err);
	if (!rc)
		rc = sort_table(m, err);
	if (!rc)
		rc = ck_layout_sort(&m->deal->layout, err);
	if (!rc)
		rc = ck_layout_check(&m->deal->layout, m->deal->world_size, false, err);
	return rc ? rc : group_blocks(m->deal, err);
}

int ck_items_deal_each(ck_deal_next next, void *arg, uint32_t world_size, struct ck_deal *out,
		       struct ck_error *err)
{
	struct ck_deal deal = {.world_size = world_size};
	struct merge m = {.next = next, .arg = arg, .deal = &deal};
	int rc;

	ck_layout_init(&deal.layout, &deal.table);
	rc = merge(&m, err);
	if (!rc)
		rc = choose_writers(&deal, err);
	if (!rc)
		rc = index_ranks(&deal, err);
	free(m.seen);
	free(m.flat);
	if (rc) {
		ck_deal_fini(&deal);
		return rc;
	}
	*out = deal;
	out->layout.table = NULL; /* the deal may be moved */
	return 0;
}

/* A list that is there already: a copy, since what `next` makes is freed. */
static int copy_list(void *arg, uint32_t rank, struct ck_item_list *out, struct ck_error *err)
{
	const struct ck_item_list *lists = arg;
	struct ck_buf packed = CK_BUF_INIT;
	int rc = ck_item_list_pack(&lists[rank], &packed, err);

	if (!rc)
		rc = ck_item_list_unpack(packed.data, packed.len, out, err);
	ck_buf_fini(&packed);
	return rc;
}

int ck_items_deal(const struct ck_item_list *lists, uint32_t world_size, struct ck_deal *out,
		  struct ck_error *err)
{
	return ck_items_deal_each(copy_list, (void *)lists, world_size, out, err);
}
