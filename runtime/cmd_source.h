/*
 * What `ckpt reshard`, `export` and `diff` share: a checkpoint that was named, opened, and verified.
 */
#ifndef CK_CMD_SOURCE_H
#define CK_CMD_SOURCE_H

#include "cmd.h"
#include "source.h"

/*
 * Open the checkpoint that `text` names: RUN@STEP, RUN@latest or a step directory. Returns 0
 * (ck_source_close); CK_EARG: a run as a whole; as ck_source_open.
 */
int ck_cmd_source_open(const struct ck_cmd *cmd, const char *text, struct ck_source *out,
		       struct ck_error *err);

/*
 * SHA-256 of every file, so that nothing damaged is copied and then vouched for; what is read of the source afterwards is
 * held against what was verified. Tells what is wrong, to
 * stderr. Returns CK_CMD_FINE; CK_CMD_BAD; CK_CMD_UNCHECKED; CK_CMD_INTERRUPTED.
 */
enum ck_cmd_exit ck_cmd_source_verify(const struct ck_cmd *cmd, struct ck_source *source,
				      struct ck_cmd_progress *progress);

/* Bytes of all files, of all elements of an item. */
uint64_t ck_cmd_source_bytes(const struct ck_source *source);
uint64_t ck_cmd_item_bytes(const struct ck_item *item);

#define CK_CMD_GLOBS_MAX 64

/* Of which items: those that one of the patterns of -i fits, all when there is none. Zeros. */
struct ck_cmd_choice {
	const char *globs[CK_CMD_GLOBS_MAX]; /* of the command line */
	size_t count;
};

/* One more -i. Returns CK_CMD_FINE, or CK_CMD_USAGE and has told it. */
int ck_cmd_choice_add(const struct ck_cmd *cmd, const char *glob, struct ck_cmd_choice *choice);
bool ck_cmd_chosen(const struct ck_cmd_choice *choice, const struct ck_item *item);
/* None was: "<where>: no <what> is chosen by 'a*', 'b'". Returns CK_ENOENT; CK_ENOMEM. */
int ck_cmd_choice_fail(const struct ck_cmd_choice *choice, const char *where, const char *what,
		       struct ck_error *err);

/* CPUs this process may use, 1 to 16. */
int ck_cmd_threads(void);

#endif
