#include "verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog.h"
#include "dirfile.h"
#include "json.h"
#include "sums.h"
#include "verify_impl.h"

/* --- findings --- */

static void fini_findings(struct ck_finding *findings, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(findings[i].text);
	free(findings);
}

void ck_report_fini(struct ck_report *report)
{
	fini_findings(report->findings, report->count);
	*report = (struct ck_report){.findings = NULL};
}

/* Room for one more: the capacity is the next power of two. */
static struct ck_finding *next_finding(struct ck_report *report)
{
	size_t count = report->count;
	struct ck_finding *grown;

	if ((count & (count - 1)) == 0) {
		grown = reallocarray(report->findings, count ? 2 * count : 1, sizeof(*grown));
		if (!grown)
			return NULL;
		report->findings = grown;
	}
	return &report->findings[count];
}

static void add_text(struct ck_findings *findings, enum ck_severity severity, int code, char *text)
{
	struct ck_finding *finding = text ? next_finding(&findings->report) : NULL;

	if (!finding) {
		free(text);
		findings->failed = true;
		return;
	}
	*finding = (struct ck_finding){.severity = severity, .code = code, .text = text};
	findings->report.count++;
	findings->report.nbad += severity == CK_BAD;
}

void ck_finding_add(struct ck_findings *findings, enum ck_severity severity, int code,
		    const char *fmt, ...)
{
	va_list args;
	char *text;

	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		text = NULL;
	va_end(args);
	add_text(findings, severity, code, text);
}

void ck_finding_error(struct ck_findings *findings, const struct ck_error *why)
{
	if (why->code == CK_ENOMEM)
		findings->failed = true;
	else
		ck_finding_add(findings, CK_BAD, why->code, "%s", why->text);
}

static void move_findings(struct ck_findings *to, struct ck_findings *from)
{
	for (size_t i = 0; i < from->report.count; i++) {
		struct ck_finding *finding = &from->report.findings[i];

		add_text(to, finding->severity, finding->code, finding->text);
	}
	to->failed = to->failed || from->failed;
	free(from->report.findings);
	from->report = (struct ck_report){.findings = NULL};
}

/* --- the directory --- */

static void check_strays(struct ck_verification *v)
{
	struct ck_error err = CK_ERROR_INIT;
	char shown[CK_JSON_SHOW];
	struct ck_names names;
	int rc;

	rc = ck_io_list(v->io, v->step, &names, &err);
	if (rc) {
		ck_finding_error(&v->findings, &err);
		return;
	}
	for (size_t i = 0; i < names.count; i++) {
		if (ck_step_has_name(v->manifest, names.names[i]))
			continue;
		ck_json_show(shown, names.names[i]);
		if (ck_is_safetensors(names.names[i]))
			ck_finding_add(
				&v->findings, CK_BAD, CK_EFORMAT,
				"%s/%s: not in the manifest, but other readers would load it",
				v->step, shown);
		else
			ck_finding_add(&v->findings, CK_WARNING, CK_OK,
				       "%s/%s: not in the manifest", v->step, shown);
	}
	ck_names_fini(&names);
}

/* --- the whole --- */

/* 0; CK_ENOENT when there is no such step. */
static int look_for_step(const struct ck_io *io, const char *dir, struct ck_step_id id,
			 char step[static PATH_MAX], struct ck_error *err)
{
	char name[CK_NAME_MAX];
	struct stat st;
	int rc;

	rc = ck_dirfile_path(step, dir, ck_name_step(id, name), err);
	if (rc)
		return rc;
	if (io->ops->lstat(io, step, &st) < 0)
		return ck_fail_errno(err, errno, "%s", step);
	return 0;
}

/*
 * Findings of the files in their order, whichever thread made them. Returns whether all blocks are
 * known.
 */
