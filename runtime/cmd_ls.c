/* `ckpt ls`: what is there, and what a start would resume from. */
#include "cmd.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "env.h"
#include "parse.h"

struct ls {
	struct ck_cmd *cmd;
	bool json;
	struct ck_cmd_progress progress;
	struct ck_cmd_targets targets;
	struct ck_cmd_table summary; /* of several runs */
	struct ck_cmd_json out;
	enum ck_cmd_exit exit_code;
};

/* --- one run, as a table --- */

static const struct ck_cmd_column step_columns[] = {
	{"STEP", true},  {"GEN", true},  {"SAVED (UTC)", false}, {"RANKS", true},
	{"FILES", true}, {"SIZE", true}, {"STATE", false},
};

/* Whole seconds for a save that has just begun. */
static char *format_age(int64_t since, char out[static 16])
{
	double age = difftime(time(NULL), since);

	if (age < 60)
		snprintf(out, 16, "%.0f s", age > 0 ? age : 0);
	else
		ck_format_seconds(age, out);
	return out;
}

static void add_state(struct ck_cmd_table *table, const struct ck_cmd_row *row)
{
	char age[16];

	if (row->state == CK_CMD_SAVING || row->state == CK_CMD_LEFT_OVER)
		ck_cmd_table_add(table, "%s, %s old",
				 row->state == CK_CMD_SAVING ? "saving..." : "left over",
				 format_age(row->created, age));
	else if (row->state == CK_CMD_WHOLE)
		ck_cmd_table_add(table, "ok%s%s%s", *row->what ? ", " : "", row->what,
				 row->pinned ? ", pinned" : "");
	else
		ck_cmd_table_add(table, "%s: %s", row->state == CK_CMD_DAMAGED ? "bad" : "unknown",
				 row->what);
}

static void add_row(struct ck_cmd_table *table, const struct ck_cmd_row *row)
{
	bool saving = row->state == CK_CMD_SAVING || row->state == CK_CMD_LEFT_OVER;
	char text[32];

	ck_cmd_table_add(table, "%" PRIu64, row->id.step);
	ck_cmd_table_add(table, "%" PRIu64, row->id.generation);
	ck_cmd_table_add(table, "%s",
			 row->described && !saving ? ck_cmd_minute(row->created, text) : "-");
	if (row->described)
		ck_cmd_table_add(table, "%" PRIu32, row->world_size);
	else
		ck_cmd_table_add(table, "-");
	if (row->described || saving)
		ck_cmd_table_add(table, "%" PRIu64, row->files);
	else
		ck_cmd_table_add(table, "-");
	ck_cmd_table_add(table, "%s",
			 row->described && !saving ? ck_format_bytes(row->bytes, text) : "-");
	add_state(table, row);
}

static bool is_shown(const struct ck_cmd_target *target, const struct ck_cmd_row *row)
{
	return !target->has_step || ck_step_id_cmp(&target->id, &row->id) == 0;
}

static void print_head(const struct ck_cmd_facts *facts)
{
	const struct ck_claim *claim = &facts->claim;
	char opened[32];

	if (!facts->has_run)
		ck_cmd_line(stdout, "run in %s: %s", facts->dir,
			    facts->run_code == CK_ENOENT ? "it has no " CK_RUN_FILE
							 : facts->run_reason);
	else if (facts->run.complete)
		ck_cmd_line(stdout, "run %s in %s: complete at step %" PRIu64, facts->run.name,
			    facts->dir, facts->run.complete_step);
	else
		ck_cmd_line(stdout, "run %s in %s: not complete, %zu checkpoint%s", facts->run.name,
			    facts->dir, facts->nsteps, ck_plural(facts->nsteps));
	if (!facts->has_claim)
		return;
	ck_cmd_minute(claim->time, opened);
	if (*claim->job.job_id)
		ck_cmd_line(stdout,
			    "last opened by job %s, restart %" PRIu64
			    ", %s UTC, as generation %" PRIu64,
			    claim->job.job_id, claim->job.restart_count, opened, claim->generation);
	else
		ck_cmd_line(stdout,
			    "last opened by process %" PRIu64
			    " on %s, %s UTC, as generation %" PRIu64,
			    claim->pid, claim->host, opened, claim->generation);
}

static void print_reasons(const struct ck_cmd_target *target, const struct ck_cmd_facts *facts)
{
	for (size_t i = 0; i < facts->nrows; i++)
		if (facts->rows[i].reason && is_shown(target, &facts->rows[i]))
			ck_cmd_line(stdout, "step %" PRIu64 ": %s", facts->rows[i].id.step,
				    facts->rows[i].reason);
}

