#include "tensor.h"

#include <inttypes.h>
#include <string.h>

#include "json.h"
#include "parse.h"

static const struct {
	const char *name;
	size_t bytes;
} dtypes[CK_DTYPES] = {
	[CK_BOOL] = {"BOOL", 1},
	[CK_U8] = {"U8", 1},
	[CK_I8] = {"I8", 1},
	[CK_I16] = {"I16", 2},
	[CK_I32] = {"I32", 4},
	[CK_I64] = {"I64", 8},
	[CK_F16] = {"F16", 2},
	[CK_BF16] = {"BF16", 2},
	[CK_F32] = {"F32", 4},
	[CK_F64] = {"F64", 8},
	[CK_U16] = {"U16", 2},
	[CK_U32] = {"U32", 4},
	[CK_U64] = {"U64", 8},
	[CK_C64] = {"C64", 8},
	[CK_F8_E4M3] = {"F8_E4M3", 1},
	[CK_F8_E5M2] = {"F8_E5M2", 1},
	[CK_F8_E8M0] = {"F8_E8M0", 1},
	[CK_F8_E4M3FNUZ] = {"F8_E4M3FNUZ", 1},
	[CK_F8_E5M2FNUZ] = {"F8_E5M2FNUZ", 1},
};

size_t ck_dtype_size(int dtype)
{
	return dtype >= 0 && dtype < CK_DTYPES ? dtypes[dtype].bytes : 0;
}

const char *ck_dtype_name(int dtype)
{
	return dtype >= 0 && dtype < CK_DTYPES ? dtypes[dtype].name : NULL;
}

int ck_dtype_parse(const char *name, enum ck_dtype *out, struct ck_error *err)
{
	char shown[CK_JSON_SHOW];

	for (int i = 0; i < CK_DTYPES; i++) {
		if (strcmp(name, dtypes[i].name) == 0) {
			*out = (enum ck_dtype)i;
			return 0;
		}
	}
	return ck_fail(err, CK_EFORMAT, "unknown dtype '%s'", ck_json_show(shown, name));
}

bool ck_mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
	uint64_t product;

	if (__builtin_mul_overflow(a, b, &product))
		return false;
	*out = product;
	return true;
}

bool ck_add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
	uint64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return false;
	*out = sum;
	return true;
}

bool ck_volume(int ndim, const uint64_t *shape, uint64_t *out)
{
	uint64_t volume = 1;

	/* Zeros first: [2^40, 2^40, 0] has no elements, in whatever order one multiplies. */
	for (int d = 0; d < ndim; d++)
		if (shape[d] == 0)
			volume = 0;
	for (int d = 0; d < ndim && volume; d++)
		if (!ck_mul_u64(volume, shape[d], &volume) || volume > INT64_MAX)
			return false;
	*out = volume;
	return true;
}

uint64_t ck_box_volume(const struct ck_box *box)
{
	uint64_t volume = 0;

	ck_volume(box->ndim, box->extent, &volume);
	return volume;
}

bool ck_box_empty(const struct ck_box *box)
{
	for (int d = 0; d < box->ndim; d++)
		if (box->extent[d] == 0)
			return true;
	return false;
}

static int compare_values(int ndim, const uint64_t *a, const uint64_t *b)
{
	for (int d = 0; d < ndim; d++)
		if (a[d] != b[d])
			return a[d] < b[d] ? -1 : 1;
	return 0;
}

int ck_box_cmp(const struct ck_box *a, const struct ck_box *b)
{
	int order;

	if (a->ndim != b->ndim)
		return a->ndim < b->ndim ? -1 : 1;
	order = compare_values(a->ndim, a->offset, b->offset);
	return order ? order : compare_values(a->ndim, a->extent, b->extent);
}

bool ck_box_equal(const struct ck_box *a, const struct ck_box *b)
{
	return ck_box_cmp(a, b) == 0;
}

