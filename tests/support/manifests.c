#include "manifests.h"

#include <stdlib.h>
#include <string.h>

void manifest_add_item(struct ck_manifest *m, const char *name, enum ck_kind kind,
		       enum ck_dtype dtype, int ndim, uint64_t first, uint64_t second)
{
	struct ck_item *item;

	m->items.items = reallocarray(m->items.items, m->items.count + 1, sizeof(*item));
	item = &m->items.items[m->items.count++];
	*item = (struct ck_item){.name = strdup(name), .kind = kind, .dtype = dtype, .ndim = ndim};
	for (int d = 0; d < ndim; d++)
		item->shape[d] = d == 0 ? first : second;
}

struct ck_file *manifest_add_file(struct ck_manifest *m, uint32_t rank, uint32_t part,
				  uint64_t bytes)
{
	uint64_t chunk_bytes = ck_chunk_bytes(bytes);
	struct ck_file *file;

	m->files = reallocarray(m->files, m->nfiles + 1, sizeof(*file));
	file = &m->files[m->nfiles++];
	*file = (struct ck_file){
		.rank = rank, .part = part, .bytes = bytes, .chunk_bytes = chunk_bytes};
	ck_name_shard(rank, part, file->path);
	memset(file->sha256, "0123456789abcdef"[(rank + part) % 16], CK_SHA256_HEX);
	file->chunk_crc32 = calloc(ck_chunk_count(bytes, chunk_bytes) + 1, sizeof(uint32_t));
	for (uint64_t i = 0; i < ck_chunk_count(bytes, chunk_bytes); i++)
		file->chunk_crc32[i] = (uint32_t)(i * 2654435761u + rank);
	file->crc32 = rank * 40503u;
	return file;
}

struct ck_manifest manifest_valid(void)
{
	struct ck_manifest m = {
		.world_size = 2,
		.id = {.step = 1234, .generation = 3},
		.wall_clock_seconds = 3600.25,
		.run_id = "0123456789abcdef0123456789abcdef",
		.run = "bert \"large\" \xc3\xa9",
		.save_id = "fedcba9876543210fedcba9876543210",
		.job = {"atlas", "4711", 2, "0", "n[1-2]"},
		.created = 1764448670,
		.writer = "slurm-ckpt 0.1.0",
	};

	m.user = strdup("{ \"lr\" : 1e-3,\n\t\"one\": 1.0, \"t\": \"a \\\\\" }");
	manifest_add_item(&m, "params", CK_SHARDED, CK_F32, 1, 100, 0);
	manifest_add_item(&m, "rng", CK_PER_RANK, CK_U8, 0, 0, 0);
	manifest_add_item(&m, "scale", CK_SHARDED, CK_F64, 0, 0, 0);
	m.items.flat = strdup("params");
	manifest_add_file(&m, 0, 0, 4496)->param_shard_numel = 60;
	manifest_add_file(&m, 1, 0, (UINT64_C(48) << 20) + 1);
	m.files[1].param_shard_offset = 60;
	m.files[1].param_shard_numel = 40;
	manifest_add_file(&m, 1, 1, 4096);
	return m;
}

void manifest_drop_files(struct ck_manifest *m)
{
	while (m->nfiles)
		free(m->files[--m->nfiles].chunk_crc32);
}
