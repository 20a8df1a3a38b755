/* A run at a glance: what is there, whether it is whole, and what a start would do with it. */
#include "cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "catalog.h"
#include "commit.h"
#include "dirfile.h"
#include "json.h"
#include "parse.h"
#include "rotate.h"
#include "sums.h"
#include "takeover.h"

#define LOOKS_MAX 10

const char *ck_cmd_state_name(enum ck_cmd_state state)
{
	static const char *const names[] = {
		[CK_CMD_WHOLE] = "ok",
		[CK_CMD_DAMAGED] = "bad",
		[CK_CMD_UNKNOWN] = "unknown",
		[CK_CMD_SAVING] = "saving",
		[CK_CMD_LEFT_OVER] = "left-over",
	};

	return names[state];
}

const char *ck_cmd_row_name(const struct ck_cmd_row *row, char name[static CK_NAME_MAX])
{
	if (row->seized)
		return ck_name_salvage(row->id, name);
	if (row->state == CK_CMD_SAVING || row->state == CK_CMD_LEFT_OVER)
		return ck_name_saving(row->id, name);
	return ck_name_step(row->id, name);
}

void ck_cmd_facts_fini(struct ck_cmd_facts *facts)
{
	for (size_t i = 0; i < facts->nrows; i++)
		free(facts->rows[i].reason);
	free(facts->rows);
	free(facts->run_reason);
	free(facts->held);
	if (facts->has_claim)
		ck_claim_fini(&facts->claim);
	memset(facts, 0, sizeof(*facts));
}

/* --- one checkpoint --- */

static void judge(struct ck_cmd_row *row, int code, const char *missing, const char *malformed,
		  const char *reason)
{
	bool unseen = ck_is_unseen(code);

	row->state = unseen ? CK_CMD_UNKNOWN : CK_CMD_DAMAGED;
	row->what = unseen ? "unreadable" : code == CK_ENOENT ? missing : malformed;
	free(row->reason);
	row->reason = strdup(reason);
}

static void describe(struct ck_cmd_row *row, const struct ck_manifest *m)
{
	row->described = true;
	row->world_size = m->world_size;
	row->created = m->created;
	strcpy(row->save_id, m->save_id);
}

/* In two words, the first of a rank's files that is there and not what it should be. */
static const char *name_fault(const struct ck_io *io, const char *dir, const struct ck_manifest *m,
			      uint32_t rank)
{
	char step[PATH_MAX], path[PATH_MAX], name[CK_NAME_MAX];
	size_t begin, count;
	struct stat st;

	ck_manifest_rank_files(m, rank, &begin, &count);
	for (size_t i = begin; i < begin + count; i++) {
		if (!ck_path_join(step, dir, ck_name_step(m->id, name)) ||
		    !ck_path_join(path, step, m->files[i].path) ||
		    io->ops->lstat(io, path, &st) < 0)
			continue;
		if (S_ISLNK(st.st_mode))
			return "symbolic link";
		if (S_ISDIR(st.st_mode))
			return "a directory";
		if (S_ISFIFO(st.st_mode))
			return "a fifo";
		if (!S_ISREG(st.st_mode))
			return "no regular file";
	}
	return "wrong size";
}

/* Are all files there with their sizes? Rank by rank, so that the bar moves and faults are counted. */
static void size_up(const struct ck_io *io, const char *dir, const struct ck_manifest *m,
		    struct ck_cmd_progress *progress, struct ck_cmd_row *row)
{
	struct ck_error err, first = CK_ERROR_INIT;
	uint32_t bad = 0, which = 0;

	for (uint32_t rank = 0; rank < m->world_size && !ck_cmd_interrupted(); rank++) {
		size_t begin, count = 0;

		if (ck_step_sized(io, dir, m, rank, &err) && bad++ == 0) {
			first = err;
			which = rank;
		}
		ck_manifest_rank_files(m, rank, &begin, &count);
		ck_cmd_progress_add(progress, count);
	}
	if (bad > 1)
		ck_fail(&err, first.code, "%s (and files of %" PRIu32 " more rank%s)", first.text,
			bad - 1, ck_plural(bad - 1));
	if (bad)
		judge(row, first.code, "file missing", name_fault(io, dir, m, which),
		      bad > 1 ? err.text : first.text);
}

/* The claim of the last start names what it refused: "step-…: why". */
static void recall_refusal(const struct ck_cmd_facts *facts, struct ck_cmd_row *row)
{
	char name[CK_NAME_MAX];
	size_t len = strlen(ck_name_step(row->id, name));

	for (size_t i = 0; facts->has_claim && i < facts->claim.nrefused; i++) {
		const char *refused = facts->claim.refused[i];

		if (strncmp(refused, name, len) != 0 || refused[len] != ':')
			continue;
		free(row->reason);
		if (asprintf(&row->reason, "refused by the last start%s", refused + len) < 0)
			row->reason = NULL;
		row->what = "was refused";
	}
}

