#include "intake.h"

#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "intake_read.h"
#include "reshard.h"
#include "share.h"

void ck_intake_fini(struct ck_intake *intake)
{
	ck_item_list_fini(&intake->table);
	for (size_t i = 0; i < intake->nkept; i++)
		free(intake->kept[i].data);
	free(intake->kept);
	intake->kept = NULL;
	intake->nkept = 0;
}

static bool is_root(const struct ck_intake *in)
{
	return in->comm->table.rank == 0;
}

/* Collective: everybody learns which items there are, and how many ranks saved them. */
static int tell_items(struct ck_intake *in, struct ck_error *err)
{
	struct ck_buf text = CK_BUF_INIT;
	uint64_t bytes = 0, world = 0;
	void *packed = NULL;
	int rc = 0;

	if (is_root(in)) {
		rc = ck_item_list_pack(&in->manifest->items, &text, err);
		packed = text.data;
		bytes = text.len;
		world = in->manifest->world_size;
	}
	rc = ck_comm_agree(in->comm, rc, err);
	if (!rc)
		rc = ck_comm_bcast(in->comm, 0, &world, sizeof(world), err);
	if (!rc)
		rc = ck_comm_bcast_new(in->comm, 0, &packed, &bytes, err);
	if (!rc) {
		in->old_world = (uint32_t)world;
		rc = ck_item_list_unpack(packed, bytes, &in->table, err);
		rc = ck_comm_agree(in->comm, rc, err);
	}
	if (!is_root(in))
		free(packed);
	ck_buf_fini(&text);
	return rc;
}

/* Rank 0: who reads what, and the entries for each. */
static int deal_files(const struct ck_intake *in, uint32_t *readers, struct ck_per_rank *out,
		      struct ck_error *err)
{
	size_t nfiles = in->manifest->nfiles, f = 0;
	uint32_t size = (uint32_t)in->comm->table.size;
	uint64_t *bytes = calloc(nfiles + 1, sizeof(*bytes));
	struct ck_buf all = CK_BUF_INIT;

	out->offsets = calloc((size_t)size + 1, sizeof(*out->offsets));
	if (!bytes || !out->offsets) {
		free(bytes);
		return ck_fail_nomem(err, (size + nfiles) * sizeof(*bytes));
	}
	for (size_t i = 0; i < nfiles; i++)
		bytes[i] = in->manifest->files[i].bytes;
	ck_reshard_deal(bytes, nfiles, size, readers);
	free(bytes);
	for (uint32_t r = 0; r < size; r++) {
		for (; f < nfiles && readers[f] == r; f++)
			ck_share_pack_file((uint32_t)f, &in->manifest->files[f], &all);
		out->offsets[r + 1] = all.len;
	}
	out->data = (unsigned char *)all.data;
	return ck_buf_check(&all, err);
}

/* Collective: this rank's files. `readers` is rank 0's. */
static int receive_files(struct ck_intake *in, uint32_t *readers, struct ck_share_file **files,
			 size_t *nfiles, struct ck_error *err)
{
	struct ck_per_rank entries = CK_PER_RANK_INIT;
	void *mine = NULL;
	uint64_t bytes = 0;
	int rc = is_root(in) ? deal_files(in, readers, &entries, err) : 0;

	rc = ck_comm_agree(in->comm, rc, err);
	if (!rc)
		rc = ck_comm_scatter(in->comm, 0, &entries, &mine, &bytes, err);
	ck_per_rank_fini(&entries);
	if (rc)
		return rc;
	rc = ck_share_unpack_files(mine, bytes, files, nfiles, err);
	free(mine);
	return ck_comm_agree(in->comm, rc, err);
}

/* Read the headers of this rank's files; they are closed again, there may be thousands. */
static int read_headers(struct ck_intake *in, struct ck_share_file *files, size_t nfiles,
			struct ck_buf *headers, struct ck_error *err)
{
	int rc = 0;

	for (size_t i = 0; i < nfiles && !rc; i++) {
		const struct ck_file *file = &files[i].file;
		struct ck_shard shard;

		rc = ck_file_sized(in->io, in->dir, file, err);
		if (!rc)
			rc = ck_shard_open(in->io, in->dir, file->rank, file->part, &shard, err);
		if (rc)
			return rc;
		files[i].head_bytes = shard.head_bytes;
		files[i].head_crc32 = shard.head_crc32;
		rc = ck_share_pack_header(files[i].number, &shard, &in->table, headers, err);
		ck_shard_close(in->io, &shard);
		if (!rc)
			rc = ck_comm_listen(in->comm, err);
	}
	return rc;
}

