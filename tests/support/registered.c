#include "registered.h"

#include "tap.h"

void add1(struct ck_item_list *list, const char *name, enum ck_dtype dtype, uint64_t extent,
	  uint64_t offset, uint64_t count)
{
	struct ck_box box = {.ndim = 1, .offset = {offset}, .extent = {count}};
	struct ck_error err = CK_ERROR_INIT;
	size_t item, block;

	if (ck_item_list_add_block(list, name, dtype, 1, &extent, &box, &item, &block, &err))
		ok(false, "registration: %s", err.text);
}

void add_rank(struct ck_item_list *list, const char *name)
{
	size_t item;

	if (ck_item_list_add_rank(list, name, &item, NULL))
		ok(false, "registration of %s", name);
}

void lists_fini(struct ck_item_list *lists, uint32_t world_size)
{
	for (uint32_t r = 0; r < world_size; r++)
		ck_item_list_fini(&lists[r]);
}

struct ck_box box_of(const struct ck_deal *deal, size_t block)
{
	struct ck_box box;

	ck_deal_box(deal, block, &box);
	return box;
}
