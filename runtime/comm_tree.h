/*
 * Binomial trees over ranks, and bytes that travel along their edges: what the collectives of
 * comm.h are made of. For comm_collective.c only.
 *
 * A member's place is its distance from the root in the order of the group, so the members below
 * place v (itself included) are the places [v, v + span).
 *
 * Every function returns 0, or CK_EPEER when the ck_comm has died; then go straight to
 * ck_tree_finish.
 */
#ifndef CK_COMM_TREE_H
#define CK_COMM_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "comm.h"
#include "error.h"

/* Which collective: ranks that meet in different ones say so. */
enum ck_op {
	CK_OP_BARRIER = 1,
	CK_OP_MAXIMUM,
	CK_OP_AGREEMENT,
	CK_OP_BROADCAST,
	CK_OP_GROUP_BROADCAST,
	CK_OP_GATHER,
	CK_OP_SCATTER
};

#define CK_TREE_CHILDREN 31
/* Longer messages go in pieces of this size. */
#define CK_TREE_PIECE ((size_t)1 << 20)

/* A neighbour. */
struct ck_peer {
	int rank;
	uint32_t place; /* counted from this rank's place; children only */
	uint32_t span;  /* members below it, itself included; children only */
};

struct ck_tree {
	struct ck_comm *comm;
	enum ck_op op;
	uint32_t span; /* members below this rank, itself included */
	int has_parent;
	struct ck_peer parent;
	int nchildren;
	struct ck_peer children[CK_TREE_CHILDREN]; /* largest subtree first */
};

/*
 * The tree of a collective as this rank sees it. ranks: n of them, ascending, this one among them;
 * NULL: all n. root: index into ranks. Returns CK_EPEER if comm is dead already (no ck_tree_finish
 * then).
 */
int ck_tree_plant(struct ck_tree *tree, struct ck_comm *comm, enum ck_op op, const int *ranks,
		  int n, int root, struct ck_error *err);

/* The end of every collective that planted a tree: neighbours are told of a death. Returns rc. */
int ck_tree_finish(struct ck_tree *tree, int rc);

/* Memory that bytes come from or go to: byte k is base[(start + k) % ring]. */
struct ck_ring {
	unsigned char *base; /* not written where it is given from */
	uint64_t start;
	uint64_t ring;
};

/* Receive `bytes` bytes from one neighbour. */
int ck_tree_take(struct ck_tree *tree, const struct ck_peer *from, struct ck_ring to,
		 uint64_t bytes, struct ck_error *err);

/* Send `bytes` bytes to one neighbour. */
int ck_tree_give(struct ck_tree *tree, const struct ck_peer *to, struct ck_ring from,
		 uint64_t bytes, struct ck_error *err);

/* Carry `bytes` bytes from the root's `data` to everybody's. */
int ck_tree_fan_out(struct ck_tree *tree, void *data, uint64_t bytes, struct ck_error *err);

/*
 * Receive 1 to CK_TREE_PIECE bytes from each child, from all at once, and merge each into `all`. A
 * failure names every child that is silent.
 */
typedef void (*ck_tree_merge)(void *all, const void *one, size_t bytes);
int ck_tree_fan_in(struct ck_tree *tree, void *all, size_t bytes, ck_tree_merge merge,
		   struct ck_error *err);

#endif