static bool is_there(const struct ck_io *io, const char *path)
{
	struct stat st;

	return io->ops->lstat(io, path, &st) == 0 || errno != ENOENT;
}

static bool is_no_dir(const struct ck_io *io, const char *dir, struct ck_step_id id)
{
	char step[PATH_MAX], name[CK_NAME_MAX];

	return ck_path_join(step, dir, ck_name_step(id, name)) && ck_io_is_no_dir(io, step);
}

/* A file more does a start no harm, but makes verify, reshard and export refuse. */
static void look_for_stray(const struct ck_io *io, const char *dir, const struct ck_manifest *m,
			   struct ck_cmd_row *row)
{
	char stray[NAME_MAX + 1], shown[CK_JSON_SHOW];

	if (ck_step_stray(io, dir, m, stray, NULL) || !*stray)
		return;
	row->what = "unknown file";
	free(row->reason);
	if (asprintf(&row->reason,
		     "warning: %s is not in the manifest, but other readers would load it: remove "
		     "it",
		     ck_json_show(shown, stray)) < 0)
		row->reason = NULL;
}

/* Does SHA256SUMS vouch for the manifest, as a start wants it? */
static int check_sums(const struct ck_io *io, const char *dir, const struct ck_manifest *m,
		      const struct ck_buf *text, struct ck_error *err)
{
	char step[PATH_MAX], name[CK_NAME_MAX];
	int rc = ck_dirfile_path(step, dir, ck_name_step(m->id, name), err);

	return rc ? rc : ck_sums_check(io, step, m, text, err);
}

static void look_at_step(const struct ck_io *io, struct ck_cmd_facts *facts,
			 struct ck_cmd_progress *progress, struct ck_cmd_row *row)
{
	struct ck_error err = CK_ERROR_INIT;
	struct ck_buf text = CK_BUF_INIT;
	struct ck_manifest m = {.nfiles = 0};
	int rc = ck_step_read(io, facts->dir, row->id, &m, &text, &err);

	if (rc) {
		judge(row, rc, "manifest missing",
		      is_no_dir(io, facts->dir, row->id) ? "not a directory" : "bad manifest",
		      err.text);
		return;
	}
	describe(row, &m);
	row->pinned = ck_is_pinned(io, facts->dir, row->id);
	row->files = m.nfiles;
	for (size_t i = 0; i < m.nfiles; i++)
		row->bytes += m.files[i].bytes;
	rc = check_sums(io, facts->dir, &m, &text, &err);
	row->foreign = !rc && facts->has_run && strcmp(m.run_id, facts->run.run_id) != 0;
	if (rc) {
		judge(row, rc, "SHA256SUMS missing", "bad SHA256SUMS", err.text);
	} else if (row->foreign) {
		ck_fail(&err, CK_EFORMAT, "%s: its run_id is %s, this run's is %s", facts->dir,
			m.run_id, facts->run.run_id);
		judge(row, CK_EFORMAT, "", "of another run", err.text);
	} else {
		size_up(io, facts->dir, &m, progress, row);
		if (row->state == CK_CMD_WHOLE) {
			look_for_stray(io, facts->dir, &m, row);
			recall_refusal(facts, row);
		}
	}
	ck_buf_fini(&text);
	ck_manifest_fini(&m);
}

/* --- one save that is not committed --- */

static void count_files(const struct ck_io *io, const char *staging, struct ck_cmd_row *row)
{
	struct ck_names names;
	uint32_t rank, part;

	if (ck_io_list(io, staging, &names, NULL))
		return;
	for (size_t i = 0; i < names.count; i++)
		row->files += ck_is_shard(names.names[i], &rank, &part);
	ck_names_fini(&names);
}

/* Has its writer gone? Then the next start puts an end to it. */
static bool is_left_over(const struct ck_cmd_facts *facts, uint64_t generation)
{
	return generation < facts->generation ||
	       (facts->owner_gone && generation == facts->claim.generation);
}

static void take_reason(struct ck_cmd_row *row, const char *prefix, const char *text)
{
	if (asprintf(&row->reason, "%s%s", prefix, text) < 0)
		row->reason = NULL;
}

/* As ck_salvage will decide it. */
static void look_at_left_over(const struct ck_io *io, struct ck_cmd_facts *facts,
			      struct ck_cmd_row *row)
{
	struct ck_error err = CK_ERROR_INIT;
	struct ck_manifest m;
	int rc = ck_salvage_look(io, facts->dir, row->id, row->seized, &m, &err);

