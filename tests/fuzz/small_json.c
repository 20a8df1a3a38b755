/*
 * run.json, claim.json, mark.json and a rank's record of any bytes; the first byte says which. Refused with a
 * reason, or something that the writer writes, and that is read again as the same.
 */
#include <string.h>

#include "fuzz.h"
#include "manifest.h"
#include "run.h"

/* Prints what was parsed, or -1 when the text is refused. */
static int parse_print(int kind, const char *text, size_t bytes, struct ck_buf *out,
		       struct ck_error *err)
{
	struct ck_run run;
	struct ck_claim claim;
	struct ck_mark mark;
	struct ck_record record;
	int rc;

	switch (kind) {
	case 0:
		rc = ck_run_parse("f", text, bytes, &run, err);
		fuzz_expect(rc || ck_run_print(&run, out, err) == 0);
		return rc;
	case 1:
		rc = ck_claim_parse("f", text, bytes, &claim, err);
		if (rc)
			return rc;
		fuzz_expect(ck_claim_print(&claim, out, err) == 0);
		ck_claim_fini(&claim);
		return 0;
	case 2:
		rc = ck_mark_parse("f", text, bytes, &mark, err);
		fuzz_expect(rc || ck_mark_print(&mark, out, err) == 0);
		return rc;
	default:
		rc = ck_record_parse("f", text, bytes, &record, err);
		if (rc)
			return rc;
		fuzz_expect(ck_record_print(&record, out, err) == 0);
		ck_record_fini(&record);
		return 0;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ck_error err = CK_ERROR_INIT;
	struct ck_buf first = CK_BUF_INIT, second = CK_BUF_INIT;
	int kind, rc;

	if (size == 0)
		return 0;
	kind = data[0] % 4;
	rc = parse_print(kind, (const char *)data + 1, size - 1, &first, &err);
	if (rc) {
		fuzz_expect(err.code == rc && err.text[0]);
		return 0;
	}
	fuzz_expect(parse_print(kind, first.data, first.len, &second, &err) == 0);
	fuzz_expect(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
	ck_buf_fini(&first);
	ck_buf_fini(&second);
	return 0;
}
