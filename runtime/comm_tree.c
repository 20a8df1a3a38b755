#include "comm_tree.h"

#include <assert.h>
#include <string.h>

#include "comm_roll.h"

/* How many pieces a rank may have on their way to its children. */
#define SLOTS 4
/* Room for a message of another collective, so that it can be told from a long one of this. */
#define ROOM_MIN 2048

/* In front of each message. */
struct wire {
	uint64_t op;
};

/* Bytes on their way along one or more edges. */
struct flow {
	const struct ck_peer *from; /* NULL: from memory */
	const struct ck_peer *to;
	int nto;
	struct ck_ring memory;
	uint64_t bytes;
};

static const char *op_name(uint64_t op)
{
	static const char *const names[] = {
		[CK_OP_BARRIER] = "barrier",
		[CK_OP_MAXIMUM] = "maximum",
		[CK_OP_AGREEMENT] = "agreement",
		[CK_OP_BROADCAST] = "broadcast",
		[CK_OP_GROUP_BROADCAST] = "group broadcast",
		[CK_OP_GATHER] = "gather",
		[CK_OP_SCATTER] = "scatter",
	};

	return op >= CK_OP_BARRIER && op <= CK_OP_SCATTER ? names[op] : "unknown collective";
}

/* ---- the tree ---- */

static unsigned height(uint32_t span)
{
	return span > 1 ? 32 - (unsigned)__builtin_clz(span - 1) : 0;
}

static int rank_at(const int *ranks, uint32_t n, uint32_t root, uint32_t place)
{
	uint32_t index = (uint32_t)(((uint64_t)root + place) % n);

	return ranks ? ranks[index] : (int)index;
}

static uint32_t index_of(const int *ranks, uint32_t n, int rank)
{
	uint32_t low = 0, high = n;

	if (!ranks)
		return (uint32_t)rank;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (ranks[middle] <= rank)
			low = middle;
		else
			high = middle;
	}
	assert(ranks[low] == rank);
	return low;
}

int ck_tree_plant(struct ck_tree *tree, struct ck_comm *comm, enum ck_op op, const int *ranks,
		  int n, int root, struct ck_error *err)
{
	uint32_t count = (uint32_t)n, first = (uint32_t)root;
	uint32_t me, low;

	assert(n >= 1 && root >= 0 && root < n);
	if (comm->dead.code)
		return ck_comm_check(comm, err);
	me = (index_of(ranks, count, comm->table.rank) + count - first) % count;
	low = me ? me & -me : (uint32_t)1 << height(count);
	*tree = (struct ck_tree){.comm = comm, .op = op};
	tree->span = low < count - me ? low : count - me;
	tree->has_parent = me > 0;
	tree->parent.rank = rank_at(ranks, count, first, me & (me - 1));
	for (low /= 2; low; low /= 2) {
		struct ck_peer *child = &tree->children[tree->nchildren];

		if (low >= tree->span)
			continue;
		child->rank = rank_at(ranks, count, first, me + low);
		child->place = low;
		child->span = low < tree->span - low ? low : tree->span - low;
		tree->nchildren++;
	}
	return 0;
}

static int wait_all(const struct ck_tree *tree, struct ck_parcel *const *parcels, int n,
		    struct ck_error *err)
{
	return ck_parcels_wait(tree->comm, parcels, n, tree->comm->timeout_ms, op_name(tree->op),
			       err);
}

/* ---- messages ---- */

static struct ck_parcel *new_parcel(struct ck_tree *tree, size_t bytes, struct ck_error *err)
{
	size_t room = sizeof(struct wire) + (bytes > ROOM_MIN ? bytes : ROOM_MIN);
	struct ck_parcel *parcel = ck_parcel_new(room);

	if (!parcel)
		ck_comm_die(tree->comm, err, "%s: rank %d: out of memory: %zu bytes wanted",
			    op_name(tree->op), tree->comm->table.rank, room);
	return parcel;
}

static void *body_of(struct ck_parcel *parcel)
{
	return parcel->data + sizeof(struct wire);
}

static int send_to(struct ck_tree *tree, const struct ck_peer *to, struct ck_parcel *parcel,
		   size_t bytes, struct ck_error *err)
{
	struct wire wire = {.op = tree->op};

	/* Memory that is being sent already must not be written, and holds the same. */
	if (!parcel->pending)
		memcpy(parcel->data, &wire, sizeof(wire));
	return ck_parcel_send(tree->comm, parcel, sizeof(wire) + bytes, to->rank, CK_TAG_COLLECTIVE,
			      err);
}

/* Is what has come from `from` a message of this collective with a body of `bytes`? */
static int check(struct ck_tree *tree, const struct ck_peer *from, struct ck_parcel *parcel,
		 size_t bytes, struct ck_error *err)
{
	size_t got = parcel->message.bytes;
	struct wire wire = {.op = 0};

	if (got >= sizeof(wire))
		memcpy(&wire, parcel->data, sizeof(wire));
	if (wire.op != tree->op)
		return ck_comm_die(tree->comm, err,
				   "%s: rank %d is in a %s: the ranks call in different order",
				   op_name(tree->op), from->rank, op_name(wire.op));
	if (got != sizeof(wire) + bytes)
		return ck_comm_die(tree->comm, err,
				   "%s: rank %d sends %zu bytes, rank %d expects %zu: the ranks "
				   "call with different sizes",
				   op_name(tree->op), from->rank, got - sizeof(wire),
				   tree->comm->table.rank, bytes);
	return 0;
}

