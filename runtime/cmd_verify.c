/* `ckpt verify`: is each checkpoint what its manifest says? */
#include "cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "catalog.h"
#include "cmd_source.h"
#include "parse.h"
#include "verify.h"

#define THREADS_MAX 256

enum outcome { GOOD = 0, BAD, UNCHECKED, GONE, INTERRUPTED, OUTCOMES };

struct verify {
	struct ck_cmd *cmd;
	bool json;
	enum ck_level level;
	int threads;
	struct ck_cmd_targets steps; /* each has a step */
	struct ck_cmd_progress progress;
	struct ck_cmd_json out;
	size_t counts[OUTCOMES];
	uint64_t bytes; /* read */
	double seconds;
	enum ck_cmd_exit exit_code;
};

/* One checkpoint's result. */
struct verdict {
	enum outcome outcome;
	struct ck_report report;
	struct ck_error err; /* of what is in no report */
	size_t nbad, nunseen, nwarnings;
	uint64_t bytes; /* read */
	double seconds;
};

static const char *const level_names[] = {
	[CK_LEVEL_SIZED] = "sized",
	[CK_LEVEL_CRC32] = "crc32",
	[CK_LEVEL_SHA256] = "sha256",
};

static const char *const outcome_names[] = {
	[GOOD] = "ok",
	[BAD] = "bad",
	[UNCHECKED] = "unknown",
	[GONE] = "gone",
	[INTERRUPTED] = "interrupted",
};

static void note_exit(struct verify *v, enum ck_cmd_exit exit_code)
{
	v->exit_code = ck_cmd_worse(v->exit_code, exit_code);
}

/* --- judging one checkpoint --- */

static enum outcome judge(const struct ck_report *report, struct verdict *out)
{
	for (size_t i = 0; i < report->count; i++) {
		const struct ck_finding *finding = &report->findings[i];

		if (finding->severity == CK_WARNING)
			out->nwarnings++;
		else if (ck_is_unseen(finding->code))
			out->nunseen++;
		else
			out->nbad++;
	}
	return out->nbad ? BAD : out->nunseen ? UNCHECKED : GOOD;
}

static void check(struct verify *v, const struct ck_cmd_target *step, struct verdict *out)
{
	const struct ck_io *io = v->cmd->io;
	uint64_t before = v->progress.done;
	double started = ck_cmd_clock();
	int rc = ck_verify(io, step->run, step->id, v->level, v->threads, ck_cmd_progress_add,
			   &v->progress, &out->report, &out->err);

	out->seconds = ck_cmd_clock() - started;
	out->bytes = v->progress.done - before;
	if (rc)
		out->outcome = ck_is_unseen(rc) ? UNCHECKED : BAD;
	else
		out->outcome = judge(&out->report, out);
	if (out->outcome == UNCHECKED && ck_cmd_interrupted())
		out->outcome = INTERRUPTED;
	else if (out->outcome != GOOD && ck_cmd_target_is_gone(io, step))
		/* Rotation takes old ones away while we read them: that is not damage. */
		out->outcome = GONE;
}

/* --- telling it --- */

/* ": 1 bad, 2 warnings", or nothing */
static void print_counts(const struct verdict *verdict, struct ck_buf *text)
{
	const size_t counts[] = {verdict->nbad, verdict->nunseen, verdict->nwarnings};
	static const char *const names[] = {"bad", "not checked", "warning"};

	for (size_t i = 0; i < 3; i++) {
		if (counts[i] == 0)
			continue;
		ck_buf_addf(text, "%s %zu %s%s", text->len ? "," : ":", counts[i], names[i],
			    i == 2 ? ck_plural(counts[i]) : "");
	}
}

/* "sha256 of 1.5 GiB in 2.1 s (730 MiB/s)" */
static void print_work(const struct verify *v, uint64_t bytes, double seconds, char *text,
		       size_t size)
{
	char amount[16], took[16], rate[16];

	ck_format_seconds(seconds, took);
	if (v->level == CK_LEVEL_SIZED || bytes == 0)
		snprintf(text, size, "headers and sizes in %s", took);
	else
		snprintf(text, size, "%s of %s in %s (%s/s)", level_names[v->level],
			 ck_format_bytes(bytes, amount), took,
			 ck_format_bytes((uint64_t)((double)bytes / (seconds > 0 ? seconds : 1)),
					 rate));
}

/* What an interrupt cut short is no finding. */
static bool is_told(const struct ck_finding *finding)
{
	return finding->severity == CK_WARNING || !ck_is_unseen(finding->code) ||
	       !ck_cmd_interrupted();
}

