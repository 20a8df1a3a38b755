#include "start.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "catalog.h"
#include "env.h"
#include "trust.h"

static int make_name(struct ck_start *start, struct ck_error *err)
{
	char name[sizeof(start->cluster) + 32];

	if (ck_opts_has(start->opts, CK_OPT_NAME)) {
		memcpy(start->name, start->opts->name, sizeof(start->name));
		return 0;
	}
	if (start->array_job)
		snprintf(name, sizeof(name), "%s-%u_%u", start->cluster, start->array_job,
			 start->array_task);
	else
		snprintf(name, sizeof(name), "%s-%u", start->cluster, start->job_id);
	if (ck_parse_run_name("run name", name, err))
		return CK_EARG;
	strcpy(start->name, name); /* it is a run's name, so it fits */
	return 0;
}

/* mkdir -p, for the user alone below a site's root=, where other users can look in. */
int ck_start_make_base(const struct ck_io *io, const char *dir, bool private_base,
		       struct ck_error *err)
{
	char path[PATH_MAX];
	size_t len = strlen(dir);

	if (len >= sizeof(path))
		return ck_fail(err, CK_EARG, "%.80s...: the path is too long", dir);
	memcpy(path, dir, len + 1);
	for (size_t i = 1; i <= len; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		path[i] = '\0';
		/* What exists may answer EROFS or EACCES too: what comes after tells. */
		if (io->ops->mkdir(io, path, private_base ? 0700 : 0777) && errno == ENOSPC)
			return ck_fail_errno(err, errno, "%s: mkdir", path);
		path[i] = dir[i];
	}
	return 0;
}

/*
 * A run that has not been there before is no loss of state when the run of the whole job, beside
 * it, is there: then the file system is mounted and the step simply had not begun yet.
 */
static bool is_new_beside(const struct ck_io *io, const struct ck_start *start)
{
	size_t base = strlen(start->base);
	struct ck_run run;

	return start->job_run[0] && strcmp(start->job_run, start->run) != 0 &&
	       strncmp(start->job_run, start->base, base) == 0 && start->job_run[base] == '/' &&
	       !strchr(start->job_run + base + 1, '/') &&
	       ck_run_load(io, start->job_run, &run, NULL) == 0;
}

/*
 * --ckpt-dir may differ from start to start, which is no way to go on: runs/$(date +%s). The run of the
 * start before is looked for in the directories beside this one.
 */
static bool find_former(const struct ck_io *io, const struct ck_start *start,
			char former[static PATH_MAX])
{
	char parent[PATH_MAX], base[PATH_MAX], job_id[16], *slash;
	struct ck_names names = {NULL, 0};
	bool found = false;
	struct ck_run run;

	snprintf(parent, sizeof(parent), "%s", start->base);
	slash = strrchr(parent, '/');
	if (!slash || slash == parent)
		return false;
	*slash = '\0';
	snprintf(job_id, sizeof(job_id), "%" PRIu32, start->job_id);
	if (ck_io_list(io, parent, &names, NULL))
		return false;
	for (size_t i = 0; i < names.count && !found; i++)
		found = names.names[i][0] != '.' && ck_path_join(base, parent, names.names[i]) &&
			ck_path_join(former, base, start->name) &&
			ck_run_load(io, former, &run, NULL) == 0 &&
			strcmp(run.job_id, job_id) == 0 && strcmp(run.cluster, start->cluster) == 0;
	ck_names_fini(&names);
	return found;
}

static int refuse_lost(const struct ck_io *io, struct ck_start *start, bool missing,
		       struct ck_error *err)
{
	char former[PATH_MAX];

	start->lost_run = true;
	if (missing && find_former(io, start, former))
		return ck_fail(err, CK_EREFUSED,
			       "this job has run before, %s is missing: its run is %s; --ckpt-dir "
			       "has to name the same directory at each start",
			       start->run, former);
	return ck_fail(err, CK_EREFUSED,
		       "this job has run before, %s %s: is the file system mounted? To start over, "
		       "create the empty directory",
		       start->run, missing ? "is missing" : "has no run.json");
}

