#include "load_ranks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* On the way: u32 old rank, u64 bytes, the bytes. */
static int pack_kept(const struct ck_intake *in, size_t item, struct ck_buf *out,
		     struct ck_error *err)
{
	for (size_t i = 0; i < in->nkept; i++) {
		const struct ck_kept *kept = &in->kept[i];

		if (kept->item != item)
			continue;
		ck_buf_add_u32(out, kept->rank);
		ck_buf_add_u64(out, kept->bytes);
		ck_buf_add(out, kept->data, kept->bytes);
	}
	return ck_buf_check(out, err);
}

/* Rank 0: what came from all readers -> each old rank's. */
static int index_values(const struct ck_per_rank *all, uint64_t total, uint32_t old_world,
			struct ckpt_rank_value *values, struct ck_error *err)
{
	struct ck_reader reader = {.data = all->data, .len = total};
	uint32_t seen = 0;

	while (reader.pos < reader.len) {
		uint32_t rank = ck_read_u32(&reader);
		uint64_t bytes = ck_read_u64(&reader);
		const void *data = ck_read_bytes(&reader, bytes);

		if (reader.failed || rank >= old_world || values[rank].data)
			return ck_fail(err, CK_EFORMAT, "bytes of ranks: cut, or twice");
		values[rank] = (struct ckpt_rank_value){.data = data, .bytes = bytes};
		seen++;
	}
	return seen == old_world ? 0 : ck_fail(err, CK_EFORMAT, "bytes of ranks: not all");
}

/* Rank 0: one text of all of them: sizes, then the bytes of each, on 16-byte boundaries. */
static void pack_values(const struct ckpt_rank_value *values, uint32_t old_world,
			struct ck_buf *out)
{
	static const char zeros[16];

	for (uint32_t r = 0; r < old_world; r++)
		ck_buf_add(out, &values[r].bytes, sizeof(uint64_t));
	for (uint32_t r = 0; r < old_world; r++) {
		ck_buf_add(out, zeros, (16 - out->len % 16) % 16);
		ck_buf_add(out, values[r].data, values[r].bytes);
	}
}

static int unpack_values(const unsigned char *data, uint64_t bytes, uint32_t old_world,
			 struct ckpt_rank_value *values, struct ck_error *err)
{
	struct ck_reader reader = {.data = data, .len = bytes};

	for (uint32_t r = 0; r < old_world; r++)
		values[r].bytes = ck_read_u64(&reader);
	for (uint32_t r = 0; r < old_world; r++) {
		ck_read_bytes(&reader, (16 - reader.pos % 16) % 16);
		values[r].data = ck_read_bytes(&reader, values[r].bytes);
	}
	return reader.failed ? ck_fail(err, CK_EFORMAT, "bytes of ranks: cut") : 0;
}

/* Collective: everybody's bytes of one item at rank 0, by old rank. They point into `all`. */
static int gather_values(ckpt *ck, const struct ck_intake *in, size_t item, struct ck_per_rank *all,
			 struct ckpt_rank_value *values, struct ck_error *err)
{
	struct ck_buf mine = CK_BUF_INIT;
	int rc = pack_kept(in, item, &mine, err);

	rc = ck_comm_agree(&ck->comm, rc, err);
	if (!rc)
		rc = ck_comm_gather(&ck->comm, 0, mine.data, mine.len, all, err);
	ck_buf_fini(&mine);
	if (!rc && ck_is_root(ck))
		rc = index_values(all, all->offsets[ck->comm.table.size], in->old_world, values,
				  err);
	return ck_comm_agree(&ck->comm, rc, err);
}

/* Collective: to each rank its own. */
static int scatter_values(ckpt *ck, const struct ckpt_rank_value *values, struct ck_rank_bytes *out,
			  struct ck_error *err)
{
	struct ck_per_rank each = CK_PER_RANK_INIT;
	struct ck_buf text = CK_BUF_INIT;
	int size = ck->comm.table.size, rc = 0;
	uint64_t bytes;

	if (ck_is_root(ck)) {
		each.offsets = calloc((size_t)size + 1, sizeof(*each.offsets));
		for (int r = 0; each.offsets && r < size; r++) {
			ck_buf_add(&text, values[r].data, values[r].bytes);
			each.offsets[r + 1] = text.len;
		}
		each.data = (unsigned char *)text.data;
		if (!each.offsets || text.failed)
			rc = ck_fail_nomem(err, text.len);
	}
	rc = ck_comm_agree(&ck->comm, rc, err);
	if (!rc)
		rc = ck_comm_scatter(&ck->comm, 0, &each, &out->data, &bytes, err);
	if (!rc)
		out->bytes = bytes;
	ck_per_rank_fini(&each);
	return rc;
}

