#include "comm.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "comm_tree.h"

/* Plain memory. */
static struct ck_ring all_of(const void *memory, uint64_t bytes)
{
	return (struct ck_ring){.base = (unsigned char *)memory, .ring = bytes};
}

/* ---- one value made of everybody's ---- */

/* Merge up the tree, then send the result down. `all` is undefined after a failure. */
static int converge(struct ck_comm *comm, enum ck_op op, void *all, size_t bytes,
		    ck_tree_merge merge, struct ck_error *err)
{
	struct ck_tree tree;
	int rc;

	rc = ck_tree_plant(&tree, comm, op, NULL, comm->table.size, 0, err);
	if (rc)
		return rc;
	rc = ck_tree_fan_in(&tree, all, bytes, merge, err);
	if (rc == 0 && tree.has_parent)
		rc = ck_tree_give(&tree, &tree.parent, all_of(all, bytes), bytes, err);
	if (rc == 0)
		rc = ck_tree_fan_out(&tree, all, bytes, err);
	return ck_tree_finish(&tree, rc);
}

static void merge_max(void *all, const void *one, size_t bytes)
{
	const uint64_t *values = one;
	uint64_t *most = all;

	for (size_t i = 0; i < bytes / sizeof(*most); i++)
		if (values[i] > most[i])
			most[i] = values[i];
}

int ck_comm_barrier(struct ck_comm *comm, struct ck_error *err)
{
	uint64_t nothing = 0;

	return converge(comm, CK_OP_BARRIER, &nothing, sizeof(nothing), merge_max, err);
}

int ck_comm_allreduce_max(struct ck_comm *comm, uint64_t *values, int n, struct ck_error *err)
{
	assert(n >= 1 && n <= CK_COMM_REDUCE_MAX);
	return converge(comm, CK_OP_MAXIMUM, values, (size_t)n * sizeof(*values), merge_max, err);
}

/* What is known about the ranks of a subtree. */
struct verdict {
	uint32_t failed; /* how many */
	int32_t rank;    /* the lowest of them, its code and text */
	int32_t code;
	char text[CK_ERROR_TEXT];
};

static void merge_verdict(void *all, const void *one, size_t bytes)
{
	const struct verdict *more = one;
	struct verdict *sum = all;
	uint32_t failed = sum->failed + more->failed;

	if (more->failed && (!sum->failed || more->rank < sum->rank))
		memcpy(sum, more, bytes);
	sum->failed = failed;
}

static int pronounce(const struct verdict *verdict, int size, struct ck_error *err)
{
	if (size == 1)
		return ck_fail(err, verdict->code, "%s", verdict->text);
	if (verdict->failed == 1)
		return ck_fail(err, verdict->code, "rank %" PRId32 ": %s", verdict->rank,
			       verdict->text);
	return ck_fail(err, verdict->code, "rank %" PRId32 " (and %" PRIu32 " more): %s",
		       verdict->rank, verdict->failed - 1, verdict->text);
}

int ck_comm_agree(struct ck_comm *comm, int code, struct ck_error *err)
{
	struct verdict verdict = {.failed = code != 0, .rank = comm->table.rank, .code = code};
	int rc;

	assert(code <= 0);
	if (code)
		memccpy(verdict.text, err && err->code == code ? err->text : ck_code_name(code),
			'\0', sizeof(verdict.text));
	rc = converge(comm, CK_OP_AGREEMENT, &verdict, sizeof(verdict), merge_verdict, err);
	if (rc || !verdict.failed)
		return rc;
	verdict.text[sizeof(verdict.text) - 1] = '\0';
	return pronounce(&verdict, comm->table.size, err);
}

/* ---- broadcasts ---- */

int ck_comm_bcast(struct ck_comm *comm, int root, void *data, uint64_t bytes, struct ck_error *err)
{
	struct ck_tree tree;
	int rc = ck_tree_plant(&tree, comm, CK_OP_BROADCAST, NULL, comm->table.size, root, err);

	return rc ? rc : ck_tree_finish(&tree, ck_tree_fan_out(&tree, data, bytes, err));
}

