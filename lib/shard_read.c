#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "crc32.h"
#include "parallel.h"
#include "queue.h"
#include "shard_impl.h"

/* Through the page cache: small enough to be hashed while it is in the CPU's. */
#define PIECE ((size_t)256 << 10)
/* Blocks of one file that are under way, or being hashed. */
#define SLOTS 3

/* A block of a file: read to where it belongs when it can, else bounced. */
struct slot {
	struct ck_transfer transfer;
	bool busy;
	char *bounce; /* made when it is first needed */
	size_t room;  /* in it */
	char *data;
	size_t bytes; /* the ragged end included, which is no transfer */
};

/* One file under way. */
struct lane {
	struct ck_shard_job *job;
	int direct;      /* a descriptor past the page cache */
	bool use_direct; /* until the file system refuses */
	struct ck_digest *digest;
	uint32_t head_crc32;        /* of what has come of the header */
	uint64_t submitted, hashed; /* offsets */
	size_t nsubmitted, nhashed; /* blocks before them */
	size_t ahead, behind;       /* first block that ends behind them */
	struct slot slots[SLOTS];
};

struct reading {
	const struct ck_io *io;
	enum ck_level level;
	struct ck_shard_options options;
	ck_progress progress;
	void *progress_arg;
	struct ck_shard_job *jobs;
	size_t njobs, nthreads;
};

/* What one thread does. */
struct thread {
	const struct reading *r;
	struct lane lanes[CK_SHARD_LANES];
	size_t nlanes;
	struct ck_queue *queue;
};

static bool is_over(const struct lane *l)
{
	return l->job->rc || l->hashed == l->job->shard->bytes;
}

/* Where bytes can be read to directly: they lie within one block that is wanted. Else NULL. */
static char *direct_target(const struct ck_shard_job *job, size_t *next, uint64_t offset,
			   size_t bytes)
{
	const struct ck_shard *shard = job->shard;
	const struct ck_stored *block;

	while (*next < shard->nblocks &&
	       shard->blocks[*next].offset + shard->blocks[*next].bytes <= offset)
		++*next;
	if (!job->dst || *next == shard->nblocks || !job->dst[*next])
		return NULL;
	block = &shard->blocks[*next];
	if (offset < block->offset || offset + bytes > block->offset + block->bytes)
		return NULL;
	return (char *)job->dst[*next] + (offset - block->offset);
}

/* Copy what bounced bytes have of block i. */
static void copy_out(const struct ck_shard_job *job, size_t i, const char *data, uint64_t offset,
		     size_t bytes)
{
	const struct ck_stored *block = &job->shard->blocks[i];
	uint64_t begin = block->offset > offset ? block->offset : offset;
	uint64_t end = block->offset + block->bytes;

	if (end > offset + bytes)
		end = offset + bytes;
	if (end > begin)
		memcpy((char *)job->dst[i] + (begin - block->offset), data + (begin - offset),
		       end - begin);
}

/* *next: a block at or before the first that ends behind `offset`. */
static void scatter(const struct ck_shard_job *job, size_t *next, const char *data, uint64_t offset,
		    size_t bytes)
{
	const struct ck_shard *shard = job->shard;

	while (*next < shard->nblocks &&
	       shard->blocks[*next].offset + shard->blocks[*next].bytes <= offset)
		++*next;
	for (size_t i = *next; job->dst && i < shard->nblocks; i++) {
		if (shard->blocks[i].offset >= offset + bytes)
			return;
		if (job->dst[i])
			copy_out(job, i, data, offset, bytes);
	}
}

/* The header was read before, to know where what belongs: it must be the one that is verified now. */
static uint32_t add_head(uint32_t crc, const struct ck_shard *shard, uint64_t offset,
			 const void *data, size_t bytes)
{
	uint64_t left = shard->head_bytes > offset ? shard->head_bytes - offset : 0;

	return left ? ck_crc32(crc, data, left < bytes ? (size_t)left : bytes) : crc;
}

static int check_head(const struct ck_shard *shard, uint32_t crc, struct ck_error *err)
{
	if (!shard->head_bytes || crc == shard->head_crc32)
		return 0;
	return ck_fail(err, CK_EIO,
		       "%s: bytes [0, %" PRIu64 "), the header: two reads of it differ, crc32 "
		       "%08" PRIx32 " and %08" PRIx32 ", and the second is right",
		       shard->path, shard->head_bytes, shard->head_crc32, crc);
}

