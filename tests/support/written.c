#include "written.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog.h"
#include "commit.h"
#include "rundir.h"
#include "tilings.h"

static void need(int rc, const struct ck_error *err)
{
	if (!rc)
		return;
	printf("Bail out! written: %s\n", err->text);
	exit(1);
}

size_t written_own(uint32_t rank, unsigned char out[static 64])
{
	size_t bytes = (rank * 7 + 3) % 20; /* 0 of rank 11 */

	for (size_t i = 0; i < bytes; i++)
		out[i] = (unsigned char)(rank * 16 + i);
	return bytes;
}

static struct ck_box whole_of(const struct ck_item *item)
{
	struct ck_box box = {.ndim = item->ndim};

	memcpy(box.extent, item->shape, sizeof(box.extent));
	return box;
}

void *written_part(const struct written *w, size_t item, const struct ck_box *box)
{
	const struct ck_item *it = &w->manifest.items.items[item];
	size_t element = ck_dtype_size((int)it->dtype);
	struct ck_box whole = whole_of(it);
	char *out = malloc(ck_box_volume(box) * element + 1);

	plain_copy(&whole, w->tensors[item], box, out, element, 0);
	return out;
}

static void make_tensors(struct written *w, const struct ck_item_list *table, uint64_t seed)
{
	w->ntensors = table->count;
	w->tensors = calloc(table->count + 1, sizeof(*w->tensors));
	for (size_t i = 0; i < table->count; i++) {
		struct ck_box whole = whole_of(&table->items[i]);
		size_t bytes = ck_box_volume(&whole) * ck_dtype_size((int)table->items[i].dtype);

		if (table->items[i].kind == CK_PER_RANK)
			continue;
		w->tensors[i] = malloc(bytes + 8);
		for (size_t k = 0; k < bytes; k += 8) {
			uint64_t value = draw(&seed, UINT64_MAX);

			memcpy(w->tensors[i] + k, &value, bytes - k < 8 ? bytes - k : 8);
		}
	}
}

static struct ck_stored stored_of(const struct written *w, size_t item, const struct ck_box *box)
{
	const struct ck_item *it = &w->manifest.items.items[item];
	struct ck_stored block = {.name = it->name,
				  .kind = it->kind,
				  .dtype = it->dtype,
				  .ndim = box->ndim,
				  .box = *box};

	memcpy(block.shape, it->shape, sizeof(block.shape));
	block.bytes = ck_box_volume(box) * ck_dtype_size((int)it->dtype);
	return block;
}

/* Everything that one rank stores; data are malloc'ed. */
static size_t blocks_of(const struct written *w, const struct ck_layout *layout, uint32_t rank,
			struct ck_stored *out)
{
	const struct ck_item_list *table = &w->manifest.items;
	size_t n = 0;

	for (size_t b = 0; b < layout->nblocks; b++) {
		struct ck_box box;

		if (layout->blocks[b].rank != rank)
			continue;
		ck_layout_box(layout, b, &box);
		out[n] = stored_of(w, layout->blocks[b].item, &box);
		out[n++].data = written_part(w, layout->blocks[b].item, &box);
	}
	for (size_t i = 0; i < table->count; i++) {
		unsigned char *own = calloc(1, 64);
		struct ck_box box = range(0, 0);

		if (table->items[i].kind != CK_PER_RANK) {
			free(own);
			continue;
		}
		box.extent[0] = written_own(rank, own);
		out[n] = stored_of(w, i, &box);
		out[n++].data = own;
	}
	return n;
}

static void save_one(struct written *w, const struct ck_layout *layout, uint32_t rank)
{
	struct ck_stored *blocks =
		calloc(layout->nblocks + w->manifest.items.count + 1, sizeof(*blocks));
	size_t n = blocks_of(w, layout, rank, blocks);
	struct ck_manifest *m = &w->manifest;
	struct ck_error err = CK_ERROR_INIT;
	struct ck_record record;
	struct ck_plan plan;

	need(ck_shard_plan(rank, m->world_size, blocks, n, &plan, &err), &err);
	need(ck_save_write(&ck_io_posix, w->run, m->id, m->save_id, rank, &plan, m->items.flat,
			   NULL, &record, &err),
	     &err);
	m->files = reallocarray(m->files, m->nfiles + record.nfiles, sizeof(*m->files));
	memcpy(m->files + m->nfiles, record.files, record.nfiles * sizeof(*m->files));
	m->nfiles += record.nfiles;
	record.nfiles = 0;
	ck_record_fini(&record);
	ck_plan_fini(&plan);
	for (size_t i = 0; i < n; i++)
		free((void *)blocks[i].data);
	free(blocks);
}

void written_make(struct written *w, const char *run, struct ck_step_id id,
		  const struct ck_item_list *table, const struct ck_layout *layout, uint32_t ranks,
		  uint64_t seed)
{
	struct ck_error err = CK_ERROR_INIT;
	char staging[PATH_MAX], name[CK_NAME_MAX];
	struct ck_manifest *m = &w->manifest;
	struct ck_run made;

	memset(w, 0, sizeof(*w));
	snprintf(w->run, sizeof(w->run), "%s", run);
	make_run(run);
	need(ck_run_load(&ck_io_posix, run, &made, &err), &err);
	*m = (struct ck_manifest){.world_size = ranks,
				  .id = id,
				  .run = "test",
				  .created = 1764448670,
				  .writer = "test"};
	strcpy(m->run_id, made.run_id);
	need(ck_random_hex(m->save_id, CK_RUN_ID_HEX / 2, &err), &err);
	for (size_t i = 0; i < table->count; i++)
		need(ck_item_list_append(&m->items, &table->items[i], &err), &err);
	m->items.flat = table->flat ? strdup(table->flat) : NULL;
	make_tensors(w, table, seed);
	need(ck_save_begin(&ck_io_posix, run, id, staging, &err), &err);
	need(ck_save_announce(&ck_io_posix, run, m, &err), &err);
	for (uint32_t r = 0; r < ranks; r++)
		save_one(w, layout, r);
	need(ck_save_commit(&ck_io_posix, run, m, NULL, &err), &err);
	if (!ck_path_join(w->step, run, ck_name_step(id, name)))
		exit(1);
}

void written_free(struct written *w)
{
	for (size_t i = 0; i < w->ntensors; i++)
		free(w->tensors[i]);
	free(w->tensors);
	ck_manifest_fini(&w->manifest);
}
