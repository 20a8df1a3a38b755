/* Merging the registrations of all ranks: gathered on rank 0, checked and dealt there, scattered. */
#include "handle.h"

#include <stdlib.h>

void ck_dealt_fini(struct ck_dealt *dealt)
{
	ck_duty_fini(&dealt->duty);
	ck_deal_fini(&dealt->deal);
	*dealt = (struct ck_dealt){0};
}

/* A rank's list, out of what was gathered. */
static int unpack(void *arg, uint32_t rank, struct ck_item_list *out, struct ck_error *err)
{
	const struct ck_per_rank *packed = arg;

	return ck_item_list_unpack(packed->data + packed->offsets[rank],
				   packed->offsets[rank + 1] - packed->offsets[rank], out, err);
}

/* Rank 0: everybody's packed list -> the deal. */
static int merge(ckpt *ck, struct ck_per_rank *packed, struct ck_deal *deal, struct ck_error *err)
{
	int rc = ck_items_deal_each(unpack, packed, (uint32_t)ck->comm.table.size, deal, err);

	if (rc == CK_EITEM)
		rc = err->code = CK_EARG;
	return rc;
}

static int add_duty(const void *arg, uint32_t rank, struct ck_buf *text, struct ck_error *err)
{
	return ck_duty_pack(arg, rank, text, err);
}

/* Rank 0: what the ranks packed -> each rank's duty. */
static int deal_root(ckpt *ck, struct ck_per_rank *packed, struct ck_deal *deal,
		     struct ck_per_rank *duties, struct ck_error *err)
{
	int rc = merge(ck, packed, deal, err);

	return rc ? rc
		  : ck_per_rank_make(duties, (uint32_t)ck->comm.table.size, add_duty, deal, err);
}

/* Collective: gather, merge, scatter. */
static int exchange(ckpt *ck, struct ck_buf *mine, struct ck_dealt *dealt, struct ck_error *err)
{
	struct ck_per_rank packed = CK_PER_RANK_INIT, duties = CK_PER_RANK_INIT;
	void *duty = NULL;
	uint64_t duty_bytes = 0;
	int rc = ck_comm_gather(&ck->comm, 0, mine->data, mine->len, &packed, err);

	if (rc)
		return rc;
	if (ck_is_root(ck))
		rc = deal_root(ck, &packed, &dealt->deal, &duties, err);
	ck_per_rank_fini(&packed);
	rc = ck_comm_agree(&ck->comm, rc, err);
	if (!rc)
		rc = ck_comm_scatter(&ck->comm, 0, &duties, &duty, &duty_bytes, err);
	ck_per_rank_fini(&duties);
	if (rc)
		return rc;
	rc = ck_duty_unpack(duty, duty_bytes, &dealt->duty, err);
	free(duty);
	return ck_comm_agree(&ck->comm, rc, err);
}

bool ck_deal_is_current(const ckpt *ck)
{
	return ck->dealt.valid && ck->dealt.version == ck->registry.version;
}

int ck_deal_renew(ckpt *ck, struct ck_error *err)
{
	struct ck_dealt dealt = {.valid = true, .version = ck->registry.version};
	struct ck_buf mine = CK_BUF_INIT;
	int rc = ck_item_list_pack(&ck->registry.list, &mine, err);

	rc = ck_comm_agree(&ck->comm, rc, err);
	if (!rc)
		rc = exchange(ck, &mine, &dealt, err);
	ck_buf_fini(&mine);
	if (rc) {
		ck_dealt_fini(&dealt);
		return rc;
	}
	ck_dealt_fini(&ck->dealt);
	ck->dealt = dealt;
	return 0;
}

int ck_deal_refresh(ckpt *ck, struct ck_error *err)
{
	uint64_t changed = !ck_deal_is_current(ck);
	int rc = ck_comm_allreduce_max(&ck->comm, &changed, 1, err);

	return rc || !changed ? rc : ck_deal_renew(ck, err);
}