int ck_comm_bcast_group(struct ck_comm *comm, const int *ranks, int n, int root, void *data,
			uint64_t bytes, struct ck_error *err)
{
	struct ck_tree tree;
	int rc = ck_tree_plant(&tree, comm, CK_OP_GROUP_BROADCAST, ranks, n, root, err);

	return rc ? rc : ck_tree_finish(&tree, ck_tree_fan_out(&tree, data, bytes, err));
}

/* malloc for sizes that come from elsewhere; never NULL on success. */
static int allocate(uint64_t bytes, void **memory, struct ck_error *err)
{
	*memory = bytes <= PTRDIFF_MAX ? malloc(bytes ? (size_t)bytes : 1) : NULL;
	return *memory ? 0 : ck_fail_nomem(err, (size_t)bytes);
}

int ck_comm_bcast_new(struct ck_comm *comm, int root, void **data, uint64_t *bytes,
		      struct ck_error *err)
{
	int is_root = comm->table.rank == root, rc;
	uint64_t length = is_root ? *bytes : 0;
	void *memory = is_root ? *data : NULL;

	rc = ck_comm_bcast(comm, root, &length, sizeof(length), err);
	if (rc)
		return rc;
	rc = ck_comm_agree(comm, is_root ? 0 : allocate(length, &memory, err), err);
	rc = rc ? rc : ck_comm_bcast(comm, root, memory, length, err);
	if (is_root)
		return rc;
	if (rc) {
		free(memory);
		return rc;
	}
	*data = memory;
	*bytes = length;
	return 0;
}

/* ---- gather and scatter ---- */

void ck_per_rank_fini(struct ck_per_rank *per_rank)
{
	free(per_rank->data);
	free(per_rank->offsets);
	*per_rank = (struct ck_per_rank)CK_PER_RANK_INIT;
}

int ck_per_rank_make(struct ck_per_rank *out, uint32_t size,
		     int (*add)(const void *arg, uint32_t rank, struct ck_buf *text,
				struct ck_error *err),
		     const void *arg, struct ck_error *err)
{
	struct ck_buf all = CK_BUF_INIT;
	int rc = 0;

	out->offsets = calloc((size_t)size + 1, sizeof(*out->offsets));
	if (!out->offsets)
		return ck_fail_nomem(err, ((size_t)size + 1) * sizeof(*out->offsets));
	for (uint32_t r = 0; !rc && r < size; r++) {
		rc = add(arg, r, &all, err);
		out->offsets[r + 1] = all.len;
	}
	out->data = (unsigned char *)all.data;
	return rc;
}

/*
 * What passes through a rank: the bytes of its subtree, by place. First every rank learns the sizes
 * of its subtree, then all allocate and agree that they could, then the bytes travel.
 */
struct load {
	struct ck_tree tree;
	uint64_t *begins;    /* span sizes; after add_up: span + 1 offsets */
	struct ck_ring ring; /* where the bytes of the subtree are */
	void *memory;        /* allocated for them, or for this rank's own */
};

static int load_init(struct load *load, struct ck_comm *comm, enum ck_op op, int root,
		     struct ck_error *err)
{
	int rc;

	memset(load, 0, sizeof(*load));
	rc = ck_tree_plant(&load->tree, comm, op, NULL, comm->table.size, root, err);
	if (rc)
		return rc;
	load->begins = calloc((size_t)load->tree.span + 1, sizeof(*load->begins));
	if (load->begins)
		return 0;
	ck_comm_die(comm, err, "rank %d: out of memory: %" PRIu32 " sizes wanted", comm->table.rank,
		    load->tree.span);
	return ck_tree_finish(&load->tree, CK_EPEER);
}

