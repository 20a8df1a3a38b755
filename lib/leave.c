#include "leave.h"

#include "dirfile.h"
#include "pin.h"
#include "run.h"

struct way {
	char gate[PATH_MAX];   /* .leaving-<n> */
	char from[PATH_MAX];   /* step-… */
	char inside[PATH_MAX]; /* .leaving-<n>/step-… */
};

static int gate_path(const char *dir, uint64_t owner, char out[static PATH_MAX],
		     struct ck_error *err)
{
	char name[CK_NAME_MAX];

	return ck_dirfile_path(out, dir, ck_name_leaving(owner, name), err);
}

static int way_of(const char *dir, struct ck_step_id id, uint64_t owner, struct way *way,
		  struct ck_error *err)
{
	char name[CK_NAME_MAX];
	int rc = gate_path(dir, owner, way->gate, err);

	ck_name_step(id, name);
	if (!rc)
		rc = ck_dirfile_path(way->from, dir, name, err);
	return rc ? rc : ck_dirfile_path(way->inside, way->gate, name, err);
}

int ck_leave_open(const struct ck_io *io, const char *dir, uint64_t owner, struct ck_error *err)
{
	struct ck_error why;
	char gate[PATH_MAX];
	int rc = gate_path(dir, owner, gate, err);

	if (!rc && (rc = ck_io_mkdir(io, gate, &why)) && rc != CK_EEXIST)
		return ck_fail(err, rc, "%s", why.text);
	return rc == CK_EEXIST ? 0 : rc;
}

void ck_leave_close(const struct ck_io *io, const char *dir, uint64_t owner)
{
	char gate[PATH_MAX];

	if (gate_path(dir, owner, gate, NULL) == 0)
		io->ops->rmdir(io, gate);
}

/* There may be none: a successor has taken it away, or somebody has removed it by hand. Then it is made again. */
static int enter(const struct ck_io *io, const char *dir, uint64_t owner, const struct way *way,
		 struct ck_error *err)
{
	struct ck_error why;
	int rc = ck_io_rename(io, way->from, way->inside, &why);

	if (rc == CK_ENOENT && !ck_io_is_gone(io, way->from)) {
		rc = ck_owner_check(io, dir, owner, err);
		if (!rc)
			rc = ck_leave_open(io, dir, owner, err);
		if (!rc) /* behind the mkdir, as ever: a successor sees it, or we see the successor */
			rc = ck_owner_check(io, dir, owner, err);
		if (rc)
			return rc;
		rc = ck_io_rename(io, way->from, way->inside, &why);
	}
	return rc ? ck_fail(err, rc, "%s", why.text) : 0;
}

/* A successor may have taken it back from where it was. */
static int move_on(const struct ck_io *io, const char *dir, uint64_t owner, const char *from,
		   const char *to, struct ck_error *err)
{
	struct ck_error why;
	int rc = ck_io_rename(io, from, to, &why);

	if (rc == CK_ENOENT && (rc = ck_owner_check(io, dir, owner, err)) == CK_EFENCED)
		return rc;
	return rc ? ck_fail(err, rc, "%s", why.text) : 0;
}

int ck_leave_to(const struct ck_io *io, const char *dir, struct ck_step_id id, uint64_t owner,
		const char *to, struct ck_error *err)
{
	struct way way;
	int rc = way_of(dir, id, owner, &way, err);

	if (!rc)
		rc = enter(io, dir, owner, &way, err);
	return rc ? rc : move_on(io, dir, owner, way.inside, to, err);
}

int ck_leave(const struct ck_io *io, const char *dir, struct ck_step_id id, uint64_t owner,
	     struct ck_error *err)
{
	char deleting[PATH_MAX], name[CK_NAME_MAX];
	struct ck_error why = CK_ERROR_INIT;
	struct way way;
	int rc = way_of(dir, id, owner, &way, err);

	if (!rc)
		rc = ck_dirfile_path(deleting, dir, ck_name_deleting(id, name), err);
	if (rc || ck_io_is_no_dir(io, way.from))
		return rc;
	rc = enter(io, dir, owner, &way, &why);
	if (rc == CK_ENOENT)
		return 0;
	if (!rc)
		rc = move_on(io, dir, owner, way.inside,
			     ck_is_pinned(io, dir, id) ? way.from : deleting, &why);
	if (!rc)
		rc = ck_dirfile_sync(io, dir, &why);
	return rc ? ck_fail(err, rc, "%s", why.text) : 0;
}

/* What was on its way out comes back: its owner had not gone on to delete it. */
static int bring_back(const struct ck_io *io, const char *dir, const char *left,
		      struct ck_error *err)
{
	char from[PATH_MAX], to[PATH_MAX];
	struct ck_step_id id;
	struct ck_names names;
	int rc = ck_io_list(io, left, &names, err);

	if (rc)
		return rc == CK_ENOENT ? 0 : rc;
	for (size_t i = 0; !rc && i < names.count; i++) {
		if (!ck_is_step(names.names[i], &id))
			continue;
		rc = ck_dirfile_path(from, left, names.names[i], err);
		if (!rc)
			rc = ck_dirfile_path(to, dir, names.names[i], err);
		if (!rc)
			rc = ck_io_rename(io, from, to, err);
		rc = rc == CK_ENOENT ? 0 : rc; /* another claimant */
	}
	ck_names_fini(&names);
	if (!rc)
		io->ops->rmdir(io, left);
	return rc;
}

static int seize(const struct ck_io *io, const char *dir, const char *name, uint64_t generation,
		 struct ck_error *err)
{
	char from[PATH_MAX], left[PATH_MAX], to[CK_NAME_MAX];
	struct ck_error why;
	int rc = ck_dirfile_path(from, dir, name, err);

	if (!rc)
		rc = ck_dirfile_path(left, dir, ck_name_left(generation, to), err);
	if (rc || ck_io_is_no_dir(io, from))
		return rc;
	rc = ck_io_rename(io, from, left, &why);
	if (rc && rc != CK_ENOENT)
		return ck_fail(err, rc, "%s", why.text);
	return bring_back(io, dir, left, err);
}

int ck_leave_seize(const struct ck_io *io, const char *dir, uint64_t owner, struct ck_error *err)
{
	struct ck_names names;
	uint64_t generation;
	char left[PATH_MAX];
	int rc = ck_dirfile_list(io, dir, &names, err);

	if (rc)
		return rc;
	for (size_t i = 0; !rc && i < names.count; i++) {
		if (ck_is_left(names.names[i], &generation) && generation < owner) {
			rc = ck_dirfile_path(left, dir, names.names[i], err);
			if (!rc && !ck_io_is_no_dir(io, left))
				rc = bring_back(io, dir, left, err);
		} else if (ck_is_leaving(names.names[i], &generation) && generation < owner) {
			rc = seize(io, dir, names.names[i], generation, err);
		}
	}
	ck_names_fini(&names);
	return rc;
}
