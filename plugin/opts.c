#include "opts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "buf.h"
#include "env.h"

/* Room for "/<name>/step-0000001234.g3/rank-00000.0.safetensors" behind the directory. */
#define DIR_BYTES_MAX (PATH_MAX - 512)

static const char *const names[CK_OPT_COUNT] = {
	"ckpt",         "ckpt-dir",    "ckpt-name",       "ckpt-every", "ckpt-keep",
	"ckpt-requeue", "ckpt-margin", "ckpt-resume",     "ckpt-from",  "ckpt-takeover",
	"ckpt-verify",  "ckpt-fail",   "ckpt-keep-every", "ckpt-world", "ckpt-staging",
};

void ck_opts_init(struct ck_opts *opts)
{
	*opts = (struct ck_opts){
		.every = {.seconds = CK_DEFAULT_EVERY_SECONDS},
		.keep = CK_DEFAULT_KEEP,
		.requeue = CK_REQUEUE_AUTO,
		.margin_seconds = CK_DEFAULT_MARGIN_SECONDS,
	};
}

const char *ck_opt_name(enum ck_opt opt)
{
	return names[opt];
}

static int set_on(const char *what, const char *text, bool *on, struct ck_error *err)
{
	if (!text || !*text || strcmp(text, "(null)") == 0 || strcmp(text, "on") == 0)
		*on = true;
	else if (strcmp(text, "off") == 0)
		*on = false;
	else
		return ck_fail(err, CK_EARG, "%s: %.80s: on or off is wanted", what, text);
	return 0;
}

static int set_dir(const char *what, const char *text, char dir[static PATH_MAX],
		   struct ck_error *err)
{
	size_t len = text ? strlen(text) : 0;

	if (len == 0)
		return ck_fail(err, CK_EARG, "%s: empty: a directory is wanted", what);
	if (len > DIR_BYTES_MAX)
		return ck_fail(err, CK_EARG, "%s: %.40s...: %zu bytes, at most %d are allowed",
			       what, text, len, DIR_BYTES_MAX);
	for (size_t i = 0; i < len; i++) {
		unsigned char byte = (unsigned char)text[i];

		if (byte < 0x20 || byte == 0x7f)
			return ck_fail(err, CK_EARG,
				       "%s: control character 0x%02x at position %zu: a directory "
				       "is wanted",
				       what, byte, i + 1);
	}
	memcpy(dir, text, len + 1);
	return 0;
}

static int set_requeue(const char *what, const char *text, int32_t *requeue, struct ck_error *err)
{
	uint64_t most;

	if (text && strcmp(text, "no") == 0) {
		*requeue = 0;
		return 0;
	}
	if (ck_parse_u64(what, text, 1, CK_REQUEUE_MAX, &most, NULL))
		return ck_fail(err, CK_EARG, "%s: %.80s: 'no', or a number from 1 to %d, is wanted",
			       what, text && *text ? text : "empty", CK_REQUEUE_MAX);
	*requeue = (int32_t)most;
	return 0;
}

/* One of two or three words; the first is the default. */
static int set_word(const char *what, const char *text, const char *const *words,
		    char out[static 8], struct ck_error *err)
{
	struct ck_buf list = CK_BUF_INIT;
	int rc;

	for (int i = 0; words[i]; i++) {
		if (text && strcmp(text, words[i]) == 0) {
			strcpy(out, words[i]);
			return 0;
		}
		ck_buf_addf(&list, "%s%s", i == 0 ? "" : words[i + 1] ? ", " : " or ", words[i]);
	}
	rc = ck_fail(err, CK_EARG, "%s: %.80s: %s is wanted", what, text && *text ? text : "empty",
		     list.data ? list.data : "another word");
	ck_buf_fini(&list);
	return rc;
}

/* The options about which checkpoint is taken, and how much is believed. */
static int set_choice(struct ck_opts *opts, enum ck_opt opt, const char *what, const char *text,
		      struct ck_error *err)
{
	static const char *const levels[] = {"auto", "crc32", "sha256", NULL};
	static const char *const fails[] = {"warn", "error", NULL};
	static const char *const worlds[] = {"any", "fixed", NULL};

	switch (opt) {
	case CK_OPT_RESUME:
		return ck_resume_parse(what, text ? text : "", &opts->resume, err);
	case CK_OPT_FROM:
		return set_dir(what, text, opts->from, err);
	case CK_OPT_TAKEOVER:
		return set_on(what, text, &opts->takeover, err);
	case CK_OPT_VERIFY:
		return set_word(what, text, levels, opts->verify, err);
	case CK_OPT_FAIL:
		return set_word(what, text, fails, opts->fail, err);
	case CK_OPT_WORLD:
		return set_word(what, text, worlds, opts->world, err);
	case CK_OPT_STAGING:
		return ck_staging_parse(what, text, &opts->staging, err);
	case CK_OPT_KEEP_EVERY:
		return ck_parse_u64(what, text, 1, CK_STEP_MAX, &opts->keep_every, err);
	default:
		return ck_fail(err, CK_EARG, "%s: no such option", what);
	}
}

int ck_opts_set(struct ck_opts *opts, enum ck_opt opt, const char *what, const char *text,
		struct ck_error *err)
{
	int rc = CK_EARG;

	switch (opt) {
	case CK_OPT_CKPT:
		rc = set_on(what, text, &opts->on, err);
		break;
	case CK_OPT_DIR:
		rc = set_dir(what, text, opts->dir, err);
		break;
	case CK_OPT_NAME:
		rc = ck_parse_run_name(what, text, err);
		if (!rc)
			snprintf(opts->name, sizeof(opts->name), "%s", text);
		break;
	case CK_OPT_EVERY:
		rc = ck_parse_interval(what, text, &opts->every, err);
		break;
	case CK_OPT_KEEP:
		rc = ck_parse_u64(what, text, 1, CK_KEEP_MAX, &opts->keep, err);
		break;
	case CK_OPT_REQUEUE:
		rc = set_requeue(what, text, &opts->requeue, err);
		break;
	case CK_OPT_MARGIN:
		rc = ck_parse_seconds(what, text, false, &opts->margin_seconds, err);
		break;
	default:
		rc = set_choice(opts, opt, what, text, err);
		break;
	}
	if (!rc && opt != CK_OPT_COUNT)
		opts->given |= 1u << opt;
	return rc;
}

char *ck_opts_resume_text(const struct ck_resume *resume, char out[static 32])
{
	if (resume->mode == CK_RESUME_STEP)
		snprintf(out, 32, "%" PRIu64, resume->step);
	else
		snprintf(out, 32, "%s", resume->mode == CK_RESUME_FRESH ? "fresh" : "auto");
	return out;
}

char *ck_opts_staging_text(const struct ck_staging *staging, char out[static 32])
{
	if (staging->mode == CK_STAGING_MOST)
		snprintf(out, 32, "%" PRIu64 "B", staging->most);
	else
		snprintf(out, 32, "%s", staging->mode == CK_STAGING_OFF ? "off" : "auto");
	return out;
}

char *ck_opts_every_text(const struct ck_interval *every, char out[static 32])
{
	if (every->steps)
		snprintf(out, 32, "%" PRIu64 "steps", every->steps);
	else
		snprintf(out, 32, "%" PRIu64 "s", every->seconds);
	return out;
}
