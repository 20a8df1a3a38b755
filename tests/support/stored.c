#include "stored.h"

struct ck_stored stored_block(const char *name, enum ck_dtype dtype, uint64_t extent,
			      uint64_t offset, uint64_t count, const void *data)
{
	return (struct ck_stored){
		.name = name,
		.dtype = dtype,
		.ndim = 1,
		.shape = {extent},
		.box = {.ndim = 1, .offset = {offset}, .extent = {count}},
		.bytes = count * ck_dtype_size(dtype),
		.data = data,
	};
}

struct ck_stored stored_per_rank(const char *name, uint64_t bytes, const void *data)
{
	struct ck_stored block = stored_block(name, CK_U8, 0, 0, bytes, data);

	block.kind = CK_PER_RANK;
	return block;
}