static void print_resume(const struct ck_cmd_facts *facts)
{
	uint64_t step = facts->row ? facts->row->id.step : 0;

	switch (facts->resume) {
	case CK_CMD_FRESH:
		ck_cmd_line(stdout, "a start begins afresh: no checkpoint yet");
		break;
	case CK_CMD_RESUMES:
		ck_cmd_line(stdout, "a start resumes from step %" PRIu64 " if its bytes verify",
			    step);
		break;
	case CK_CMD_FALLS_BACK:
		ck_cmd_line(stdout,
			    "a start falls back to step %" PRIu64
			    " if its bytes verify: what is newer is bad",
			    step);
		break;
	case CK_CMD_COMPLETE:
		ck_cmd_line(stdout, "a start has nothing to do: the run is complete");
		break;
	case CK_CMD_UNREAD:
		ck_cmd_line(stdout,
			    "a start tries step %" PRIu64
			    " first, which could not be read here: it is refused if it cannot read "
			    "it either, and takes no older one for that",
			    step);
		break;
	case CK_CMD_FAILS:
		ck_cmd_line(stdout, "a start fails: none of the %zu checkpoint%s is whole",
			    facts->nsteps, ck_plural(facts->nsteps));
		break;
	case CK_CMD_REFUSES:
		ck_cmd_line(stdout, "a start is refused: %s",
			    !facts->has_run ? "there is no usable " CK_RUN_FILE
			    : facts->nsteps == 0
				    ? "checkpoints were committed, and none is there now"
				    : "the newest whole checkpoint is of another run");
		break;
	}
}

static int print_run(struct ls *ls, const struct ck_cmd_target *target,
		     const struct ck_cmd_facts *facts, struct ck_error *err)
{
	struct ck_cmd_table table = {
		.columns = step_columns,
		.ncolumns = sizeof(step_columns) / sizeof(step_columns[0]),
	};
	int rc;

	if (target != ls->targets.items)
		fputc('\n', stdout);
	print_head(facts);
	for (size_t i = 0; i < facts->nrows; i++)
		if (is_shown(target, &facts->rows[i]))
			add_row(&table, &facts->rows[i]);
	rc = ck_cmd_table_print(&table, stdout, err);
	ck_cmd_table_fini(&table);
	print_reasons(target, facts);
	if (facts->held)
		ck_cmd_line(stdout, "the last start was held: %s", facts->held);
	if (!target->has_step)
		print_resume(facts);
	return rc;
}

/* --- several runs, one line each --- */

static const struct ck_cmd_column run_columns[] = {
	{"RUN", false},         {"CKPTS", true}, {"STEP", true},
	{"SAVED (UTC)", false}, {"SIZE", true},  {"STATE", false},
};

static const char *run_state(const struct ck_cmd_facts *facts)
{
	static const char *const names[] = {
		[CK_CMD_FRESH] = "no checkpoint yet",       [CK_CMD_RESUMES] = "ok",
		[CK_CMD_FALLS_BACK] = "newer ones bad",     [CK_CMD_COMPLETE] = "complete",
		[CK_CMD_FAILS] = "bad: none is whole",      [CK_CMD_REFUSES] = "bad: start refused",
		[CK_CMD_UNREAD] = "unknown: newest unread",
	};

	return names[facts->resume];
}

static void add_run(struct ls *ls, const struct ck_cmd_facts *facts)
{
	const struct ck_cmd_row *row = facts->row;
	char saved[32] = "-", size[16] = "-", step[32] = "-";

	if (row) {
		snprintf(step, sizeof(step), "%" PRIu64, row->id.step);
		ck_cmd_minute(row->created, saved);
		ck_format_bytes(row->bytes, size);
	}
	ck_cmd_table_add(&ls->summary, "%s", facts->dir);
	ck_cmd_table_add(&ls->summary, "%zu", facts->nsteps);
	ck_cmd_table_add(&ls->summary, "%s", step);
	ck_cmd_table_add(&ls->summary, "%s", saved);
	ck_cmd_table_add(&ls->summary, "%s", size);
	ck_cmd_table_add(&ls->summary, "%s", run_state(facts));
}

static void add_unread_run(struct ls *ls, const char *dir)
{
	ck_cmd_table_add(&ls->summary, "%s", dir);
	for (size_t i = 2; i < ls->summary.ncolumns; i++)
		ck_cmd_table_add(&ls->summary, "-");
	ck_cmd_table_add(&ls->summary, "unknown: unreadable");
}

/* --- for programs --- */