bool ck_box_overlap(const struct ck_box *a, const struct ck_box *b)
{
	for (int d = 0; d < a->ndim; d++) {
		uint64_t begin = a->offset[d] > b->offset[d] ? a->offset[d] : b->offset[d];

		/* Both begin at or before `begin`, so the differences do not wrap. */
		if (begin - a->offset[d] >= a->extent[d] || begin - b->offset[d] >= b->extent[d])
			return false;
	}
	return true;
}

bool ck_box_inside(const struct ck_box *box, const uint64_t *shape)
{
	for (int d = 0; d < box->ndim; d++)
		if (box->offset[d] > shape[d] || box->extent[d] > shape[d] - box->offset[d])
			return false;
	return true;
}

bool ck_box_run(const struct ck_box *outer, const struct ck_box *inner, uint64_t *at)
{
	uint64_t first = 0;
	bool whole = true; /* of every dimension behind d, inner has all that outer has */

	if (inner->ndim != outer->ndim)
		return false;
	for (int d = 0; d < inner->ndim; d++) {
		uint64_t begin = inner->offset[d] - outer->offset[d];

		if (inner->offset[d] < outer->offset[d] || begin > outer->extent[d] ||
		    inner->extent[d] > outer->extent[d] - begin)
			return false;
		first = first * outer->extent[d] + begin;
	}
	for (int d = inner->ndim - 1; d >= 0; d--) {
		if (!whole && inner->extent[d] != 1)
			return false;
		whole = whole && inner->extent[d] == outer->extent[d];
	}
	*at = first;
	return true;
}

void ck_box_print(struct ck_buf *out, const struct ck_box *box)
{
	ck_buf_add_str(out, "[");
	for (int d = 0; d < box->ndim; d++)
		ck_buf_addf(out, "%s%" PRIu64 ":%" PRIu64, d ? ", " : "", box->offset[d],
			    box->offset[d] + box->extent[d]);
	ck_buf_add_str(out, "]");
}

void ck_shape_print(struct ck_buf *out, int ndim, const uint64_t *shape)
{
	ck_buf_add_str(out, "[");
	for (int d = 0; d < ndim; d++)
		ck_buf_addf(out, "%s%" PRIu64, d ? ", " : "", shape[d]);
	ck_buf_add_str(out, "]");
}

/* "rank-<digits>/" in front belongs to per-rank items in files. */
static bool has_reserved_prefix(const char *name)
{
	size_t digits;

	if (strncmp(name, "rank-", 5) != 0)
		return false;
	digits = strspn(name + 5, "0123456789");
	return digits > 0 && name[5 + digits] == '/';
}

/* What is wrong with the bytes of a name, NULL if nothing. */
static const char *bad_byte(const char *name, size_t bytes, size_t *at)
{
	const unsigned char *text = (const unsigned char *)name;
	size_t i = 0;

	while (i < bytes) {
		int length = ck_utf8_sequence(text + i, bytes - i);

		*at = i;
		if (length <= 0)
			return "not UTF-8";
		if (text[i] < 0x20 || text[i] == 0x7f || (text[i] == 0xc2 && text[i + 1] < 0xa0))
			return "a control character";
		i += (size_t)length;
	}
	return NULL;
}

int ck_item_name_check(const char *name, struct ck_error *err)
{
	size_t bytes = strlen(name), at = 0;
	char shown[CK_JSON_SHOW];
	const char *problem;

	if (bytes == 0)
		return ck_fail(err, CK_EARG, "item name is empty");
	ck_json_show(shown, name);
	if (bytes > CK_ITEM_NAME_MAX)
		return ck_fail(err, CK_EARG, "item name '%s': %zu bytes, the limit is %d", shown,
			       bytes, CK_ITEM_NAME_MAX);
	problem = bad_byte(name, bytes, &at);
	if (problem)
		return ck_fail(err, CK_EARG, "item name '%s': byte %zu: %s", shown, at, problem);
	if (strcmp(name, "__metadata__") == 0)
		return ck_fail(err, CK_EARG, "item name '%s' is reserved by safetensors", shown);
	if (has_reserved_prefix(name))
		return ck_fail(err, CK_EARG,
			       "item name '%s': names of the form rank-<number>/... are reserved",
			       shown);
	return 0;
}
