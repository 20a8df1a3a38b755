/*
 * The SPANK plugin from inside: ckpt.c dispatches Slurm's callbacks to one file per context, which
 * share the state below. Slurm's option callback carries no pointer of ours, hence the one static.
 *
 *   alloc.c   sbatch and salloc       the user's process, before submission
 *   srun.c    srun                    the user's process
 *   stepd.c   slurmstepd              task_init alone: the user's process, before its exec
 *   linger.c  slurmstepd              root; waits, and does nothing else
 *
 * Rules: as root no file is touched, and every function returns 0 (a failure there drains nodes).
 */
#ifndef CK_PLUGIN_H
#define CK_PLUGIN_H

#include <slurm/spank.h>
#include <stdbool.h>

#include "error.h"
#include "opts.h"
#include "site.h"

struct ck_arrival {
	unsigned calls;    /* how often the option's callback came */
	unsigned from_env; /* how many of them are for a default of the environment */
	char *bad;         /* why the last value is no good; NULL */
	char *bad_default; /* why the default of the environment is; counts when nothing else came */
};

struct ck_plugin {
	struct ck_site site;
	struct ck_opts opts; /* what was given */
	struct ck_arrival arrived[CK_OPT_COUNT];
};

struct ck_plugin *ck_plugin(void);

/* ---- spankopts.c: options between Slurm and us */

/* Register all options; to be called in slurm_spank_init. */
void ck_spankopts_register(spank_t spank);

/*
 * Make <prefix>_CKPT_<OPTION> of the environment count as Slurm's own variables do: more than a
 * script's line, less than the command line. prefix: "SBATCH", "SALLOC" or "SRUN".
 */
void ck_spankopts_defaults(const char *prefix);

/* Take ck_spankopts_defaults' traces out of the environment again, what was there before too. */
void ck_spankopts_defaults_done(void);

/* Is checkpointing on: --ckpt if given, else any other option, else the site's default. */
bool ck_spankopts_on(void);

/* Was any option given for this very command, or for its job: more than a default of somebody's. */
bool ck_spankopts_asked(void);

/* First option whose value is no good: its text, else NULL. */
const char *ck_spankopts_bad(void);

/* The options as the job will get them: given ones complete with what is not given, from the site. */
struct ck_opts ck_spankopts_effective(void);

/*
 * Change what a submission hands on to the job for an option; value NULL: nothing.
 * In sbatch's and salloc's slurm_spank_init_post_opt.
 */
void ck_spankopts_forward(spank_t spank, enum ck_opt opt, const char *value);

/* Take a value that the job's environment carries but no callback brought (--export=NONE). */
void ck_spankopts_from_job_env(spank_t spank);

/*
 * Take the variables that carry options to slurmstepd out of the task's environment, in task_init.
 * Slurm means to, but from 24.05 on leaves every second one. [spank_clear_remote_options_env]
 */
void ck_spankopts_clear_task_env(spank_t spank);

/* The name of the variable that carries an option in a job's environment, into out. Returns out. */
#define CK_SPANKOPTS_VAR 96
char *ck_spankopts_job_var(enum ck_opt opt, char out[static CK_SPANKOPTS_VAR]);

/* ---- contexts */

/* To who asks for checkpoints where several components run as one. */
#define CK_NO_HET                                                                           \
	"checkpointing does not support heterogeneous jobs and steps (several components, " \
	"separated by ':' or 'hetjob'); --ckpt=off starts this one without checkpoints"

void ck_alloc_init(void);
void ck_alloc_post_opt(spank_t spank);
void ck_srun_init(void);
void ck_srun_post_opt(void);
void ck_srun_local_user_init(spank_t spank);
void ck_stepd_task_init(spank_t spank);

/* ---- linger.c: ranks that exit with 75 one after the other, in slurmstepd */

void ck_linger_init(void);
void ck_linger_task_exit(spank_t spank);

/* A setter for ck_start_env: the environment of this process. */
int ck_plugin_setenv(void *unused, const char *name, const char *value);

#endif
