/* A checkpoint that a command works on. */
#include "cmd_source.h"

#include <fnmatch.h>

#include "parallel.h"
#include "verify.h"

#define THREADS_AUTO_MAX 16

int ck_cmd_threads(void)
{
	unsigned cpus = ck_parallel_cpus();

	return cpus > THREADS_AUTO_MAX ? THREADS_AUTO_MAX : (int)cpus;
}

/* The newest may be rotated away just now, for a newer one. */
static int open_target(const struct ck_io *io, struct ck_cmd_target *target, struct ck_source *out,
		       struct ck_error *err)
{
	int rc;

	do
		rc = ck_source_open(io, target->run, target->id, out, NULL, NULL, err);
	while (rc && ck_cmd_target_renew(io, target));
	return rc;
}

int ck_cmd_source_open(const struct ck_cmd *cmd, const char *text, struct ck_source *out,
		       struct ck_error *err)
{
	struct ck_cmd_targets targets = {.count = 0};
	int rc = ck_cmd_targets_add(cmd, text, false, &targets, err);

	if (!rc && !targets.items[0].has_step)
		rc = ck_fail(err, CK_EARG, "%s: name a checkpoint: RUN@STEP or RUN@latest", text);
	if (!rc)
		rc = open_target(cmd->io, &targets.items[0], out, err);
	ck_cmd_targets_fini(&targets);
	return rc;
}

enum ck_cmd_exit ck_cmd_source_verify(const struct ck_cmd *cmd, struct ck_source *source,
				      struct ck_cmd_progress *progress)
{
	enum ck_cmd_exit exit_code = CK_CMD_FINE;
	struct ck_error err = CK_ERROR_INIT;
	struct ck_report report;
	int rc = ck_verify_sealing(cmd->io, source->run, source->manifest.id, CK_LEVEL_SHA256,
				   ck_cmd_threads(), ck_cmd_progress_add, progress, &source->seals,
				   &report, &err);

	if (ck_cmd_interrupted()) {
		if (!rc)
			ck_report_fini(&report);
		return CK_CMD_INTERRUPTED;
	}
	if (rc)
		return ck_cmd_tell(cmd, rc, &err);
	ck_cmd_progress_clear(progress);
	for (size_t i = 0; i < report.count; i++) {
		const struct ck_finding *finding = &report.findings[i];

		if (finding->severity == CK_WARNING)
			continue;
		ck_cmd_complain(cmd, "%s", finding->text);
		exit_code = ck_cmd_worse(exit_code, ck_is_unseen(finding->code) ? CK_CMD_UNCHECKED
										: CK_CMD_BAD);
	}
	ck_report_fini(&report);
	return exit_code;
}

uint64_t ck_cmd_source_bytes(const struct ck_source *source)
{
	uint64_t total = 0;

	for (size_t f = 0; f < source->manifest.nfiles; f++)
		total += source->manifest.files[f].bytes;
	return total;
}

uint64_t ck_cmd_item_bytes(const struct ck_item *item)
{
	uint64_t volume = 0;

	ck_volume(item->ndim, item->shape, &volume);
	return volume * ck_dtype_size((int)item->dtype);
}

int ck_cmd_choice_add(const struct ck_cmd *cmd, const char *glob, struct ck_cmd_choice *choice)
{
	if (choice->count == CK_CMD_GLOBS_MAX)
		return ck_cmd_usage(cmd, "--items: more than %d", CK_CMD_GLOBS_MAX);
	choice->globs[choice->count++] = glob;
	return CK_CMD_FINE;
}

bool ck_cmd_chosen(const struct ck_cmd_choice *choice, const struct ck_item *item)
{
	for (size_t i = 0; i < choice->count; i++)
		if (fnmatch(choice->globs[i], item->name, 0) == 0)
			return true;
	return choice->count == 0;
}

int ck_cmd_choice_fail(const struct ck_cmd_choice *choice, const char *where, const char *what,
		       struct ck_error *err)
{
	struct ck_buf by = CK_BUF_INIT;
	int rc;

	for (size_t i = 0; i < choice->count; i++)
		ck_buf_addf(&by, "%s'%s'", i ? ", " : " by ", choice->globs[i]);
	rc = ck_buf_check(&by, err);
	if (!rc)
		rc = ck_fail(err, CK_ENOENT, "%s: no %s is chosen%s", where, what,
			     by.data ? by.data : "");
	ck_buf_fini(&by);
	return rc;
}
