#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "parallel.h"
#include "queue.h"
#include "shard_impl.h"

/* A block of a file: in the program's memory where it can be written from there, else gathered. */
struct slot {
	struct ck_transfer transfer;
	bool busy;
	char *gathered; /* made when it is first needed */
	const char *data;
	size_t bytes;
};

/* One file under way. */
struct lane {
	const struct ck_part *part;
	char path[PATH_MAX];
	int fd, direct;  /* through the page cache, and past it */
	bool use_direct; /* until the file system refuses */
	struct ck_digest *digest;
	struct ck_digests done;
	uint64_t next; /* offset of the block to come */
	size_t block;  /* of the part, that `next` is in or before */
	struct slot slots[CK_SHARD_SLOTS];
};

struct writing {
	const struct ck_io *io;
	struct ck_shard_options options;
	bool small;
	struct lane *lanes;
	size_t nlanes, nthreads;
	atomic_bool failed; /* one of the threads */
	struct thread *threads;
};

/* What one thread does. */
struct thread {
	struct writing *w;
	struct lane *lanes;
	size_t nlanes;
	struct ck_queue *queue;
	int rc;
	struct ck_error err;
};

/* Where the bytes from `offset` on are, and how many of them lie in one run. */
static const char *memory_at(struct lane *l, uint64_t offset, uint64_t *run)
{
	const struct ck_part *part = l->part;
	const struct ck_stored *block;

	if (part->image) {
		*run = part->bytes - offset;
		return (const char *)part->image + offset;
	}
	if (offset < part->header.len) {
		*run = part->header.len - offset;
		return part->header.data + offset;
	}
	while (part->blocks[l->block].offset + part->blocks[l->block].bytes <= offset)
		l->block++;
	block = &part->blocks[l->block];
	*run = block->offset + block->bytes - offset;
	return (const char *)block->data + (offset - block->offset);
}

static int gather(struct lane *l, struct slot *slot, struct ck_error *err)
{
	uint64_t wanted = (l->part->bytes / CK_SHARD_ALIGN + 1) * CK_SHARD_ALIGN, run;

	if (wanted > CK_SHARD_BLOCK)
		wanted = CK_SHARD_BLOCK;
	if (!slot->gathered)
		slot->gathered = aligned_alloc(CK_SHARD_ALIGN, wanted);
	if (!slot->gathered)
		return ck_fail_nomem(err, wanted);
	for (size_t at = 0; at < slot->bytes; at += run) {
		const char *from = memory_at(l, l->next + at, &run);

		if (run > slot->bytes - at)
			run = slot->bytes - at;
		memcpy(slot->gathered + at, from, run);
	}
	slot->data = slot->gathered;
	return 0;
}

/* Fill a slot with the block that comes next. */
static int take_block(struct lane *l, struct slot *slot, struct ck_error *err)
{
	uint64_t left = l->part->bytes - l->next, run;

	slot->bytes = left < CK_SHARD_BLOCK ? (size_t)left : CK_SHARD_BLOCK;
	slot->data = memory_at(l, l->next, &run);
	if (run >= slot->bytes && (!l->use_direct || (uintptr_t)slot->data % CK_SHARD_ALIGN == 0))
		return 0;
	return gather(l, slot, err);
}

/* The end of a file, less than CK_SHARD_ALIGN bytes, goes through the page cache. */
static int submit_block(struct thread *t, struct lane *l, struct slot *slot, struct ck_error *err)
{
	size_t ragged = l->use_direct ? slot->bytes % CK_SHARD_ALIGN : 0;
	size_t bytes = slot->bytes - ragged;

	slot->transfer = (struct ck_transfer){.write = true,
					      .fd = l->use_direct ? l->direct : l->fd,
					      .plain_fd = l->fd,
					      .data = (char *)slot->data,
					      .bytes = bytes,
					      .offset = l->next};
	slot->busy = true;
	ck_queue_submit(t->queue, &slot->transfer);
	return ragged ? ck_io_pwrite_full(t->w->io, l->fd, l->path, slot->data + bytes, ragged,
					  l->next + bytes, err)
		      : 0;
}

static struct lane *lane_of(struct thread *t, const struct ck_transfer *done)
{
	size_t k = 0;

	while (done->plain_fd != t->lanes[k].fd)
		k++;
	return &t->lanes[k];
}