/* There is no run.json. May one be made? */
static int may_create(const struct ck_io *io, struct ck_start *start, struct ck_error *err)
{
	struct ck_names names = {NULL, 0};
	size_t count;
	int rc;

	if (start->restarts == 0 || start->first)
		return 0;
	rc = ck_io_list(io, start->run, &names, err);
	count = names.count;
	ck_names_fini(&names);
	if (rc && rc != CK_ENOENT)
		return rc;
	if ((rc == 0 && count == 0) || (rc == CK_ENOENT && is_new_beside(io, start)))
		return 0;
	return refuse_lost(io, start, rc != 0, err);
}

static int check_owner(const struct ck_start *start, const struct ck_run *run, struct ck_error *err)
{
	char job_id[16], then[32], now[32];

	snprintf(job_id, sizeof(job_id), "%" PRIu32, start->job_id);
	if (strcmp(run->cluster, start->cluster) != 0 || strcmp(run->job_id, job_id) != 0 ||
	    run->submit_time == 0 || start->submit == 0 || run->submit_time == start->submit)
		return 0;
	return ck_fail(err, CK_EREFUSED,
		       "%s: belongs to another job %s, submitted %s; this one was submitted %s. "
		       "To continue that run, give it a name: --ckpt-name=%s",
		       start->run, job_id, ck_format_time(run->submit_time, then),
		       ck_format_time(start->submit, now), start->name);
}

static int check_trust(const struct ck_io *io, const struct ck_start *start, struct ck_error *err)
{
	struct ck_trust trust;
	int rc = 0;

	ck_trust_init(&trust, start->shared);
	if (start->private_base)
		rc = ck_trust_path(io, &trust, start->base, start->literal, err);
	return rc ? rc : ck_trust_run(io, &trust, start->run, err);
}

static int find_or_make(const struct ck_io *io, struct ck_start *start, struct ck_run *run,
			struct ck_error *err)
{
	int rc = check_trust(io, start, err);

	if (!rc)
		rc = ck_run_load(io, start->run, run, err);
	if (rc != CK_ENOENT)
		return rc;
	rc = may_create(io, start, err);
	if (!rc && start->private_base)
		rc = ck_start_make_base(io, start->base, true, err);
	/* Somebody may have been faster. */
	if (!rc)
		rc = check_trust(io, start, err);
	if (rc)
		return rc;
	*run = (struct ck_run){.submit_time = start->submit};
	snprintf(run->name, sizeof(run->name), "%s", start->name);
	snprintf(run->cluster, sizeof(run->cluster), "%s", start->cluster);
	snprintf(run->job_id, sizeof(run->job_id), "%" PRIu32, start->job_id);
	return ck_run_create(io, start->run, run, err);
}

int ck_start_open(const struct ck_io *io, struct ck_start *start, struct ck_error *err)
{
	struct ck_catalog catalog = {NULL, 0};
	struct ck_run run;
	int rc;

	rc = make_name(start, err);
	if (!rc && !ck_path_join(start->run, start->base, start->name))
		rc = ck_fail(err, CK_EARG, "%.80s...: the path is too long", start->base);
	if (ck_token_is_unspent(io, &start->token))
		start->first = true;
	if (!rc)
		rc = find_or_make(io, start, &run, err);
	/* Whoever gave the name, by hand, wants that run, whichever job made it. */
	if (!rc && !ck_opts_has(start->opts, CK_OPT_NAME))
		rc = check_owner(start, &run, err);
	if (!rc)
		rc = ck_catalog_load(io, start->run, &catalog, err);
	if (rc)
		return rc;
	ck_token_spend(io, &start->token);
	memcpy(start->run_id, run.run_id, sizeof(start->run_id));
	start->has_resume = catalog.count > 0;
	if (start->has_resume)
		start->resume = catalog.steps[0];
	ck_catalog_fini(&catalog);
	return 0;
}

char *ck_start_seal(const struct ck_start *start, char out[static CK_SEAL_BYTES])
{
	snprintf(out, CK_SEAL_BYTES, "%s/%" PRIu32 "/%" PRIu32, start->cluster, start->job_id,
		 start->restarts);
	return out;
}

struct setter {
	ck_start_set *set;
	void *arg;
	int rc;
};

