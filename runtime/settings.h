/*
 * What the program and `sbatch --ckpt` asked for, as one plain value. Pure: the environment comes in
 * through a function.
 */
#ifndef CK_SETTINGS_H
#define CK_SETTINGS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "choose.h"
#include "ckpt.h"
#include "error.h"
#include "manifest.h"
#include "parse.h"
#include "shard.h"
#include "staging.h"

#define CK_SIGNALS_MAX 16 /* of one kind, the closing 0 included */

/* Has no pointers, so that rank 0's travels to the others as it is. */
struct ck_settings {
	bool off;                   /* no run directory: touch nothing */
	bool planned;               /* the plugin gave the directory, and has looked who holds it */
	char dir[PATH_MAX];         /* run directory, absolute */
	char name[CK_NAME_MAX * 3]; /* the run's; last component of dir unless told */
	struct ck_interval every;
	uint32_t keep;
	double margin_seconds;
	int64_t end_time;     /* seconds since 1970; 0: none known */
	int64_t over_seconds; /* of it, how long after the job's time limit (OverTimeLimit) */
	int64_t submit_time;  /* of the job; 0: unknown */
	struct ck_resume resume;
	char from[PATH_MAX]; /* run or step directory to begin from, "" none */
	bool level_asked;    /* verify with `level`, else as the case is */
	enum ck_level level;
	bool fail_error;  /* several failed saves in a row are an error */
	bool world_fixed; /* resume only with as many ranks as saved */
	struct ck_staging staging;
	bool takeover;       /* supersede an owner that seems to run */
	uint64_t keep_every; /* steps; 0: none */
	enum ck_sha sha;     /* who computes SHA-256 */
	char run_id[CK_RUN_ID_HEX +
		    1];      /* of the run that the plugin has found or made; "" not known */
	bool first;          /* restarts are counted, but none has run the job's script */
	bool looked;         /* by srun, who has the run: */
	uint64_t generation; /* ... the owner of this one, and of all before, is gone */
	uint32_t tasks;      /* of this step; 0 not known */
	uint64_t timeout_ms; /* how long a rank may be silent */
	struct ck_job job;
	int stop_signals[CK_SIGNALS_MAX];
	int save_signals[CK_SIGNALS_MAX];
};

typedef char *(*ck_getenv)(const char *name); /* as getenv */

/*
 * Options win over the environment. Settings of the environment count only when they are sealed for this
 * very start of this job (CK_ENV_SEAL).
 *
 *   notice  receives a line worth logging ("settings of job 12 are ignored …"), or ""
 * Returns 0; CK_EARG naming variable or option, value, and what was expected.
 */
int ck_settings_load(ck_getenv get, const struct ckpt_options *options, struct ck_settings *out,
		     char notice[static CK_ERROR_TEXT], struct ck_error *err);

#endif