/* All bytes have come: are they the right ones? */
static void finish(const struct reading *r, struct ck_shard_job *job, struct ck_digest *digest,
		   uint32_t head_crc32)
{
	struct ck_digests got = {0};

	if (job->rc == 0)
		job->rc = ck_digest_final(digest, &got, &job->err);
	if (job->rc == 0)
		job->rc = ck_expected_check(job->shard->path, job->expected, &got, r->level,
					    &job->err);
	if (job->rc == 0)
		job->rc = check_head(job->shard, head_crc32, &job->err);
	ck_digests_fini(&got);
}

/* ---- through the page cache, one after the other ---- */

static int read_pieces(const struct reading *r, struct ck_shard_job *job, struct ck_digest *digest,
		       char *bounce, uint32_t *head_crc32)
{
	const struct ck_shard *shard = job->shard;
	size_t next = 0, behind = 0, bytes;
	int rc = 0;

	for (uint64_t at = 0; at < shard->bytes && rc == 0; at += bytes) {
		char *to;

		bytes = shard->bytes - at < PIECE ? (size_t)(shard->bytes - at) : PIECE;
		to = direct_target(job, &next, at, bytes);
		rc = ck_io_pread_full(r->io, shard->fd, shard->path, to ? to : bounce, bytes, at,
				      &job->err);
		if (rc == 0)
			rc = ck_digest_update(digest, to ? to : bounce, bytes, &job->err);
		if (rc == 0)
			*head_crc32 = add_head(*head_crc32, shard, at, to ? to : bounce, bytes);
		if (rc == 0 && job->consumer)
			rc = job->consumer(job->consumer_arg, at, bounce, bytes, &job->err);
		else if (rc == 0 && !to)
			scatter(job, &behind, bounce, at, bytes);
		if (rc == 0 && r->progress)
			r->progress(r->progress_arg, bytes);
	}
	return rc;
}

static enum ck_sha sha_of(const struct reading *r)
{
	return r->level == CK_LEVEL_SHA256 ? r->options.sha : CK_SHA_NONE;
}

static void read_plainly(const struct reading *r, struct ck_shard_job *job)
{
	struct ck_digest *digest = NULL;
	char *bounce = malloc(PIECE);
	uint32_t head_crc32 = 0;

	if (!bounce)
		job->rc = ck_fail_nomem(&job->err, PIECE);
	else
		job->rc = ck_digest_new(&digest, job->shard->bytes, job->expected->chunk_bytes,
					sha_of(r), &job->err);
	if (job->rc == 0)
		job->rc = read_pieces(r, job, digest, bounce, &head_crc32);
	finish(r, job, digest, head_crc32);
	ck_digest_free(digest);
	free(bounce);
}

/* ---- several files together ---- */

static int take_memory(struct lane *l, struct slot *slot, struct ck_error *err)
{
	size_t room = (slot->bytes / CK_SHARD_ALIGN + 1) * CK_SHARD_ALIGN;

	slot->data = direct_target(l->job, &l->ahead, l->submitted, slot->bytes);
	if (slot->data && (!l->use_direct || (uintptr_t)slot->data % CK_SHARD_ALIGN == 0))
		return 0;
	if (slot->room < room) {
		free(slot->bounce);
		slot->bounce = aligned_alloc(CK_SHARD_ALIGN, room);
		slot->room = slot->bounce ? room : 0;
	}
	slot->data = slot->bounce;
	return slot->data ? 0 : ck_fail_nomem(err, room);
}

/* The header comes alone, so that what is behind it can go to its place. */
static size_t next_bytes(const struct lane *l)
{
	const struct ck_shard *shard = l->job->shard;
	uint64_t bytes = CK_SHARD_BLOCK - l->submitted % CK_SHARD_BLOCK;

	if (l->submitted == 0 && shard->data_offset && bytes > shard->data_offset)
		bytes = shard->data_offset;
	if (bytes > shard->bytes - l->submitted)
		bytes = shard->bytes - l->submitted;
	return (size_t)bytes;
}

/* The next block of a file, if any. Its end, less than CK_SHARD_ALIGN bytes, is read at once. */
static void submit_next(struct thread *t, struct lane *l)
{
	struct slot *slot = &l->slots[l->nsubmitted % SLOTS];
	const struct ck_shard *shard = l->job->shard;
	size_t ragged = 0;

	if (l->submitted == shard->bytes)
		return;
	slot->bytes = next_bytes(l);
	l->job->rc = take_memory(l, slot, &l->job->err);
	if (l->job->rc)
		return;
	if (l->use_direct)
		ragged = slot->bytes % CK_SHARD_ALIGN;
	slot->transfer = (struct ck_transfer){.fd = l->use_direct ? l->direct : shard->fd,
					      .plain_fd = shard->fd,
					      .data = slot->data,
					      .bytes = slot->bytes - ragged,
					      .offset = l->submitted};
	slot->busy = true;
	ck_queue_submit(t->queue, &slot->transfer);
	l->submitted += slot->bytes;
	l->nsubmitted++;
	if (ragged)
		l->job->rc = ck_io_pread_full(t->r->io, shard->fd, shard->path,
					      slot->data + slot->bytes - ragged, ragged,
					      l->submitted - ragged, &l->job->err);
}

