#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "files.h"
#include "json.h"
#include "verify_impl.h"

#define THREADS_MAX 256
#define TOGETHER 4

/* Does a block agree with the manifest's table? Says where not; NULL when it does not. */
static const struct ck_item *match_item(const struct ck_verification *v, const char *path,
					const struct ck_stored *block, struct ck_findings *findings)
{
	const struct ck_item *item = ck_item_list_search(&v->manifest->items, block->name);
	char shown[CK_JSON_SHOW];

	ck_json_show(shown, block->name);
	if (!item)
		ck_finding_add(findings, CK_BAD, CK_EITEM,
			       "%s: item '%s' is not in the manifest's items", path, shown);
	else if (item->kind != block->kind)
		ck_finding_add(findings, CK_BAD, CK_EITEM,
			       "%s: item '%s' is %s there, %s in the manifest", path, shown,
			       ck_kind_name(block->kind), ck_kind_name(item->kind));
	else if (item->dtype != block->dtype)
		ck_finding_add(findings, CK_BAD, CK_EITEM,
			       "%s: item '%s' has dtype %s there, %s in the manifest", path, shown,
			       ck_dtype_name((int)block->dtype), ck_dtype_name((int)item->dtype));
	else
		return item;
	return NULL;
}

static bool match_shape(const char *path, const struct ck_item *item, const struct ck_stored *block,
			struct ck_findings *findings)
{
	struct ck_buf there = CK_BUF_INIT, here = CK_BUF_INIT;

	if (item->kind == CK_PER_RANK ||
	    (item->ndim == block->ndim &&
	     memcmp(item->shape, block->shape, (size_t)item->ndim * sizeof(item->shape[0])) == 0))
		return true;
	ck_shape_print(&there, block->ndim, block->shape);
	ck_shape_print(&here, item->ndim, item->shape);
	ck_finding_add(findings, CK_BAD, CK_EITEM,
		       "%s: item '%s' has global shape %s there, %s in the manifest", path,
		       item->name, there.data ? there.data : "", here.data ? here.data : "");
	ck_buf_fini(&there);
	ck_buf_fini(&here);
	return false;
}

static void note_seen(const struct ck_verification *v, const struct ck_item *item, size_t file,
		      const struct ck_box *box, struct ck_file_result *result)
{
	size_t bytes = item->kind == CK_SHARDED ? (size_t)box->ndim * sizeof(uint64_t) : 0;
	struct ck_seen seen = {
		.item = (uint32_t)(item - v->manifest->items.items),
		.file = (uint32_t)file,
		.at = result->coords.len / sizeof(uint64_t),
	};

	ck_buf_add(&result->coords, box->offset, bytes);
	ck_buf_add(&result->coords, box->extent, bytes);
	ck_buf_add(&result->seen, &seen, sizeof(seen));
}

static void check_flat(const struct ck_verification *v, const struct ck_file *file,
		       const struct ck_shard *shard, struct ck_findings *findings)
{
	const char *flat = v->manifest->items.flat;
	uint64_t offset = 0, numel = 0;

	for (size_t i = 0; flat && i < shard->nblocks; i++) {
		const struct ck_stored *block = &shard->blocks[i];

		if (block->kind == CK_SHARDED && strcmp(block->name, flat) == 0) {
			offset = block->box.offset[0];
			numel = block->box.extent[0];
		}
	}
	if (file->param_shard_offset != offset || file->param_shard_numel != numel)
		ck_finding_add(findings, CK_BAD, CK_EITEM,
			       "%s: it holds %" PRIu64 " elements of the flat item from %" PRIu64
			       " on, the manifest says %" PRIu64 " from %" PRIu64 " on",
			       shard->path, numel, offset, file->param_shard_numel,
			       file->param_shard_offset);
}

static void check_blocks(const struct ck_verification *v, size_t i, const struct ck_shard *shard,
			 struct ck_file_result *result)
{
	for (size_t k = 0; k < shard->nblocks; k++) {
		const struct ck_stored *block = &shard->blocks[k];
		const struct ck_item *item;

		item = match_item(v, shard->path, block, &result->findings);
		if (item && match_shape(shard->path, item, block, &result->findings))
			note_seen(v, item, i, &block->box, result);
	}
	check_flat(v, &v->manifest->files[i], shard, &result->findings);
	result->parsed = true;
}

/* One file on its way through a check. */
struct checked {
	struct ck_shard shard;
	struct ck_expected expected;
	struct ck_shard_job job;
	bool open;
};

