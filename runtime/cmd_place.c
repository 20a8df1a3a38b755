/* The directory that `ckpt export` writes to. */
#include "cmd_place.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>

#include "dirfile.h"

#define LOCK_FILE ".ckpt-export"

/* Of this export or of another one, of however many files: what readers take for a model. */
static bool is_model(const char *name)
{
	return strcmp(name, CK_CMD_INDEX_FILE) == 0 || strcmp(name, "model.safetensors") == 0 ||
	       fnmatch("model-[0-9]*-of-[0-9]*.safetensors", name, 0) == 0;
}

/* Beside files of another export, ours would be mixed with them, or not be found. */
int ck_cmd_place_free(const struct ck_io *io, const char *dir, struct ck_error *err)
{
	struct ck_names names;
	int rc = ck_dirfile_list(io, dir, &names, err);

	if (rc)
		return rc == CK_ENOENT ? 0 : rc;
	for (size_t i = 0; i < names.count && !rc; i++)
		if (is_model(names.names[i]))
			rc = ck_fail(err, CK_EEXIST,
				     "%s/%s: is there already: name an empty directory", dir,
				     names.names[i]);
	ck_names_fini(&names);
	return rc;
}

/*
 * Two at once would take each other's files for what a killed one has left. The lock ends with its process,
 * whatever ends that; where the file system has none, we go on without. Its file may have been removed, by the
 * one before us, after we had opened it: then another one may be locked by now.
 */
static int lock_place(struct ck_cmd_place *place, struct ck_error *err)
{
	const struct ck_io *io = place->io;
	struct stat ours, there;
	bool locked;
	int rc = ck_dirfile_path(place->path, place->dir, LOCK_FILE, err);

	if (rc)
		return rc;
	place->lock = io->ops->open(io, place->path, O_RDWR | O_CREAT, 0666);
	if (place->lock < 0)
		return ck_fail_errno(err, errno, "%s: open", place->path);
	if (io->ops->lock(io, place->lock) < 0)
		locked = errno != EWOULDBLOCK;
	else
		locked = io->ops->fstat(io, place->lock, &ours) == 0 &&
			 io->ops->lstat(io, place->path, &there) == 0 &&
			 ours.st_ino == there.st_ino;
	if (!locked)
		rc = ck_fail(err, CK_EREFUSED,
			     "%s: another export writes there: wait for its end, or name another "
			     "directory",
			     place->dir);
	return rc;
}

/* The directory, which may be there, and a link. */
static int make_place(struct ck_cmd_place *place, struct ck_error *err)
{
	int rc = ck_io_mkdir(place->io, place->dir, err);

	if (rc == CK_EEXIST)
		return 0;
	if (rc == CK_ENOENT) /* what cannot be written, not what is not found */
		return CK_EIO;
	place->made = rc == 0;
	return rc ? rc : ck_dirfile_sync_parent(place->io, place->dir, err);
}

int ck_cmd_place_take(struct ck_cmd_place *place, const struct ck_io *io, const char *dir,
		      struct ck_error *err)
{
	int rc;

	*place = (struct ck_cmd_place){.io = io, .dir = dir, .lock = -1};
	rc = make_place(place, err);
	if (!rc)
		rc = lock_place(place, err);
	place->locked = rc == 0;
	return rc ? rc : ck_cmd_place_free(io, dir, err);
}

void ck_cmd_place_leave(struct ck_cmd_place *place, bool failed)
{
	const struct ck_io *io = ck_cmd_io_below(place->io);

	if (place->locked)
		io->ops->unlink(io, place->path); /* while it is ours */
	ck_io_close(io, &place->lock);
	if (failed && place->made)
		io->ops->rmdir(io, place->dir);
}
