#include "intake_read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Files that are read together: what the hashing of SHA-256 gains by. */
#define TOGETHER 4

/* Where the part of one file begins. */
struct start {
	struct ck_share_walk walk; /* in front of its first block */
	size_t kept;               /* of in->kept */
};

/* One file under way. */
struct reading {
	struct ck_intake *in;
	struct ck_exchange *x;
	char path[PATH_MAX];
	struct ck_shard shard;       /* path, fd and bytes */
	struct ck_share_walk walk;   /* behind the block, in front of its moves */
	struct ck_share_block block; /* the one that the stream has reached */
	bool has_block;
	size_t kept; /* next of in->kept */
};

static bool is_per_rank(const struct ck_intake *in, uint32_t item)
{
	return in->table.items[item].kind == CK_PER_RANK;
}

/* ---- beforehand: what is owed, and room for what is kept ---- */

static int keep(struct ck_intake *in, const struct ck_share_block *block, uint32_t rank,
		struct ck_error *err)
{
	struct ck_kept *kept = reallocarray(in->kept, in->nkept + 1, sizeof(*kept));

	if (!kept)
		return ck_fail_nomem(err, (in->nkept + 1) * sizeof(*kept));
	in->kept = kept;
	kept = &kept[in->nkept];
	*kept = (struct ck_kept){.item = block->item, .rank = rank, .bytes = block->bytes};
	kept->data = malloc(block->bytes + 1);
	if (!kept->data)
		return ck_fail_nomem(err, block->bytes);
	in->nkept++;
	return 0;
}

static int owe_moves(struct ck_exchange *x, struct ck_share_walk *walk,
		     const struct ck_share_block *block, struct ck_error *err)
{
	struct ck_share_move move;
	struct ck_box part;
	int rc;

	while ((rc = ck_share_next_move(walk, block, &move, err)) == 1) {
		if (!ck_box_meet(&block->box, &move.box, &part))
			return ck_fail(err, CK_EFORMAT, "share: a move of nothing");
		rc = ck_exchange_owe(x, move.rank, ck_box_volume(&part) * block->element, err);
		if (rc)
			return rc;
	}
	return rc;
}

/* Walk along the whole share once. */
static int prepare(struct ck_intake *in, struct ck_exchange *x, struct ck_share_walk walk,
		   const struct ck_share_file *files, size_t nfiles, struct start *starts,
		   struct ck_error *err)
{
	struct ck_share_block block;
	uint32_t number;
	size_t f = 0;
	int rc;

	for (; (rc = ck_share_next_file(&walk, &number, err)) == 1; f++) {
		if (f == nfiles || files[f].number != number)
			return ck_fail(err, CK_EFORMAT, "share: file %" PRIu32 " is not ours",
				       number);
		starts[f] = (struct start){.walk = walk, .kept = in->nkept};
		while ((rc = ck_share_next_block(&walk, &block, err)) == 1) {
			if (is_per_rank(in, block.item))
				rc = keep(in, &block, files[f].file.rank, err);
			else
				rc = owe_moves(x, &walk, &block, err);
			if (rc)
				return rc;
		}
		if (rc)
			return rc;
	}
	if (!rc && f != nfiles)
		rc = ck_fail(err, CK_EFORMAT, "share: %zu files of %zu", f, nfiles);
	return rc;
}

/* ---- the stream ---- */

/* Bytes [begin, end) of the block have come. */
static int hand_block(struct reading *r, uint64_t begin, uint64_t end, const void *data,
		      struct ck_error *err)
{
	struct ck_share_walk walk = r->walk;
	struct ck_share_move move;
	struct ck_box part;
	int rc;

	if (is_per_rank(r->in, r->block.item)) {
		memcpy((char *)r->in->kept[r->kept].data + begin, data, end - begin);
		return 0;
	}
	while ((rc = ck_share_next_move(&walk, &r->block, &move, err)) == 1) {
		struct ck_cut cut;
		uint64_t from, to;

		ck_box_meet(&r->block.box, &move.box, &part);
		ck_cut_init(&cut, &r->block.box, &part, r->block.element);
		from = ck_cut_seek(&cut, begin);
		to = ck_cut_seek(&cut, end);
		if (from == to)
			continue;
		rc = ck_exchange_hand(r->x, move.rank, move.slot, &cut, &part, data, begin, from,
				      to - from, err);
		if (rc)
			return rc;
	}
	return rc;
}

/* The block that the stream has reached. Returns 1; 0: none is left; negative. */
static int current(struct reading *r, struct ck_error *err)
{
	int rc;

	if (r->has_block)
		return 1;
	rc = ck_share_next_block(&r->walk, &r->block, err);
	r->has_block = rc == 1;
	return rc;
}

static void leave(struct reading *r)
{
	r->has_block = false;
	r->kept += is_per_rank(r->in, r->block.item);
}

static int consume(void *arg, uint64_t offset, const void *data, size_t bytes, struct ck_error *err)
{
	struct reading *r = arg;
	uint64_t end = offset + bytes;
	int rc;

	while ((rc = current(r, err)) == 1 && r->block.at < end) {
		uint64_t block_end = r->block.at + r->block.bytes;
		uint64_t from = r->block.at > offset ? r->block.at : offset;
		uint64_t to = block_end < end ? block_end : end;

		if (from < to)
			rc = hand_block(r, from - r->block.at, to - r->block.at,
					(const char *)data + (from - offset), err);
		if (rc < 0)
			return rc;
		if (block_end > end)
			break;
		leave(r);
	}
	rc = rc < 0 ? rc : ck_exchange_poll(r->x, err);
	if (!rc && r->x->told)
		rc = ck_fail(err, CK_EREFUSED, "another rank has failed");
	return rc;
}

