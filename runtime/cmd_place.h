/*
 * The directory that `ckpt export` writes to: made if need be, locked, and free of other models.
 */
#ifndef CK_CMD_PLACE_H
#define CK_CMD_PLACE_H

#include "cmd.h"

#define CK_CMD_INDEX_FILE "model.safetensors.index.json"

struct ck_cmd_place {
	const struct ck_io *io;
	const char *dir;     /* the caller's */
	char path[PATH_MAX]; /* of the file that is locked */
	int lock;            /* its descriptor */
	bool locked, made;
};

/*
 * Is there no model yet, whole or in part, by the names that readers look for? Beside files of another export ours
 * would be mixed with them, or never be read. Returns 0, also without a directory; CK_EEXIST; CK_EIO; CK_ENOMEM.
 */
int ck_cmd_place_free(const struct ck_io *io, const char *dir, struct ck_error *err);

/*
 * Make the directory, durably, unless it is there; be alone in it; see that it is free. ck_cmd_place_leave in any
 * case. Returns 0; CK_EREFUSED: another export writes there; CK_EEXIST; CK_EIO.
 */
int ck_cmd_place_take(struct ck_cmd_place *place, const struct ck_io *io, const char *dir,
		      struct ck_error *err);
/* failed: what was made goes, and what was written has been taken away. */
void ck_cmd_place_leave(struct ck_cmd_place *place, bool failed);

#endif