static void fail_transfer(struct ck_shard_job *job, const struct ck_transfer *done)
{
	uint64_t at = done->offset + done->done;
	size_t left = done->bytes - done->done;

	if (done->errnum == ENODATA)
		job->rc = ck_fail(&job->err, CK_EIO,
				  "%s: read at byte %" PRIu64
				  ": the file ends there, %zu more bytes are wanted",
				  job->shard->path, at, left);
	else
		job->rc = ck_fail_errno(&job->err, done->errnum,
					"%s: read of %zu bytes at byte %" PRIu64, job->shard->path,
					left, at);
}

/* Wait for the next block to arrive, whichever it is. */
static void reap(struct thread *t)
{
	struct ck_transfer *done = ck_queue_reap(t->queue);

	for (size_t i = 0; i < t->nlanes * SLOTS; i++) {
		struct lane *l = &t->lanes[i / SLOTS];
		struct slot *slot = &l->slots[i % SLOTS];

		if (&slot->transfer != done)
			continue;
		slot->busy = false;
		if (done->fell_back) {
			l->use_direct = false;
			ck_shard_note(&t->r->options, CK_NOTE_BUFFERED);
		}
		if (done->errnum && l->job->rc == 0)
			fail_transfer(l->job, done);
	}
}

static struct slot *current(struct lane *l)
{
	return &l->slots[l->nhashed % SLOTS];
}

/* A block has been hashed: hand it out. */
static void move_on(struct thread *t, struct lane *l)
{
	struct slot *slot = current(l);

	l->head_crc32 = add_head(l->head_crc32, l->job->shard, l->hashed, slot->data, slot->bytes);
	if (l->job->consumer)
		l->job->rc = l->job->consumer(l->job->consumer_arg, l->hashed, slot->data,
					      slot->bytes, &l->job->err);
	else if (slot->data == slot->bounce)
		scatter(l->job, &l->behind, slot->data, l->hashed, slot->bytes);
	if (t->r->progress)
		t->r->progress(t->r->progress_arg, slot->bytes);
	l->hashed += slot->bytes;
	l->nhashed++;
}

/*
 * One block of each file that has any left; false when none has. One slot is kept free until its
 * block has come: some disks tell of all that they were asked for at once, when they have nothing
 * left to do, and must not stay so for as long as hashing takes.
 */
static bool advance(struct thread *t)
{
	struct ck_digest *digests[CK_SHARD_LANES];
	struct lane *lanes[CK_SHARD_LANES];
	const void *data[CK_SHARD_LANES];
	size_t bytes[CK_SHARD_LANES], n = 0;
	struct ck_error err = CK_ERROR_INIT;
	int rc;

	for (size_t k = 0; k < t->nlanes; k++) {
		struct lane *l = &t->lanes[k];

		while (!is_over(l) && current(l)->busy)
			reap(t);
		if (!is_over(l))
			submit_next(t, l);
		if (is_over(l))
			continue;
		lanes[n] = l;
		digests[n] = l->digest;
		data[n] = current(l)->data;
		bytes[n++] = current(l)->bytes;
	}
	if (n == 0)
		return false;
	/* All of them fail alike, and only where libcrypto's hashing does. */
	rc = ck_digest_update_all(digests, data, bytes, n, &err);
	for (size_t k = 0; k < n; k++) {
		if (rc)
			lanes[k]->job->rc = ck_fail(&lanes[k]->job->err, rc, "%s", err.text);
		else
			move_on(t, lanes[k]);
	}
	return true;
}

static void open_lane(struct thread *t, struct lane *l)
{
	struct ck_shard_job *job = l->job;
	const struct ck_shard *shard = job->shard;

	job->rc = ck_digest_new(&l->digest, shard->bytes, job->expected->chunk_bytes, sha_of(t->r),
				&job->err);
	if (t->r->options.direct) {
		l->direct = ck_io_open_direct(t->r->io, shard->path, shard->fd, O_RDONLY);
		l->use_direct = l->direct >= 0;
		if (!l->use_direct)
			ck_shard_note_direct(&t->r->options, errno);
	}
	for (size_t s = 0; s < SLOTS - 1 && job->rc == 0; s++)
		submit_next(t, l);
}

