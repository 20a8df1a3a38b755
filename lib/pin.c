#include "pin.h"

#include <errno.h>

#include "dirfile.h"

static int pin_path(char out[static PATH_MAX], const char *dir, struct ck_step_id id,
		    struct ck_error *err)
{
	char name[CK_NAME_MAX];

	return ck_dirfile_path(out, dir, ck_name_pin(id, name), err);
}

/* Rotation goes by the name alone, and keeps the checkpoint; but only a file can be made and taken away here. */
static int check_pin(const struct ck_io *io, const char *path, struct ck_error *err)
{
	struct stat st;

	if (io->ops->lstat(io, path, &st) < 0)
		return errno == ENOENT ? 0 : ck_fail_errno(err, errno, "%s: lstat", path);
	if (S_ISREG(st.st_mode))
		return 0;
	return ck_fail(err, CK_EIO, "%s: is %s, and a pin is a regular file: remove it", path,
		       ck_io_kind_name(st.st_mode));
}

int ck_pin(const struct ck_io *io, const char *dir, struct ck_step_id id, struct ck_error *err)
{
	char step[PATH_MAX], path[PATH_MAX], name[CK_NAME_MAX];
	struct ck_error why = CK_ERROR_INIT;
	struct stat st;
	int rc, fd = -1;

	rc = ck_dirfile_path(step, dir, ck_name_step(id, name), err);
	if (!rc)
		rc = pin_path(path, dir, id, err);
	if (rc)
		return rc;
	if (io->ops->lstat(io, step, &st) < 0)
		return ck_fail_errno(err, errno, "%s", step);
	rc = ck_io_create(io, path, &fd, &why);
	if (rc && rc != CK_EEXIST)
		return ck_fail(err, rc, "%s", why.text);
	ck_io_close(io, &fd);
	rc = rc ? check_pin(io, path, err) : 0;
	if (!rc)
		rc = ck_dirfile_sync(io, dir, err);
	/* Behind the pin: rotation looks for one when it has made the checkpoint invisible. */
	if (!rc && ck_io_is_gone(io, step)) {
		io->ops->unlink(io, path);
		return ck_fail(err, CK_ENOENT, "%s: is being deleted, and was not pinned", step);
	}
	return rc;
}

int ck_unpin(const struct ck_io *io, const char *dir, struct ck_step_id id, struct ck_error *err)
{
	char path[PATH_MAX];
	int rc = pin_path(path, dir, id, err);

	if (!rc)
		rc = check_pin(io, path, err);
	if (!rc && io->ops->unlink(io, path) < 0 && errno != ENOENT)
		rc = ck_fail_errno(err, errno, "%s: unlink", path);
	return rc;
}

bool ck_pin_listed(const struct ck_names *names, struct ck_step_id id)
{
	struct ck_step_id pin;

	for (size_t i = 0; i < names->count; i++)
		if (ck_is_pin(names->names[i], &pin) && ck_step_id_cmp(&pin, &id) == 0)
			return true;
	return false;
}

bool ck_is_pinned(const struct ck_io *io, const char *dir, struct ck_step_id id)
{
	char path[PATH_MAX];
	struct stat st;

	if (pin_path(path, dir, id, NULL))
		return true;
	return io->ops->lstat(io, path, &st) == 0 || errno != ENOENT;
}
