#include "golden.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io.h"
#include "tap.h"

const char *golden_path(const char *folder)
{
	static char path[PATH_MAX];
	const char *root = getenv("GOLDEN_DIR");

	snprintf(path, sizeof(path), "%s/%s", root ? root : "tests/golden", folder);
	return path;
}

struct ck_buf golden_read(const char *folder, const char *name, const char *suffix)
{
	struct ck_error err = CK_ERROR_INIT;
	struct ck_buf text = CK_BUF_INIT;
	char path[PATH_MAX + 256];

	snprintf(path, sizeof(path), "%s/%s%s", golden_path(folder), name, suffix);
	if (ck_io_read_file(&ck_io_posix, path, UINT64_C(1) << 30, &text, &err))
		ok(false, "golden file can be read: %s", err.text);
	return text;
}

static bool has_row(const struct golden *rows, size_t count, const char *file, const char *suffix)
{
	for (size_t i = 0; i < count; i++) {
		size_t length = strlen(rows[i].name);

		if (strncmp(file, rows[i].name, length) == 0 && strcmp(file + length, suffix) == 0)
			return true;
	}
	return false;
}

void golden_complete(const char *folder, const struct golden *rows, size_t count,
		     const char *suffix)
{
	struct ck_error err = CK_ERROR_INIT;
	struct ck_names names = {0};

	is_int(ck_io_list(&ck_io_posix, golden_path(folder), &names, &err), 0,
	       "golden folder %s can be listed: %s", folder, err.text);
	is_u64(names.count, count, "%s: as many files as rows", folder);
	for (size_t i = 0; i < names.count; i++)
		if (!has_row(rows, count, names.names[i], suffix))
			ok(false, "%s/%s has a row", folder, names.names[i]);
	ck_names_fini(&names);
}
