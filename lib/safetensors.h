/*
 * The safetensors container: header in, header out. No semantics of ours; see shard.h.
 * Source: huggingface/safetensors, README.md "Format": 8-byte little-endian N, N bytes of JSON
 * beginning with '{' and padded with spaces, then the data; data_offsets count from the end of the
 * header, without hole or overlap, ending at the end of the file; N <= 100,000,000.
 */
#ifndef CK_SAFETENSORS_H
#define CK_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "error.h"
#include "tensor.h"

#define CK_ST_HEADER_MAX UINT64_C(100000000)
#define CK_ST_ALIGN UINT64_C(4096) /* our writer begins the data on such a boundary */

struct ck_st_tensor {
	char *name;
	enum ck_dtype dtype;
	int ndim;
	uint64_t shape[CK_MAX_NDIM];
	uint64_t begin, end; /* bytes, from the end of the header */
};

struct ck_st_meta {
	char *key;
	char *value;
};

struct ck_st_header {
	uint64_t data_offset;         /* 8 + N: where the data begins in the file */
	struct ck_st_tensor *tensors; /* in order of begin */
	size_t ntensors;
	struct ck_st_meta *meta; /* __metadata__, in file order */
	size_t nmeta;
};

void ck_st_fini(struct ck_st_header *header);

/*
 * First 8 bytes of a file -> N. Returns 0; CK_EFORMAT when file_bytes < 8, N > 100,000,000 or
 * 8 + N > file_bytes.
 */
int ck_st_header_bytes(const char *path, const unsigned char prefix[static 8], uint64_t file_bytes,
		       uint64_t *json_bytes, struct ck_error *err);

/*
 * Parse the JSON of a header (N bytes) of a file of `file_bytes` bytes.
 * Refused (CK_EFORMAT with path, tensor, numbers): duplicate names, unknown dtypes, shapes that
 * overflow, more than CK_MAX_NDIM dimensions, sizes that differ from the shape's, holes, overlaps,
 * data that ends before or behind the file, __metadata__ that maps to anything but strings.
 */
int ck_st_parse(const char *path, const char *json, size_t json_bytes, uint64_t file_bytes,
		struct ck_st_header *out, struct ck_error *err);

/*
 * Print prefix and JSON, padded so that the data begins on CK_ST_ALIGN. begin and end of the
 * tensors must be set (contiguous from 0, in order). Returns 0; CK_EARG (too large); CK_ENOMEM.
 */
int ck_st_print(const struct ck_st_header *header, struct ck_buf *out, struct ck_error *err);

/* The value of a __metadata__ key, NULL if there is none. */
const char *ck_st_meta(const struct ck_st_header *header, const char *key);

#endif