/* Sizes become offsets. */
static int add_up(struct load *load, struct ck_error *err)
{
	uint64_t sum = 0, size;

	for (uint32_t i = 0; i <= load->tree.span; i++) {
		size = load->begins[i];
		load->begins[i] = sum;
		if (size > PTRDIFF_MAX - sum)
			return ck_fail(err, CK_ENOMEM, "out of memory: more than %td bytes wanted",
				       PTRDIFF_MAX);
		sum += size;
	}
	return 0;
}

static uint64_t total_of(const struct load *load)
{
	return load->begins[load->tree.span];
}

static uint64_t bytes_of(const struct load *load, const struct ck_peer *child)
{
	return load->begins[child->place + child->span] - load->begins[child->place];
}

/* The same memory, beginning with the bytes of a child. */
static struct ck_ring from_child(const struct load *load, const struct ck_peer *child)
{
	struct ck_ring ring = load->ring;

	ring.start += load->begins[child->place];
	return ring;
}

/* The entries of `begins` for a child. */
static struct ck_ring sizes_of(const struct load *load, const struct ck_peer *child)
{
	return all_of(load->begins + child->place, child->span * sizeof(*load->begins));
}

/* In rank order, the bytes of place 0 (the root) begin behind those of the ranks below the root. */
static uint64_t root_start(const struct load *load, int root)
{
	return total_of(load) - load->begins[load->tree.span - (uint32_t)root];
}

static int gather_sizes(struct load *load, uint64_t own, struct ck_error *err)
{
	struct ck_tree *tree = &load->tree;
	uint64_t bytes = tree->span * sizeof(*load->begins);
	int rc = 0;

	load->begins[0] = own;
	for (int i = 0; rc == 0 && i < tree->nchildren; i++) {
		struct ck_ring sizes = sizes_of(load, &tree->children[i]);

		rc = ck_tree_take(tree, &tree->children[i], sizes, sizes.ring, err);
	}
	if (rc == 0 && tree->has_parent)
		rc = ck_tree_give(tree, &tree->parent, all_of(load->begins, bytes), bytes, err);
	return rc;
}

static int gather_bytes(struct load *load, struct ck_error *err)
{
	struct ck_tree *tree = &load->tree;
	int rc = 0;

	for (int i = 0; rc == 0 && i < tree->nchildren; i++) {
		const struct ck_peer *child = &tree->children[i];

		rc = ck_tree_take(tree, child, from_child(load, child), bytes_of(load, child), err);
	}
	if (rc == 0 && tree->has_parent)
		rc = ck_tree_give(tree, &tree->parent, load->ring, total_of(load), err);
	return rc;
}

/* At root: room for all, in rank order. Elsewhere: room for the subtree; a leaf needs none. */
static int gather_prepare(struct load *load, int root, const void *data, uint64_t **offsets,
			  struct ck_error *err)
{
	size_t n = load->tree.span;
	void *memory = NULL;
	int rc;

	rc = add_up(load, err);
	if (rc)
		return rc;
	load->ring = all_of(data, total_of(load));
	if (load->tree.has_parent && !load->tree.nchildren)
		return 0;
	rc = allocate(total_of(load), &load->memory, err);
	if (rc)
		return rc;
	load->ring.base = load->memory;
	if (!load->tree.has_parent) {
		load->ring.start = root_start(load, root);
		rc = allocate((n + 1) * sizeof(**offsets), &memory, err);
		*offsets = memory;
	}
	if (rc == 0 && load->begins[1])
		memcpy(load->ring.base + load->ring.start, data, (size_t)load->begins[1]);
	return rc;
}

/* Offsets by place to offsets by rank. */
static void offsets_by_rank(const struct load *load, uint32_t root, uint64_t *offsets)
{
	uint32_t n = load->tree.span;

	offsets[0] = 0;
	for (uint32_t rank = 0; rank < n; rank++) {
		uint32_t place = (rank + n - root) % n;

		offsets[rank + 1] = offsets[rank] + load->begins[place + 1] - load->begins[place];
	}
}

int ck_comm_gather(struct ck_comm *comm, int root, const void *data, uint64_t bytes,
		   struct ck_per_rank *out, struct ck_error *err)
{
	uint64_t *offsets = NULL;
	struct load load;
	int rc;