static bool gather_results(struct ck_verification *v)
{
	bool parsed = true;

	for (size_t i = 0; i < v->manifest->nfiles; i++) {
		struct ck_file_result *result = &v->results[i];

		move_findings(&v->findings, &result->findings);
		v->findings.failed |= result->seen.failed || result->coords.failed;
		parsed = parsed && result->parsed;
	}
	return parsed && !v->findings.failed;
}

static void fini_results(struct ck_verification *v)
{
	for (size_t i = 0; v->results && i < v->manifest->nfiles; i++) {
		ck_buf_fini(&v->results[i].seen);
		ck_buf_fini(&v->results[i].coords);
	}
	free(v->results);
}

static int verify_loaded(struct ck_verification *v, const struct ck_buf *manifest_text, int threads,
			 struct ck_error *err)
{
	const struct ck_manifest *manifest = v->manifest;
	struct ck_report *report = &v->findings.report;
	struct ck_error why = CK_ERROR_INIT;
	int rc = 0;

	report->nfiles = manifest->nfiles;
	report->world_size = manifest->world_size;
	for (size_t i = 0; i < manifest->nfiles; i++)
		report->bytes += manifest->files[i].bytes;
	check_strays(v);
	if (ck_sums_check(v->io, v->step, manifest, manifest_text, &why))
		ck_finding_error(&v->findings, &why);
	v->results = calloc(manifest->nfiles, sizeof(*v->results));
	if (!v->results)
		return ck_fail_nomem(err, manifest->nfiles * sizeof(*v->results));
	ck_verify_files(v, threads);
	/* With a header missing, holes are certain and say nothing new. */
	if (gather_results(v))
		rc = ck_verify_items(v, err);
	fini_results(v);
	return rc;
}

/* Is it the manifest that the caller goes by? Without one, any is. */
static int check_same_manifest(const struct ck_verification *v, const struct ck_buf *text,
			       struct ck_error *err)
{
	char sha256[CK_SHA256_HEX + 1];
	int rc = v->seals ? ck_sha256_hex(text->data, text->len, sha256, err) : 0;

	if (rc || !v->seals || strcmp(sha256, v->seals->manifest_sha256) == 0)
		return rc;
	return ck_fail(err, CK_EIO, "%s/" CK_MANIFEST_FILE ": two reads of it differ", v->step);
}

int ck_verify_sealing(const struct ck_io *io, const char *dir, struct ck_step_id id,
		      enum ck_level level, int threads, ck_progress progress, void *progress_arg,
		      struct ck_seals *seals, struct ck_report *out, struct ck_error *err)
{
	struct ck_verification v = {
		.io = io,
		.level = level,
		.progress = progress,
		.progress_arg = progress_arg,
		.seals = seals,
	};
	struct ck_buf text = CK_BUF_INIT;
	struct ck_manifest manifest = {0};
	struct ck_error why = CK_ERROR_INIT;
	int rc;

	rc = look_for_step(io, dir, id, v.step, err);
	if (rc)
		return rc;
	rc = ck_step_read(io, dir, id, &manifest, &text, &why);
	if (!rc)
		rc = check_same_manifest(&v, &text, &why);
	if (!rc) {
		v.manifest = &manifest;
		rc = verify_loaded(&v, &text, threads, err);
	} else {
		ck_finding_error(&v.findings, &why);
		rc = 0;
	}
	ck_manifest_fini(&manifest);
	ck_buf_fini(&text);
	if (!rc && v.findings.failed)
		rc = ck_fail(err, CK_ENOMEM, "%s: out of memory", v.step);
	if (rc)
		ck_report_fini(&v.findings.report);
	else
		*out = v.findings.report;
	return rc;
}

int ck_verify(const struct ck_io *io, const char *dir, struct ck_step_id id, enum ck_level level,
	      int threads, ck_progress progress, void *progress_arg, struct ck_report *out,
	      struct ck_error *err)
{
	return ck_verify_sealing(io, dir, id, level, threads, progress, progress_arg, NULL, out,
				 err);
}
