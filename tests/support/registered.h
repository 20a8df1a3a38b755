/* Registrations of ranks, in short, and what became of them. */
#ifndef TESTS_REGISTERED_H
#define TESTS_REGISTERED_H

#include <stdint.h>

#include "deal.h"
#include "items.h"

/* Block [offset, offset + count) of a one-dimensional item; bytes of a rank. What is refused fails a check. */
void add1(struct ck_item_list *list, const char *name, enum ck_dtype dtype, uint64_t extent,
	  uint64_t offset, uint64_t count);
void add_rank(struct ck_item_list *list, const char *name);
void lists_fini(struct ck_item_list *lists, uint32_t world_size);

struct ck_box box_of(const struct ck_deal *deal, size_t block);

#endif
