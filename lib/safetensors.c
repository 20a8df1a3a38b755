#include "safetensors.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

#define META_KEY "__metadata__"

void ck_st_fini(struct ck_st_header *header)
{
	for (size_t i = 0; header->tensors && i < header->ntensors; i++)
		free(header->tensors[i].name);
	for (size_t i = 0; header->meta && i < header->nmeta; i++) {
		free(header->meta[i].key);
		free(header->meta[i].value);
	}
	free(header->tensors);
	free(header->meta);
	*header = (struct ck_st_header){0};
}

int ck_st_header_bytes(const char *path, const unsigned char prefix[static 8], uint64_t file_bytes,
		       uint64_t *json_bytes, struct ck_error *err)
{
	uint64_t bytes = 0;

	if (file_bytes < 8)
		return ck_fail(err, CK_EFORMAT,
			       "%s: %" PRIu64 " bytes, too short for a safetensors file", path,
			       file_bytes);
	for (int i = 7; i >= 0; i--)
		bytes = bytes << 8 | prefix[i];
	if (bytes > CK_ST_HEADER_MAX)
		return ck_fail(err, CK_EFORMAT,
			       "%s: header of %" PRIu64 " bytes, the limit is %" PRIu64, path,
			       bytes, CK_ST_HEADER_MAX);
	if (bytes > file_bytes - 8)
		return ck_fail(err, CK_EFORMAT,
			       "%s: header of %" PRIu64 " bytes ends past the file (%" PRIu64 ")",
			       path, bytes, file_bytes);
	*json_bytes = bytes;
	return 0;
}

static int parse_meta(const cJSON *node, struct ck_st_header *header, struct ck_error *err)
{
	char shown[CK_JSON_SHOW];
	size_t count = 0;

	if (!cJSON_IsObject(node))
		return ck_fail(err, CK_EFORMAT, META_KEY " is not an object");
	for (const cJSON *entry = node->child; entry; entry = entry->next)
		count++;
	header->meta = calloc(count + 1, sizeof(*header->meta));
	if (!header->meta)
		return ck_fail_nomem(err, count * sizeof(*header->meta));
	for (const cJSON *entry = node->child; entry; entry = entry->next) {
		struct ck_st_meta *meta = &header->meta[header->nmeta++];

		if (!cJSON_IsString(entry))
			return ck_fail(err, CK_EFORMAT, META_KEY ": '%s' is not a string",
				       ck_json_show(shown, entry->string));
		meta->key = strdup(entry->string);
		meta->value = strdup(entry->valuestring);
		if (!meta->key || !meta->value)
			return ck_fail_nomem(err, strlen(entry->valuestring));
	}
	return 0;
}

/* Do dtype, shape and data_offsets of one tensor agree, and do the data lie in the file? */
static int check_bytes(const struct ck_st_tensor *tensor, uint64_t data_bytes, struct ck_error *err)
{
	uint64_t volume, bytes;

	if (!ck_volume(tensor->ndim, tensor->shape, &volume) ||
	    !ck_mul_u64(volume, ck_dtype_size(tensor->dtype), &bytes))
		return ck_fail(err, CK_EFORMAT, "shape: more than 2^63 bytes");
	if (tensor->begin > tensor->end)
		return ck_fail(err, CK_EFORMAT,
			       "data_offsets: begin %" PRIu64 " is behind end %" PRIu64,
			       tensor->begin, tensor->end);
	if (tensor->end > data_bytes)
		return ck_fail(err, CK_EFORMAT,
			       "bytes [%" PRIu64 ", %" PRIu64 ") end past the data (%" PRIu64 ")",
			       tensor->begin, tensor->end, data_bytes);
	if (tensor->end - tensor->begin != bytes)
		return ck_fail(err, CK_EFORMAT,
			       "bytes [%" PRIu64 ", %" PRIu64 ") are %" PRIu64
			       ", dtype and shape want %" PRIu64,
			       tensor->begin, tensor->end, tensor->end - tensor->begin, bytes);
	return 0;
}

static int parse_fields(const cJSON *node, uint64_t data_bytes, struct ck_st_tensor *tensor,
			struct ck_error *err)
{
	uint64_t offsets[2];
	const char *dtype;
	size_t count;
	int rc;

