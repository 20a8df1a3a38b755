#include "source.h"

#include <stdlib.h>
#include <string.h>

#include "catalog.h"
#include "cut.h"
#include "files.h"
#include "share.h"

#define PIECE ((uint64_t)4 << 20)

void ck_source_close(struct ck_source *s)
{
	ck_manifest_fini(&s->manifest);
	ck_layout_fini(&s->layout);
	ck_boxtree_fini(&s->tree);
	free(s->hits.blocks);
	ck_io_close(s->io, &s->fd);
	free(s->piece);
	ck_seals_fini(&s->seals);
	*s = (struct ck_source){.fd = -1};
}

static int add_header(struct ck_source *s, size_t number, struct ck_buf *packed,
		      struct ck_error *err)
{
	const struct ck_file *file = &s->manifest.files[number];
	struct ck_shard shard;
	int rc = ck_file_sized(s->io, s->dir, file, err);

	if (!rc)
		rc = ck_shard_open(s->io, s->dir, file->rank, file->part, &shard, err);
	if (rc)
		return rc;
	s->seals.files[number].head_bytes = shard.head_bytes;
	s->seals.files[number].head_crc32 = shard.head_crc32;
	ck_buf_clear(packed);
	rc = ck_share_pack_header((uint32_t)number, &shard, &s->manifest.items, packed, err);
	ck_shard_close(s->io, &shard);
	return rc ? rc
		  : ck_share_unpack_headers(packed->data, packed->len, s->manifest.files,
					    s->manifest.nfiles, &s->layout, err);
}

static int load_manifest(struct ck_source *s, struct ck_step_id id, struct ck_error *err)
{
	struct ck_buf text = CK_BUF_INIT;
	int rc = ck_step_read(s->io, s->run, id, &s->manifest, &text, err);

	if (rc)
		return rc;
	rc = ck_sha256_hex(text.data, text.len, s->seals.manifest_sha256, err);
	ck_buf_fini(&text);
	s->seals.files = calloc(s->manifest.nfiles + 1, sizeof(*s->seals.files));
	if (!s->seals.files)
		return ck_fail_nomem(err, s->manifest.nfiles * sizeof(*s->seals.files));
	s->seals.count = s->manifest.nfiles;
	return rc;
}

static int load(struct ck_source *s, struct ck_step_id id, ck_progress progress, void *progress_arg,
		struct ck_error *err)
{
	struct ck_buf packed = CK_BUF_INIT;
	int rc = load_manifest(s, id, err);

	if (rc)
		return rc;
	ck_layout_init(&s->layout, &s->manifest.items);
	for (size_t f = 0; f < s->manifest.nfiles && !rc; f++) {
		rc = add_header(s, f, &packed, err);
		if (!rc && progress)
			progress(progress_arg, 1);
	}
	ck_buf_fini(&packed);
	if (!rc)
		rc = ck_layout_sort(&s->layout, err);
	if (!rc)
		rc = ck_layout_check(&s->layout, s->manifest.world_size, true, err);
	if (rc != CK_EITEM)
		return rc;
	ck_error_prefix(err, "%s", s->dir);
	if (err)
		err->code = CK_EFORMAT;
	return CK_EFORMAT;
}

int ck_source_open(const struct ck_io *io, const char *run, struct ck_step_id id,
		   struct ck_source *out, ck_progress progress, void *progress_arg,
		   struct ck_error *err)
{
	char name[CK_NAME_MAX];
	int rc;

	*out = (struct ck_source){.io = io, .fd = -1};
	if (strlen(run) >= sizeof(out->run) || !ck_path_join(out->dir, run, ck_name_step(id, name)))
		return ck_fail(err, CK_EIO, "%s: path too long", run);
	strcpy(out->run, run);
	out->piece = malloc(PIECE + 2 * CK_SEAL_BYTES);
	rc = out->piece ? load(out, id, progress, progress_arg, err)
			: ck_fail_nomem(err, PIECE + 2 * CK_SEAL_BYTES);
	if (rc)
		ck_source_close(out);
	return rc;
}