int ck_tree_finish(struct ck_tree *tree, int rc)
{
	int ranks[CK_TREE_CHILDREN + 1], n = 0;

	if (!tree->comm->dead.code)
		return rc;
	if (tree->has_parent)
		ranks[n++] = tree->parent.rank;
	for (int i = 0; i < tree->nchildren; i++)
		ranks[n++] = tree->children[i].rank;
	ck_roll_tell(tree->comm, ranks, n);
	return rc;
}

/* ---- flows ---- */

static void ring_read(const struct ck_ring *memory, uint64_t at, unsigned char *out, size_t bytes)
{
	uint64_t begin = (memory->start + at) % memory->ring, left = memory->ring - begin;
	size_t first = bytes < left ? bytes : (size_t)left;

	memcpy(out, memory->base + begin, first);
	memcpy(out + first, memory->base, bytes - first);
}

static void ring_write(const struct ck_ring *memory, uint64_t at, const unsigned char *in,
		       size_t bytes)
{
	uint64_t begin = (memory->start + at) % memory->ring, left = memory->ring - begin;
	size_t first = bytes < left ? bytes : (size_t)left;

	memcpy(memory->base + begin, in, first);
	memcpy(memory->base, in + first, bytes - first);
}

/* Piece [at, at + bytes) through a slot that is free; its sends are left under way. */
static int pass(struct ck_tree *tree, const struct flow *flow, struct ck_parcel *slot, uint64_t at,
		size_t bytes, struct ck_error *err)
{
	int rc = 0;

	if (flow->from) {
		rc = ck_parcel_recv(tree->comm, slot, flow->from->rank, CK_TAG_COLLECTIVE, err);
		rc = rc ? rc : wait_all(tree, &slot, 1, err);
		rc = rc ? rc : check(tree, flow->from, slot, bytes, err);
		if (rc)
			return rc;
		ring_write(&flow->memory, at, body_of(slot), bytes);
	} else {
		ring_read(&flow->memory, at, body_of(slot), bytes);
	}
	for (int i = 0; rc == 0 && i < flow->nto; i++)
		rc = send_to(tree, &flow->to[i], slot, bytes, err);
	return rc;
}

static int run_flow(struct ck_tree *tree, const struct flow *flow, struct ck_error *err)
{
	size_t room = flow->bytes < CK_TREE_PIECE ? (size_t)flow->bytes : CK_TREE_PIECE;
	struct ck_parcel *slots[SLOTS] = {NULL};
	uint64_t at = 0;
	int rc = 0;

	if (!flow->from && !flow->nto)
		return 0;
	for (unsigned i = 0; rc == 0 && at < flow->bytes; i++) {
		struct ck_parcel **slot = &slots[i % SLOTS];
		uint64_t left = flow->bytes - at;
		size_t bytes = left < room ? (size_t)left : room;

		if (*slot)
			rc = wait_all(tree, slot, 1, err);
		else if (!(*slot = new_parcel(tree, room, err)))
			rc = CK_EPEER;
		rc = rc ? rc : pass(tree, flow, *slot, at, bytes, err);
		at += bytes;
	}
	if (rc == 0)
		rc = wait_all(tree, slots, SLOTS, err);
	for (int i = 0; i < SLOTS; i++)
		ck_parcel_free(tree->comm, slots[i]);
	return rc;
}

int ck_tree_take(struct ck_tree *tree, const struct ck_peer *from, struct ck_ring to,
		 uint64_t bytes, struct ck_error *err)
{
	struct flow flow = {.from = from, .memory = to, .bytes = bytes};

	return run_flow(tree, &flow, err);
}

int ck_tree_give(struct ck_tree *tree, const struct ck_peer *to, struct ck_ring from,
		 uint64_t bytes, struct ck_error *err)
{
	struct flow flow = {.to = to, .nto = 1, .memory = from, .bytes = bytes};

	return run_flow(tree, &flow, err);
}

int ck_tree_fan_out(struct ck_tree *tree, void *data, uint64_t bytes, struct ck_error *err)
{
	struct flow flow = {
		.from = tree->has_parent ? &tree->parent : NULL,
		.to = tree->children,
		.nto = tree->nchildren,
		.memory = {.base = data, .ring = bytes},
		.bytes = bytes,
	};

	return run_flow(tree, &flow, err);
}

static int receive_all(struct ck_tree *tree, struct ck_parcel **parcels, size_t bytes,
		       struct ck_error *err)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < tree->nchildren; i++) {
		parcels[i] = new_parcel(tree, bytes, err);
		rc = parcels[i] ? ck_parcel_recv(tree->comm, parcels[i], tree->children[i].rank,
						 CK_TAG_COLLECTIVE, err)
				: CK_EPEER;
	}
	return rc ? rc : wait_all(tree, parcels, tree->nchildren, err);
}

int ck_tree_fan_in(struct ck_tree *tree, void *all, size_t bytes, ck_tree_merge merge,
		   struct ck_error *err)
{
	struct ck_parcel *parcels[CK_TREE_CHILDREN] = {NULL};
	int rc;

	assert(bytes >= 1 && bytes <= CK_TREE_PIECE);
	rc = receive_all(tree, parcels, bytes, err);
	for (int i = 0; i < tree->nchildren; i++) {
		rc = rc ? rc : check(tree, &tree->children[i], parcels[i], bytes, err);
		if (rc == 0)
			merge(all, body_of(parcels[i]), bytes);
		ck_parcel_free(tree->comm, parcels[i]);
	}
	return rc;
}
