/* trust.h: whose directories may be believed. */
#include "trust.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tap.h"

static const struct ck_io *const io = &ck_io_posix;

static void owners(void)
{
	static const struct {
		const char *name;
		uid_t uid;
		gid_t gid;
		mode_t mode;
		bool alone, shared;
	} rows[] = {
		{"our own", 1001, 1001, S_IFDIR | 0700, true, true},
		{"root's", 0, 0, S_IFDIR | 0755, true, true},
		{"another's", 1002, 1002, S_IFDIR | 0777, false, false},
		{"another's, of a group of ours", 1002, 500, S_IFDIR | 0770, false, true},
		{"another's, which our group may read only", 1002, 500, S_IFDIR | 0750, false,
		 false},
		{"another's link, of a group of ours", 1002, 500, S_IFLNK | 0777, false, true},
		{"another's link", 1002, 1002, S_IFLNK | 0777, false, false},
	};
	struct ck_trust trust = {.uid = 1001, .ngroups = 2, .groups = {1001, 500}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct stat st = {.st_uid = rows[i].uid,
				  .st_gid = rows[i].gid,
				  .st_mode = rows[i].mode};

		trust.shared = false;
		is_int(ck_trust_owner(&trust, &st), rows[i].alone, "%s", rows[i].name);
		trust.shared = true;
		is_int(ck_trust_owner(&trust, &st), rows[i].shared, "... with shared=yes");
	}
	ck_trust_init(&trust, true);
	is_int(trust.uid, geteuid(), "this process's user");
	ok(trust.ngroups > 0 && trust.shared, "... and groups");
}

/* Made by us; to somebody else it is another's, unless we are root, whom everybody believes. */
static void paths(void)
{
	struct ck_trust us, them = {.uid = 4242};
	char base[PATH_MAX], below[PATH_MAX], link[PATH_MAX], run[PATH_MAX], step[PATH_MAX];
	struct ck_error err = CK_ERROR_INIT;
	const char *dir = test_tmpdir();

	ck_trust_init(&us, false);
	snprintf(base, sizeof(base), "%.*s/anna", PATH_MAX - 64, dir);
	snprintf(below, sizeof(below), "%.*s/ckpt", PATH_MAX - 32, base);
	snprintf(link, sizeof(link), "%.*s/link", PATH_MAX - 64, dir);
	is_int(ck_trust_path(io, &them, below, strlen(dir), &err), 0,
	       "what is missing can be made");
	io->ops->mkdir(io, base, 0700);
	if (symlink(base, link))
		diag("%s cannot be made", link);
	is_int(ck_trust_path(io, &us, below, strlen(dir), &err), 0, "our own (%s)", err.text);
	snprintf(run, sizeof(run), "%.*s/run", PATH_MAX - 64, base);
	is_int(ck_trust_run(io, &us, run, &err), 0, "no run yet");
	io->ops->mkdir(io, run, 0700);
	snprintf(step, sizeof(step), "%.*s/step-0000000001.g1", PATH_MAX - 64, run);
	io->ops->mkdir(io, step, 0700);
	is_int(ck_trust_run(io, &us, run, &err), 0, "our own run (%s)", err.text);
	if (geteuid() == 0 && (chown(base, 1002, 1002) || chown(step, 1002, 1002)))
		diag("chown");
	is_int(ck_trust_path(io, &them, below, strlen(base), &err), 0,
	       "what the administrator has named is not looked at");
	is_int(ck_trust_path(io, &them, below, strlen(dir), &err), CK_EREFUSED, "another's");
	like(err.text, "/anna: belongs to user ", "... is named");
	like(err.text, "tell the administrator", "... and what to do");
	is_int(ck_trust_path(io, &them, link, strlen(dir), &err), CK_EREFUSED,
	       "where a link leads to");
	is_int(ck_trust_run(io, &them, run, &err), CK_EREFUSED, "a run with a step of another's");
	like(err.text,
	     geteuid() ? "/run: belongs"
		       : "/run/step-0000000001.g1: belongs to user 1002, "
			 "not to you",
	     "... is named");
	like(err.text, "shared=yes", "... and what to do");
}

int main(void)
{
	owners();
	paths();
	return done_testing();
}
