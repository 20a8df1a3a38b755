#include "rotate.h"

#include <limits.h>

#include "dirfile.h"

#define BAD_KEPT 2

/* A protected bad one stays anyway, and takes no place of the newest bad ones. */
static bool is_counted(const struct ck_rotate_step *step, bool bad)
{
	return step->bad == bad && !step->pinned && !(bad && step->protected);
}

/* From the oldest on, delete counted ones of a kind until `allowed` are left. */
static size_t thin_out(const struct ck_rotate_step *steps, size_t count, bool bad, size_t allowed,
		       bool save_to_come, bool *out)
{
	size_t left = 0, deleted = 0;

	for (size_t i = 0; i < count; i++)
		left += is_counted(&steps[i], bad);
	for (size_t i = count; i-- > 0 && left > allowed;) {
		if (!is_counted(&steps[i], bad) || steps[i].protected ||
		    (steps[i].held && save_to_come))
			continue;
		out[i] = true;
		deleted++;
		left--;
	}
	return deleted;
}

/* With keep 1 and a save to come, the last one waits for the save's commit. */
size_t ck_rotate_decide(const struct ck_rotate_step *steps, size_t count, unsigned keep,
			bool save_to_come, bool *out)
{
	size_t good = keep > 1 && save_to_come ? keep - 1 : keep;

	for (size_t i = 0; i < count; i++)
		out[i] = false;
	return thin_out(steps, count, false, good ? good : 1, save_to_come, out) +
	       thin_out(steps, count, true, BAD_KEPT, save_to_come, out);
}

/* Has a later generation begun at or before this step? Then it is of a time line that was given up. */
static bool is_continued(const struct ck_rotate_step *steps, size_t count, size_t i)
{
	if (steps[i].bad || steps[i].given_up)
		return false;
	for (size_t k = 0; k < count; k++)
		if (steps[k].id.generation > steps[i].id.generation &&
		    steps[k].id.step <= steps[i].id.step)
			return false;
	return true;
}

static bool is_first(const struct ck_rotate_step *steps, size_t count, size_t i,
		     uint64_t keep_every)
{
	uint64_t multiple = steps[i].id.step / keep_every;

	for (size_t k = 0; k < count; k++)
		if (steps[k].id.step < steps[i].id.step &&
		    steps[k].id.step / keep_every == multiple && is_continued(steps, count, k))
			return false;
	return multiple > 0;
}

size_t ck_rotate_due(const struct ck_rotate_step *steps, size_t count, uint64_t keep_every,
		     bool *out)
{
	uint64_t pinned = 0;
	size_t due = 0;

	for (size_t i = 0; i < count; i++)
		if (steps[i].pinned && steps[i].id.step > pinned && is_continued(steps, count, i))
			pinned = steps[i].id.step;
	for (size_t i = 0; i < count; i++) {
		out[i] = keep_every && !steps[i].pinned && steps[i].id.step > pinned &&
			 is_continued(steps, count, i) && is_first(steps, count, i, keep_every);
		due += out[i];
	}
	return due;
}

int ck_unpublished_remove(const struct ck_io *io, const char *dir, struct ck_step_id id,
			  struct ck_error *err)
{
	char deleting[PATH_MAX], name[CK_NAME_MAX];
	int rc = ck_dirfile_path(deleting, dir, ck_name_deleting(id, name), err);

	return rc ? rc : ck_io_remove_tree(io, deleting, err);
}
