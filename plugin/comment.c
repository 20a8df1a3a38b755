#include "comment.h"

#include <stdio.h>
#include <string.h>

#define OURS "ckpt: "
#define BETWEEN "; "
/* Less of a reason says nothing. */
#define REASON_MIN 16

void ck_comment_hold(const char *old, const char *reason, char out[static CK_COMMENT_BYTES])
{
	const char *ours = strstr(old, BETWEEN OURS);
	size_t keep = strlen(old), around;

	if (strncmp(old, OURS, strlen(OURS)) == 0)
		keep = 0;
	else if (ours)
		keep = (size_t)(ours - old);
	if (keep >= CK_COMMENT_BYTES)
		keep = CK_COMMENT_BYTES - 1;
	around = keep + strlen(BETWEEN OURS) + REASON_MIN;
	if (keep == 0)
		snprintf(out, CK_COMMENT_BYTES, OURS "%s", reason);
	else if (around >= CK_COMMENT_BYTES)
		snprintf(out, CK_COMMENT_BYTES, "%.*s", (int)keep, old);
	else
		snprintf(out, CK_COMMENT_BYTES, "%.*s" BETWEEN OURS "%s", (int)keep, old, reason);
}