/* One file is open at a time: readers go along a tensor, and so along the files. */
static int open_file(struct ck_source *s, size_t number, struct ck_error *err)
{
	uint64_t bytes;
	int rc;

	if (s->open_file == number + 1)
		return 0;
	ck_io_close(s->io, &s->fd);
	s->open_file = 0;
	if (!ck_path_join(s->path, s->dir, s->manifest.files[number].path))
		return ck_fail(err, CK_EIO, "%s: path too long", s->dir);
	rc = ck_io_open_read(s->io, s->path, &s->fd, &bytes, err);
	if (!rc)
		s->open_file = number + 1;
	return rc;
}

/* Bytes [at, at + n) of the open file, at most PIECE of them, as they were verified. */
static int read_piece(struct ck_source *s, uint64_t at, uint64_t n, const char **data,
		      struct ck_error *err)
{
	const struct ck_seal *seal = &s->seals.files[s->open_file - 1];
	uint64_t begin = at, end = at + n;
	int rc;

	ck_seal_range(seal, &begin, &end);
	rc = ck_io_pread_full(s->io, s->fd, s->path, s->piece, end - begin, begin, err);
	if (!rc)
		rc = ck_seal_check(seal, s->path, begin, s->piece, end - begin, err);
	*data = s->piece + (at - begin);
	return rc;
}

/* What one stored block has of the box. */
static int read_block(struct ck_source *s, size_t b, const struct ck_box *box, void *dst,
		      struct ck_error *err)
{
	const struct ck_layout_block *block = &s->layout.blocks[b];
	size_t element = ck_dtype_size((int)s->manifest.items.items[block->item].dtype);
	struct ck_box stored, part;
	struct ck_cut from, to;
	uint64_t at, end;
	int rc;

	ck_layout_box(&s->layout, b, &stored);
	if (!ck_box_meet(&stored, box, &part))
		return 0;
	ck_cut_init(&from, &stored, &part, element);
	ck_cut_init(&to, box, &part, element);
	at = ck_cut_place(&from, 0);
	end = ck_cut_place(&from, from.bytes - 1) + 1;
	rc = open_file(s, block->file, err);
	for (uint64_t n; at < end && !rc; at += n) {
		uint64_t begin, stop;
		const char *data;

		n = end - at < PIECE ? end - at : PIECE;
		rc = read_piece(s, block->at + at, n, &data, err);
		begin = ck_cut_seek(&from, at);
		stop = ck_cut_seek(&from, at + n);
		if (!rc)
			ck_cut_move(&from, data, at, &to, dst, begin, stop - begin);
	}
	return rc;
}

int ck_source_read(struct ck_source *s, size_t item, const struct ck_box *box, void *dst,
		   struct ck_error *err)
{
	int rc = 0;

	if (ck_box_empty(box))
		return 0;
	if (s->in_tree != item + 1) {
		s->in_tree = 0;
		rc = ck_boxtree_build(&s->tree, &s->layout, item, err);
		if (rc)
			return rc;
		s->in_tree = item + 1;
	}
	s->hits.count = 0;
	rc = ck_boxtree_find(&s->tree, box->offset, box->extent, &s->hits, err);
	for (size_t i = 0; i < s->hits.count && !rc; i++)
		rc = read_block(s, s->hits.blocks[i], box, dst, err);
	return rc;
}

int ck_source_read_rank(struct ck_source *s, size_t item, uint32_t rank, void **data,
			uint64_t *bytes, struct ck_error *err)
{
	size_t b = s->layout.first[item] + rank;
	const struct ck_layout_block *block;
	uint64_t size;
	char *to;
	int rc;

	/* By rank, each once: ck_source_open has seen to that. */
	if (b >= s->layout.first[item + 1])
		return ck_fail(err, CK_EITEM, "%s: no rank %u", s->dir, rank);
	block = &s->layout.blocks[b];
	size = ck_layout_bytes(&s->layout, b);
	to = malloc(size + 1);
	if (!to)
		return ck_fail_nomem(err, size);
	rc = open_file(s, block->file, err);
	for (uint64_t done = 0, n; done < size && !rc; done += n) {
		const char *read;

		n = size - done < PIECE ? size - done : PIECE;
		rc = read_piece(s, block->at + done, n, &read, err);
		if (!rc)
			memcpy(to + done, read, n);
	}
	if (rc) {
		free(to);
		return rc;
	}
	*data = to;
	*bytes = size;
	return 0;
}
