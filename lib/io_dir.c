#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "parallel.h"

#define TREE_LEVELS 8
#define REMOVE_THREADS 4

/* Names under way into a struct ck_names. */
struct listing {
	struct ck_names names;
	size_t capacity;
	bool failed;
};

static bool listing_grow(struct listing *list)
{
	size_t capacity = list->capacity ? 2 * list->capacity : 64;
	char **names = reallocarray(list->names.names, capacity, sizeof(*names));

	if (!names)
		return false;
	list->names.names = names;
	list->capacity = capacity;
	return true;
}

static int listing_add(void *arg, const char *name)
{
	struct listing *list = arg;
	char *copy = NULL;

	if (list->names.count < list->capacity || listing_grow(list))
		copy = strdup(name);
	if (!copy) {
		list->failed = true;
		return 1;
	}
	list->names.names[list->names.count++] = copy;
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int ck_io_list(const struct ck_io *io, const char *path, struct ck_names *out, struct ck_error *err)
{
	struct listing list = {.names = {NULL, 0}, .capacity = 0, .failed = false};
	int rc = CK_OK;

	if (io->ops->readdir(io, path, listing_add, &list) < 0)
		rc = ck_fail_errno(err, errno, "%s: read directory", path);
	else if (list.failed)
		rc = ck_fail(err, CK_ENOMEM, "%s: out of memory after %zu names", path,
			     list.names.count);
	if (rc) {
		ck_names_fini(&list.names);
		return rc;
	}
	if (list.names.count)
		qsort(list.names.names, list.names.count, sizeof(char *), compare_names);
	*out = list.names;
	return CK_OK;
}

void ck_names_fini(struct ck_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->names[i]);
	free(names->names);
	*names = (struct ck_names){NULL, 0};
}

bool ck_io_is_no_dir(const struct ck_io *io, const char *path)
{
	struct stat st;

	return io->ops->lstat(io, path, &st) == 0 && !S_ISDIR(st.st_mode);
}

/* A removal under way, in one thread: the first failure is the answer, whatever comes after it. */
struct removal {
	const struct ck_io *io;
	int rc;
	struct ck_error *err;
};

/* What a name in a removal is called in messages. */
struct place {
	const struct place *above;
	const char *name;
};

static void path_of(const struct place *place, char out[static PATH_MAX])
{
	char above[PATH_MAX];

	if (!place->above) {
		snprintf(out, PATH_MAX, "%s", place->name);
		return;
	}
	path_of(place->above, above);
	if (!ck_path_join(out, above, place->name))
		snprintf(out, PATH_MAX, "%s", place->name);
}

static void removal_fail(struct removal *removal, int errnum, const struct place *place,
			 const char *what)
{
	char path[PATH_MAX];

	if (errnum == ENOENT || removal->rc)
		return;
	path_of(place, path);
	if (!ck_io_is_gone(removal->io, path))
		removal->rc = ck_fail_errno(removal->err, errnum, "%s: %s", path, what);
}

static bool empty(struct removal *removal, int fd, const struct place *place, int level);

/* unlink first: it is one call for a file, and never follows a link. */
static void remove_entry(struct removal *removal, int dir, const struct place *place, int level)
{
	const struct ck_io *io = removal->io;
	int errnum, fd;
	bool looked;

	if (io->ops->unlink_in(io, dir, place->name, 0) == 0)
		return;
	errnum = errno;
	fd = errnum == EISDIR || errnum == EPERM ? io->ops->open_in(io, dir, place->name) : -1;
	if (fd < 0) {
		removal_fail(removal, errnum, place, "unlink");
		return;
	}
	looked = empty(removal, fd, place, level + 1);
	ck_io_close(io, &fd);
	if (looked && io->ops->unlink_in(io, dir, place->name, AT_REMOVEDIR) < 0)
		removal_fail(removal, errno, place, "rmdir");
}

/* The names of a directory, dealt to some threads. */
struct removal_share {
	struct removal removal; /* with an error of its own */
	struct ck_error err;
	int dir;
	const struct place *place;
	const struct ck_names *names;
	size_t threads;
	int level;
};

static void remove_share(void *arg, size_t thread)
{
	struct removal_share *share = (struct removal_share *)arg + thread;

	for (size_t i = thread; i < share->names->count; i += share->threads) {
		struct place place = {.above = share->place, .name = share->names->names[i]};

		remove_entry(&share->removal, share->dir, &place, share->level);
	}
}

static void remove_entries(struct removal *removal, int dir, const struct place *place,
			   const struct ck_names *names, int level)
{
	struct removal_share shares[REMOVE_THREADS];
	/* Not below: trees that are wide and deep would have threads by the thousand. */
	size_t most = level == 1 ? REMOVE_THREADS : 1;
	size_t threads = names->count < most ? names->count : most;

	for (size_t t = 0; t < threads; t++)
		shares[t] = (struct removal_share){.removal = {.io = removal->io,
							       .err = &shares[t].err},
						   .dir = dir,
						   .place = place,
						   .names = names,
						   .threads = threads,
						   .level = level};
	ck_parallel(threads, remove_share, shares);
	for (size_t t = 0; t < threads; t++)
		if (shares[t].removal.rc && !removal->rc)
			removal->rc = ck_fail(removal->err, shares[t].removal.rc, "%s",
					      shares[t].err.text);
}

/*
 * Everything in the directory `fd`, which is what it was opened as, whatever has its name by now. False: what is in it
 * is not known.
 */
static bool empty(struct removal *removal, int fd, const struct place *place, int level)
{
	struct listing list = {.names = {NULL, 0}};
	char path[PATH_MAX];
	int rc;

	path_of(place, path);
	if (level > TREE_LEVELS) {
		if (!removal->rc)
			removal->rc = ck_fail(removal->err, CK_EFORMAT,
					      "%s: not removed: more than %d directories deep",
					      path, TREE_LEVELS);
		return false;
	}
	rc = removal->io->ops->readdir_of(removal->io, fd, listing_add, &list);
	if (rc < 0)
		removal_fail(removal, errno, place, "read directory");
	else if (list.failed && !removal->rc)
		removal->rc = ck_fail(removal->err, CK_ENOMEM, "%s: out of memory", path);
	if (list.names.count)
		remove_entries(removal, fd, place, &list.names, level);
	ck_names_fini(&list.names);
	return rc == 0 && !list.failed;
}

int ck_io_remove_tree(const struct ck_io *io, const char *path, struct ck_error *err)
{
	struct removal removal = {.io = io, .rc = CK_OK, .err = err};
	struct place place = {.name = path};
	bool looked;
	int fd = io->ops->open(io, path, O_RDONLY | O_DIRECTORY, 0);

	if (fd < 0) {
		removal_fail(&removal, errno, &place, "read directory");
	} else {
		looked = empty(&removal, fd, &place, 1);
		ck_io_close(io, &fd);
		if (looked && io->ops->rmdir(io, path) < 0)
			removal_fail(&removal, errno, &place, "rmdir");
	}
	/* Looked at only now: mostly it is one. */
	if (removal.rc && ck_io_is_no_dir(io, path))
		removal.rc = ck_fail(err, CK_EFORMAT, "%s: not removed: not a directory", path);
	return removal.rc;
}
