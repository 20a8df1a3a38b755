#include "rundir.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commit.h"
#include "manifests.h"
#include "run.h"
#include "tap.h"

#define RUN_ID "0123456789abcdef0123456789abcdef"

const char *in_dir(const char *dir, const char *name)
{
	static char path[8][PATH_MAX];
	static unsigned next;
	char *out = path[next++ % 8];

	snprintf(out, PATH_MAX, "%s/%s", dir, name);
	return out;
}

bool exists_in(const char *dir, const char *name)
{
	struct stat st;

	return lstat(in_dir(dir, name), &st) == 0;
}

size_t count_in(const char *dir)
{
	struct ck_names names = {NULL, 0};
	size_t count;

	ck_io_list(&ck_io_posix, dir, &names, NULL);
	count = names.count;
	ck_names_fini(&names);
	return count;
}

char *content_of(const char *path)
{
	struct ck_buf text = CK_BUF_INIT;

	return ck_io_read_file(&ck_io_posix, path, 1 << 20, &text, NULL) ? NULL : text.data;
}

void put_file(const char *path, const char *text)
{
	struct ck_error err = CK_ERROR_INIT;

	if (ck_io_write_file(&ck_io_posix, path, text, strlen(text), &err))
		ok(false, "a file can be made: %s", err.text);
}

void race(int count, int (*work)(const char *dir, int i), const char *dir, int *results)
{
	int gate[2], status;
	pid_t pids[16];
	char byte;

	fflush(stdout);
	if (pipe(gate) < 0)
		ok(false, "pipe");
	for (int i = 0; i < count; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			close(gate[1]);
			/* The end of the pipe is the start of the race. */
			_exit(read(gate[0], &byte, 1) == 0 ? work(dir, i) : 99);
		}
	}
	close(gate[0]);
	close(gate[1]);
	for (int i = 0; i < count; i++) {
		if (pids[i] < 0 || waitpid(pids[i], &status, 0) < 0)
			results[i] = 127;
		else
			results[i] =
				WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
}

void make_run(const char *dir)
{
	struct ck_run run = {.name = "test"};
	struct ck_claim claim = {.host = "h", .pid = 1, .time = 1764448670, .world_size = 1};
	struct ck_error err = CK_ERROR_INIT;

	if (ck_run_create(&ck_io_posix, dir, &run, &err) ||
	    ck_claim_take(&ck_io_posix, dir, &claim, &err))
		ok(false, "a run can be made: %s", err.text);
}

void make_generation(const char *dir, uint64_t generation)
{
	char name[CK_NAME_MAX];
	struct ck_error err = CK_ERROR_INIT;

	if (ck_io_mkdir(&ck_io_posix, in_dir(dir, ck_name_generation(generation, name)), &err))
		ok(false, "a generation can be made: %s", err.text);
}

int sweep_now(const struct ck_io *io, const char *dir, uint64_t generation, struct ck_error *err)
{
	struct ck_names names;
	int rc = ck_io_list(io, dir, &names, err);

	if (rc)
		return rc;
	rc = ck_sweep(io, dir, &names, generation, err);
	ck_names_fini(&names);
	return rc;
}

/* --- the state --- */

struct ck_manifest state_manifest(struct ck_step_id id, uint32_t world)
{
	struct ck_manifest m = {
		.world_size = world,
		.id = id,
		.wall_clock_seconds = (double)id.step,
		.run_id = RUN_ID,
		.run = "test",
		.created = 1764448670 + (int64_t)id.step,
		.writer = "test",
	};

	snprintf(m.save_id, sizeof(m.save_id), "%016llx%016llx", (unsigned long long)id.generation,
		 (unsigned long long)id.step);
	manifest_add_item(&m, "none", CK_SHARDED, CK_F32, 2, 0, 7);
	manifest_add_item(&m, "params", CK_SHARDED, CK_F32, 1, 10 * (uint64_t)world, 0);
	manifest_add_item(&m, "rng", CK_PER_RANK, CK_U8, 0, 0, 0);
	manifest_add_item(&m, "scale", CK_SHARDED, CK_F64, 0, 0, 0);
	manifest_add_item(&m, "w", CK_SHARDED, CK_F32, 2, 4 * (uint64_t)world, 3);
	m.items.flat = strdup("params");
	return m;
}

/* A block of an item of the table: rows [begin, begin + rows) of it, or all of a scalar. */
static struct ck_stored block_of(const struct ck_manifest *m, size_t item, uint64_t begin,
				 uint64_t rows, const char *data)
{
	const struct ck_item *of = &m->items.items[item];
	struct ck_stored block = {
		.name = of->name,
		.kind = of->kind,
		.dtype = of->dtype,
		.ndim = of->ndim,
		.data = data,
	};

	memcpy(block.shape, of->shape, sizeof(block.shape));
	block.box.ndim = of->ndim;
	if (of->kind == CK_PER_RANK)
		block.ndim = block.box.ndim = 1;
	if (block.ndim > 0) {
		block.box.offset[0] = begin;
		block.box.extent[0] = rows;
	}
	if (block.ndim > 1)
		block.box.extent[1] = of->shape[1];
	block.bytes = ck_box_volume(&block.box) * ck_dtype_size((int)of->dtype);
	return block;
}