static void close_lane(struct thread *t, struct lane *l)
{
	finish(t->r, l->job, l->digest, l->head_crc32);
	ck_io_close(t->r->io, &l->direct);
	ck_digest_free(l->digest);
	for (size_t s = 0; s < SLOTS; s++) {
		const struct slot *slot = &l->slots[s];

		/* A read that nobody will hear of may still arrive. */
		if (!slot->transfer.lost || slot->data != slot->bounce)
			free(slot->bounce);
	}
}

static void read_together(const struct reading *r, struct ck_shard_job *jobs, size_t count)
{
	struct thread t = {.r = r, .nlanes = count};
	struct ck_error err = CK_ERROR_INIT;
	int rc = ck_queue_new(r->io, (unsigned)count * SLOTS, CK_QUEUE_KERNEL, &t.queue, &err);

	for (size_t k = 0; k < count; k++) {
		t.lanes[k] = (struct lane){.job = &jobs[k], .direct = -1};
		if (rc)
			jobs[k].rc = ck_fail(&jobs[k].err, rc, "%s", err.text);
	}
	if (rc)
		return;
	if (ck_queue_kind(t.queue) < CK_QUEUE_KERNEL)
		ck_shard_note(&r->options, CK_NOTE_NO_QUEUE);
	for (size_t k = 0; k < count; k++)
		open_lane(&t, &t.lanes[k]);
	while (advance(&t))
		;
	/* Before the memory goes that transfers may still write to. */
	ck_queue_free(t.queue);
	for (size_t k = 0; k < count; k++)
		close_lane(&t, &t.lanes[k]);
}

/* ---- all of them ---- */

/* Worth a queue: large, and either the disk or SHA-256 to wait for. */
static bool is_large(const struct reading *r, const struct ck_shard_job *job)
{
	return job->shard->bytes >= CK_SHARD_SMALL &&
	       (r->options.direct || r->level == CK_LEVEL_SHA256);
}

static void run_thread(void *arg, size_t i)
{
	const struct reading *r = arg;
	size_t end = r->njobs * (i + 1) / r->nthreads, n;

	for (size_t k = r->njobs * i / r->nthreads; k < end; k += n) {
		n = 0;
		while (k + n < end && n < CK_SHARD_LANES && r->jobs[k + n].rc == 0 &&
		       is_large(r, &r->jobs[k + n]))
			n++;
		if (n > 0) {
			read_together(r, &r->jobs[k], n);
			continue;
		}
		if (r->jobs[k].rc == 0)
			read_plainly(r, &r->jobs[k]);
		n = 1;
	}
}

static void check_job(struct ck_shard_job *job)
{
	job->err = (struct ck_error)CK_ERROR_INIT;
	job->rc = 0;
	if (job->shard->bytes != job->expected->bytes)
		job->rc = ck_fail(&job->err, CK_EDIGEST,
				  "%s: %" PRIu64 " bytes, %" PRIu64 " were written",
				  job->shard->path, job->shard->bytes, job->expected->bytes);
}

int ck_shard_read_all(const struct ck_io *io, struct ck_shard_job *jobs, size_t count,
		      enum ck_level level, const struct ck_shard_options *options,
		      ck_progress progress, void *progress_arg, struct ck_error *err)
{
	struct reading r = {.io = io,
			    .level = level,
			    .progress = progress,
			    .progress_arg = progress_arg,
			    .jobs = jobs,
			    .njobs = count,
			    .nthreads = 1};

	if (level != CK_LEVEL_CRC32 && level != CK_LEVEL_SHA256)
		return ck_fail(err, CK_EARG, "%s: level %d cannot be read",
			       count ? jobs[0].shard->path : "no file", level);
	r.options = ck_shard_options_or_default(options);
	if (!options)
		r.options.direct = level == CK_LEVEL_SHA256;
	/* A consumer belongs to the caller, who may not share what it works on (a communicator). */
	if (r.options.threads > 1 && count > 0 && !jobs[0].consumer)
		r.nthreads = r.options.threads < count ? r.options.threads : count;
	for (size_t i = 0; i < count; i++)
		check_job(&jobs[i]);
	ck_parallel(r.nthreads, run_thread, &r);
	for (size_t i = 0; i < count; i++)
		if (jobs[i].rc)
			return ck_fail(err, jobs[i].rc, "%s", jobs[i].err.text);
	return 0;
}

int ck_shard_read(const struct ck_io *io, const struct ck_shard *shard,
		  const struct ck_expected *expected, enum ck_level level, void *const *dst,
		  ck_progress progress, void *progress_arg, struct ck_error *err)
{
	struct ck_shard_job job = {.shard = shard, .expected = expected, .dst = dst};

	return ck_shard_read_all(io, &job, 1, level, NULL, progress, progress_arg, err);
}