static const char *finding_name(const struct ck_finding *finding)
{
	if (finding->severity == CK_WARNING)
		return "warning";
	return ck_is_unseen(finding->code) ? "not checked" : "bad";
}

static void print_findings(const struct verdict *verdict)
{
	for (size_t i = 0; i < verdict->report.count; i++)
		if (is_told(&verdict->report.findings[i]))
			ck_cmd_line(stdout, "     %s: %s",
				    finding_name(&verdict->report.findings[i]),
				    verdict->report.findings[i].text);
	if (verdict->err.code)
		ck_cmd_line(stdout, "     %s: %s",
			    ck_is_unseen(verdict->err.code) ? "not checked" : "bad",
			    verdict->err.text);
}

static void print_verdict(const struct verify *v, const char *path, const struct verdict *verdict)
{
	static const char *const heads[] = {
		[GOOD] = "ok ", [BAD] = "BAD",         [UNCHECKED] = "???",
		[GONE] = "-- ", [INTERRUPTED] = "???",
	};
	const struct ck_report *report = &verdict->report;
	struct ck_buf counts = CK_BUF_INIT;
	char work[96], bytes[16];

	if (verdict->outcome == GONE || verdict->outcome == INTERRUPTED) {
		ck_cmd_line(stdout, "%s  %s: %s", heads[verdict->outcome], path,
			    verdict->outcome == GONE ? "gone, removed meanwhile" : "interrupted");
		return;
	}
	print_counts(verdict, &counts);
	print_work(v, verdict->bytes, verdict->seconds, work, sizeof(work));
	if (report->nfiles)
		ck_cmd_line(stdout, "%s  %s: %" PRIu32 " rank%s, %" PRIu64 " file%s, %s, %s%s",
			    heads[verdict->outcome], path, report->world_size,
			    ck_plural(report->world_size), report->nfiles,
			    ck_plural(report->nfiles), ck_format_bytes(report->bytes, bytes), work,
			    counts.data ? counts.data : "");
	else
		ck_cmd_line(stdout, "%s  %s%s", heads[verdict->outcome], path,
			    counts.data ? counts.data : "");
	ck_buf_fini(&counts);
	print_findings(verdict);
}

static void json_findings(struct ck_cmd_json *out, const struct verdict *verdict)
{
	ck_cmd_json_open(out, "findings", '[');
	for (size_t i = 0; i < verdict->report.count; i++) {
		const struct ck_finding *finding = &verdict->report.findings[i];

		if (!is_told(finding))
			continue;
		ck_cmd_json_open(out, NULL, '{');
		ck_cmd_json_text(out, "severity", finding_name(finding));
		ck_cmd_json_text(out, "code",
				 finding->severity == CK_WARNING ? NULL
								 : ck_code_name(finding->code));
		ck_cmd_json_text(out, "text", finding->text);
		ck_cmd_json_close(out, '}');
	}
	ck_cmd_json_close(out, ']');
}

static void json_verdict(struct ck_cmd_json *out, const char *path,
			 const struct ck_cmd_target *step, const struct verdict *verdict)
{
	ck_cmd_json_open(out, NULL, '{');
	ck_cmd_json_text(out, "path", path);
	ck_cmd_json_number(out, "step", step->id.step);
	ck_cmd_json_number(out, "generation", step->id.generation);
	ck_cmd_json_text(out, "state", outcome_names[verdict->outcome]);
	ck_cmd_json_text(out, "error", verdict->err.code ? verdict->err.text : NULL);
	ck_cmd_json_number(out, "world_size", verdict->report.world_size);
	ck_cmd_json_number(out, "files", verdict->report.nfiles);
	ck_cmd_json_number(out, "bytes", verdict->report.bytes);
	ck_cmd_json_number(out, "bytes_read", verdict->bytes);
	ck_cmd_json_seconds(out, "seconds", verdict->seconds);
	json_findings(out, verdict);
	ck_cmd_json_close(out, '}');
}

/* --- all of them --- */

/* What was the latest is looked up again when it is gone: an answer is wanted, not that there is none. */
static void check_present(struct verify *v, struct ck_cmd_target *step, struct verdict *out)
{
	check(v, step, out);
	while (out->outcome == GONE && ck_cmd_target_renew(v->cmd->io, step)) {
		ck_report_fini(&out->report);
		*out = (struct verdict){.outcome = GOOD, .err = CK_ERROR_INIT};
		check(v, step, out);
	}
}

