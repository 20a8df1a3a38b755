#include "files.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dirfile.h"
#include "fields.h"
#include "json.h"
#include "names.h"

#define CHUNK_BYTES_LEAST 4096
#define CRC_HEX 8

void ck_files_free(struct ck_file *files, size_t count)
{
	for (size_t i = 0; files && i < count; i++)
		free(files[i].chunk_crc32);
	free(files);
}

static int check_chunk_bytes(const char *at, uint64_t bytes, struct ck_error *err)
{
	if (bytes < CHUNK_BYTES_LEAST || bytes > CK_JSON_INT_MAX || bytes & (bytes - 1))
		return ck_fail(err, CK_EFORMAT,
			       "%s: chunk_bytes %" PRIu64 " is no power of two from %d on", at,
			       bytes, CHUNK_BYTES_LEAST);
	return 0;
}

static int check_entry(const char *at, const struct ck_file *file, struct ck_error *err)
{
	char name[CK_NAME_MAX];
	uint64_t end;

	if (file->part >= CK_PARTS_MAX)
		return ck_fail(err, CK_EFORMAT, "%s: part %u is not below %d", at, file->part,
			       CK_PARTS_MAX);
	if (strcmp(file->path, ck_name_shard(file->rank, file->part, name)) != 0)
		return ck_fail(err, CK_EFORMAT, "%s: path '%s' is not '%s'", at, file->path, name);
	if (file->bytes > CK_JSON_INT_MAX)
		return ck_fail(err, CK_EFORMAT, "%s: bytes %" PRIu64 " is not below 2^53", at,
			       file->bytes);
	if (!ck_add_u64(file->param_shard_offset, file->param_shard_numel, &end) ||
	    end > CK_JSON_INT_MAX)
		return ck_fail(err, CK_EFORMAT, "%s: param_shard_offset + numel is not below 2^53",
			       at);
	if (check_chunk_bytes(at, file->chunk_bytes, err))
		return CK_EFORMAT;
	return ck_hex_check(at, "sha256", file->sha256, CK_SHA256_HEX, err);
}

/* Which (rank, part) may follow (rank, part); says what is wrong with another one. */
static int check_next(const char *at, const struct ck_file *before, const struct ck_file *file,
		      struct ck_error *err)
{
	if (file->rank == before->rank && file->part == before->part)
		return ck_fail(err, CK_EFORMAT, "%s: path '%s' stands here twice", at, file->path);
	if (file->rank < before->rank || (file->rank == before->rank && file->part < before->part))
		return ck_fail(err, CK_EFORMAT, "%s: '%s' is out of order, it follows '%s'", at,
			       file->path, before->path);
	if (file->rank == before->rank && file->part != before->part + 1)
		return ck_fail(err, CK_EFORMAT, "%s: part %u of rank %u is missing", at,
			       before->part + 1, file->rank);
	if (file->rank > before->rank + 1)
		return ck_fail(err, CK_EFORMAT, "%s: rank %u has no file", at, before->rank + 1);
	if (file->rank != before->rank && file->part != 0)
		return ck_fail(err, CK_EFORMAT, "%s: part 0 of rank %u is missing", at, file->rank);
	return 0;
}

static int check_first(const char *at, const struct ck_file *file, uint32_t rank_begin,
		       struct ck_error *err)
{
	if (file->rank != rank_begin)
		return ck_fail(err, CK_EFORMAT, "%s: rank %u has no file", at, rank_begin);
	if (file->part != 0)
		return ck_fail(err, CK_EFORMAT, "%s: part 0 of rank %u is missing", at, file->rank);
	return 0;
}

int ck_files_check(const char *where, const struct ck_file *files, size_t count,
		   uint32_t rank_begin, uint32_t rank_end, struct ck_error *err)
{
	char at[PATH_MAX + 32];
	int rc = 0;

	for (size_t i = 0; i < count && !rc; i++) {
		snprintf(at, sizeof(at), "%s: shards[%zu]", where, i);
		if (files[i].rank < rank_begin || files[i].rank >= rank_end)
			return ck_fail(err, CK_EFORMAT, "%s: rank %u is not in [%u, %u)", at,
				       files[i].rank, rank_begin, rank_end);
		rc = check_entry(at, &files[i], err);
		if (!rc && i == 0)
			rc = check_first(at, &files[i], rank_begin, err);
		else if (!rc)
			rc = check_next(at, &files[i - 1], &files[i], err);
	}
	if (!rc && (count == 0 || files[count - 1].rank + 1 != rank_end))
		rc = ck_fail(err, CK_EFORMAT, "%s: shards: rank %u has no file", where,
			     count ? files[count - 1].rank + 1 : rank_begin);
	return rc;
}