	rc = load_init(&load, comm, CK_OP_GATHER, root, err);
	if (rc)
		goto out;
	rc = gather_sizes(&load, bytes, err);
	if (rc == 0)
		rc = ck_comm_agree(comm, gather_prepare(&load, root, data, &offsets, err), err);
	if (rc == 0)
		rc = gather_bytes(&load, err);
	rc = ck_tree_finish(&load.tree, rc);
	if (rc == 0 && !load.tree.has_parent) {
		offsets_by_rank(&load, (uint32_t)root, offsets);
		*out = (struct ck_per_rank){.data = load.memory, .offsets = offsets};
		load.memory = offsets = NULL;
	}
out:
	free(offsets);
	free(load.memory);
	free(load.begins);
	return rc;
}

static int scatter_sizes(struct load *load, int root, const struct ck_per_rank *in,
			 struct ck_error *err)
{
	struct ck_tree *tree = &load->tree;
	uint32_t n = tree->span, first = (uint32_t)root;
	uint64_t bytes = n * sizeof(*load->begins);
	int rc = 0;

	if (tree->has_parent)
		rc = ck_tree_take(tree, &tree->parent, all_of(load->begins, bytes), bytes, err);
	else
		for (uint32_t rank = 0; rank < n; rank++)
			load->begins[(rank + n - first) % n] =
				in->offsets[rank + 1] - in->offsets[rank];
	for (int i = 0; rc == 0 && i < tree->nchildren; i++) {
		struct ck_ring sizes = sizes_of(load, &tree->children[i]);

		rc = ck_tree_give(tree, &tree->children[i], sizes, sizes.ring, err);
	}
	return rc;
}

/* At root: room for its own part. Elsewhere: for the subtree, which begins with its own part. */
static int scatter_prepare(struct load *load, int root, const struct ck_per_rank *in,
			   struct ck_error *err)
{
	int rc;

	rc = add_up(load, err);
	if (rc)
		return rc;
	rc = allocate(load->tree.has_parent ? total_of(load) : load->begins[1], &load->memory, err);
	if (rc)
		return rc;
	if (load->tree.has_parent) {
		load->ring = all_of(load->memory, total_of(load));
		return 0;
	}
	load->ring = all_of(in->data, total_of(load));
	load->ring.start = root_start(load, root);
	if (load->begins[1])
		memcpy(load->memory, in->data + load->ring.start, (size_t)load->begins[1]);
	return 0;
}

static int scatter_bytes(struct load *load, struct ck_error *err)
{
	struct ck_tree *tree = &load->tree;
	int rc = 0;

	if (tree->has_parent)
		rc = ck_tree_take(tree, &tree->parent, load->ring, total_of(load), err);
	for (int i = 0; rc == 0 && i < tree->nchildren; i++) {
		const struct ck_peer *child = &tree->children[i];

		rc = ck_tree_give(tree, child, from_child(load, child), bytes_of(load, child), err);
	}
	return rc;
}

int ck_comm_scatter(struct ck_comm *comm, int root, const struct ck_per_rank *in, void **data,
		    uint64_t *bytes, struct ck_error *err)
{
	struct load load;
	void *own;
	int rc;

	rc = load_init(&load, comm, CK_OP_SCATTER, root, err);
	if (rc)
		goto out;
	rc = scatter_sizes(&load, root, in, err);
	if (rc == 0)
		rc = ck_comm_agree(comm, scatter_prepare(&load, root, in, err), err);
	if (rc == 0)
		rc = scatter_bytes(&load, err);
	rc = ck_tree_finish(&load.tree, rc);
	if (rc)
		goto out;
	*bytes = load.begins[1];
	own = realloc(load.memory, *bytes ? (size_t)*bytes : 1);
	*data = own ? own : load.memory;
	load.memory = NULL;
out:
	free(load.memory);
	free(load.begins);
	return rc;
}
