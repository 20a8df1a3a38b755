/* The same program on another number of ranks, or with other blocks: through <ckpt.h>, ranks as threads. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt.h"
#include "parse.h"
#include "starts.h"
#include "tap.h"

#define ROWS 12
#define COLUMNS 10

/* What an incarnation does. */
struct plan {
	uint64_t to;  /* trains to this step, saving each */
	int columns;  /* the grid is cut into columns; else into rows */
	int lone;     /* registers a per-rank item without reassign */
	int dropping; /* the same with ckpt_reassign_drop */
	int refuse;
	/* Out. */
	int restored;
	uint64_t from;
	int wrong;
};

static size_t eight(void *arg)
{
	(void)arg;
	return 8;
}

static int get_rank(void *arg, void *dst, size_t bytes)
{
	memcpy(dst, arg, bytes);
	return 0;
}

static int set_rank(void *arg, const void *src, size_t bytes)
{
	memcpy(arg, src, bytes);
	return 0;
}

/* A two-dimensional item, cut along either dimension; with an empty block where there are more ranks. */
static uint32_t *add_grid(struct toy *toy, int columns)
{
	const uint64_t shape[] = {ROWS, COLUMNS};
	uint64_t offset[] = {0, 0}, extent[] = {ROWS, COLUMNS}, n = shape[columns];
	uint64_t rank = (uint64_t)toy->rank, size = (uint64_t)toy->size;
	uint32_t *grid = calloc(ROWS * COLUMNS + 5, sizeof(*grid));

	offset[columns] = n * rank / size;
	extent[columns] = n * (rank + 1) / size - offset[columns];
	/* Where it begins and ends, for fill_grid. */
	grid[0] = (uint32_t)offset[0];
	grid[1] = (uint32_t)extent[0];
	grid[2] = (uint32_t)offset[1];
	grid[3] = (uint32_t)extent[1];
	ckpt_add_sharded(toy->ck, "grid", CKPT_U32, 2, shape, offset, extent, grid + 4);
	return grid;
}

/* Make the grid of a step, or count what differs from it. */
static int grid_at(uint32_t *grid, uint64_t step, int compare)
{
	int wrong = 0;

	for (uint32_t r = 0; r < grid[1]; r++) {
		for (uint32_t c = 0; c < grid[3]; c++) {
			uint32_t *at = &grid[4 + r * grid[3] + c];
			uint32_t want =
				(uint32_t)step * 1000 + (grid[0] + r) * COLUMNS + grid[2] + c;

			wrong += compare && *at != want;
			*at = want;
		}
	}
	return wrong;
}

static int train(struct toy *toy)
{
	struct plan *plan = toy->arg;
	uint64_t step = 0, word = 5000 + (uint64_t)toy->rank;
	struct ckpt_rank_callbacks lone = {.struct_size = sizeof(lone),
					   .arg = &word,
					   .size = eight,
					   .get = get_rank,
					   .set = set_rank};
	uint32_t *grid = add_grid(toy, plan->columns);
	int rc;

	toy->refuse = plan->refuse;
	if (plan->dropping)
		lone.reassign = ckpt_reassign_drop;
	if (plan->lone || plan->dropping)
		ckpt_add_rank(toy->ck, "lone", &lone);
	toy_spoil(toy);
	rc = ckpt_restore(toy->ck, &step);
	if (toy->rank == 0) {
		plan->restored = rc;
		plan->from = step;
	}
	if (rc > 0 && (!toy_shares(toy, step) || grid_at(grid, step, 1) ||
		       word != 5000 + (uint64_t)toy->rank))
		__atomic_fetch_add(&plan->wrong, 1, __ATOMIC_SEQ_CST);
	while (rc >= 0 && step < plan->to) {
		toy_train(toy, ++step);
		grid_at(grid, step, 0);
		rc = ckpt_step(toy->ck, step);
		if (rc >= 0)
			rc = ckpt_save(toy->ck, step);
		if (rc >= 0)
			rc = ckpt_wait(toy->ck);
	}
	if (rc >= 0)
		rc = ckpt_wait(toy->ck);
	free(grid);
	return rc < 0 ? rc : 0;
}

static int run(int size, struct plan *plan)
{
	toy_run(size, &options, train, plan, toys, &text);
	return toys[0].code;
}

static void spoil(const char *name)
{
	char path[PATH_MAX + 64];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "r+b");
	if (!file) {
		ok(0, "%s is there", path);
		return;
	}
	fseek(file, -3, SEEK_END);
	fputc(0x55, file);
	fclose(file);
}

