/*
 * The environment between the plugin and the runtime (ckpt-environment.7).
 * Names begin with SLURM_ so that they pass `--export=NONE`.
 */
#ifndef CK_ENV_H
#define CK_ENV_H

/* "<cluster>/<job id>/<restart count>": the settings below are for this start of this job only. */
#define CK_ENV_SEAL "SLURM_CKPT_JOB"
#define CK_ENV_DIR "SLURM_CKPT_DIR"                 /* run directory, absolute */
#define CK_ENV_NAME "SLURM_CKPT_NAME"               /* the run's name */
#define CK_ENV_EVERY "SLURM_CKPT_EVERY"             /* "1800s", "500steps" */
#define CK_ENV_KEEP "SLURM_CKPT_KEEP"               /* number of checkpoints */
#define CK_ENV_MARGIN "SLURM_CKPT_MARGIN"           /* seconds kept free before the end */
#define CK_ENV_END_TIME "SLURM_CKPT_END_TIME"       /* seconds since 1970; absent: no limit */
#define CK_ENV_OVERTIME "SLURM_CKPT_OVERTIME"       /* seconds of it beyond the job's time limit */
#define CK_ENV_SUBMIT_TIME "SLURM_CKPT_SUBMIT_TIME" /* seconds since 1970 */
#define CK_ENV_RUN_ID "SLURM_CKPT_RUN_ID"           /* 32 hex digits */
#define CK_ENV_RESUME "SLURM_CKPT_RESUME" /* newest checkpoint, absent when there is none */
#define CK_ENV_RESUME_STEP "SLURM_CKPT_RESUME_STEP" /* its step */
#define CK_ENV_RESUME_MODE "SLURM_CKPT_RESUME_MODE" /* auto, fresh, <step> */
#define CK_ENV_FROM "SLURM_CKPT_FROM"               /* run or step directory to begin from */
#define CK_ENV_VERIFY "SLURM_CKPT_VERIFY"           /* auto, crc32, sha256 */
#define CK_ENV_FAIL "SLURM_CKPT_FAIL"               /* warn, error */
#define CK_ENV_WORLD "SLURM_CKPT_WORLD"             /* any, fixed */
#define CK_ENV_STAGING "SLURM_CKPT_STAGING"         /* auto, off, bytes such as "2147483648B" */
#define CK_ENV_TAKEOVER "SLURM_CKPT_TAKEOVER"       /* 1: supersede an owner that seems to run */
/* Newest claim when srun looked who owns the run, 0: none; nobody held it then. */
#define CK_ENV_GENERATION "SLURM_CKPT_GENERATION"
#define CK_ENV_FIRST \
	"SLURM_CKPT_FIRST" /* 1: Slurm counts restarts, but none of them has run the job's script */
#define CK_ENV_KEEP_EVERY \
	"SLURM_CKPT_KEEP_EVERY" /* steps: pin the first checkpoint at or after each */

/*
 * Left in the job by sbatch and salloc when checkpointing is on, whatever happens on the nodes; and set for a
 * step that has it switched off. The first without the second and without a seal means that the plugin was
 * not loaded on the node.
 */
#define CK_ENV_SUBMITTED "SLURM_SPANK_CKPT_SUBMITTED"
#define CK_ENV_OFF "SLURM_CKPT_OFF"

/* Set by people, not by the plugin. */
#define CK_ENV_TIMEOUT "SLURM_CKPT_TIMEOUT"   /* seconds a rank may be silent (default 600) */
#define CK_ENV_SHA "SLURM_CKPT_SHA"           /* auto, libcrypto: who computes SHA-256 */
#define CK_ENV_IO_FAULT "SLURM_CKPT_IO_FAULT" /* rules of io_fault.h, to rehearse failures */

/* Defaults of the options. */
#define CK_DEFAULT_EVERY_SECONDS 1800
#define CK_DEFAULT_KEEP 3
#define CK_KEEP_MAX 10000
#define CK_DEFAULT_MARGIN_SECONDS 60
#define CK_DEFAULT_TIMEOUT_SECONDS 600

#endif