static void json_claim(struct ck_cmd_json *out, const struct ck_claim *claim)
{
	char name[CK_NAME_MAX];

	ck_cmd_json_open(out, "claim", '{');
	ck_cmd_json_number(out, "generation", claim->generation);
	ck_cmd_json_text(out, "cluster", claim->job.cluster);
	ck_cmd_json_text(out, "job_id", claim->job.job_id);
	ck_cmd_json_number(out, "restart_count", claim->job.restart_count);
	ck_cmd_json_text(out, "host", claim->host);
	ck_cmd_json_number(out, "pid", claim->pid);
	ck_cmd_json_time(out, "time", claim->time);
	ck_cmd_json_text(out, "resume", *claim->resume ? claim->resume : NULL);
	ck_cmd_json_text(out, "resumed",
			 strcmp(claim->resume, "fresh") != 0 && *claim->resume
				 ? ck_name_step(claim->resumed, name)
				 : NULL);
	ck_cmd_json_close(out, '}');
}

static void json_row(struct ck_cmd_json *out, const struct ck_cmd_row *row)
{
	bool saving = row->state == CK_CMD_SAVING || row->state == CK_CMD_LEFT_OVER;
	char name[CK_NAME_MAX];

	ck_cmd_json_open(out, NULL, '{');
	ck_cmd_json_text(out, "name", ck_cmd_row_name(row, name));
	ck_cmd_json_number(out, "step", row->id.step);
	ck_cmd_json_number(out, "generation", row->id.generation);
	ck_cmd_json_text(out, "state", ck_cmd_state_name(row->state));
	ck_cmd_json_text(out, "reason", row->reason);
	ck_cmd_json_flag(out, "pinned", row->pinned);
	if (row->described || saving)
		ck_cmd_json_time(out, saving ? "began" : "created", row->created);
	if (row->described) {
		ck_cmd_json_number(out, "world_size", row->world_size);
		ck_cmd_json_text(out, "save_id", row->save_id);
	}
	if (row->described || saving)
		ck_cmd_json_number(out, "files", row->files);
	if (row->described && !saving)
		ck_cmd_json_number(out, "bytes", row->bytes);
	ck_cmd_json_close(out, '}');
}

static void json_run_file(struct ck_cmd_json *out, const struct ck_run *run)
{
	ck_cmd_json_text(out, "name", run->name);
	ck_cmd_json_text(out, "run_id", run->run_id);
	ck_cmd_json_time(out, "created", run->created);
	ck_cmd_json_text(out, "cluster", run->cluster);
	ck_cmd_json_text(out, "job_id", run->job_id);
	ck_cmd_json_flag(out, "committed", run->committed);
	if (run->complete)
		ck_cmd_json_number(out, "complete_step", run->complete_step);
	else
		ck_cmd_json_null(out, "complete_step");
}

static void json_run(struct ls *ls, const struct ck_cmd_target *target,
		     const struct ck_cmd_facts *facts)
{
	static const char *const starts[] = {
		[CK_CMD_FRESH] = "fresh",          [CK_CMD_RESUMES] = "resumed",
		[CK_CMD_FALLS_BACK] = "fell-back", [CK_CMD_COMPLETE] = "complete",
		[CK_CMD_FAILS] = "fails",          [CK_CMD_REFUSES] = "refused",
		[CK_CMD_UNREAD] = "unknown",
	};
	struct ck_cmd_json *out = &ls->out;
	char name[CK_NAME_MAX];

	ck_cmd_json_open(out, NULL, '{');
	ck_cmd_json_text(out, "dir", facts->dir);
	if (facts->has_run)
		json_run_file(out, &facts->run);
	ck_cmd_json_text(out, "error", facts->run_reason);
	ck_cmd_json_text(out, "start", starts[facts->resume]);
	ck_cmd_json_text(out, "start_from", facts->row ? ck_name_step(facts->row->id, name) : NULL);
	if (facts->has_claim)
		json_claim(out, &facts->claim);
	else
		ck_cmd_json_null(out, "claim");
	ck_cmd_json_text(out, "held", facts->held);
	ck_cmd_json_open(out, "checkpoints", '[');
	for (size_t i = 0; i < facts->nrows; i++)
		if (is_shown(target, &facts->rows[i]))
			json_row(out, &facts->rows[i]);
	ck_cmd_json_close(out, ']');
	ck_cmd_json_close(out, '}');
}

/* --- the verb --- */

static void note_exit(struct ls *ls, enum ck_cmd_exit exit_code)
{
	ls->exit_code = ck_cmd_worse(ls->exit_code, exit_code);
}