/* Rank 0: all headers -> what is stored. Whatever does not fit in there is the checkpoint's fault. */
static int unpack_stored(const struct ck_intake *in, const struct ck_per_rank *headers,
			 struct ck_layout *stored, struct ck_error *err)
{
	int rc = 0;

	for (int r = 0; r < in->comm->table.size && !rc; r++)
		rc = ck_share_unpack_headers(headers->data + headers->offsets[r],
					     headers->offsets[r + 1] - headers->offsets[r],
					     in->manifest->files, in->manifest->nfiles, stored,
					     err);
	if (!rc)
		rc = ck_layout_sort(stored, err);
	if (rc == CK_EITEM)
		rc = err->code = CK_EFORMAT;
	return rc;
}

/* Rank 0: the plan -> each reader's share. */
static int pack_shares(const struct ck_intake *in, const struct ck_layout *stored,
		       const struct ck_reshard *plan, const uint32_t *readers,
		       struct ck_per_rank *out, struct ck_error *err)
{
	uint32_t size = (uint32_t)in->comm->table.size;
	struct ck_buf all = CK_BUF_INIT;
	size_t f = 0;

	out->offsets = calloc((size_t)size + 1, sizeof(*out->offsets));
	if (!out->offsets)
		return ck_fail_nomem(err, (size + 1) * sizeof(*out->offsets));
	for (uint32_t r = 0; r < size; r++) {
		for (; f < in->manifest->nfiles && readers[f] == r; f++)
			ck_share_pack(stored, in->wanted, plan, f, &all);
		out->offsets[r + 1] = all.len;
	}
	out->data = (unsigned char *)all.data;
	return ck_buf_check(&all, err);
}

static int plan_root(const struct ck_intake *in, struct ck_per_rank *headers,
		     const uint32_t *readers, struct ck_per_rank *shares, struct ck_error *err)
{
	struct ck_reshard plan = {.nmoves = 0};
	struct ck_layout stored;
	int rc;

	ck_layout_init(&stored, &in->table);
	rc = unpack_stored(in, headers, &stored, err);
	ck_per_rank_fini(headers);
	if (!rc)
		rc = ck_reshard_plan(&stored, in->manifest->nfiles, in->manifest->world_size,
				     in->wanted, &plan, err);
	if (!rc)
		rc = pack_shares(in, &stored, &plan, readers, shares, err);
	ck_reshard_fini(&plan);
	ck_layout_fini(&stored);
	return rc;
}

/* Collective: headers to rank 0, shares back. */
static int plan(struct ck_intake *in, struct ck_buf *mine, const uint32_t *readers, void **share,
		uint64_t *share_bytes, struct ck_error *err)
{
	struct ck_per_rank headers = CK_PER_RANK_INIT, shares = CK_PER_RANK_INIT;
	int rc = ck_comm_gather(in->comm, 0, mine->data, mine->len, &headers, err);

	ck_buf_fini(mine);
	if (rc)
		return rc;
	if (is_root(in))
		rc = plan_root(in, &headers, readers, &shares, err);
	rc = ck_comm_agree(in->comm, rc, err);
	if (!rc)
		rc = ck_comm_scatter(in->comm, 0, &shares, share, share_bytes, err);
	ck_per_rank_fini(&headers);
	ck_per_rank_fini(&shares);
	return rc;
}

int ck_intake_run(struct ck_intake *in, struct ck_error *err)
{
	uint32_t *readers = NULL;
	struct ck_share_file *files = NULL;
	struct ck_buf headers = CK_BUF_INIT;
	uint64_t share_bytes = 0;
	size_t nfiles = 0;
	void *share = NULL;
	int rc = tell_items(in, err);

	if (rc)
		return rc;
	if (is_root(in) && !(readers = calloc(in->manifest->nfiles + 1, sizeof(*readers))))
		rc = ck_fail_nomem(err, in->manifest->nfiles * sizeof(*readers));
	rc = ck_comm_agree(in->comm, rc, err);
	if (!rc)
		rc = receive_files(in, readers, &files, &nfiles, err);
	if (!rc) {
		rc = read_headers(in, files, nfiles, &headers, err);
		rc = ck_comm_agree(in->comm, rc, err);
	}
	if (!rc)
		rc = plan(in, &headers, readers, &share, &share_bytes, err);
	if (!rc)
		rc = ck_intake_read(in, files, nfiles, share, share_bytes, err);
	ck_buf_fini(&headers);
	ck_share_files_free(files, nfiles);
	free(readers);
	free(share);
	return rc;
}
