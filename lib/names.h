/*
 * Names in a run directory: written and recognised here and nowhere else.
 * A parser accepts exactly what the printer prints for values in range, so look-alikes
 * (step_100.bak) are strangers. Steps 0 to CK_STEP_MAX, generations 1 to CK_STEP_MAX, ranks below
 * CK_WORLD_MAX, parts below CK_PARTS_MAX. Outputs are untouched when the answer is no.
 */
#ifndef CK_NAMES_H
#define CK_NAMES_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define CK_RUN_FILE "run.json"
#define CK_LATEST_FILE "latest"
#define CK_MANIFEST_FILE "manifest.json"
#define CK_SUMS_FILE "SHA256SUMS"
#define CK_SAVE_FILE "save.json"
#define CK_CLAIM_FILE "claim.json"
#define CK_MARK_FILE "mark.json"
#define CK_REFUSAL_FILE "refusal.json"
#define CK_EVENTS_FILE "events.jsonl"
/* Requests to the running owner; it removes them when it has taken note. */
#define CK_REQUEST_STOP ".request-stop"
#define CK_REQUEST_SAVE ".request-save"

/* Steps and generations stay below 2^53, so that any JSON reader holds them. */
#define CK_STEP_MAX ((UINT64_C(1) << 53) - 1)
#define CK_WORLD_MAX 1048576
#define CK_PARTS_MAX 4096

#define CK_NAME_MAX 64 /* fits every name below, with its NUL */

/* Which step of which generation: the identity of a checkpoint within its run. */
struct ck_step_id {
	uint64_t step;
	uint64_t generation;
};

/* Order of age: generation, then step. < 0, 0, > 0. */
int ck_step_id_cmp(const struct ck_step_id *a, const struct ck_step_id *b);

char *ck_name_step(struct ck_step_id id, char out[static CK_NAME_MAX]); /* step-0000001234.g3 */
char *ck_name_saving(struct ck_step_id id,
		     char out[static CK_NAME_MAX]); /* .saving-0000001234.g3 */
char *ck_name_deleting(struct ck_step_id id,
		       char out[static CK_NAME_MAX]); /* .deleting-0000001234.g3 */
char *ck_name_salvage(struct ck_step_id id,
		      char out[static CK_NAME_MAX]);                   /* .salvage-0000001234.g3 */
char *ck_name_pin(struct ck_step_id id, char out[static CK_NAME_MAX]); /* .pin-0000001234.g3 */
char *ck_name_generation(uint64_t generation, char out[static CK_NAME_MAX]); /* .gen-3 */
char *ck_name_leaving(uint64_t generation, char out[static CK_NAME_MAX]);    /* .leaving-3 */
char *ck_name_left(uint64_t generation, char out[static CK_NAME_MAX]);       /* .left-3 */
char *ck_name_records(uint64_t step, char out[static CK_NAME_MAX]); /* records-0000001234 */
char *ck_name_record(uint32_t rank, char out[static CK_NAME_MAX]);  /* rank-00012.json */
char *ck_name_shard(uint32_t rank, uint32_t part,
		    char out[static CK_NAME_MAX]); /* rank-00012.0.safetensors */

bool ck_is_step(const char *name, struct ck_step_id *id);
bool ck_is_saving(const char *name, struct ck_step_id *id);
bool ck_is_deleting(const char *name, struct ck_step_id *id);
bool ck_is_salvage(const char *name, struct ck_step_id *id);
bool ck_is_pin(const char *name, struct ck_step_id *id);
bool ck_is_generation(const char *name, uint64_t *generation);
bool ck_is_leaving(const char *name, uint64_t *generation);
bool ck_is_left(const char *name, uint64_t *generation);
bool ck_is_shard(const char *name, uint32_t *rank, uint32_t *part);

/* A file that ck_io_write_file was to rename to `of`: "<of>.tmp-<16 hex digits>". */
bool ck_is_temporary(const char *name, const char *of);

/*
 * "<dir>/<name>" into out (PATH_MAX). Returns false, and out is "", when it does not fit or either
 * is empty ("" for a directory would name the root).
 */
bool ck_path_join(char out[static PATH_MAX], const char *dir, const char *name);

#endif