static void set(struct setter *s, const char *name, const char *value)
{
	if (!s->rc)
		s->rc = s->set(s->arg, name, value);
}

static void set_number(struct setter *s, const char *name, bool present, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	set(s, name, present ? text : NULL);
}

static void set_choices(struct setter *s, const struct ck_opts *opts)
{
	char text[32];

	set(s, CK_ENV_RESUME_MODE,
	    ck_opts_has(opts, CK_OPT_RESUME) ? ck_opts_resume_text(&opts->resume, text) : NULL);
	set(s, CK_ENV_FROM, ck_opts_has(opts, CK_OPT_FROM) ? opts->from : NULL);
	set(s, CK_ENV_TAKEOVER, opts->takeover ? "1" : NULL);
	set(s, CK_ENV_VERIFY, ck_opts_has(opts, CK_OPT_VERIFY) ? opts->verify : NULL);
	set(s, CK_ENV_WORLD, ck_opts_has(opts, CK_OPT_WORLD) ? opts->world : NULL);
	set(s, CK_ENV_FAIL, ck_opts_has(opts, CK_OPT_FAIL) ? opts->fail : NULL);
	set(s, CK_ENV_STAGING,
	    ck_opts_has(opts, CK_OPT_STAGING) ? ck_opts_staging_text(&opts->staging, text) : NULL);
	set_number(s, CK_ENV_KEEP_EVERY, ck_opts_has(opts, CK_OPT_KEEP_EVERY), opts->keep_every);
}

int ck_start_env(const struct ck_start *start, ck_start_set *setter, void *arg)
{
	struct setter s = {setter, arg, 0};
	char text[CK_SEAL_BYTES], name[CK_NAME_MAX], path[PATH_MAX];
	bool has_path = start->has_resume &&
			ck_path_join(path, start->run, ck_name_step(start->resume, name));

	set(&s, CK_ENV_SEAL, ck_start_seal(start, text));
	set(&s, CK_ENV_DIR, start->run);
	set(&s, CK_ENV_NAME, start->name);
	set(&s, CK_ENV_EVERY, ck_opts_every_text(&start->opts->every, text));
	set_number(&s, CK_ENV_KEEP, true, start->opts->keep);
	set_number(&s, CK_ENV_MARGIN, true, start->opts->margin_seconds);
	set_number(&s, CK_ENV_END_TIME, start->end > 0, (uint64_t)start->end + start->over_seconds);
	set_number(&s, CK_ENV_OVERTIME, start->over_seconds > 0, start->over_seconds);
	set_number(&s, CK_ENV_SUBMIT_TIME, start->submit > 0, (uint64_t)start->submit);
	set_choices(&s, start->opts);
	set(&s, CK_ENV_RUN_ID, start->run_id);
	set(&s, CK_ENV_RESUME, has_path ? path : NULL);
	set_number(&s, CK_ENV_RESUME_STEP, has_path, start->resume.step);
	set_number(&s, CK_ENV_GENERATION, start->looked, start->generation);
	set(&s, CK_ENV_FIRST, start->restarts > 0 && start->first ? "1" : NULL);
	set_number(&s, CK_ENV_RESTARTS, start->restarts > 0, start->restarts);
	return s.rc;
}

int ck_start_env_clear(ck_start_set *setter, void *arg)
{
	static const char *const names[] = {
		CK_ENV_SEAL,        CK_ENV_DIR,    CK_ENV_NAME,        CK_ENV_EVERY,
		CK_ENV_KEEP,        CK_ENV_MARGIN, CK_ENV_END_TIME,    CK_ENV_SUBMIT_TIME,
		CK_ENV_RUN_ID,      CK_ENV_RESUME, CK_ENV_RESUME_STEP, CK_ENV_REFUSED,
		CK_ENV_RESUME_MODE, CK_ENV_FROM,   CK_ENV_TAKEOVER,    CK_ENV_VERIFY,
		CK_ENV_OVERTIME,    CK_ENV_FAIL,   CK_ENV_WORLD,       CK_ENV_KEEP_EVERY,
		CK_ENV_STAGING,     CK_ENV_FIRST,  CK_ENV_GENERATION,
	};
	struct setter s = {setter, arg, 0};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		set(&s, names[i], NULL);
	return s.rc;
}