	row->unseen = ck_is_unseen(rc);
	row->salvageable = rc == 0;
	if (!rc) {
		describe(row, &m);
		row->foreign = facts->has_run && strcmp(m.run_id, facts->run.run_id) != 0;
		for (size_t i = 0; i < m.nfiles; i++)
			row->bytes += m.files[i].bytes;
		ck_manifest_fini(&m);
	}
	if (row->unseen)
		take_reason(row, "left over; not known whether its save was complete: ", err.text);
	else if (rc)
		take_reason(row, "left over, and the next start removes it: ", err.text);
	else
		row->reason =
			strdup("left over, but its save was complete: the next start commits it");
}

/* save.json says when it began; the directory's time is when the last file was made. */
static void look_at_saving(const struct ck_io *io, struct ck_cmd_facts *facts,
			   struct ck_cmd_row *row)
{
	char staging[PATH_MAX], path[PATH_MAX], name[CK_NAME_MAX];
	struct ck_buf text = CK_BUF_INIT;
	struct ck_manifest m;
	struct stat st;

	row->state = CK_CMD_SAVING;
	if (row->seized || is_left_over(facts, row->id.generation)) {
		row->state = CK_CMD_LEFT_OVER;
		look_at_left_over(io, facts, row);
	}
	if (!ck_path_join(staging, facts->dir, ck_cmd_row_name(row, name)))
		return;
	if (!row->described && io->ops->lstat(io, staging, &st) == 0)
		row->created = st.st_mtime;
	count_files(io, staging, row);
	if (ck_dirfile_read(io, staging, CK_SAVE_FILE, CK_JSON_MAX_BYTES, path, &text, NULL) == 0 &&
	    ck_manifest_parse(path, text.data, text.len, false, &m, NULL) == 0) {
		describe(row, &m);
		ck_manifest_fini(&m);
	}
	ck_buf_fini(&text);
}

/* --- the run --- */

/*
 * Rotation or a commit may have taken a directory away since it was listed. What only has the name of a save under
 * way, and is no directory, is none.
 */
static bool is_gone(const struct ck_io *io, const char *dir, const struct ck_cmd_row *row)
{
	char path[PATH_MAX], name[CK_NAME_MAX];
	bool saving = row->state == CK_CMD_SAVING || row->state == CK_CMD_LEFT_OVER;

	if (row->state == CK_CMD_WHOLE)
		return false;
	if (!ck_path_join(path, dir, ck_cmd_row_name(row, name)))
		return false;
	return !is_there(io, path) || (saving && ck_io_is_no_dir(io, path));
}

static void look_at_rows(const struct ck_io *io, struct ck_cmd_progress *progress,
			 struct ck_cmd_facts *facts)
{
	size_t kept = 0;

	for (size_t i = 0; i < facts->nrows && !ck_cmd_interrupted(); i++) {
		struct ck_cmd_row row = facts->rows[i];

		facts->rows[i].reason = NULL;
		if (row.state == CK_CMD_SAVING)
			look_at_saving(io, facts, &row);
		else
			look_at_step(io, facts, progress, &row);
		if (is_gone(io, facts->dir, &row)) {
			free(row.reason);
			facts->vanished = true;
			continue;
		}
		facts->rows[kept++] = row;
		facts->nsalvageable += row.salvageable;
		facts->unchecked |= row.unseen;
		if (row.state > CK_CMD_UNKNOWN)
			continue;
		facts->nsteps++;
		facts->nbad += row.state != CK_CMD_WHOLE;
		facts->unchecked |= row.state == CK_CMD_UNKNOWN;
	}
	facts->nrows = kept;
}

static int newest_first(const void *a, const void *b)
{
	return ck_step_id_cmp(&((const struct ck_cmd_row *)b)->id,
			      &((const struct ck_cmd_row *)a)->id);
}

/* Rows and the highest generation, from names alone. */
static int list_rows(const struct ck_io *io, struct ck_cmd_facts *facts, struct ck_error *err)
{
	struct ck_names names;
	uint64_t generation;
	int rc = ck_dirfile_list(io, facts->dir, &names, err);

	if (rc)
		return rc;
	facts->rows = calloc(names.count + 1, sizeof(*facts->rows));
	for (size_t i = 0; facts->rows && i < names.count; i++) {
		struct ck_cmd_row *row = &facts->rows[facts->nrows];

		*row = (struct ck_cmd_row){.what = ""};
		if (ck_is_step(names.names[i], &row->id)) {
			facts->nrows++;
		} else if (ck_is_saving(names.names[i], &row->id) ||
			   ck_is_salvage(names.names[i], &row->id)) {
			row->state = CK_CMD_SAVING;
			row->seized = ck_is_salvage(names.names[i], &row->id);
			facts->nrows++;
		} else if (ck_is_generation(names.names[i], &generation) &&
			   generation > facts->generation) {
			facts->generation = generation;
		}
	}
	ck_names_fini(&names);
	if (!facts->rows)
		return ck_fail_nomem(err, sizeof(*facts->rows));
	qsort(facts->rows, facts->nrows, sizeof(*facts->rows), newest_first);
	return 0;
}

