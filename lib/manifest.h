/*
 * manifest.json: the description of a checkpoint, schema version 1 (ckpt-format.5).
 * The same struct, without files, is save.json; printing and parsing are inverse.
 * The writer refuses what the reader would refuse.
 */
#ifndef CK_MANIFEST_H
#define CK_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "digest.h"
#include "error.h"
#include "items.h"
#include "names.h"
#include "tensor.h"

#define CK_SCHEMA_VERSION 1
#define CK_RUN_ID_HEX 32
#define CK_SHORT_TEXT 256

/*
 * Which job did it. job_id "" outside of Slurm. All texts here and below are UTF-8 without control
 * characters; what comes from the environment is made so before it is put in.
 */
struct ck_job {
	char cluster[CK_SHORT_TEXT];
	char job_id[64]; /* as SLURM_JOB_ID has it: a number */
	uint64_t restart_count;
	char step_id[32];          /* Slurm step */
	char nodes[CK_SHORT_TEXT]; /* node list, cut with "..." when longer */
};

struct ck_file {
	char path[CK_NAME_MAX];
	uint32_t rank, part;
	uint64_t bytes;
	char sha256[CK_SHA256_HEX + 1];
	uint32_t crc32;
	uint64_t chunk_bytes;
	uint32_t *chunk_crc32; /* ck_chunk_count(bytes, chunk_bytes) */
	uint64_t param_shard_offset, param_shard_numel;
};

struct ck_manifest {
	uint32_t world_size;
	struct ck_step_id id;
	double wall_clock_seconds; /* training time of all incarnations */
	char run_id[CK_RUN_ID_HEX + 1];
	char run[CK_NAME_MAX * 3];       /* the run's name */
	char save_id[CK_RUN_ID_HEX + 1]; /* another one for each save */
	struct ck_job job;
	int64_t created;            /* seconds since 1970, UTC */
	char writer[CK_SHORT_TEXT]; /* program and version */
	struct ck_item_list items;  /* without blocks, sorted by name; flat set or NULL */
	char *user;                 /* JSON object as text, or NULL; kept without its white space */
	struct ck_file *files;      /* ordered by rank, then part */
	size_t nfiles;
};

void ck_manifest_fini(struct ck_manifest *manifest);

/* Index of a rank's first file, and how many it has (ordered files). False when there is none. */
bool ck_manifest_rank_files(const struct ck_manifest *manifest, uint32_t rank, size_t *first,
			    size_t *count);

/*
 * Everything a reader refuses: world size 1 ... CK_WORLD_MAX, step and generation below 2^53, ids
 * of 32 hex digits, texts, item names and shapes, `user`, a rank without a file, parts with gaps,
 * path not the one of its rank and part, chunk sizes, ranges outside of the flat item, order (items
 * by name, files by rank and part). Both ck_manifest_print and ck_manifest_parse call it.
 *   with_files  false for save.json
 * Returns 0; CK_EFORMAT with `where` in front; CK_ENOMEM.
 */
int ck_manifest_check(const char *where, const struct ck_manifest *manifest, bool with_files,
		      struct ck_error *err);

/*
 * Append the text of manifest.json (with_files) or save.json; nothing after a failure.
 * Returns 0; CK_EFORMAT (ck_manifest_check, or more than CK_JSON_MAX_BYTES); CK_ENOMEM.
 */
int ck_manifest_print(const struct ck_manifest *manifest, bool with_files, struct ck_buf *out,
		      struct ck_error *err);

/*
 * Parse either. An unknown schema_version is an error that names both; unknown members are ignored.
 *   where  path, for messages
 * Returns 0 (free with ck_manifest_fini); CK_EFORMAT; CK_ENOMEM.
 */
int ck_manifest_parse(const char *where, const char *text, size_t bytes, bool with_files,
		      struct ck_manifest *out, struct ck_error *err);

/*
 * One rank's record of a save: its files, and the save they belong to. In .gen-<n>/records-<step>/
 * as JSON, and as the same text in the message to rank 0. Checked as the files of a manifest are,
 * when printed and when parsed: CK_EFORMAT; CK_ENOMEM.
 */
struct ck_record {
	char save_id[CK_RUN_ID_HEX + 1];
	uint32_t rank;
	uint64_t step;
	struct ck_file *files;
	size_t nfiles;
};

void ck_record_fini(struct ck_record *record);
int ck_record_print(const struct ck_record *record, struct ck_buf *out, struct ck_error *err);
int ck_record_parse(const char *where, const char *text, size_t bytes, struct ck_record *out,
		    struct ck_error *err);

/* Text of SHA256SUMS: "<hex>  <name>\n" in the order of the files, the manifest last. */
int ck_sums_print(const struct ck_manifest *manifest,
		  const char manifest_sha256[static CK_SHA256_HEX + 1], struct ck_buf *out,
		  struct ck_error *err);

#endif