static void list_run(struct ls *ls, const struct ck_cmd_target *target, bool summary)
{
	struct ck_error err = CK_ERROR_INIT;
	struct ck_cmd_facts facts;
	int rc = ck_cmd_look(ls->cmd->io, target->run, &ls->progress, &facts, &err);

	if (!rc && ck_cmd_interrupted()) {
		ck_cmd_facts_fini(&facts);
		return;
	}
	if (!rc) {
		ck_cmd_progress_clear(&ls->progress);
		if (ls->json)
			json_run(ls, target, &facts);
		else if (summary)
			add_run(ls, &facts);
		else
			rc = print_run(ls, target, &facts, &err);
		note_exit(ls, facts.unchecked ? CK_CMD_UNCHECKED : CK_CMD_FINE);
		ck_cmd_facts_fini(&facts);
	}
	if (ck_is_unseen(rc) && summary && !ls->json)
		add_unread_run(ls, target->run);
	note_exit(ls, ck_cmd_tell(ls->cmd, rc, &err));
}

/* Several runs in one table; a checkpoint that was named gets the table of its run. */
static bool is_summary(const struct ck_cmd_targets *targets)
{
	for (size_t i = 0; i < targets->count; i++)
		if (targets->items[i].has_step)
			return false;
	return targets->count > 1;
}

static void list_all(struct ls *ls)
{
	struct ck_error err = CK_ERROR_INIT;
	bool summary = is_summary(&ls->targets);
	int rc = 0;

	ck_cmd_progress_begin(&ls->progress, "ckpt ls", false, 0);
	ck_cmd_json_open(&ls->out, NULL, '{');
	ck_cmd_json_open(&ls->out, "runs", '[');
	for (size_t i = 0; i < ls->targets.count && !ck_cmd_interrupted(); i++)
		list_run(ls, &ls->targets.items[i], summary);
	ck_cmd_json_close(&ls->out, ']');
	ck_cmd_json_close(&ls->out, '}');
	ck_cmd_progress_end(&ls->progress);
	if (summary && !ls->json)
		rc = ck_cmd_table_print(&ls->summary, stdout, &err);
	if (!rc && ls->json)
		rc = ck_cmd_json_print(&ls->out, stdout, &err);
	note_exit(ls, ck_cmd_tell(ls->cmd, rc, &err));
	if (ck_cmd_interrupted()) {
		ck_cmd_complain(ls->cmd, "interrupted: the list is not complete");
		note_exit(ls, CK_CMD_INTERRUPTED);
	}
}

static void find_targets(struct ls *ls, int count, char **texts)
{
	struct ck_error err = CK_ERROR_INIT;
	int rc;

	for (int i = 0; i < count; i++) {
		rc = ck_cmd_targets_add(ls->cmd, texts[i], true, &ls->targets, &err);
		note_exit(ls, ck_cmd_tell(ls->cmd, rc, &err));
	}
	if (count == 0) {
		rc = ck_cmd_targets_default(ls->cmd, getenv(CK_ENV_DIR), &ls->targets, &err);
		note_exit(ls, ck_cmd_tell(ls->cmd, rc, &err));
	}
}

static int run_ls(struct ck_cmd *cmd, int argc, char **argv)
{
	static const struct option longs[] = {
		{"json", no_argument, NULL, 256},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct ls ls = {
		.cmd = cmd,
		.summary = {.columns = run_columns,
			    .ncolumns = sizeof(run_columns) / sizeof(run_columns[0])},
	};
	int option;

	while ((option = ck_cmd_getopt(cmd, argc, argv, ":h", longs)) != -1) {
		if (option == CK_CMD_OPT_BAD)
			return CK_CMD_USAGE;
		if (option == 'h')
			return ck_cmd_help(&ck_cmd_ls);
		ls.json = true;
	}
	find_targets(&ls, argc - optind, argv + optind);
	if (ls.targets.count || (ls.json && ls.exit_code != CK_CMD_USAGE) || ck_cmd_interrupted())
		list_all(&ls);
	ck_cmd_targets_fini(&ls.targets);
	ck_cmd_table_fini(&ls.summary);
	ck_buf_fini(&ls.out.text);
	return ls.exit_code;
}

const struct ck_cmd_verb ck_cmd_ls = {
	.name = "ls",
	.synopsis = "ls [--json] [RUN ...]",
	.summary = "list checkpoints, newest first, and what a start resumes from",
	.help = "RUN is a run directory, RUN@STEP, RUN@latest, a checkpoint's directory, or a\n"
		"directory that holds runs. Without one: $SLURM_CKPT_DIR, else the current\n"
		"directory. Several runs are listed in one line each.\n"
		"\n"
		"STATE is judged without reading the shards: ok means that the manifest parses "
		"and\n"
		"every file has its size. `ckpt verify` reads the bytes.\n"
		"\n"
		"  --json      for programs; the keys stand in ckpt(1)\n"
		"  -h, --help  this text\n"
		"\n"
		"Exit code: 0 listed (bad checkpoints too), 1 no such run, 2 usage,\n"
		"3 something could not be looked at, 130 interrupted\n",
	.run = run_ls,
};