/* As the runtime decides it (salvage.c, restore.c, open.c), except for the bytes. */
static void foretell(struct ck_cmd_facts *facts)
{
	facts->resume = CK_CMD_REFUSES;
	if (!facts->has_run)
		return;
	if (facts->nsteps + facts->nsalvageable == 0) {
		facts->resume = facts->run.committed ? CK_CMD_REFUSES : CK_CMD_FRESH;
		return;
	}
	for (size_t i = 0; i < facts->nrows; i++) {
		const struct ck_cmd_row *row = &facts->rows[i];

		if (row->state > CK_CMD_UNKNOWN && !row->salvageable && !row->unseen)
			continue;
		if (row->foreign)
			return;
		if (row->state == CK_CMD_WHOLE || row->salvageable) {
			facts->row = row;
			break;
		}
		if (row->state != CK_CMD_DAMAGED) {
			facts->row = row;
			facts->resume = CK_CMD_UNREAD;
			return;
		}
		facts->newer_bad++;
	}
	if (!facts->row)
		facts->resume = CK_CMD_FAILS;
	else if (facts->run.complete && facts->run.complete_step == facts->row->id.step)
		facts->resume = CK_CMD_COMPLETE;
	else
		facts->resume = facts->newer_bad ? CK_CMD_FALLS_BACK : CK_CMD_RESUMES;
}

/* A start that goes round in circles leaves its reason in its mark (search.c). */
static void recall_hold(const struct ck_io *io, struct ck_cmd_facts *facts)
{
	struct ck_mark mark;
	bool said;

	if (!facts->has_claim || strcmp(facts->claim.resume, "held") != 0)
		return;
	said = ck_mark_load(io, facts->dir, facts->claim.generation, &mark, NULL) == 0 &&
	       mark.want == CK_WANT_HOLD;
	facts->held = strdup(said ? mark.reason : "its reason cannot be read");
}

static void look_at_owner(const struct ck_io *io, struct ck_cmd_facts *facts)
{
	char host[CK_SHORT_TEXT] = "";

	facts->has_claim = ck_owner_load(io, facts->dir, &facts->claim, NULL) == 0;
	gethostname(host, sizeof(host) - 1);
	facts->owner_gone = facts->has_claim && ck_owner_is_gone(io, &facts->claim, host);
	recall_hold(io, facts);
}

static int look_once(const struct ck_io *io, const char *dir, struct ck_cmd_progress *progress,
		     struct ck_cmd_facts *out, struct ck_error *err)
{
	struct ck_cmd_facts facts = {.dir = dir};
	struct ck_error why = CK_ERROR_INIT;
	int rc = list_rows(io, &facts, err);

	if (rc) {
		ck_cmd_facts_fini(&facts);
		return rc;
	}
	facts.run_code = ck_run_load(io, dir, &facts.run, &why);
	facts.has_run = facts.run_code == 0;
	facts.unchecked = ck_is_unseen(facts.run_code);
	if (!facts.has_run)
		facts.run_reason = strdup(why.text);
	look_at_owner(io, &facts);
	look_at_rows(io, progress, &facts);
	foretell(&facts);
	*out = facts;
	return 0;
}

/* Was it changed under our eyes? A listing made while the only checkpoint is replaced may have neither. */
static bool is_unsettled(const struct ck_cmd_facts *facts)
{
	return facts->vanished ||
	       (facts->has_run && facts->run.committed && facts->nsteps + facts->nsalvageable == 0);
}

/* A program that saves and rotates without a pause is not waited for: the last look counts. */
int ck_cmd_look(const struct ck_io *io, const char *dir, struct ck_cmd_progress *progress,
		struct ck_cmd_facts *out, struct ck_error *err)
{
	for (int looks = 1;; looks++) {
		int rc = look_once(io, dir, progress, out, err);

		if (rc || looks == LOOKS_MAX || ck_cmd_interrupted() || !is_unsettled(out))
			return rc;
		ck_cmd_facts_fini(out);
	}
}