static struct ck_expected expected_of(const struct ck_file *file)
{
	return (struct ck_expected){
		.bytes = file->bytes,
		.sha256 = file->sha256,
		.chunk_bytes = file->chunk_bytes,
		.chunk_crc32 = file->chunk_crc32,
		.crc32 = file->crc32,
	};
}

static int open_file(struct reading *r, const struct ck_share_file *share,
		     const struct start *start, struct ck_error *err)
{
	const struct ck_file *file = &share->file;

	r->has_block = false;
	r->walk = start->walk;
	r->kept = start->kept;
	if (!ck_path_join(r->path, r->in->dir, file->path))
		return ck_fail(err, CK_EARG, "%s/%s: path too long", r->in->dir, file->path);
	r->shard.path = r->path;
	r->shard.head_bytes = share->head_bytes;
	r->shard.head_crc32 = share->head_crc32;
	return ck_io_open_read(r->in->io, r->path, &r->shard.fd, &r->shard.bytes, err);
}

/* All of a file has come: what is left begins at its end and has no bytes. */
static int close_file(struct reading *r, struct ck_error *err)
{
	int rc;

	while ((rc = current(r, err)) == 1) {
		if (r->block.bytes)
			return ck_fail(err, CK_EFORMAT,
				       "%s: ends before the block that begins at byte %" PRIu64,
				       r->path, r->block.at);
		leave(r);
	}
	return rc;
}

/* Of several failures, the one that is this rank's own. */
static int judge(struct reading *readings, const struct ck_shard_job *jobs, size_t count,
		 struct ck_error *err)
{
	int rc = 0;

	for (size_t i = 0; i < count && !rc; i++)
		if (jobs[i].rc && !(jobs[i].rc == CK_EREFUSED && readings[i].x->told))
			rc = ck_fail(err, jobs[i].rc, "%s", jobs[i].err.text);
	for (size_t i = 0; i < count && !rc && !readings[i].x->told; i++)
		rc = close_file(&readings[i], err);
	return rc;
}

/* Read up to TOGETHER files. */
static int read_some(struct ck_intake *in, struct ck_exchange *x, const struct ck_share_file *files,
		     const struct start *starts, size_t count, struct reading *readings,
		     struct ck_error *err)
{
	struct ck_shard_job jobs[TOGETHER];
	struct ck_expected expected[TOGETHER];
	int rc = 0;

	for (size_t i = 0; i < count; i++) {
		readings[i] = (struct reading){.in = in, .x = x, .shard = {.fd = -1}};
		expected[i] = expected_of(&files[i].file);
		jobs[i] = (struct ck_shard_job){.shard = &readings[i].shard,
						.expected = &expected[i],
						.consumer = consume,
						.consumer_arg = &readings[i]};
	}
	for (size_t i = 0; i < count && !rc; i++)
		rc = open_file(&readings[i], &files[i], &starts[i], err);
	if (!rc) {
		ck_shard_read_all(in->io, jobs, count, in->level, in->options, NULL, NULL, err);
		rc = judge(readings, jobs, count, err);
	}
	for (size_t i = 0; i < count; i++)
		ck_io_close(in->io, &readings[i].shard.fd);
	return rc;
}

static int read_files(struct ck_intake *in, struct ck_exchange *x,
		      const struct ck_share_file *files, size_t nfiles, const struct start *starts,
		      struct ck_error *err)
{
	struct reading *readings = calloc(TOGETHER, sizeof(*readings));
	int rc = readings ? 0 : ck_fail_nomem(err, TOGETHER * sizeof(*readings));

	for (size_t f = 0, n; f < nfiles && !rc && !x->told; f += n) {
		n = nfiles - f < TOGETHER ? nfiles - f : TOGETHER;
		rc = read_some(in, x, files + f, starts + f, n, readings, err);
	}
	free(readings);
	return rc;
}

int ck_intake_read(struct ck_intake *in, const struct ck_share_file *files, size_t nfiles,
		   const void *share, uint64_t share_bytes, struct ck_error *err)
{
	const struct ck_share_walk walk = {.reader = {.data = share, .len = share_bytes},
					   .table = &in->table};
	struct start *starts = calloc(nfiles + 1, sizeof(*starts));
	struct ck_error ignored = CK_ERROR_INIT;
	struct ck_exchange x;
	int rc = ck_exchange_init(&x, in->comm, in->slots, in->nslots, err), dead;

	if (!rc && !starts)
		rc = ck_fail_nomem(err, nfiles * sizeof(*starts));
	if (!rc)
		rc = prepare(in, &x, walk, files, nfiles, starts, err);
	rc = ck_comm_agree(in->comm, rc, err);
	if (rc)
		goto out;
	rc = read_files(in, &x, files, nfiles, starts, err);
	/* What has not been handed on is given up, so that nobody waits for it. */
	dead = rc == CK_EPEER ? rc : ck_exchange_stop(&x, rc ? &ignored : err);
	if (!dead)
		dead = ck_exchange_finish(&x, rc ? &ignored : err);
	if (dead && rc && rc != CK_EPEER)
		*err = ignored;
	rc = dead ? dead : ck_comm_agree(in->comm, rc, err);
out:
	ck_exchange_fini(&x);
	free(starts);
	return rc;
}