/* Collective: everybody's to everybody, and to the program. */
static int show_values(ckpt *ck, const struct ck_intake *in, const char *name,
		       const struct ckpt_rank_callbacks *cb, struct ckpt_rank_value *values,
		       struct ck_error *err)
{
	struct ck_buf text = CK_BUF_INIT;
	void *data = NULL;
	uint64_t bytes = 0;
	int rc, answer;

	if (ck_is_root(ck))
		pack_values(values, in->old_world, &text);
	rc = ck_comm_agree(&ck->comm, ck_buf_check(&text, err), err);
	if (ck_is_root(ck)) {
		data = text.data;
		bytes = text.len;
	}
	if (!rc)
		rc = ck_comm_bcast_new(&ck->comm, 0, &data, &bytes, err);
	if (rc) {
		ck_buf_fini(&text);
		return rc;
	}
	rc = unpack_values(data, bytes, in->old_world, values, err);
	answer = rc ? 0 : cb->reassign(cb->arg, in->old_world, values);
	if (answer)
		rc = ck_fail(err, CK_EFORMAT,
			     "item '%s': the program's reassign callback refused the values of "
			     "%" PRIu32 " ranks (it returned %d)",
			     name, in->old_world, answer);
	free(data);
	return ck_comm_agree(&ck->comm, rc, err);
}

/* Collective: one item. */
static int bring(ckpt *ck, const struct ck_intake *in, size_t item, struct ck_load *load,
		 struct ckpt_rank_value *values, struct ck_error *err)
{
	const char *name = in->table.items[item].name;
	size_t mine = ck_registry_find(&ck->registry, name);
	const struct ckpt_rank_callbacks *cb = &ck->registry.behind[mine].callbacks;
	bool same = in->old_world == (uint32_t)ck->comm.table.size;
	uint64_t wanted = same || cb->reassign != ckpt_reassign_drop;
	struct ck_per_rank all = CK_PER_RANK_INIT;
	int rc = ck_comm_allreduce_max(&ck->comm, &wanted, 1, err);

	if (rc || !wanted)
		return rc;
	/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): old_world of them, at least one */
	memset(values, 0, in->old_world * sizeof(*values));
	rc = gather_values(ck, in, item, &all, values, err);
	if (!rc && same) {
		struct ck_rank_bytes *to = &load->rank_bytes[load->nrank_bytes];

		*to = (struct ck_rank_bytes){.item = mine};
		rc = scatter_values(ck, values, to, err);
		load->nrank_bytes += !rc;
	} else if (!rc) {
		rc = show_values(ck, in, name, cb, values, err);
	}
	ck_per_rank_fini(&all);
	return rc;
}

/* What the checkpoint has not got (`ckpt reshard --per-rank=drop`) must be the program's to make. */
static int check_missing(const ckpt *ck, const struct ck_intake *in, struct ck_error *err)
{
	const struct ck_registry *registry = &ck->registry;

	for (size_t i = 0; i < registry->list.count; i++) {
		const struct ck_item *item = &registry->list.items[i];

		if (item->kind == CK_PER_RANK &&
		    registry->behind[i].callbacks.reassign != ckpt_reassign_drop &&
		    !ck_item_list_search(&in->table, item->name))
			return ck_fail(err, CK_EITEM,
				       "item '%s': only in the program (" CK_LEFT_OUT ")",
				       item->name);
	}
	return 0;
}

int ck_load_ranks(ckpt *ck, const struct ck_intake *in, struct ck_load *load, struct ck_error *err)
{
	struct ckpt_rank_value *values = calloc((size_t)in->old_world + 1, sizeof(*values));
	int rc = values ? check_missing(ck, in, err)
			: ck_fail_nomem(err, in->old_world * sizeof(*values));

	/* A load that was tried before may have left some. */
	rc = ck_comm_agree(&ck->comm, rc, err);
	for (size_t i = 0; i < load->nrank_bytes; i++)
		free(load->rank_bytes[i].data);
	load->nrank_bytes = 0;
	for (size_t i = 0; values && i < in->table.count && !rc; i++)
		if (in->table.items[i].kind == CK_PER_RANK)
			rc = bring(ck, in, i, load, values, err);
	free(values);
	return rc;
}
