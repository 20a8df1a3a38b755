#include "settings.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "env.h"

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

/* Control characters and what is no UTF-8 become '?': a manifest holds text. */
static void clean(char *text)
{
	size_t left = strlen(text);

	while (left) {
		int length = ck_utf8_sequence((const unsigned char *)text, left);

		if (length < 1 || (unsigned char)*text < ' ' || *text == 127) {
			*text = '?';
			length = 1;
		}
		text += length;
		left -= (size_t)length;
	}
}

/* Copy, cut with "..." when it does not fit: for texts that only inform. */
static void copy_cut(char *out, size_t size, const char *text)
{
	if ((size_t)snprintf(out, size, "%s", text) >= size)
		memcpy(out + size - 4, "...", 4);
	clean(out);
}

static int load_job(ck_getenv get, struct ck_job *job, struct ck_error *err)
{
	const char *id = or_empty(get("SLURM_JOB_ID"));
	const char *restarts = get("SLURM_RESTART_COUNT"); /* not set at all in the first run */

	copy_cut(job->cluster, sizeof(job->cluster), or_empty(get("SLURM_CLUSTER_NAME")));
	copy_cut(job->job_id, sizeof(job->job_id), id);
	copy_cut(job->step_id, sizeof(job->step_id), or_empty(get("SLURM_STEP_ID")));
	copy_cut(job->nodes, sizeof(job->nodes), or_empty(get("SLURM_JOB_NODELIST")));
	job->restart_count = 0;
	if (!restarts || !*id)
		return 0;
	return ck_parse_u64("SLURM_RESTART_COUNT", restarts, 0, UINT32_MAX, &job->restart_count,
			    err);
}

/* Do the SLURM_CKPT_ variables speak of this start of this job? */
static bool seal_holds(ck_getenv get, const struct ck_job *job, char notice[static CK_ERROR_TEXT])
{
	const char *seal = get(CK_ENV_SEAL);
	char ours[CK_ERROR_TEXT / 2];

	if (!get(CK_ENV_DIR))
		return false;
	if (!*job->job_id) {
		snprintf(notice, CK_ERROR_TEXT,
			 "ignored: " CK_ENV_DIR " is set, but this process is in no Slurm job");
		return false;
	}
	snprintf(ours, sizeof(ours), "%s/%s/%" PRIu64, job->cluster, job->job_id,
		 job->restart_count);
	if (seal && strcmp(seal, ours) == 0)
		return true;
	snprintf(notice, CK_ERROR_TEXT,
		 "ignored: the settings in the environment are for job %.200s, this is %.200s",
		 seal ? seal : "(none)", ours);
	return false;
}

/* A job that was submitted with --ckpt must not train without it, and without a word. */
static int check_plugin(ck_getenv get, const struct ck_job *job, struct ck_error *err)
{
	const char *nodes = get("SLURM_JOB_NODELIST");
	char host[CK_SHORT_TEXT];

	if (!*job->job_id || get(CK_ENV_SEAL) || get(CK_ENV_OFF) || !get(CK_ENV_SUBMITTED))
		return 0;
	return ck_fail(err, CK_EREFUSED,
		       "job %s was submitted with --ckpt, but Slurm's ckpt plugin was not loaded "
		       "on node %s, where its script runs: see plugstack.conf there, and the "
		       "messages of srun. 'srun --ckpt=off' runs without checkpoints",
		       job->job_id, ck_first_host(nodes ? nodes : "(unknown)", host, sizeof(host)));
}

static int load_u64(ck_getenv get, const char *name, uint64_t min, uint64_t max, uint64_t fallback,
		    uint64_t *out, struct ck_error *err)
{
	const char *text = get(name);

	*out = fallback;
	return text ? ck_parse_u64(name, text, min, max, out, err) : 0;
}

static int load_every(ck_getenv get, bool sealed, const struct ckpt_options *options,
		      struct ck_interval *out, struct ck_error *err)
{
	const char *text = sealed ? get(CK_ENV_EVERY) : NULL;

