/*
 * What rank 0 needs to merge and deal the registrations: ITEMS items, cut among RANKS ranks; every
 * tenth is held whole by eight ranks each.
 *
 * usage: deal [RANKS ITEMS]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "deal.h"

struct world {
	uint32_t ranks, items;
};

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int make_list(void *arg, uint32_t rank, struct ck_item_list *out, struct ck_error *err)
{
	const struct world *world = arg;
	int rc = 0;

	for (uint32_t i = 0; i < world->items && !rc; i++) {
		uint64_t shape = UINT64_C(100) * world->ranks;
		uint32_t among = i % 10 ? 1 : 8, first = rank / among * among;
		struct ck_box box = {.ndim = 1};
		char name[32];
		size_t item, block;

		/* Groups of `among` hold one block together. */
		box.offset[0] = UINT64_C(100) * first;
		box.extent[0] = UINT64_C(100) *
				(world->ranks - first < among ? world->ranks - first : among);
		snprintf(name, sizeof(name), "layer.%05" PRIu32, i);
		rc = ck_item_list_add_block(out, name, CK_F32, 1, &shape, &box, &item, &block, err);
	}
	return rc;
}

int main(int argc, char **argv)
{
	struct world world = {argc > 2 ? (uint32_t)atoi(argv[1]) : 1024,
			      argc > 2 ? (uint32_t)atoi(argv[2]) : 1000};
	struct ck_error err = CK_ERROR_INIT;
	struct rusage usage;
	struct ck_deal deal;
	double started = now();

	if (ck_items_deal_each(make_list, &world, world.ranks, &deal, &err)) {
		fprintf(stderr, "deal: %s\n", err.text);
		return 1;
	}
	getrusage(RUSAGE_SELF, &usage);
	printf("deal %u ranks, %u items: %zu blocks in %.2f s; peak %ld MiB\n", world.ranks,
	       world.items, deal.nblocks, now() - started, usage.ru_maxrss / 1024);
	ck_deal_fini(&deal);
	return 0;
}