	if (!cJSON_IsObject(node))
		return ck_fail(err, CK_EFORMAT, "not an object");
	rc = ck_json_string(NULL, node, "dtype", CK_ST_HEADER_MAX, &dtype, err);
	if (rc == 0)
		rc = ck_dtype_parse(dtype, &tensor->dtype, err);
	if (rc == 0)
		rc = ck_json_u64_array(NULL, node, "shape", CK_MAX_NDIM, tensor->shape, &count,
				       err);
	if (rc)
		return rc;
	tensor->ndim = (int)count;
	rc = ck_json_u64_array(NULL, node, "data_offsets", 2, offsets, &count, err);
	if (rc)
		return rc;
	if (count != 2)
		return ck_fail(err, CK_EFORMAT, "data_offsets: %zu values, 2 wanted", count);
	tensor->begin = offsets[0];
	tensor->end = offsets[1];
	return check_bytes(tensor, data_bytes, err);
}

static int parse_tensor(const cJSON *node, uint64_t data_bytes, struct ck_st_tensor *tensor,
			struct ck_error *err)
{
	char shown[CK_JSON_SHOW];
	int rc;

	tensor->name = strdup(node->string);
	if (!tensor->name)
		return ck_fail_nomem(err, strlen(node->string) + 1);
	rc = parse_fields(node, data_bytes, tensor, err);
	if (rc)
		ck_error_prefix(err, "tensor '%s'", ck_json_show(shown, tensor->name));
	return rc;
}

static int compare_tensors(const void *a, const void *b)
{
	const struct ck_st_tensor *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Sorted tensors: no hole, no overlap, nothing behind the last one. */
static int check_layout(const struct ck_st_header *header, uint64_t data_bytes,
			struct ck_error *err)
{
	char shown[CK_JSON_SHOW];
	uint64_t at = 0;

	for (size_t i = 0; i < header->ntensors; i++) {
		const struct ck_st_tensor *tensor = &header->tensors[i];

		if (tensor->begin != at)
			return ck_fail(err, CK_EFORMAT,
				       "tensor '%s': begins at %" PRIu64
				       ", the data before it end at %" PRIu64 ": %s",
				       ck_json_show(shown, tensor->name), tensor->begin, at,
				       tensor->begin > at ? "a hole" : "an overlap");
		at = tensor->end;
	}
	if (at != data_bytes)
		return ck_fail(err, CK_EFORMAT,
			       "%" PRIu64 " bytes of data, the tensors end at %" PRIu64
			       ": trailing bytes",
			       data_bytes, at);
	return 0;
}

static int parse_tree(const cJSON *tree, uint64_t data_bytes, struct ck_st_header *header,
		      struct ck_error *err)
{
	size_t count = 0;
	int rc = 0;

	for (const cJSON *node = tree->child; node; node = node->next)
		count++;
	header->tensors = calloc(count + 1, sizeof(*header->tensors));
	if (!header->tensors)
		return ck_fail_nomem(err, count * sizeof(*header->tensors));
	for (const cJSON *node = tree->child; node && rc == 0; node = node->next) {
		if (strcmp(node->string, META_KEY) == 0)
			rc = parse_meta(node, header, err);
		else
			rc = parse_tensor(node, data_bytes, &header->tensors[header->ntensors++],
					  err);
	}
	if (rc)
		return rc;
	qsort(header->tensors, header->ntensors, sizeof(*header->tensors), compare_tensors);
	return check_layout(header, data_bytes, err);
}

int ck_st_parse(const char *path, const char *json, size_t json_bytes, uint64_t file_bytes,
		struct ck_st_header *out, struct ck_error *err)
{
	struct ck_st_header header = {.data_offset = 8 + (uint64_t)json_bytes};
	cJSON *tree = NULL;
	int rc;

	if (json_bytes > CK_ST_HEADER_MAX || header.data_offset > file_bytes)
		return ck_fail(err, CK_EFORMAT,
			       "%s: header of %zu bytes in a file of %" PRIu64 " bytes", path,
			       json_bytes, file_bytes);
	/* JSON allows white space here, the format does not. */
	if (json_bytes == 0 || json[0] != '{')
		return ck_fail(err, CK_EFORMAT, "%s: header does not begin with '{'", path);
	rc = ck_json_parse("header", json, json_bytes, &tree, err);
	if (rc == 0)
		rc = parse_tree(tree, file_bytes - header.data_offset, &header, err);
	cJSON_Delete(tree);
	if (rc) {
		ck_st_fini(&header);
		ck_error_prefix(err, "%s", path);
		return rc;
	}
	*out = header;
	return 0;
}

const char *ck_st_meta(const struct ck_st_header *header, const char *key)
{
	for (size_t i = 0; i < header->nmeta; i++)
		if (strcmp(header->meta[i].key, key) == 0)
			return header->meta[i].value;
	return NULL;
}
