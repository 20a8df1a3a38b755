/* The comment of a job that is held: the user's words stay. */
#include "comment.h"

#include <string.h>

#include "tap.h"

static const struct {
	const char *name, *old, *reason, *wanted;
} table[] = {
	{"none", "", "no progress", "ckpt: no progress"},
	{"the user's", "ticket 5", "no progress", "ticket 5; ckpt: no progress"},
	{"ours, of an earlier hold", "ckpt: old", "no progress", "ckpt: no progress"},
	{"both", "ticket 5; ckpt: old", "no progress", "ticket 5; ckpt: no progress"},
	{"the user speaks of us", "my ckpt: works", "x", "my ckpt: works; ckpt: x"},
};

static void no_room(void)
{
	char old[2 * CK_COMMENT_BYTES], out[CK_COMMENT_BYTES];

	memset(old, 'a', sizeof(old));
	old[1020] = '\0';
	ck_comment_hold(old, "no progress", out);
	is_str(out, old, "no room: the user's is kept");
	old[1020] = 'a';
	old[sizeof(old) - 1] = '\0';
	ck_comment_hold(old, "no progress", out);
	is_int((long)strlen(out), CK_COMMENT_BYTES - 1, "longer than Slurm's: cut");
	old[900] = '\0';
	ck_comment_hold(old, old, out);
	is_int((long)strlen(out), CK_COMMENT_BYTES - 1, "a reason without room is cut");
	is_int(strncmp(out + 900, "; ckpt: aaa", 11), 0, "... behind the user's");
}

int main(void)
{
	char out[CK_COMMENT_BYTES];

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		ck_comment_hold(table[i].old, table[i].reason, out);
		is_str(out, table[i].wanted, "%s", table[i].name);
	}
	no_room();
	return done_testing();
}
