/*
 * A manifest, or save.json (the first byte says which), of any bytes: refused with a reason, or something that
 * the writer writes, and that is read again as the same.
 */
#include <string.h>

#include "fuzz.h"
#include "manifest.h"
#include "sums.h"

/* SHA256SUMS of any bytes beside it: the text ends the check, whatever it is. */
static void check_sums(const struct ck_manifest *manifest, const struct ck_buf *text)
{
	char sha256[CK_SHA256_HEX + 1];
	struct ck_buf sums = CK_BUF_INIT;
	struct ck_error err = CK_ERROR_INIT;

	if (ck_sha256_hex(text->data, text->len, sha256, &err))
		return;
	fuzz_expect(ck_sums_print(manifest, sha256, &sums, &err) == 0);
	fuzz_expect(sums.len > CK_SHA256_HEX && sums.data[sums.len - 1] == '\n');
	ck_buf_fini(&sums);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ck_error err = CK_ERROR_INIT;
	struct ck_buf first = CK_BUF_INIT, second = CK_BUF_INIT;
	struct ck_manifest manifest;
	bool with_files;
	int rc;

	if (size == 0)
		return 0;
	with_files = data[0] % 2 == 0;
	rc = ck_manifest_parse("f", (const char *)data + 1, size - 1, with_files, &manifest, &err);
	if (rc) {
		fuzz_expect(err.code == rc && strncmp(err.text, "f", 1) == 0 && err.text[1]);
		return 0;
	}
	fuzz_expect(ck_manifest_print(&manifest, with_files, &first, &err) == 0);
	if (with_files)
		check_sums(&manifest, &first);
	ck_manifest_fini(&manifest);
	fuzz_expect(ck_manifest_parse("f", first.data, first.len, with_files, &manifest, &err) ==
		    0);
	fuzz_expect(ck_manifest_print(&manifest, with_files, &second, &err) == 0);
	fuzz_expect(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
	ck_manifest_fini(&manifest);
	ck_buf_fini(&first);
	ck_buf_fini(&second);
	return 0;
}
