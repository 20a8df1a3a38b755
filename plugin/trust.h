/*
 * May a directory be believed? What a start resumes from, and where it saves, must be the user's own:
 * in a folder where everybody may make entries, others can get there first with a directory that
 * they can move away later, or with checkpoints of their making.
 */
#ifndef CK_TRUST_H
#define CK_TRUST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "io.h"

#define CK_TRUST_GROUPS 1024

struct ck_trust {
	uid_t uid;
	bool shared; /* the site's shared=yes: what a group of the user may write, too */
	size_t ngroups;
	gid_t groups[CK_TRUST_GROUPS];
};

/* This process's user. More groups than fit are left out. */
void ck_trust_init(struct ck_trust *trust, bool shared);

/* Pure: the user's own or root's; with `shared`, also another's that a group of the user may write. */
bool ck_trust_owner(const struct ck_trust *trust, const struct stat *st);

/*
 * Each directory of `path` that is there, from the one that ends behind `from` bytes on: links are
 * followed when they may be believed themselves, to what must be so too.
 * Returns 0, also where one is missing; CK_EREFUSED: the path, its owner and what to do.
 */
int ck_trust_path(const struct ck_io *io, const struct ck_trust *trust, const char *path,
		  size_t from, struct ck_error *err);

/*
 * A run directory, and what stands in it. Returns 0, also where it is missing; CK_EREFUSED as above;
 * CK_EIO, CK_ENOMEM.
 */
int ck_trust_run(const struct ck_io *io, const struct ck_trust *trust, const char *run,
		 struct ck_error *err);

#endif