	if (options->every)
		return ck_parse_interval("ckpt_options.every", options->every, out, err);
	if (text)
		return ck_parse_interval(CK_ENV_EVERY, text, out, err);
	*out = (struct ck_interval){.seconds = CK_DEFAULT_EVERY_SECONDS};
	return 0;
}

static int load_numbers(ck_getenv get, bool sealed, const struct ckpt_options *options,
			struct ck_settings *out, struct ck_error *err)
{
	ck_getenv from = sealed ? get : (ck_getenv)NULL;
	uint64_t keep = CK_DEFAULT_KEEP, margin = CK_DEFAULT_MARGIN_SECONDS, end = 0, over = 0,
		 submit = 0, timeout;
	int rc;

	if (options->keep < 0 || options->keep > CK_KEEP_MAX)
		return ck_fail(err, CK_EARG,
			       "ckpt_options.keep: %d: expected 1 to %d (0: the default)",
			       options->keep, CK_KEEP_MAX);
	if (!(options->margin_seconds >= 0 && options->margin_seconds < 1e9))
		return ck_fail(err, CK_EARG, "ckpt_options.margin_seconds: %g: expected 0 to 1e9",
			       options->margin_seconds);
	if (from) {
		if ((rc = load_u64(from, CK_ENV_KEEP, 1, CK_KEEP_MAX, keep, &keep, err)) ||
		    (rc = load_u64(from, CK_ENV_MARGIN, 0, 1000000000, margin, &margin, err)) ||
		    (rc = load_u64(from, CK_ENV_END_TIME, 0, INT64_MAX, 0, &end, err)) ||
		    (rc = load_u64(from, CK_ENV_OVERTIME, 0, 1000000000, 0, &over, err)) ||
		    (rc = load_u64(from, CK_ENV_SUBMIT_TIME, 0, INT64_MAX, 0, &submit, err)))
			return rc;
	}
	rc = load_u64(get, CK_ENV_TIMEOUT, 1, 1000000, CK_DEFAULT_TIMEOUT_SECONDS, &timeout, err);
	if (rc)
		return rc;
	out->keep = options->keep ? (uint32_t)options->keep : (uint32_t)keep;
	out->margin_seconds =
		options->margin_seconds > 0 ? options->margin_seconds : (double)margin;
	out->end_time = (int64_t)end;
	out->over_seconds = (int64_t)over;
	out->submit_time = (int64_t)submit;
	out->timeout_ms = timeout * 1000;
	return load_every(get, sealed, options, &out->every, err);
}

/* What the plugin has seen when this step began. */
static int load_seen(ck_getenv get, struct ck_settings *out, struct ck_error *err)
{
	const char *run_id = or_empty(get(CK_ENV_RUN_ID));
	size_t len = strlen(run_id);

	if (len && (len != CK_RUN_ID_HEX || run_id[strspn(run_id, "0123456789abcdef")]))
		return ck_fail(err, CK_EARG, CK_ENV_RUN_ID ": %.40s: not %d hex digits", run_id,
			       CK_RUN_ID_HEX);
	strcpy(out->run_id, run_id);
	out->first = get(CK_ENV_FIRST) != NULL;
	out->looked = get(CK_ENV_GENERATION) != NULL;
	return load_u64(get, CK_ENV_GENERATION, 0, CK_STEP_MAX, 0, &out->generation, err);
}

/* 0: Slurm does not tell. */
static uint32_t count_tasks(ck_getenv get)
{
	uint64_t n;

	return ck_parse_u64("SLURM_STEP_NUM_TASKS", get("SLURM_STEP_NUM_TASKS"), 1, UINT32_MAX, &n,
			    NULL)
		       ? 0
		       : (uint32_t)n;
}

static int fail_word(const char *what, const char *text, const char *const *words,
		     struct ck_error *err)
{
	char quoted[64];
	bool three = words[2] != NULL;

	copy_cut(quoted, sizeof(quoted), *text ? text : "empty");
	return ck_fail(err, CK_EARG, "%s: %s: expected %s%s%s or %s", what, quoted, words[0],
		       three ? ", " : "", three ? words[1] : "", words[three ? 2 : 1]);
}