/* Wait for the next block to arrive, whichever it is. */
static int reap(struct thread *t, struct ck_error *err)
{
	struct ck_transfer *done = ck_queue_reap(t->queue);
	struct lane *l;

	if (!done)
		return 0;
	l = lane_of(t, done);
	for (size_t s = 0; s < CK_SHARD_SLOTS; s++)
		if (&l->slots[s].transfer == done)
			l->slots[s].busy = false;
	if (done->fell_back) {
		l->use_direct = false;
		ck_shard_note(&t->w->options, CK_NOTE_BUFFERED);
	}
	if (done->errnum == 0)
		return 0;
	return ck_fail_errno(err, done->errnum, "%s: write of %zu bytes at byte %" PRIu64, l->path,
			     done->bytes - done->done, done->offset + done->done);
}

/* One block of each file: on its way first, then hashed, all at once. */
static int advance(struct thread *t, size_t round, bool *more, struct ck_error *err)
{
	struct ck_digest *digests[CK_SHARD_LANES];
	const void *data[CK_SHARD_LANES];
	size_t bytes[CK_SHARD_LANES], n = 0;
	int rc = 0;

	for (size_t k = 0; k < t->nlanes && rc == 0; k++) {
		struct lane *l = &t->lanes[k];
		struct slot *slot = &l->slots[round % CK_SHARD_SLOTS];

		if (l->next == l->part->bytes)
			continue;
		while (slot->busy && rc == 0)
			rc = reap(t, err);
		if (rc == 0)
			rc = take_block(l, slot, err);
		if (rc == 0)
			rc = submit_block(t, l, slot, err);
		digests[n] = l->digest;
		data[n] = slot->data;
		bytes[n++] = slot->bytes;
		l->next += slot->bytes;
	}
	*more = n > 0;
	return rc ? rc : ck_digest_update_all(digests, data, bytes, n, err);
}

static int write_lanes(struct thread *t, struct ck_error *err)
{
	bool more = true;
	int rc = 0;

	for (size_t round = 0; rc == 0 && more && !t->w->failed; round++)
		rc = advance(t, round, &more, err);
	for (size_t k = 0; k < t->nlanes && rc == 0; k++)
		for (size_t s = 0; s < CK_SHARD_SLOTS && rc == 0; s++)
			while (t->lanes[k].slots[s].busy && rc == 0)
				rc = reap(t, err);
	return rc;
}

/* All is written. What close says about the descriptor without a cache counts as well. */
static int finish_lane(const struct ck_io *io, struct lane *l, struct ck_error *err)
{
	int rc = 0, direct = l->direct;

	l->direct = -1;
	if (direct >= 0 && io->ops->close(io, direct) < 0 && errno != EINTR)
		rc = ck_fail_errno(err, errno, "%s: close", l->path);
	if (rc == 0)
		rc = ck_io_sync_close(io, &l->fd, l->path, err);
	return rc ? rc : ck_digest_final(l->digest, &l->done, err);
}

static int open_lane(struct writing *w, struct lane *l, struct ck_error *err)
{
	uint64_t bytes = l->part->bytes;
	int rc = ck_digest_new(&l->digest, bytes, ck_chunk_bytes(bytes), w->options.sha, err);

	if (rc == 0)
		rc = ck_io_create(w->io, l->path, &l->fd, err);
	if (rc || w->small)
		return rc;
	if (w->options.direct) {
		l->direct = ck_io_open_direct(w->io, l->path, l->fd, O_WRONLY);
		l->use_direct = l->direct >= 0;
		if (!l->use_direct)
			ck_shard_note_direct(&w->options, errno);
	}
	return ck_io_reserve(w->io, l->fd, l->path, bytes, err);
}

/* A write that nobody will hear of may still be under way. */
static void free_slot(struct slot *slot)
{
	if (!slot->transfer.lost || slot->data != slot->gathered)
		free(slot->gathered);
}

static int run_lanes(struct thread *t)
{
	enum ck_queue_kind best = t->w->small ? CK_QUEUE_AT_ONCE : CK_QUEUE_KERNEL;
	int rc = ck_queue_new(t->w->io, (unsigned)t->nlanes * CK_SHARD_SLOTS, best, &t->queue,
			      &t->err);

	if (rc)
		return rc;
	if (ck_queue_kind(t->queue) < best)
		ck_shard_note(&t->w->options, CK_NOTE_NO_QUEUE);
	for (size_t k = 0; k < t->nlanes && rc == 0; k++)
		rc = open_lane(t->w, &t->lanes[k], &t->err);
	if (rc == 0)
		rc = write_lanes(t, &t->err);
	/* Before the memory goes that transfers may still read. */
	ck_queue_free(t->queue);
	for (size_t k = 0; k < t->nlanes; k++)
		for (size_t s = 0; s < CK_SHARD_SLOTS; s++)
			free_slot(&t->lanes[k].slots[s]);
	for (size_t k = 0; k < t->nlanes && rc == 0 && !t->w->failed; k++)
		rc = finish_lane(t->w->io, &t->lanes[k], &t->err);
	return rc;
}

