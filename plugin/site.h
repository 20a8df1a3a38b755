/*
 * What the administrator wrote behind ckpt.so in plugstack.conf, and the path in root=. Pure.
 */
#ifndef CK_SITE_H
#define CK_SITE_H

#include <limits.h>
#include <stdbool.h>

#include "error.h"
#include "opts.h"

struct ck_site {
	bool on;             /* default=on|off: jobs without --ckpt */
	bool shared;         /* shared=yes|no: groups may continue one another's runs */
	char root[PATH_MAX]; /* root=: where runs lie without --ckpt-dir; "" when not given */
	struct ck_opts opts; /* every= and keep= */
};

/* No argument at all: off, no root, the options' own defaults. */
void ck_site_init(struct ck_site *site);

/*
 * Take one argument, "key=value". Returns 0; CK_EARG with "plugstack.conf: <argument>: ..." and
 * the site as it was, so that the default before it holds.
 */
int ck_site_arg(struct ck_site *site, const char *arg, struct ck_error *err);

/* What stands for the letters in root=. */
struct ck_site_words {
	const char *user;     /* %u */
	unsigned uid;         /* %U */
	unsigned job_id;      /* %j */
	const char *job_name; /* %x: letters, digits, '.', '_' and '-' stay, others become '_' */
	unsigned array_job;   /* %A: the job's id when it is not in an array */
	unsigned array_task;  /* %a: 0 when it is not in an array */
};

/* root= with its letters replaced, %% as %. Returns 0; CK_EARG when it becomes too long. */
int ck_site_root(const struct ck_site *site, const struct ck_site_words *words,
		 char out[static PATH_MAX], struct ck_error *err);

/*
 * The leading directories of root= that are the same for all jobs of a user, "" when there are none:
 * up to the first component with %j, %x, %A or %a.
 */
int ck_site_trunk(const struct ck_site *site, const struct ck_site_words *words,
		  char out[static PATH_MAX], struct ck_error *err);

/*
 * How many bytes of root= the administrator has named letter by letter: up to the '/' before the
 * first component with a letter in it, or to the end. What follows is made by users.
 */
size_t ck_site_literal(const struct ck_site *site);

#endif