static size_t state_blocks(const struct ck_manifest *m, uint32_t rank, const char *data,
			   struct ck_stored *out)
{
	size_t n = 0;

	out[n++] = block_of(m, 1, 10 * (uint64_t)rank, 10, data);
	out[n++] = block_of(m, 2, 0, rank == 0 ? 6 : 5, data + 100);
	if (rank == 0) {
		out[n++] = block_of(m, 3, 0, 0, data + 200);
		out[n++] = block_of(m, 4, 0, 2, data + 300);
		out[n++] = block_of(m, 4, 2, 2, data + 400);
	} else {
		out[n++] = block_of(m, 4, 4 * (uint64_t)rank, 4, data + 300);
	}
	return n;
}

/* The record's files go to the end of the manifest's. */
static void take_files(struct ck_manifest *m, struct ck_record *record)
{
	m->files = reallocarray(m->files, m->nfiles + record->nfiles, sizeof(*m->files));
	memcpy(m->files + m->nfiles, record->files, record->nfiles * sizeof(*m->files));
	m->nfiles += record->nfiles;
	record->nfiles = 0;
	ck_record_fini(record);
}

int save_rank_as(const struct ck_io *io, const char *dir, struct ck_manifest *manifest,
		 uint32_t rank, uint32_t blocks_of, struct ck_error *err)
{
	struct ck_stored blocks[8];
	struct ck_plan plan;
	struct ck_record record;
	char data[1024];
	int rc;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * 7 + rank * 31 + manifest->id.step * 13);
	rc = ck_shard_plan(rank, manifest->world_size, blocks,
			   state_blocks(manifest, blocks_of, data, blocks), &plan, err);
	if (rc)
		return rc;
	rc = ck_save_write(io, dir, manifest->id, manifest->save_id, rank, &plan,
			   manifest->items.flat, NULL, &record, err);
	if (!rc)
		take_files(manifest, &record);
	ck_plan_fini(&plan);
	return rc;
}

int save_rank(const struct ck_io *io, const char *dir, struct ck_manifest *manifest, uint32_t rank,
	      struct ck_error *err)
{
	return save_rank_as(io, dir, manifest, rank, rank, err);
}

int save_extra(const struct ck_io *io, const char *dir, struct ck_manifest *manifest, uint32_t rank,
	       bool with_rng, struct ck_error *err)
{
	struct ck_stored block = block_of(manifest, 2, 0, 5, "extra");
	struct ck_file *files, *last = NULL;
	struct ck_digests digests;
	struct ck_plan plan;
	char path[PATH_MAX], staging[CK_NAME_MAX];
	size_t n = manifest->nfiles;
	int rc;

	rc = ck_shard_plan(rank, 1, &block, with_rng, &plan, err);
	if (rc)
		return rc;
	files = reallocarray(manifest->files, n + 1, sizeof(*files));
	last = n > 0 && files[n - 1].rank == rank ? &files[n - 1] : NULL;
	files[n] = (struct ck_file){.rank = rank, .part = last ? last->part + 1 : 0};
	manifest->files = files;
	ck_name_shard(rank, files[n].part, files[n].path);
	snprintf(path, sizeof(path), "%s/%s/%s", dir, ck_name_saving(manifest->id, staging),
		 files[n].path);
	rc = ck_shard_write(io, path, &plan.parts[0], &digests, err);
	ck_plan_fini(&plan);
	if (rc)
		return rc;
	files[n].bytes = digests.bytes;
	memcpy(files[n].sha256, digests.sha256, sizeof(files[n].sha256));
	files[n].crc32 = digests.crc32;
	files[n].chunk_bytes = digests.chunk_bytes;
	files[n].chunk_crc32 = digests.chunk_crc32;
	manifest->nfiles++;
	return 0;
}

int save_step(const struct ck_io *io, const char *dir, struct ck_step_id id, uint32_t world,
	      struct ck_error *warning, struct ck_error *err)
{
	struct ck_manifest m = state_manifest(id, world);
	char staging[PATH_MAX];
	int rc;

	rc = ck_save_begin(io, dir, id, staging, err);
	if (!rc)
		rc = ck_save_announce(io, dir, &m, err);
	for (uint32_t rank = 0; rank < world && !rc; rank++)
		rc = save_rank(io, dir, &m, rank, err);
	if (!rc)
		rc = ck_save_commit(io, dir, &m, warning, err);
	ck_manifest_fini(&m);
	return rc;
}

const char *run_with(struct ck_step_id id, uint32_t world)
{
	const char *dir = test_tmpdir();
	struct ck_error err = CK_ERROR_INIT;

	make_run(dir);
	if (save_step(&ck_io_posix, dir, id, world, NULL, &err))
		ok(false, "a checkpoint can be made: %s", err.text);
	return dir;
}