static void verify_one(struct verify *v, struct ck_cmd_target *step)
{
	static const enum ck_cmd_exit exits[] = {
		[GOOD] = CK_CMD_FINE,
		[BAD] = CK_CMD_BAD,
		[UNCHECKED] = CK_CMD_UNCHECKED,
		[GONE] = CK_CMD_FINE,
		[INTERRUPTED] = CK_CMD_INTERRUPTED,
	};
	struct verdict verdict = {.outcome = GOOD, .err = CK_ERROR_INIT};
	char path[PATH_MAX], name[CK_NAME_MAX];

	check_present(v, step, &verdict);
	if (!ck_path_join(path, step->run, ck_name_step(step->id, name)))
		snprintf(path, sizeof(path), "%s", name);
	v->counts[verdict.outcome]++;
	v->bytes += verdict.bytes;
	v->seconds += verdict.seconds;
	note_exit(v, exits[verdict.outcome]);
	/* Of a run, rotation takes what it likes; who asks for this one has no answer. */
	if (verdict.outcome == GONE && step->named)
		note_exit(v, CK_CMD_UNCHECKED);
	ck_cmd_progress_clear(&v->progress);
	if (v->json)
		json_verdict(&v->out, path, step, &verdict);
	else
		print_verdict(v, path, &verdict);
	fflush(stdout);
	ck_report_fini(&verdict.report);
}

/* What the bar counts towards. */
static uint64_t total_bytes(const struct verify *v)
{
	uint64_t total = 0;

	if (v->level == CK_LEVEL_SIZED || !ck_cmd_progress_wanted())
		return 0;
	for (size_t i = 0; i < v->steps.count; i++) {
		struct ck_manifest m;

		if (ck_step_load(v->cmd->io, v->steps.items[i].run, v->steps.items[i].id, &m, NULL))
			continue;
		for (size_t f = 0; f < m.nfiles; f++)
			total += m.files[f].bytes;
		ck_manifest_fini(&m);
	}
	return total;
}

static void print_sum(const struct verify *v)
{
	char work[96];

	if (v->steps.count < 2)
		return;
	print_work(v, v->bytes, v->seconds, work, sizeof(work));
	ck_cmd_line(stdout, "%zu checkpoints: %zu ok, %zu bad, %zu not checked, %s",
		    v->steps.count - v->counts[GONE], v->counts[GOOD], v->counts[BAD],
		    v->steps.count - v->counts[GONE] - v->counts[GOOD] - v->counts[BAD], work);
}

static void end_json(struct verify *v)
{
	struct ck_error err = CK_ERROR_INIT;

	ck_cmd_json_close(&v->out, ']');
	ck_cmd_json_text(&v->out, "level", level_names[v->level]);
	ck_cmd_json_number(&v->out, "ok", v->counts[GOOD]);
	ck_cmd_json_number(&v->out, "bad", v->counts[BAD]);
	ck_cmd_json_number(&v->out, "unknown",
			   v->steps.count - v->counts[GONE] - v->counts[GOOD] - v->counts[BAD]);
	ck_cmd_json_flag(&v->out, "interrupted", ck_cmd_interrupted());
	ck_cmd_json_close(&v->out, '}');
	note_exit(v, ck_cmd_tell(v->cmd, ck_cmd_json_print(&v->out, stdout, &err), &err));
}

static void verify_all(struct verify *v)
{
	uint64_t total = total_bytes(v);

	ck_cmd_progress_begin(&v->progress, "ckpt verify", true, total);
	ck_cmd_json_open(&v->out, NULL, '{');
	ck_cmd_json_open(&v->out, "checkpoints", '[');
	for (size_t i = 0; i < v->steps.count && !ck_cmd_interrupted(); i++)
		verify_one(v, &v->steps.items[i]);
	ck_cmd_progress_end(&v->progress);
	if (v->json)
		end_json(v);
	else
		print_sum(v);
	if (ck_cmd_interrupted()) {
		ck_cmd_complain(v->cmd, "interrupted: %zu of %zu checkpoints checked, %zu bad",
				v->counts[GOOD] + v->counts[BAD], v->steps.count, v->counts[BAD]);
		note_exit(v, CK_CMD_INTERRUPTED);
	}
}

/* --- the command line --- */

static int add_run_steps(struct verify *v, const char *run, struct ck_error *err)
{
	struct ck_catalog catalog;
	int rc = ck_catalog_load(v->cmd->io, run, &catalog, err);

	if (rc)
		return rc;
	if (catalog.count == 0)
		rc = ck_fail(err, CK_ENOENT, "%s: it has no checkpoint", run);
	for (size_t i = 0; i < catalog.count && !rc; i++)
		rc = ck_cmd_targets_push(&v->steps, run, &catalog.steps[i], err);
	ck_catalog_fini(&catalog);
	return rc;
}

