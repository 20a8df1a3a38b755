#include "begin.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "env.h"
#include "place.h"

const char *ck_begin_getenv(char *const *env, const char *name)
{
	size_t len = strlen(name);

	for (; env && *env; env++) {
		if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
			return (*env)[len + 1] ? *env + len + 1 : NULL;
	}
	return NULL;
}

static uint64_t number(char *const *env, const char *name, uint64_t max)
{
	uint64_t value = 0;

	if (ck_parse_u64(name, ck_begin_getenv(env, name), 0, max, &value, NULL))
		return 0;
	return value;
}

static const char *text_or(char *const *env, const char *name, const char *otherwise)
{
	const char *text = ck_begin_getenv(env, name);

	return text ? text : otherwise;
}

/*
 * Which start this is. The environment knows it: slurmctld may be at the next one already. But Slurm
 * sets nothing in a first start, so what is there then is of a job from within which this one was
 * submitted; slurmctld never counts less than the job's own environment.
 */
static uint32_t count_restarts(const struct ck_start *start, const struct ck_jobinfo *job,
			       char *const *env)
{
	uint32_t told = (uint32_t)number(env, CK_ENV_RESTARTS, UINT32_MAX);

	if (job->job_id == 0)
		return told;
	return start->outside || told > job->restarts ? job->restarts : told;
}

static void fill(struct ck_start *start, const struct ck_jobinfo *job, char *const *env)
{
	bool loaded = job->job_id != 0;

	snprintf(start->cluster, sizeof(start->cluster), "%s",
		 text_or(env, "SLURM_CLUSTER_NAME", "slurm"));
	start->array_job = job->array_job;
	start->array_task = job->array_task;
	if (!loaded && ck_begin_getenv(env, "SLURM_ARRAY_TASK_ID")) {
		start->array_job = (uint32_t)number(env, "SLURM_ARRAY_JOB_ID", UINT32_MAX);
		start->array_task = (uint32_t)number(env, "SLURM_ARRAY_TASK_ID", UINT32_MAX);
	}
	start->restarts = count_restarts(start, job, env);
	start->end = loaded ? job->end : (int64_t)number(env, "SLURM_JOB_END_TIME", INT64_MAX);
	start->submit = (int64_t)number(env, CK_ENV_SUBMITTED, INT64_MAX);
	if (start->submit == 0 && start->restarts == 0)
		start->submit = job->submit;
}

static const char *user_name(char *const *env)
{
	const char *name = ck_begin_getenv(env, "SLURM_JOB_USER");
	const struct passwd *user = name ? NULL : getpwuid(getuid());

	return name ? name : user ? user->pw_name : "unknown";
}

static void take_token(struct ck_start *start, char *const *env)
{
	ck_token_take(&start->token, ck_begin_getenv(env, CK_ENV_TOKEN), start->base);
	start->token.in_array = start->array_job != 0;
	start->token.element = start->array_task;
}

int ck_begin(struct ck_start *start, const struct ck_site *site, const struct ck_jobinfo *job,
	     char *const *env, bool *surprise, struct ck_error *err)
{
	struct ck_site_words words = {
		.uid = getuid(),
		.job_id = start->job_id,
		.job_name = text_or(env, "SLURM_JOB_NAME", job->name),
	};
	char cwd[PATH_MAX];
	int rc;

	*surprise = false;
	fill(start, job, env);
	words.array_job = start->array_job ? start->array_job : start->job_id;
	words.array_task = start->array_job ? start->array_task : 0;
	start->shared = site->shared;
	start->literal = ck_site_literal(site);
	start->private_base = !ck_opts_has(start->opts, CK_OPT_DIR) && site->root[0];
	if (start->private_base) {
		words.user = user_name(env);
		rc = ck_site_root(site, &words, start->base, err);
	} else if (getcwd(cwd, sizeof(cwd))) {
		rc = ck_place_base(start->opts, ck_begin_getenv(env, "SCRATCH"), cwd, start->base,
				   surprise, err);
	} else {
		rc = ck_fail_errno(err, errno, "current directory");
	}
	if (!rc && !start->outside)
		take_token(start, env);
	return rc;
}

void ck_begin_job_run(struct ck_start *start, const char *seal, const char *run, const char *first)
{
	char own[CK_SEAL_BYTES];

	if (!seal || !run || strcmp(seal, ck_start_seal(start, own)) != 0)
		return;
	snprintf(start->job_run, sizeof(start->job_run), "%s", run);
	start->first = first != NULL;
}

char *ck_begin_refusal(const struct ck_start *start, const char *text,
		       char out[static CK_REFUSED_BYTES])
{
	char seal[CK_SEAL_BYTES];

	snprintf(out, CK_REFUSED_BYTES, "%s %s", ck_start_seal(start, seal), text);
	return out;
}

const char *ck_begin_refused(const char *value, uint32_t job_id)
{
	const char *slash = value ? strchr(value, '/') : NULL;
	const char *blank = value ? strchr(value, ' ') : NULL;
	char id[16];
	int len = snprintf(id, sizeof(id), "/%" PRIu32 "/", job_id);

	if (!slash || !blank || blank < slash || strncmp(slash, id, (size_t)len) != 0)
		return NULL;
	return blank + 1;
}
