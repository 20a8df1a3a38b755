#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "names.h"
#include "safetensors.h"
#include "shard_impl.h"

static void part_fini(struct ck_part *part)
{
	free(part->blocks);
	ck_buf_fini(&part->header);
}

void ck_plan_fini(struct ck_plan *plan)
{
	for (size_t i = 0; i < plan->nparts; i++)
		part_fini(&plan->parts[i]);
	free(plan->parts);
	*plan = (struct ck_plan){0};
}

/* Where the pieces go: part[i] of piece i. Returns the number of parts, at least one. */
static size_t assign_parts(const struct ck_stored *pieces, size_t npieces, size_t *part)
{
	size_t nparts = 1;

	for (size_t i = 0; i < npieces; i++) {
		part[i] = ck_stored_follows(pieces, i) ? part[i - 1] + 1 : 0;
		if (part[i] >= nparts)
			nparts = part[i] + 1;
	}
	return nparts;
}

static int compare_stored(const void *a, const void *b)
{
	const struct ck_stored *x = a, *y = b;
	size_t wide_x = ck_dtype_size(x->dtype), wide_y = ck_dtype_size(y->dtype);

	if (wide_x != wide_y)
		return wide_x > wide_y ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* The name in the file, malloc'ed; NULL when there is no memory. */
static char *tensor_name(const struct ck_stored *block, uint32_t rank)
{
	struct ck_buf name = CK_BUF_INIT;

	if (block->kind == CK_SHARDED)
		return strdup(block->name);
	ck_buf_addf(&name, "rank-%" PRIu32 "/", rank);
	ck_buf_add_str(&name, block->name);
	if (name.failed)
		ck_buf_fini(&name);
	return name.data;
}

static int fill_tensor(const struct ck_stored *block, uint32_t rank, uint64_t *at,
		       struct ck_st_tensor *tensor, struct ck_error *err)
{
	tensor->name = tensor_name(block, rank);
	if (!tensor->name)
		return ck_fail_nomem(err, strlen(block->name));
	tensor->dtype = block->dtype;
	tensor->ndim = block->box.ndim;
	memcpy(tensor->shape, block->box.extent, sizeof(tensor->shape));
	tensor->begin = *at;
	if (!ck_add_u64(*at, block->bytes, &tensor->end) || tensor->end > CK_JSON_INT_MAX)
		return ck_fail(err, CK_EARG, "shard of rank %" PRIu32 ": 2^53 bytes or more", rank);
	*at = tensor->end;
	return 0;
}

static void print_values(struct ck_buf *out, int ndim, const uint64_t *values)
{
	for (int d = 0; d < ndim; d++)
		ck_buf_addf(out, "%s%" PRIu64, d ? "," : "", values[d]);
}

/* The two maps of __metadata__, in the order of the tensors. */
static void print_maps(const struct ck_part *part, const struct ck_st_tensor *tensors,
		       struct ck_buf *dcp, struct ck_buf *ckpt)
{
	ck_buf_add_str(dcp, "{");
	ck_buf_add_str(ckpt, "{");
	for (size_t i = 0; i < part->nblocks; i++) {
		const struct ck_stored *block = &part->blocks[i];

		ck_buf_add_str(dcp, i ? "," : "");
		ck_buf_add_json_string(dcp, tensors[i].name);
		ck_buf_add_str(dcp, ":{\"saved_offsets\":[");
		print_values(dcp, block->box.ndim, block->box.offset);
		ck_buf_add_str(dcp, "]}");
		ck_buf_add_str(ckpt, i ? "," : "");
		ck_buf_add_json_string(ckpt, tensors[i].name);
		ck_buf_addf(ckpt, ":{\"kind\":\"%s\",\"global_shape\":", ck_kind_name(block->kind));
		if (block->kind == CK_SHARDED) {
			ck_buf_add_str(ckpt, "[");
			print_values(ckpt, block->ndim, block->shape);
			ck_buf_add_str(ckpt, "]}");
		} else {
			ck_buf_add_str(ckpt, "null}");
		}
	}
	ck_buf_add_str(dcp, "}");
	ck_buf_add_str(ckpt, "}");
}

static int print_header(struct ck_part *part, const struct ck_st_tensor *tensors,
			struct ck_error *err)
{
	struct ck_buf dcp = CK_BUF_INIT, ckpt = CK_BUF_INIT;
	int rc;

	print_maps(part, tensors, &dcp, &ckpt);
	rc = ck_buf_check(&dcp, err);
	if (rc == 0)
		rc = ck_buf_check(&ckpt, err);
	if (rc == 0) {
		struct ck_st_meta meta[] = {
			{(char *)"format", (char *)"pt"},
			{(char *)"DCP_SHARDING_INFO", dcp.data},
			{(char *)"ckpt", ckpt.data},
		};
		struct ck_st_header header = {.tensors = (struct ck_st_tensor *)tensors,
					      .ntensors = part->nblocks,
					      .meta = meta,
					      .nmeta = 3};

		rc = ck_st_print(&header, &part->header, err);
	}
	ck_buf_fini(&dcp);
	ck_buf_fini(&ckpt);
	return rc;
}

/* Blocks are there, in file order: print the header and compute the offsets. */
static int lay_out(uint32_t rank, struct ck_part *part, struct ck_error *err)
{
	struct ck_st_tensor *tensors = calloc(part->nblocks + 1, sizeof(*tensors));
	uint64_t at = 0;
	int rc = 0;

	if (!tensors)
		return ck_fail_nomem(err, part->nblocks * sizeof(*tensors));
	for (size_t i = 0; i < part->nblocks && rc == 0; i++)
		rc = fill_tensor(&part->blocks[i], rank, &at, &tensors[i], err);
	if (rc == 0)
		rc = print_header(part, tensors, err);
	for (size_t i = 0; i < part->nblocks; i++) {
		part->blocks[i].offset = part->header.len + tensors[i].begin;
		free(tensors[i].name);
	}
	free(tensors);
	part->bytes = part->header.len + at;
	return rc;
}

static int fill_parts(const struct ck_stored *pieces, size_t npieces, const size_t *part_of_piece,
		      struct ck_plan *plan, struct ck_error *err)
{
	for (size_t i = 0; i < npieces; i++)
		plan->parts[part_of_piece[i]].nblocks++;
	for (size_t p = 0; p < plan->nparts; p++) {
		struct ck_part *part = &plan->parts[p];

		part->blocks = calloc(part->nblocks + 1, sizeof(*part->blocks));
		if (!part->blocks)
			return ck_fail_nomem(err, part->nblocks * sizeof(*part->blocks));
		part->nblocks = 0;
	}
	for (size_t i = 0; i < npieces; i++) {
		struct ck_part *part = &plan->parts[part_of_piece[i]];

		part->blocks[part->nblocks++] = pieces[i];
	}
	return 0;
}

static int make_parts(uint32_t rank, const struct ck_stored *pieces, size_t npieces,
		      const size_t *part_of_piece, struct ck_plan *plan, struct ck_error *err)
{
	int rc;

	plan->parts = calloc(plan->nparts, sizeof(*plan->parts));
	if (!plan->parts) {
		plan->nparts = 0;
		return ck_fail_nomem(err, sizeof(*plan->parts));
	}
	rc = fill_parts(pieces, npieces, part_of_piece, plan, err);
	for (size_t p = 0; p < plan->nparts && rc == 0; p++) {
		struct ck_part *part = &plan->parts[p];

		qsort(part->blocks, part->nblocks, sizeof(*part->blocks), compare_stored);
		rc = lay_out(rank, part, err);
	}
	return rc;
}

static int plan_pieces(uint32_t rank, const struct ck_stored *pieces, size_t npieces,
		       struct ck_plan *out, struct ck_error *err)
{
	size_t *part_of_piece = calloc(npieces + 1, sizeof(*part_of_piece));
	struct ck_plan plan = {0};
	int rc;

	if (!part_of_piece)
		return ck_fail_nomem(err, npieces * sizeof(*part_of_piece));
	plan.nparts = assign_parts(pieces, npieces, part_of_piece);
	if (plan.nparts > CK_PARTS_MAX)
		rc = ck_fail(err, CK_EARG,
			     "shard of rank %" PRIu32 ": %zu files wanted, the limit is %d", rank,
			     plan.nparts, CK_PARTS_MAX);
	else
		rc = make_parts(rank, pieces, npieces, part_of_piece, &plan, err);
	free(part_of_piece);
	if (rc && plan.parts)
		ck_plan_fini(&plan);
	if (rc == 0)
		*out = plan;
	return rc;
}

int ck_shard_plan(uint32_t rank, uint32_t world_size, const struct ck_stored *blocks,
		  size_t nblocks, struct ck_plan *out, struct ck_error *err)
{
	struct ck_stored *pieces = NULL;
	size_t npieces = 0;
	int rc = ck_shard_cut(world_size, blocks, nblocks, &pieces, &npieces, err);

	if (rc == 0)
		rc = plan_pieces(rank, pieces, npieces, out, err);
	free(pieces);
	return rc;
}