static int add_steps(struct verify *v, const char *text, struct ck_error *err)
{
	struct ck_cmd_targets found = {.count = 0};
	int rc = ck_cmd_targets_add(v->cmd, text, false, &found, err);

	if (!rc && found.items[0].has_step) {
		rc = ck_cmd_targets_push(&v->steps, found.items[0].run, &found.items[0].id, err);
		if (!rc) {
			v->steps.items[v->steps.count - 1].renewals = found.items[0].renewals;
			v->steps.items[v->steps.count - 1].named = true;
		}
	} else if (!rc) {
		rc = add_run_steps(v, found.items[0].run, err);
	}
	ck_cmd_targets_fini(&found);
	return rc;
}

static int parse_level(struct verify *v, const char *text)
{
	size_t count = sizeof(level_names) / sizeof(level_names[0]);
	const char *closest = ck_cmd_closest(text, level_names, count);

	for (size_t i = 0; i < count; i++) {
		if (strcmp(text, level_names[i]) == 0) {
			v->level = (enum ck_level)i;
			return CK_CMD_FINE;
		}
	}
	if (closest)
		return ck_cmd_usage(v->cmd, "--level: %s: did you mean '%s'?", text, closest);
	return ck_cmd_usage(v->cmd, "--level: %s: sized, crc32 or sha256 is expected", text);
}

static int parse_threads(struct verify *v, const char *text)
{
	struct ck_error err = CK_ERROR_INIT;
	uint64_t threads;

	if (ck_parse_u64("--threads", text, 1, THREADS_MAX, &threads, &err))
		return ck_cmd_usage(v->cmd, "%s", err.text);
	v->threads = (int)threads;
	return CK_CMD_FINE;
}

static int run_verify(struct ck_cmd *cmd, int argc, char **argv)
{
	static const struct option longs[] = {
		{"level", required_argument, NULL, 'l'},
		{"threads", required_argument, NULL, 'j'},
		{"json", no_argument, NULL, 256},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct verify v = {.cmd = cmd, .level = CK_LEVEL_SHA256, .threads = ck_cmd_threads()};
	struct ck_error err = CK_ERROR_INIT;
	int option, rc = CK_CMD_FINE;

	while (rc == CK_CMD_FINE &&
	       (option = ck_cmd_getopt(cmd, argc, argv, ":hj:l:", longs)) != -1) {
		if (option == 'h')
			return ck_cmd_help(&ck_cmd_verify);
		if (option == CK_CMD_OPT_BAD)
			rc = CK_CMD_USAGE;
		else if (option == 'l')
			rc = parse_level(&v, optarg);
		else if (option == 'j')
			rc = parse_threads(&v, optarg);
		else
			v.json = true;
	}
	if (rc != CK_CMD_FINE)
		return rc;
	if (optind == argc)
		return ck_cmd_usage(cmd, "nothing to verify: name a RUN or a checkpoint");
	for (; optind < argc; optind++) {
		rc = add_steps(&v, argv[optind], &err);
		note_exit(&v, ck_cmd_tell(cmd, rc, &err));
	}
	if (v.steps.count || v.json || ck_cmd_interrupted())
		verify_all(&v);
	ck_cmd_targets_fini(&v.steps);
	ck_buf_fini(&v.out.text);
	return v.exit_code;
}

const struct ck_cmd_verb ck_cmd_verify = {
	.name = "verify",
	.synopsis = "verify [--level LEVEL] [-j N] [--json] RUN ...",
	.summary = "read checkpoints and check that they are what their manifests say",
	.help = "RUN means all of its checkpoints; RUN@STEP, RUN@latest or a checkpoint's\n"
		"directory means one. Manifest, headers, tiling and SHA256SUMS are always "
		"checked.\n"
		"\n"
		"  -l, --level LEVEL  which bytes are hashed: sized (none), crc32, sha256 "
		"(default)\n"
		"  -j, --threads N    hash so many files at a time (default: one per CPU, at most "
		"16)\n"
		"      --json         for programs; the keys stand in ckpt(1)\n"
		"  -h, --help         this text\n"
		"\n"
		"Exit code: 0 all are good, 1 one is bad or there is none, 2 usage,\n"
		"3 something could not be read, or a checkpoint that was named is gone meanwhile,\n"
		"130 interrupted\n",
	.run = run_verify,
};