static void add_crcs(struct ck_buf *out, const uint32_t *crcs, uint64_t count)
{
	static const char hex[] = "0123456789abcdef";
	char *dst = ck_buf_reserve(out, count * CRC_HEX);

	if (!dst)
		return;
	for (uint64_t i = 0; i < count; i++)
		for (int shift = 28; shift >= 0; shift -= 4)
			*dst++ = hex[crcs[i] >> shift & 15];
	out->len += count * CRC_HEX;
}

static void print_entry(struct ck_buf *out, const struct ck_file *file)
{
	ck_buf_addf(out,
		    "\t\t{\"rank\": %u, \"path\": \"%s\", \"sha256\": \"%s\", "
		    "\"param_shard_offset\": %" PRIu64 ", \"param_shard_numel\": %" PRIu64
		    ", \"bytes\": %" PRIu64 ", \"crc32\": \"%08x\", \"chunk_bytes\": %" PRIu64
		    ", \"chunk_crc32\": \"",
		    file->rank, file->path, file->sha256, file->param_shard_offset,
		    file->param_shard_numel, file->bytes, file->crc32, file->chunk_bytes);
	add_crcs(out, file->chunk_crc32, ck_chunk_count(file->bytes, file->chunk_bytes));
	ck_buf_add_str(out, "\"}");
}

void ck_files_print(struct ck_buf *out, const struct ck_file *files, size_t count)
{
	ck_buf_add_str(out, "\"shards\": [\n");
	for (size_t i = 0; i < count; i++) {
		print_entry(out, &files[i]);
		ck_buf_add_str(out, i + 1 < count ? ",\n" : "\n");
	}
	ck_buf_add_str(out, "\t]");
}

