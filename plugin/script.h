/*
 * What a batch script's #SBATCH lines and a command line say, as far as the plugin must know it
 * before Slurm has read them. Pure.
 *
 * SBATCH_REQUEUE and SBATCH_OPEN_MODE act only when they are set before sbatch reads its options,
 * and then override the script's lines. So we look for ourselves, and only to decide whether to set
 * them: a word too many that is taken for one of ours makes us do less, never more.
 */
#ifndef CK_SCRIPT_H
#define CK_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#define CK_SAYS_TIME_MAX 32

struct ck_says {
	bool ckpt;      /* --ckpt, and its last value: */
	bool ckpt_on;   /* */
	bool other;     /* some --ckpt-... */
	bool requeue;   /* --requeue, --no-requeue, maybe abbreviated; --ckpt-requeue=no */
	bool open_mode; /* --open-mode, maybe abbreviated */
	bool wrap;      /* --wrap: there is no script */
	bool parsable;  /* --parsable, maybe abbreviated */
	bool het;       /* several components of a heterogeneous job */

	bool time_follows;           /* the last word was -t or --time */
	char time[CK_SAYS_TIME_MAX]; /* its last value; "" if there is none */
};

/* Take one word of a command line. */
void ck_says_word(struct ck_says *says, const char *word);

/*
 * Take the #SBATCH lines of a script: those before the first line that is neither blank nor a
 * comment. #PBS and #BSUB lines, which sbatch translates, count when they may mean requeueing.
 */
void ck_says_script(struct ck_says *says, const char *text, size_t len);

#endif