/* The files of one thread, CK_SHARD_LANES at a time. */
static void run_thread(void *arg, size_t i)
{
	struct writing *w = arg;
	struct thread *t = &w->threads[i];
	size_t end = w->nlanes * (i + 1) / w->nthreads;

	for (size_t k = w->nlanes * i / w->nthreads; k < end && t->rc == 0; k += t->nlanes) {
		t->w = w;
		t->lanes = &w->lanes[k];
		t->nlanes = end - k < CK_SHARD_LANES ? end - k : CK_SHARD_LANES;
		t->rc = run_lanes(t);
	}
	if (t->rc)
		w->failed = true;
}

static int write_all(struct writing *w, struct ck_error *err)
{
	int rc = 0;

	if (w->options.threads > 1)
		w->nthreads = w->options.threads < w->nlanes ? w->options.threads : w->nlanes;
	w->threads = calloc(w->nthreads, sizeof(*w->threads));
	if (!w->threads)
		return ck_fail_nomem(err, w->nthreads * sizeof(*w->threads));
	ck_parallel(w->nthreads, run_thread, w);
	for (size_t i = 0; i < w->nthreads && rc == 0; i++) {
		rc = w->threads[i].rc;
		if (rc)
			ck_fail(err, rc, "%s", w->threads[i].err.text);
	}
	free(w->threads);
	return rc;
}

static void lane_init(struct writing *w, struct lane *l, const struct ck_part *part)
{
	l->part = part;
	l->fd = l->direct = -1;
	w->small = w->small && part->bytes < CK_SHARD_SMALL;
}

/* Hands the digests over where all went well. */
static void lane_fini(const struct ck_io *io, struct lane *l, int rc, struct ck_digests *digests)
{
	ck_io_close(io, &l->fd);
	ck_io_close(io, &l->direct);
	ck_digest_free(l->digest);
	if (rc)
		ck_digests_fini(&l->done);
	else
		*digests = l->done;
}

int ck_shard_write_all(const struct ck_io *io, const char *dir, uint32_t rank,
		       const struct ck_plan *plan, const struct ck_shard_options *options,
		       struct ck_digests *digests, struct ck_error *err)
{
	struct writing w = {.io = io, .nlanes = plan->nparts, .nthreads = 1, .small = true};
	char name[CK_NAME_MAX];
	int rc = 0;

	w.options = ck_shard_options_or_default(options);
	w.lanes = calloc(plan->nparts, sizeof(*w.lanes));
	if (!w.lanes)
		return ck_fail_nomem(err, plan->nparts * sizeof(*w.lanes));
	for (size_t i = 0; i < plan->nparts; i++) {
		lane_init(&w, &w.lanes[i], &plan->parts[i]);
		ck_name_shard(rank, (uint32_t)i, name);
		if (!ck_path_join(w.lanes[i].path, dir, name) && rc == 0)
			rc = ck_fail_errno(err, ENAMETOOLONG, "%s/%s", dir, name);
	}
	if (rc == 0)
		rc = write_all(&w, err);
	for (size_t i = 0; i < plan->nparts; i++)
		lane_fini(io, &w.lanes[i], rc, &digests[i]);
	free(w.lanes);
	return rc;
}

int ck_shard_write(const struct ck_io *io, const char *path, const struct ck_part *part,
		   struct ck_digests *digests, struct ck_error *err)
{
	struct lane lane = {0};
	struct writing w = {.io = io, .nlanes = 1, .nthreads = 1, .small = true, .lanes = &lane};
	int rc = 0;

	w.options = ck_shard_options_or_default(NULL);
	lane_init(&w, &lane, part);
	if (strlen(path) >= sizeof(lane.path))
		rc = ck_fail_errno(err, ENAMETOOLONG, "%s: create", path);
	else
		strcpy(lane.path, path);
	if (rc == 0)
		rc = write_all(&w, err);
	lane_fini(io, &lane, rc, digests);
	return rc;
}