/* Value + 1 of a lower-case hex digit. A table, since manifests have tens of millions of them. */
static const unsigned char digit_plus_one[256] = {
	['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,
	['6'] = 7,  ['7'] = 8,  ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12,
	['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
};

/* Eight digits; false when one is no lower-case hex digit. */
static bool parse_crc(const char *text, uint32_t *out)
{
	uint32_t value = 0;
	bool good = true;

	for (int i = 0; i < CRC_HEX; i++) {
		uint32_t digit = digit_plus_one[(unsigned char)text[i]];

		good &= digit != 0;
		value = value << 4 | ((digit - 1) & 15);
	}
	*out = value;
	return good;
}

static int parse_chunks(const char *at, const cJSON *tree, struct ck_file *file,
			struct ck_error *err)
{
	const char *text;
	uint64_t count, len;
	int rc;

	rc = ck_json_string(at, tree, "chunk_crc32", CK_JSON_MAX_BYTES, &text, err);
	if (rc)
		return rc;
	count = ck_chunk_count(file->bytes, file->chunk_bytes);
	len = strlen(text);
	if (len / CRC_HEX != count || len % CRC_HEX)
		return ck_fail(err, CK_EFORMAT,
			       "%s: chunk_crc32: %" PRIu64 " digits, %" PRIu64
			       " bytes in chunks of %" PRIu64 " need %" PRIu64 " times %d",
			       at, len, file->bytes, file->chunk_bytes, count, CRC_HEX);
	file->chunk_crc32 = malloc(count * sizeof(uint32_t) + 1);
	if (!file->chunk_crc32)
		return ck_fail_nomem(err, count * sizeof(uint32_t));
	for (uint64_t i = 0; i < count; i++)
		if (!parse_crc(text + i * CRC_HEX, &file->chunk_crc32[i]))
			return ck_fail(err, CK_EFORMAT,
				       "%s: chunk_crc32: chunk %" PRIu64
				       " is not 8 lower-case hex digits",
				       at, i);
	return 0;
}

/* Names from a file are shown only after this, so they need no escaping. */
static int parse_path(const char *at, const cJSON *tree, struct ck_file *file, struct ck_error *err)
{
	uint32_t rank;
	int rc;

	rc = ck_field_text(at, tree, "path", file->path, sizeof(file->path), err);
	if (rc)
		return rc;
	if (strchr(file->path, '/') || strcmp(file->path, ".") == 0 ||
	    strcmp(file->path, "..") == 0)
		return ck_fail(err, CK_EFORMAT, "%s: path '%s' leaves the checkpoint's directory",
			       at, file->path);
	if (!ck_is_shard(file->path, &rank, &file->part))
		return ck_fail(err, CK_EFORMAT,
			       "%s: path '%s' is no shard file's name (rank-<r>.<p>.safetensors)",
			       at, file->path);
	if (rank != file->rank)
		return ck_fail(err, CK_EFORMAT, "%s: path '%s' is of rank %u, not of rank %u", at,
			       file->path, rank, file->rank);
	return 0;
}

static int parse_entry(const char *at, const cJSON *tree, struct ck_file *file,
		       struct ck_error *err)
{
	char crc[CRC_HEX + 1];
	int rc;

	if (!cJSON_IsObject(tree))
		return ck_fail(err, CK_EFORMAT, "%s: not an object", at);
	rc = ck_field_u32(at, tree, "rank", UINT32_MAX, &file->rank, err);
	if (!rc)
		rc = parse_path(at, tree, file, err);
	if (!rc)
		rc = ck_field_hex(at, tree, "sha256", CK_SHA256_HEX, file->sha256, err);
	if (!rc)
		rc = ck_json_u64(at, tree, "param_shard_offset", CK_JSON_INT_MAX,
				 &file->param_shard_offset, err);
	if (!rc)
		rc = ck_json_u64(at, tree, "param_shard_numel", CK_JSON_INT_MAX,
				 &file->param_shard_numel, err);
	if (!rc)
		rc = ck_json_u64(at, tree, "bytes", CK_JSON_INT_MAX, &file->bytes, err);
	if (!rc)
		rc = ck_field_hex(at, tree, "crc32", CRC_HEX, crc, err);
	if (!rc)
		rc = ck_json_u64(at, tree, "chunk_bytes", CK_JSON_INT_MAX, &file->chunk_bytes, err);
	if (!rc)
		rc = check_chunk_bytes(at, file->chunk_bytes, err);
	if (!rc)
		rc = parse_chunks(at, tree, file, err);
	if (!rc)
		parse_crc(crc, &file->crc32);
	return rc;
}

int ck_files_parse(const char *where, const cJSON *object, struct ck_file **files, size_t *count,
		   struct ck_error *err)
{
	char at[PATH_MAX + 32];
	struct ck_file *list;
	const cJSON *array;
	size_t n, i = 0;
	int rc;

	rc = ck_json_array(where, object, "shards", &array, err);
	if (rc)
		return rc;
	n = (size_t)cJSON_GetArraySize(array);
	list = calloc(n ? n : 1, sizeof(*list));
	if (!list)
		return ck_fail_nomem(err, n * sizeof(*list));
	for (const cJSON *tree = array->child; tree && !rc; tree = tree->next, i++) {
		snprintf(at, sizeof(at), "%s: shards[%zu]", where, i);
		rc = parse_entry(at, tree, &list[i], err);
	}
	if (rc) {
		ck_files_free(list, n);
		return rc;
	}
	*files = list;
	*count = n;
	return 0;
}

int ck_file_sized(const struct ck_io *io, const char *step, const struct ck_file *file,
		  struct ck_error *err)
{
	char path[PATH_MAX];
	struct stat st;
	int rc;

	rc = ck_dirfile_path(path, step, file->path, err);
	if (rc)
		return rc;
	if (io->ops->lstat(io, path, &st) < 0)
		return errno == ENOENT
			       ? ck_fail(err, CK_ENOENT,
					 "%s: the file is missing, the manifest says %" PRIu64
					 " bytes",
					 path, file->bytes)
			       : ck_fail_errno(err, errno, "%s", path);
	if (!S_ISREG(st.st_mode))
		return ck_fail(err, CK_EFORMAT, "%s: not a regular file", path);
	if ((uint64_t)st.st_size != file->bytes)
		return ck_fail(err, CK_EFORMAT,
			       "%s: it has %" PRIu64 " bytes, the manifest says %" PRIu64, path,
			       (uint64_t)st.st_size, file->bytes);
	return 0;
}