/* A word of a list; the first one when nothing is said. */
static int load_word(const char *what, const char *text, const char *const *words, int *out,
		     struct ck_error *err)
{
	*out = 0;
	for (int i = 0; text && words[i]; i++) {
		if (strcmp(text, words[i]) == 0) {
			*out = i;
			return 0;
		}
	}
	return text ? fail_word(what, text, words, err) : 0;
}

/* What the program says, else the environment, else NULL; `what` is where it comes from. */
static const char *pick(ck_getenv get, bool sealed, const char *option, const char *option_name,
			const char *name, const char **what)
{
	*what = option ? option_name : name;
	return option ? option : sealed ? get(name) : NULL;
}

static int load_words(ck_getenv get, bool sealed, const struct ckpt_options *options,
		      struct ck_settings *out, struct ck_error *err)
{
	static const char *const levels[] = {"auto", "crc32", "sha256", NULL};
	static const char *const fails[] = {"warn", "error", NULL};
	static const char *const worlds[] = {"any", "fixed", NULL};
	static const char *const shas[] = {"auto", "libcrypto", NULL};
	const char *what, *text;
	int rc, word;

	text = pick(get, sealed, options->verify, "ckpt_options.verify", CK_ENV_VERIFY, &what);
	if ((rc = load_word(what, text, levels, &word, err)))
		return rc;
	out->level_asked = word > 0;
	out->level = word == 1 ? CK_LEVEL_CRC32 : CK_LEVEL_SHA256;
	text = pick(get, sealed, options->fail, "ckpt_options.fail", CK_ENV_FAIL, &what);
	if ((rc = load_word(what, text, fails, &word, err)))
		return rc;
	out->fail_error = word == 1;
	if ((rc = load_word(CK_ENV_SHA, get(CK_ENV_SHA), shas, &word, err)))
		return rc;
	out->sha = word == 1 ? CK_SHA_LIBCRYPTO : CK_SHA_BEST;
	text = pick(get, sealed, options->world, "ckpt_options.world", CK_ENV_WORLD, &what);
	if ((rc = load_word(what, text, worlds, &word, err)))
		return rc;
	out->world_fixed = word == 1;
	return 0;
}

/* "" is no way to say none: who passes it on, meant to say something. */
static int load_from(const char *what, const char *text, char out[static PATH_MAX],
		     struct ck_error *err)
{
	if (text && !*text)
		return ck_fail(err, CK_EARG,
			       "%s: empty: expected a run or step directory; leave it out for none",
			       what);
	if (text && strlen(text) >= PATH_MAX - 4 * CK_NAME_MAX)
		return ck_fail(err, CK_EARG, "%s: a path of %zu characters is too long", what,
			       strlen(text));
	strcpy(out, or_empty(text));
	return 0;
}

static int load_choices(ck_getenv get, bool sealed, const struct ckpt_options *options,
			struct ck_settings *out, struct ck_error *err)
{
	const char *what, *text = pick(get, sealed, options->resume, "ckpt_options.resume",
				       CK_ENV_RESUME_MODE, &what);
	int rc = text ? ck_resume_parse(what, text, &out->resume, err) : 0;

	if (!rc)
		rc = load_words(get, sealed, options, out, err);
	if (rc)
		return rc;
	text = pick(get, sealed, options->staging, "ckpt_options.staging", CK_ENV_STAGING, &what);
	if (text && (rc = ck_staging_parse(what, text, &out->staging, err)))
		return rc;
	text = pick(get, sealed, options->from, "ckpt_options.from", CK_ENV_FROM, &what);
	if ((rc = load_from(what, text, out->from, err)))
		return rc;
	out->takeover = options->takeover || (sealed && get(CK_ENV_TAKEOVER));
	return sealed ? load_u64(get, CK_ENV_KEEP_EVERY, 1, CK_STEP_MAX, 0, &out->keep_every, err)
		      : 0;
}

