#include "limit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FIELDS_MAX 3
#define DIGITS_MAX 9

/* At most `max` numbers with ':' between them, and nothing else. Returns how many; 0: no. */
static int read_fields(const char *text, int max, int64_t field[static FIELDS_MAX])
{
	for (int n = 0; n < max; n++) {
		size_t digits = strspn(text, "0123456789");

		if (digits == 0 || digits > DIGITS_MAX || sscanf(text, "%" SCNd64, &field[n]) != 1)
			return 0;
		text += digits;
		if (*text == '\0')
			return n + 1;
		if (*text++ != ':')
			return 0;
	}
	return 0;
}

int64_t ck_limit_parse(const char *text)
{
	const char *dash = strchr(text, '-');
	char days[DIGITS_MAX + 1];
	int64_t f[FIELDS_MAX] = {0}, d[FIELDS_MAX] = {0};
	int fields;

	if (dash) {
		if ((size_t)(dash - text) >= sizeof(days))
			return 0;
		memcpy(days, text, (size_t)(dash - text));
		days[dash - text] = '\0';
		if (!read_fields(days, 1, d) || !read_fields(dash + 1, FIELDS_MAX, f))
			return 0;
		return 86400 * d[0] + 3600 * f[0] + 60 * f[1] + f[2];
	}
	fields = read_fields(text, FIELDS_MAX, f);
	if (fields == FIELDS_MAX)
		return 3600 * f[0] + 60 * f[1] + f[2];
	return fields ? 60 * f[0] + f[1] : 0;
}

bool ck_limit_is_short(int64_t limit, uint32_t margin, char out[static CK_LIMIT_TEXT])
{
	if (limit <= 0 || limit > (int64_t)margin)
		return false;
	snprintf(out, CK_LIMIT_TEXT,
		 "the time limit of %" PRId64 " s minus --ckpt-margin of %" PRIu32
		 " s leaves no time to train: a program with the library stops at once, and after "
		 "three "
		 "such starts the job is held. Use a longer --time, or a --ckpt-margin below "
		 "%" PRId64 "s",
		 limit, margin, limit);
	return true;
}
