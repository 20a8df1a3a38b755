/*
 * What this rank registered: the item list that goes to rank 0, and where each block's memory is.
 */
#ifndef CK_REGISTRY_H
#define CK_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ckpt.h"
#include "deal.h"
#include "error.h"
#include "items.h"
#include "shard.h"

/* What stands behind list.items[i]. */
struct ck_behind {
	void **data; /* of each block, in order of registration; NULL for per-rank items */
	struct ckpt_rank_callbacks callbacks; /* of a per-rank item */
	struct ckpt_copier copier;            /* of a sharded item; read NULL: plain memory */
};

struct ck_registry {
	struct ck_item_list list;
	struct ck_behind *behind; /* list.count of them */
	uint64_t version;         /* grows with each change */
};

void ck_registry_fini(struct ck_registry *registry);

/* See ckpt_add_sharded and ckpt_add_rank. Return 0; CK_EARG; CK_ENOMEM. Unchanged after a failure. */
int ck_registry_add_block(struct ck_registry *registry, const char *name, int dtype, int ndim,
			  const uint64_t *shape, const struct ck_box *box, void *data,
			  struct ck_error *err);
int ck_registry_add_rank(struct ck_registry *registry, const char *name,
			 const struct ckpt_rank_callbacks *callbacks, struct ck_error *err);
int ck_registry_set_flat(struct ck_registry *registry, const char *name, struct ck_error *err);

/* How the memory of a sharded item is read and written. Returns 0; CK_EARG. */
int ck_registry_set_copier(struct ck_registry *registry, const char *name,
			   const struct ckpt_copier *copier, struct ck_error *err);
/* The copier of an item by name, NULL for plain memory. */
const struct ckpt_copier *ck_registry_copier(const struct ck_registry *registry, const char *name);

/* Index of an item by name, or list.count. */
size_t ck_registry_find(const struct ck_registry *registry, const char *name);

/* Memory of the block `box` of item `item`; NULL when there is no such block. */
void *ck_registry_block(const struct ck_registry *registry, size_t item, const struct ck_box *box);

/* Bytes of a box of an item. */
uint64_t ck_registry_bytes(const struct ck_registry *registry, size_t item,
			   const struct ck_box *box);

/* The per-rank items' bytes, fetched through `get` for one save. */
struct ck_rank_bytes {
	size_t item;
	void *data;
	size_t bytes;
};

/*
 * What this rank stores: its sharded blocks that the duty gives to it, then its per-rank items.
 *
 *   out   malloc'ed; names and data are the registry's and `rank_bytes`', which must stay
 *   rank_bytes  malloc'ed, *nrank_bytes of them (ck_rank_bytes_free)
 * Returns 0; CK_EARG (a callback fails, a block is missing); CK_ENOMEM.
 */
int ck_registry_stored(const struct ck_registry *registry, const struct ck_duty *duty,
		       uint32_t rank, struct ck_stored **out, size_t *count,
		       struct ck_rank_bytes **rank_bytes, size_t *nrank_bytes,
		       struct ck_error *err);
void ck_rank_bytes_free(struct ck_rank_bytes *rank_bytes, size_t count);

#endif
