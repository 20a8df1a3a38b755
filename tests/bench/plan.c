/*
 * How long planning takes and how much memory: RANKS blocks of each of ITEMS items, to as many
 * ranks less a quarter.
 *
 * usage: plan [RANKS ITEMS [NDIM]]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "reshard.h"

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* A grid as square as `ranks` allows, over the first two dimensions. */
static void cut(const struct ck_item *item, uint32_t ranks, uint32_t rank, struct ck_box *box)
{
	uint32_t rows = 1, columns;

	for (uint32_t r = 1; r * r <= ranks && item->ndim > 1; r++)
		if (ranks % r == 0)
			rows = r;
	columns = ranks / rows;
	*box = (struct ck_box){.ndim = item->ndim};
	memcpy(box->extent, item->shape, sizeof(box->extent));
	for (int d = 0; d < 2 && d < item->ndim; d++) {
		uint64_t parts = d ? rows : columns;
		uint64_t i = d ? rank % rows : rank / rows, n = item->shape[d];

		box->offset[d] = n * i / parts;
		box->extent[d] = n * (i + 1) / parts - box->offset[d];
	}
}

static void fill(struct ck_layout *layout, const struct ck_item_list *table, uint32_t ranks)
{
	struct ck_box box;

	ck_layout_init(layout, table);
	for (uint32_t r = 0; r < ranks; r++) {
		for (uint32_t i = 0; i < table->count; i++) {
			struct ck_layout_block block = {.item = i, .rank = r, .file = r, .at = i};

			cut(&table->items[i], ranks, r, &box);
			if (ck_layout_add(layout, &block, &box, NULL))
				exit(1);
		}
	}
}

int main(int argc, char **argv)
{
	uint32_t ranks = argc > 2 ? (uint32_t)atoi(argv[1]) : 1024;
	uint32_t items = argc > 2 ? (uint32_t)atoi(argv[2]) : 1000;
	int ndim = argc > 3 ? atoi(argv[3]) : 1;
	struct ck_item_list table = {.count = 0};
	struct ck_layout stored, wanted;
	struct ck_error err = CK_ERROR_INIT;
	struct ck_reshard plan;
	struct rusage usage;
	double t[4];

	for (uint32_t i = 0; i < items; i++) {
		char name[32];
		struct ck_item item = {.name = name, .dtype = CK_F32, .ndim = ndim};

		snprintf(name, sizeof(name), "layer.%05" PRIu32, i);
		for (int d = 0; d < ndim; d++)
			item.shape[d] = d < 2 ? 100003 : 3;
		if (ck_item_list_append(&table, &item, &err))
			return 1;
	}
	t[0] = now();
	fill(&stored, &table, ranks);
	fill(&wanted, &table, ranks - ranks / 4);
	t[1] = now();
	if (ck_layout_sort(&stored, &err) || ck_layout_sort(&wanted, &err))
		return 1;
	t[2] = now();
	if (ck_reshard_plan(&stored, ranks, ranks, &wanted, &plan, &err)) {
		fprintf(stderr, "plan: %s\n", err.text);
		return 1;
	}
	t[3] = now();
	getrusage(RUSAGE_SELF, &usage);
	printf("plan %u -> %u ranks, %u items of %d dimensions: %zu moves; fill %.2f s, sort %.2f "
	       "s, "
	       "plan %.2f s; peak %ld MiB\n",
	       ranks, ranks - ranks / 4, items, ndim, plan.nmoves, t[1] - t[0], t[2] - t[1],
	       t[3] - t[2], usage.ru_maxrss / 1024);
	ck_reshard_fini(&plan);
	ck_layout_fini(&stored);
	ck_layout_fini(&wanted);
	ck_item_list_fini(&table);
	return 0;
}