static void other_worlds(void)
{
	static const int worlds[][2] = {{4, 8}, {8, 3}, {3, 7}, {5, 1}, {1, 4}, {4, 3}};

	for (size_t i = 0; i < sizeof(worlds) / sizeof(*worlds); i++) {
		int from = worlds[i][0], to = worlds[i][1], seen = 1;
		struct plan first = {.to = 3}, second = {.to = 5}, third = {.to = 5};
		char note[32];

		fresh_dir("run");
		is_int(run(from, &first), 0, "%d ranks: %s", from, text.text);
		is_int(run(to, &second), 0, "%d ranks: %s", to, text.text);
		is_int(second.restored, CKPT_RESUMED, "%d -> %d resumes", from, to);
		is_u64(second.from, 3, "at the last step");
		is_int(second.wrong, 0, "bit for bit on all ranks");
		for (int r = 0; r < to; r++)
			seen = seen && toy_saw(&toys[r], from, 3);
		ok(seen, "reassign saw the bytes of all old ranks");
		snprintf(note, sizeof(note), "by %d rank%s, on %d", from, ck_plural((uint64_t)from),
			 to);
		like(text.text, note, "the line says both numbers");
		is_int(run(from, &third), 0, "and back");
		is_u64(third.from, 5, "from what the others saved");
		is_int(third.wrong, 0, "bit for bit");
	}
}

static void other_blocks(void)
{
	struct plan rows = {.to = 2}, columns = {.to = 3, .columns = 1}, again = {.to = 3};

	fresh_dir("run");
	is_int(run(5, &rows), 0, "the grid in rows");
	is_int(run(5, &columns), 0, "as many ranks, in columns: %s", text.text);
	is_u64(columns.from, 2, "resumes");
	is_int(columns.wrong, 0, "bit for bit");
	is_u64(toys[3].own_bytes, (3 * 7 + 3) % 65, "bytes of a rank stay its own");
	is_u64(toys[3].seen_world, 0, "without asking reassign");
	is_int(run(2, &again), 0, "in rows again, on 2");
	is_int(again.wrong, 0, "bit for bit");
}

static void falls_back(void)
{
	struct plan first = {.to = 3}, second = {.to = 3};

	fresh_dir("run");
	is_int(run(4, &first), 0, "three checkpoints");
	spoil("step-0000000003.g1/rank-00002.0.safetensors");
	is_int(run(3, &second), 0, "3 ranks, the newest is damaged: %s", text.text);
	is_int(second.restored, CKPT_FELL_BACK, "falls back");
	is_u64(second.from, 2, "to the one before");
	is_int(second.wrong, 0, "whose bytes are all there");
	like(text.text, "refused step 3", "and says so");
	like(text.text, "rank-00002.0.safetensors: chunk 0", "and why");
}

static void refusals(void)
{
	static const struct {
		const char *what;
		struct plan first, second;
		const char *world;
		int code;
		const char *text[2];
	} cases[] = {
		{"--ckpt-world=fixed",
		 {.to = 2},
		 {.to = 2},
		 "fixed",
		 CKPT_EWORLD,
		 {"saved by 4 ranks, this job has 3", "start it with 4 ranks"}},
		{"a per-rank item that cannot be reassigned",
		 {.to = 2, .lone = 1},
		 {.to = 2, .lone = 1},
		 NULL,
		 CKPT_EITEM,
		 {"item 'lone' belongs to one rank each, of 4 that saved; this job has 3",
		  "`reassign` callback"}},
		{"a reassign that refuses",
		 {.to = 1},
		 {.to = 1, .refuse = 9},
		 NULL,
		 CKPT_EFORMAT,
		 {"item 'own'", "refused the values of 4 ranks (it returned 9)"}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct plan first = cases[i].first, second = cases[i].second;

		fresh_dir("run");
		is_int(run(4, &first), 0, "%s: 4 ranks save", cases[i].what);
		options.world = cases[i].world;
		is_int(run(3, &second), cases[i].code, "%s: 3 ranks are refused", cases[i].what);
		for (int r = 1; r < 3; r++)
			is_int(toys[r].code, cases[i].code, "on rank %d too", r);
		for (int t = 0; t < 2; t++)
			like(text.text, cases[i].text[t], "and the text says so");
		if (cases[i].world) {
			second = cases[i].second;
			is_int(run(4, &second), 0, "4 ranks are fine");
			is_int(second.restored, CKPT_RESUMED, "and resume");
		}
		options.world = NULL;
	}
}

static void dropped(void)
{
	struct plan first = {.to = 2, .dropping = 1}, second = {.to = 2, .dropping = 1};

	fresh_dir("run");
	is_int(run(4, &first), 0, "a per-rank item with ckpt_reassign_drop");
	is_int(run(6, &second), 0, "on 6 ranks: %s", text.text);
	is_int(second.restored, CKPT_RESUMED, "resumes");
	is_int(second.wrong, 0, "the item is as the program made it");
}

int main(void)
{
	other_worlds();
	other_blocks();
	falls_back();
	refusals();
	dropped();
	return done_testing();
}
