#include "trust.h"

#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dirfile.h"
#include "names.h"

void ck_trust_init(struct ck_trust *trust, bool shared)
{
	int n = getgroups(CK_TRUST_GROUPS - 1, trust->groups);

	trust->uid = geteuid();
	trust->shared = shared;
	trust->ngroups = n > 0 ? (size_t)n : 0;
	trust->groups[trust->ngroups++] = getegid();
}

bool ck_trust_owner(const struct ck_trust *trust, const struct stat *st)
{
	if (st->st_uid == trust->uid || st->st_uid == 0)
		return true;
	if (!trust->shared || (!S_ISLNK(st->st_mode) && !(st->st_mode & S_IWGRP)))
		return false;
	for (size_t i = 0; i < trust->ngroups; i++) {
		if (trust->groups[i] == st->st_gid)
			return true;
	}
	return false;
}

static int refuse(const char *path, const struct stat *st, const char *remedy, struct ck_error *err)
{
	const struct passwd *owner = getpwuid(st->st_uid);
	char number[16];

	snprintf(number, sizeof(number), "%u", (unsigned)st->st_uid);
	return ck_fail(err, CK_EREFUSED,
		       "%s: belongs to user %s, not to you: nothing is resumed from there or saved "
		       "to it. %s",
		       path, owner ? owner->pw_name : number, remedy);
}

/* One component. *missing: it is not there. */
static int check_entry(const struct ck_io *io, const struct ck_trust *trust, const char *path,
		       const char *remedy, bool *missing, struct ck_error *err)
{
	char target[PATH_MAX];
	struct stat st;

	*missing = io->ops->lstat(io, path, &st) != 0;
	if (*missing) /* or out of reach: whoever uses it says so */
		return 0;
	if (!ck_trust_owner(trust, &st))
		return refuse(path, &st, remedy, err);
	if (!S_ISLNK(st.st_mode))
		return 0;
	*missing = !realpath(path, target) || io->ops->lstat(io, target, &st) != 0;
	return *missing || ck_trust_owner(trust, &st) ? 0 : refuse(target, &st, remedy, err);
}

int ck_trust_path(const struct ck_io *io, const struct ck_trust *trust, const char *path,
		  size_t from, struct ck_error *err)
{
	char part[PATH_MAX];
	size_t len = strlen(path);
	bool missing = false;
	int rc = 0;

	if (len >= sizeof(part))
		return ck_fail(err, CK_EARG, "%.80s...: the path is too long", path);
	memcpy(part, path, len + 1);
	for (size_t i = from + 1; i <= len && !rc && !missing; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		part[i] = '\0';
		rc = check_entry(io, trust, part,
				 "Below the site's root= directories must be the user's own: tell "
				 "the administrator",
				 &missing, err);
		part[i] = path[i];
	}
	return rc;
}

int ck_trust_run(const struct ck_io *io, const struct ck_trust *trust, const char *run,
		 struct ck_error *err)
{
	static const char remedy[] = "Choose another --ckpt-name or --ckpt-dir, or remove it; "
				     "where groups share runs the site sets shared=yes";
	struct ck_names names = {NULL, 0};
	char path[PATH_MAX];
	bool missing;
	int rc = check_entry(io, trust, run, remedy, &missing, err);

	if (rc || missing)
		return rc;
	rc = ck_dirfile_list(io, run, &names, err);
	if (rc) /* that it is no directory, say, is told better by whoever opens it */
		return rc == CK_ENOMEM ? rc : 0;
	for (size_t i = 0; i < names.count && !rc; i++) {
		struct stat st;

		if (ck_path_join(path, run, names.names[i]) && io->ops->lstat(io, path, &st) == 0 &&
		    !ck_trust_owner(trust, &st))
			rc = refuse(path, &st, remedy, err);
	}
	ck_names_fini(&names);
	return rc;
}
