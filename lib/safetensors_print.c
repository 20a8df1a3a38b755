#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "parse.h"
#include "safetensors.h"

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int check_names(const struct ck_st_header *header, struct ck_error *err)
{
	const char **names = calloc(header->ntensors + 1, sizeof(*names));
	char shown[CK_JSON_SHOW];
	int rc = 0;

	if (!names)
		return ck_fail_nomem(err, header->ntensors * sizeof(*names));
	for (size_t i = 0; i < header->ntensors; i++)
		names[i] = header->tensors[i].name;
	qsort(names, header->ntensors, sizeof(*names), compare_names);
	for (size_t i = 1; i < header->ntensors && rc == 0; i++)
		if (strcmp(names[i - 1], names[i]) == 0)
			rc = ck_fail(err, CK_EARG, "safetensors header: tensor '%s' twice",
				     ck_json_show(shown, names[i]));
	free(names);
	return rc;
}

/* A reader would refuse anything else. */
static int check_layout(const struct ck_st_header *header, struct ck_error *err)
{
	char shown[CK_JSON_SHOW];
	uint64_t at = 0, volume, bytes;

	for (size_t i = 0; i < header->ntensors; i++) {
		const struct ck_st_tensor *tensor = &header->tensors[i];

		if (tensor->begin != at || tensor->end > CK_JSON_INT_MAX ||
		    !ck_volume(tensor->ndim, tensor->shape, &volume) ||
		    !ck_mul_u64(volume, ck_dtype_size(tensor->dtype), &bytes) || tensor->end < at ||
		    tensor->end - at != bytes)
			return ck_fail(err, CK_EARG,
				       "safetensors header: tensor '%s': bytes [%" PRIu64
				       ", %" PRIu64 ") do not follow from its shape and place",
				       ck_json_show(shown, tensor->name), tensor->begin,
				       tensor->end);
		at = tensor->end;
	}
	return 0;
}

static void print_meta(const struct ck_st_header *header, struct ck_buf *out)
{
	ck_buf_add_str(out, "\"__metadata__\":{");
	for (size_t i = 0; i < header->nmeta; i++) {
		ck_buf_add_str(out, i ? "," : "");
		ck_buf_add_json_string(out, header->meta[i].key);
		ck_buf_add_str(out, ":");
		ck_buf_add_json_string(out, header->meta[i].value);
	}
	ck_buf_add_str(out, "}");
}

static void print_tensor(const struct ck_st_tensor *tensor, struct ck_buf *out)
{
	ck_buf_add_json_string(out, tensor->name);
	ck_buf_addf(out, ":{\"dtype\":\"%s\",\"shape\":[", ck_dtype_name(tensor->dtype));
	for (int d = 0; d < tensor->ndim; d++)
		ck_buf_addf(out, "%s%" PRIu64, d ? "," : "", tensor->shape[d]);
	ck_buf_addf(out, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", tensor->begin,
		    tensor->end);
}

/* Prefix, JSON and padding; `start` is where the prefix stands in out. */
static int print_header(const struct ck_st_header *header, struct ck_buf *out, size_t start,
			struct ck_error *err)
{
	uint64_t json_bytes;
	size_t pad;
	void *blanks;

	ck_buf_add_u64(out, 0);
	ck_buf_add_str(out, "{");
	if (header->nmeta)
		print_meta(header, out);
	for (size_t i = 0; i < header->ntensors; i++) {
		ck_buf_add_str(out, i || header->nmeta ? "," : "");
		print_tensor(&header->tensors[i], out);
	}
	ck_buf_add_str(out, "}");
	pad = (size_t)(-(out->len - start) & (CK_ST_ALIGN - 1));
	blanks = ck_buf_reserve(out, pad);
	if (!blanks)
		return ck_buf_check(out, err);
	memset(blanks, ' ', pad);
	out->len += pad;
	json_bytes = out->len - start - 8;
	if (json_bytes > CK_ST_HEADER_MAX)
		return ck_fail(err, CK_EARG,
			       "safetensors header of %" PRIu64
			       " bytes for %zu tensor%s: the limit "
			       "is %" PRIu64,
			       json_bytes, header->ntensors, ck_plural(header->ntensors),
			       CK_ST_HEADER_MAX);
	for (int i = 0; i < 8; i++)
		out->data[start + (size_t)i] = (char)(json_bytes >> (8 * i));
	return 0;
}

int ck_st_print(const struct ck_st_header *header, struct ck_buf *out, struct ck_error *err)
{
	size_t start = out->len;
	int rc = check_names(header, err);

	if (rc == 0)
		rc = check_layout(header, err);
	if (rc == 0)
		rc = print_header(header, out, start, err);
	if (rc && out->data) {
		out->len = start;
		out->data[start] = '\0';
	}
	return rc;
}
