/*
 * The plugin's options: their names, and their texts checked and turned into values. Pure.
 *
 * Texts come from the command line, a batch script, the environment and, in slurmstepd, from
 * whoever forged them: every place that uses a value checks its text here first.
 */
#ifndef CK_OPTS_H
#define CK_OPTS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "choose.h"
#include "error.h"
#include "parse.h"
#include "staging.h"

enum ck_opt {
	CK_OPT_CKPT = 0,   /* --ckpt[=on|off] */
	CK_OPT_DIR,        /* --ckpt-dir=<directory> */
	CK_OPT_NAME,       /* --ckpt-name=<name> */
	CK_OPT_EVERY,      /* --ckpt-every=<time|steps> */
	CK_OPT_KEEP,       /* --ckpt-keep=<n> */
	CK_OPT_REQUEUE,    /* --ckpt-requeue=<max>|no */
	CK_OPT_MARGIN,     /* --ckpt-margin=<time> */
	CK_OPT_RESUME,     /* --ckpt-resume=auto|fresh|<step> */
	CK_OPT_FROM,       /* --ckpt-from=<run or checkpoint> */
	CK_OPT_TAKEOVER,   /* --ckpt-takeover */
	CK_OPT_VERIFY,     /* --ckpt-verify=auto|crc32|sha256 */
	CK_OPT_FAIL,       /* --ckpt-fail=warn|error */
	CK_OPT_KEEP_EVERY, /* --ckpt-keep-every=<steps> */
	CK_OPT_WORLD,      /* --ckpt-world=any|fixed */
	CK_OPT_STAGING,    /* --ckpt-staging=auto|off|<size> */
	CK_OPT_COUNT
};

#define CK_RUN_NAME_BYTES 129 /* with the NUL */
#define CK_REQUEUE_AUTO (-1)  /* no limit given */
#define CK_REQUEUE_MAX 65535  /* Slurm counts restarts in 16 bits */

struct ck_opts {
	unsigned given; /* bit 1 << enum ck_opt: its value below counts */
	bool on;
	char dir[PATH_MAX]; /* as given: absolute or relative */
	char name[CK_RUN_NAME_BYTES];
	struct ck_interval every;
	uint64_t keep;
	int32_t requeue; /* how often at most, 0 for "no", CK_REQUEUE_AUTO */
	uint64_t margin_seconds;
	struct ck_resume resume;
	char from[PATH_MAX];
	bool takeover;
	char verify[8];      /* the word */
	char fail[8];        /* the word */
	char world[8];       /* the word */
	uint64_t keep_every; /* steps */
	struct ck_staging staging;
};

/* Nothing given, every value at its default ("" for dir and name). */
void ck_opts_init(struct ck_opts *opts);

/* "ckpt", "ckpt-dir", ...: the name without its dashes. */
const char *ck_opt_name(enum ck_opt opt);

/*
 * Take one option.
 *   what  what the text came from, for messages: "--ckpt-keep", "SBATCH_CKPT_KEEP"
 *   text  the value; for --ckpt and --ckpt-takeover NULL, "" and "(null)" mean "on", since Slurm hands on a
 *         missing value in each of these forms
 * Returns 0; CK_EARG: "<what>: <text>: <what was wanted>", opts untouched.
 */
int ck_opts_set(struct ck_opts *opts, enum ck_opt opt, const char *what, const char *text,
		struct ck_error *err);

static inline bool ck_opts_has(const struct ck_opts *opts, enum ck_opt opt)
{
	return opts->given & (1u << opt);
}

/* "auto", "fresh" or the step into out. Returns out. */
char *ck_opts_resume_text(const struct ck_resume *resume, char out[static 32]);
/* "auto", "off" or "2147483648B" into out. Returns out. */
char *ck_opts_staging_text(const struct ck_staging *staging, char out[static 32]);
/* "1800s" or "500steps" into out. Returns out. */
char *ck_opts_every_text(const struct ck_interval *every, char out[static 32]);

#endif