static void note_failure(struct ck_file_result *result, int rc, const struct ck_error *err)
{
	if (rc == CK_ENOMEM)
		result->findings.failed = true;
	else if (rc)
		ck_finding_add(&result->findings, CK_BAD, rc, "%s", err->text);
}

/* The caller has parsed this header before: it must have been the same. */
static int begin_seal(const struct ck_verification *v, size_t i, const struct ck_shard *shard,
		      struct ck_error *err)
{
	struct ck_seal *seal = &v->seals->files[i];

	if (seal->head_bytes != shard->head_bytes || seal->head_crc32 != shard->head_crc32)
		return ck_fail(err, CK_EIO, "%s: two reads of its header differ", shard->path);
	return ck_seal_begin(seal, shard->bytes, err);
}

/* All but the bytes. */
static void check_header(const struct ck_verification *v, size_t i, struct checked *c)
{
	const struct ck_file *file = &v->manifest->files[i];
	struct ck_error err = CK_ERROR_INIT;
	int rc;

	rc = ck_file_sized(v->io, v->step, file, &err);
	if (!rc)
		rc = ck_shard_open(v->io, v->step, file->rank, file->part, &c->shard, &err);
	c->open = rc == 0;
	if (!rc && v->seals)
		rc = begin_seal(v, i, &c->shard, &err);
	if (rc && c->open)
		ck_shard_close(v->io, &c->shard);
	note_failure(&v->results[i], rc, &err);
	c->open = rc == 0;
	if (!c->open)
		return;
	check_blocks(v, i, &c->shard, &v->results[i]);
	c->expected = (struct ck_expected){.bytes = file->bytes,
					   .sha256 = file->sha256,
					   .chunk_bytes = file->chunk_bytes,
					   .chunk_crc32 = file->chunk_crc32,
					   .crc32 = file->crc32};
	c->job = (struct ck_shard_job){.shard = &c->shard, .expected = &c->expected};
	if (v->seals) {
		c->job.consumer = ck_seal_take;
		c->job.consumer_arg = &v->seals->files[i];
	}
}

/* The bytes of several files, together. */
static void check_bytes(const struct ck_verification *v, size_t first, struct checked *files,
			size_t count)
{
	struct ck_shard_job jobs[TOGETHER];
	size_t which[TOGETHER], n = 0;

	for (size_t k = 0; k < count; k++) {
		if (!files[k].open)
			continue;
		which[n] = k;
		jobs[n++] = files[k].job;
	}
	ck_shard_read_all(v->io, jobs, n, v->level, NULL, v->progress, v->progress_arg, NULL);
	for (size_t k = 0; k < n; k++)
		note_failure(&v->results[first + which[k]], jobs[k].rc, &jobs[k].err);
}

static void check_files(const struct ck_verification *v, size_t first, size_t count)
{
	struct checked files[TOGETHER];

	for (size_t k = 0; k < count; k++)
		check_header(v, first + k, &files[k]);
	if (v->level > CK_LEVEL_SIZED)
		check_bytes(v, first, files, count);
	for (size_t k = 0; k < count; k++)
		if (files[k].open)
			ck_shard_close(v->io, &files[k].shard);
}

struct pool {
	const struct ck_verification *v;
	atomic_size_t next;
	size_t together; /* files that a thread takes at a time */
};

static void *work(void *arg)
{
	struct pool *pool = arg;
	size_t nfiles = pool->v->manifest->nfiles, i;

	while ((i = atomic_fetch_add(&pool->next, pool->together)) < nfiles)
		check_files(pool->v, i, nfiles - i < pool->together ? nfiles - i : pool->together);
	return NULL;
}

/* The caller is one of the threads, so the work is done even where no other can be had. */
void ck_verify_files(struct ck_verification *v, int threads)
{
	struct pool pool = {.v = v};
	pthread_t others[THREADS_MAX];
	size_t wanted = threads > 1 ? (size_t)threads - 1 : 0, started = 0;

	if (wanted > THREADS_MAX)
		wanted = THREADS_MAX;
	if (v->manifest->nfiles && wanted > v->manifest->nfiles - 1)
		wanted = v->manifest->nfiles - 1;
	/* Together where that keeps all threads busy. */
	pool.together = v->manifest->nfiles / (wanted + 1);
	if (pool.together > TOGETHER)
		pool.together = TOGETHER;
	if (pool.together == 0)
		pool.together = 1;
	while (started < wanted && pthread_create(&others[started], NULL, work, &pool) == 0)
		started++;
	work(&pool);
	while (started > 0)
		pthread_join(others[--started], NULL);
}
