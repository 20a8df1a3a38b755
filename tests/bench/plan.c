/*
 * What rank 0 computes for a large world, before a byte moves: the registrations merged and dealt,
 * the plan to another number of ranks. Each in a process of its own, for its memory.
 *
 *	plan ROUNDS
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "deal.h"
#include "process.h"
#include "reshard.h"

#define ROWS 100 /* of each rank */
/* Every so manieth item is held whole by groups of SHARERS ranks. */
#define SHARED_EVERY 10
#define SHARERS 8

struct world {
	uint32_t ranks, items;
};

static const char *item_name(uint32_t i, char out[static 32])
{
	snprintf(out, 32, "layer.%05" PRIu32, i);
	return out;
}

static int registrations(void *arg, uint32_t rank, struct ck_item_list *out, struct ck_error *err)
{
	const struct world *world = arg;
	const uint64_t shape = (uint64_t)ROWS * world->ranks;
	size_t item, block;
	char name[32];
	int rc = 0;

	for (uint32_t i = 0; i < world->items && !rc; i++) {
		uint32_t among = i % SHARED_EVERY ? 1 : SHARERS, first = rank / among * among;
		uint32_t left = world->ranks - first;
		struct ck_box box = {.ndim = 1, .offset = {(uint64_t)ROWS * first}};

		box.extent[0] = (uint64_t)ROWS * (left < among ? left : among);
		rc = ck_item_list_add_block(out, item_name(i, name), CK_F32, 1, &shape, &box, &item,
					    &block, err);
	}
	return rc;
}

static void deal(const void *arg, double *out)
{
	struct world world = *(const struct world *)arg;
	double before = bench_peak_mib(), began = bench_now();
	struct ck_error err = CK_ERROR_INIT;
	struct ck_deal dealt;

	bench_need(ck_items_deal_each(registrations, &world, world.ranks, &dealt, &err) == 0, "%s",
		   err.text);
	out[0] = (bench_now() - began) * 1e3;
	out[1] = bench_peak_mib() - before;
}

/* Each item cut among all ranks. */
static void fill(struct ck_layout *layout, const struct ck_item_list *table, uint32_t ranks)
{
	struct ck_error err = CK_ERROR_INIT;

	ck_layout_init(layout, table);
	for (uint32_t r = 0; r < ranks; r++) {
		for (uint32_t i = 0; i < table->count; i++) {
			struct ck_layout_block block = {.item = i, .rank = r, .file = r, .at = i};
			uint64_t n = table->items[i].shape[0], begin = n * r / ranks;
			struct ck_box box = {.ndim = 1,
					     .offset = {begin},
					     .extent = {n * (r + 1) / ranks - begin}};

			bench_need(ck_layout_add(layout, &block, &box, &err) == 0, "%s", err.text);
		}
	}
	bench_need(ck_layout_sort(layout, &err) == 0, "%s", err.text);
}

static void plan(const void *arg, double *out)
{
	const struct world *world = arg;
	const uint32_t wanted_ranks = world->ranks - world->ranks / 4;
	double before = bench_peak_mib(), began = bench_now();
	struct ck_item_list table = {.count = 0};
	struct ck_error err = CK_ERROR_INIT;
	struct ck_layout stored, wanted;
	struct ck_reshard moves;
	char name[32];

	for (uint32_t i = 0; i < world->items; i++) {
		struct ck_item item = {.name = (char *)item_name(i, name),
				       .dtype = CK_F32,
				       .ndim = 1,
				       .shape = {100003}};

		bench_need(ck_item_list_append(&table, &item, &err) == 0, "%s", err.text);
	}
	fill(&stored, &table, world->ranks);
	fill(&wanted, &table, wanted_ranks);
	bench_need(ck_reshard_plan(&stored, world->ranks, world->ranks, &wanted, &moves, &err) == 0,
		   "%s", err.text);
	out[0] = (bench_now() - began) * 1e3;
	out[1] = bench_peak_mib() - before;
}

static void measure(const char *what, void (*work)(const void *arg, double *out),
		    const struct world *world, int rounds, const char *text)
{
	double ms[BENCH_ROUNDS_MAX], mib[BENCH_ROUNDS_MAX], out[2];
	char name[64];

	for (int i = 0; i < rounds; i++) {
		bench_child(work, world, out, 2);
		ms[i] = out[0];
		mib[i] = out[1];
	}
	snprintf(name, sizeof(name), "%s_%" PRIu32 "x%" PRIu32 "_ms", what, world->ranks,
		 world->items);
	bench_report(name, "ms", ms, rounds, "%s", text);
	snprintf(name, sizeof(name), "%s_%" PRIu32 "x%" PRIu32 "_mib", what, world->ranks,
		 world->items);
	bench_report(name, "MiB", mib, rounds, "peak memory of it");
}

int main(int argc, char **argv)
{
	static const struct world square = {1024, 1000}, wide = {16384, 10};
	int rounds;

	bench_need(argc == 2, "usage: plan ROUNDS");
	rounds = atoi(argv[1]);
	bench_need(rounds > 0 && rounds <= BENCH_ROUNDS_MAX, "1 to %d rounds", BENCH_ROUNDS_MAX);
	measure("plan", plan, &square, rounds, "both tables, sorted, to 768 ranks");
	measure("plan", plan, &wide, rounds, "the same to 12,288 ranks");
	measure("deal", deal, &square, rounds, "registrations merged and dealt");
	return 0;
}
