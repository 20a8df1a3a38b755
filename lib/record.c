/* The records of manifest.h: what one rank tells rank 0 about its part of a save. */
#include <inttypes.h>
#include <stdlib.h>

#include "fields.h"
#include "files.h"
#include "json.h"
#include "manifest.h"

void ck_record_fini(struct ck_record *record)
{
	ck_files_free(record->files, record->nfiles);
	record->files = NULL;
	record->nfiles = 0;
}

static int check(const char *where, const struct ck_record *record, struct ck_error *err)
{
	int rc;

	if (record->rank >= CK_WORLD_MAX)
		return ck_fail(err, CK_EFORMAT, "%s: rank %u is not below %d", where, record->rank,
			       CK_WORLD_MAX);
	if (record->step > CK_STEP_MAX)
		return ck_fail(err, CK_EFORMAT, "%s: step %" PRIu64 " is not below 2^53", where,
			       record->step);
	rc = ck_hex_check(where, "save_id", record->save_id, CK_RUN_ID_HEX, err);
	if (!rc)
		rc = ck_files_check(where, record->files, record->nfiles, record->rank,
				    record->rank + 1, err);
	return rc;
}

int ck_record_print(const struct ck_record *record, struct ck_buf *out, struct ck_error *err)
{
	int rc;

	rc = check("record", record, err);
	if (rc)
		return rc;
	ck_buf_addf(out,
		    "{\n\t\"schema_version\": %d,\n\t\"save_id\": \"%s\",\n\t\"rank\": %u,\n"
		    "\t\"step\": %" PRIu64 ",\n\t",
		    CK_SCHEMA_VERSION, record->save_id, record->rank, record->step);
	ck_files_print(out, record->files, record->nfiles);
	ck_buf_add_str(out, "\n}\n");
	return ck_buf_check(out, err);
}

int ck_record_parse(const char *where, const char *text, size_t bytes, struct ck_record *out,
		    struct ck_error *err)
{
	struct ck_record record = {.files = NULL};
	cJSON *tree;
	int rc;

	rc = ck_field_parse(where, text, bytes, &tree, err);
	if (!rc)
		rc = ck_field_hex(where, tree, "save_id", CK_RUN_ID_HEX, record.save_id, err);
	if (!rc)
		rc = ck_field_u32(where, tree, "rank", UINT32_MAX, &record.rank, err);
	if (!rc)
		rc = ck_json_u64(where, tree, "step", CK_JSON_INT_MAX, &record.step, err);
	if (!rc)
		rc = ck_files_parse(where, tree, &record.files, &record.nfiles, err);
	if (!rc)
		rc = check(where, &record, err);
	cJSON_Delete(tree);
	if (rc)
		ck_record_fini(&record);
	else
		*out = record;
	return rc;
}