static int load_signals(const char *what, const int *given, const int *fallback, int *out,
			struct ck_error *err)
{
	const int *from = given ? given : fallback;
	int i;

	for (i = 0; from[i]; i++) {
		if (i == CK_SIGNALS_MAX - 1)
			return ck_fail(err, CK_EARG, "%s: more than %d signals", what,
				       CK_SIGNALS_MAX - 1);
		if (from[i] < 1 || from[i] >= NSIG || from[i] == SIGKILL || from[i] == SIGSTOP)
			return ck_fail(err, CK_EARG, "%s: %d is no signal that can be caught", what,
				       from[i]);
		out[i] = from[i];
	}
	out[i] = 0;
	return 0;
}

static int set_dir(const char *dir, struct ck_settings *out, struct ck_error *err)
{
	char cwd[PATH_MAX / 2] = "";
	size_t len = strlen(dir);
	int printed;

	while (len > 1 && dir[len - 1] == '/')
		len--;
	if (len == 0)
		return ck_fail(err, CK_EARG, "run directory: empty path");
	if (dir[0] != '/' && !getcwd(cwd, sizeof(cwd)))
		return ck_fail(err, CK_EARG,
			       "run directory: %s: relative, and there is no current directory",
			       dir);
	printed = snprintf(out->dir, sizeof(out->dir), "%s%s%.*s", cwd, *cwd ? "/" : "", (int)len,
			   dir);
	/* Room for the names below it. */
	if (printed < 0 || printed >= PATH_MAX - 4 * CK_NAME_MAX)
		return ck_fail(err, CK_EARG, "run directory: path of %d characters is too long",
			       printed);
	return 0;
}

static int set_name(const char *name, struct ck_settings *out, struct ck_error *err)
{
	const char *last = strrchr(out->dir, '/');

	if (!name)
		name = last ? last + 1 : out->dir;
	if (strlen(name) >= sizeof(out->name))
		return ck_fail(err, CK_EARG, "run name: %s: longer than %zu characters", name,
			       sizeof(out->name) - 1);
	strcpy(out->name, name);
	clean(out->name);
	return 0;
}

int ck_settings_load(ck_getenv get, const struct ckpt_options *options, struct ck_settings *out,
		     char notice[static CK_ERROR_TEXT], struct ck_error *err)
{
	static const int stop[] = {SIGTERM, SIGUSR1, 0}, save[] = {SIGUSR2, 0};
	static const struct ckpt_options none = {.struct_size = sizeof(none)};
	struct ck_settings s = {.off = true};
	const char *dir;
	bool sealed;
	int rc;

	notice[0] = '\0';
	if (!options)
		options = &none;
	if (options->struct_size != sizeof(*options))
		return ck_fail(
			err, CK_EARG,
			"ckpt_options.struct_size: %zu: expected sizeof(struct ckpt_options) = %zu",
			options->struct_size, sizeof(*options));
	if ((rc = load_job(get, &s.job, err)))
		return rc;
	if (!options->dir && (rc = check_plugin(get, &s.job, err)))
		return rc;
	sealed = seal_holds(get, &s.job, notice);
	dir = options->dir ? options->dir : sealed ? get(CK_ENV_DIR) : NULL;
	if ((rc = load_numbers(get, sealed, options, &s, err)) ||
	    (rc = load_choices(get, sealed, options, &s, err)) ||
	    (rc = load_signals("ckpt_options.stop_signals", options->stop_signals, stop,
			       s.stop_signals, err)) ||
	    (rc = load_signals("ckpt_options.save_signals", options->save_signals, save,
			       s.save_signals, err)))
		return rc;
	s.tasks = count_tasks(get);
	if (sealed && !options->dir && (rc = load_seen(get, &s, err)))
		return rc;
	if (dir) {
		s.off = false;
		s.planned = !options->dir;
		if ((rc = set_dir(dir, &s, err)) ||
		    (rc = set_name(options->dir ? NULL : get(CK_ENV_NAME), &s, err)))
			return rc;
	}
	*out = s;
	return 0;
}
