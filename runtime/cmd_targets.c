/* What the arguments mean: runs, and checkpoints of them. */
#include "cmd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "catalog.h"
#include "dirfile.h"
#include "env.h"

/* A program that saves faster than a checkpoint is read is not run after for ever. */
#define RENEWALS_MAX 10

void ck_cmd_targets_fini(struct ck_cmd_targets *targets)
{
	for (size_t i = 0; i < targets->count; i++)
		free(targets->items[i].run);
	free(targets->items);
	targets->items = NULL;
	targets->count = 0;
}

int ck_cmd_targets_push(struct ck_cmd_targets *targets, const char *run,
			const struct ck_step_id *id, struct ck_error *err)
{
	size_t bytes = (targets->count + 1) * sizeof(*targets->items);
	struct ck_cmd_target *items = realloc(targets->items, bytes);
	char *copy = strdup(run);

	if (items)
		targets->items = items;
	if (!items || !copy) {
		free(copy);
		return ck_fail_nomem(err, bytes);
	}
	items[targets->count++] = (struct ck_cmd_target){
		.run = copy,
		.has_step = id != NULL,
		.id = id ? *id : (struct ck_step_id){.step = 0},
	};
	return 0;
}

bool ck_cmd_target_is_gone(const struct ck_io *io, const struct ck_cmd_target *target)
{
	char path[PATH_MAX], name[CK_NAME_MAX];
	struct stat st;

	return ck_path_join(path, target->run, ck_name_step(target->id, name)) &&
	       io->ops->lstat(io, path, &st) < 0 && errno == ENOENT;
}

bool ck_cmd_target_renew(const struct ck_io *io, struct ck_cmd_target *target)
{
	struct ck_catalog catalog;
	bool renewed;

	if (!target->renewals || !ck_cmd_target_is_gone(io, target) ||
	    ck_catalog_load(io, target->run, &catalog, NULL))
		return false;
	renewed = catalog.count && ck_step_id_cmp(&catalog.steps[0], &target->id) != 0;
	if (renewed) {
		target->id = catalog.steps[0];
		target->renewals--;
	}
	ck_catalog_fini(&catalog);
	return renewed;
}

/* One that may not be looked into may be a run: whoever lists it says why it cannot. */
static bool may_be_run(const struct ck_io *io, const char *dir)
{
	char path[PATH_MAX];
	struct stat st;

	return ck_path_join(path, dir, CK_RUN_FILE) &&
	       (io->ops->lstat(io, path, &st) == 0 ||
		(errno != ENOENT && errno != ENOTDIR && errno != ELOOP));
}

/* The runs below a directory; *added tells how many. */
static int add_runs_in(const struct ck_io *io, const char *dir, struct ck_cmd_targets *targets,
		       size_t *added, struct ck_error *err)
{
	struct ck_names names;
	char path[PATH_MAX];
	int rc;

	*added = 0;
	rc = ck_dirfile_list(io, dir, &names, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < names.count && !rc; i++) {
		const char *run = path;

		if (!ck_path_join(path, dir, names.names[i]) || !may_be_run(io, path))
			continue;
		if (strcmp(dir, ".") == 0)
			run = names.names[i];
		rc = ck_cmd_targets_push(targets, run, NULL, err);
		*added += !rc;
	}
	ck_names_fini(&names);
	return rc;
}

/* Not found, or not to be seen: a parent that may not be searched, a file system that fails. */
static int doubt_missing(const struct ck_io *io, const char *text, struct ck_error *err)
{
	char followed[PATH_MAX];
	struct stat st;

	if (snprintf(followed, sizeof(followed), "%s/", text) >= (int)sizeof(followed) ||
	    io->ops->lstat(io, followed, &st) == 0 || errno == ENOENT || errno == ENOTDIR)
		return CK_ENOENT;
	return ck_fail_errno(err, errno, "%s", text);
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), of_end = strlen(end);

	return len >= of_end && strcmp(text + len - of_end, end) == 0;
}

int ck_cmd_targets_add(const struct ck_cmd *cmd, const char *text, bool expand,
		       struct ck_cmd_targets *targets, struct ck_error *err)
{
	struct ck_error inner = CK_ERROR_INIT;
	struct ck_step_id id;
	char run[PATH_MAX];
	bool has_step;
	size_t added;
	int rc;

	rc = ck_resolve(cmd->io, text, run, &has_step, &id, err);
	if (!rc) {
		rc = ck_cmd_targets_push(targets, run, has_step ? &id : NULL, err);
		if (!rc && has_step)
			targets->items[targets->count - 1].renewals =
				ends_with(text, "@latest") ? RENEWALS_MAX : 0;
		return rc;
	}
	if (rc == CK_ENOENT)
		rc = doubt_missing(cmd->io, text, err);
	if (rc != CK_ENOENT || !expand)
		return rc;
	/* The error above says more than one about a directory that is not there. */
	rc = add_runs_in(cmd->io, text, targets, &added, &inner);
	if (rc && rc != CK_ENOENT) {
		*err = inner;
		return rc;
	}
	return added ? 0 : CK_ENOENT;
}

int ck_cmd_targets_default(const struct ck_cmd *cmd, const char *environment,
			   struct ck_cmd_targets *targets, struct ck_error *err)
{
	int rc;

	if (environment && *environment) {
		rc = ck_cmd_targets_add(cmd, environment, false, targets, err);
		if (rc)
			ck_error_prefix(err, CK_ENV_DIR);
		return rc;
	}
	rc = ck_cmd_targets_add(cmd, ".", true, targets, err);
	if (rc == CK_ENOENT)
		return ck_fail(err, CK_EARG,
			       "no RUN given: " CK_ENV_DIR
			       " is not set, and the current directory is not a run directory "
			       "(no " CK_RUN_FILE ") and holds none");
	return rc;
}
