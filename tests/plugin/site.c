/* Arguments in plugstack.conf: a bad one is named and leaves what was there. */
#include <string.h>

#include "site.h"
#include "tap.h"

static void refuses(void)
{
	static const struct {
		const char *arg, *says;
	} bad[] = {
		{"", "plugstack.conf: : key=value is wanted"},
		{"on", "plugstack.conf: on: key=value is wanted"},
		{"=x", "plugstack.conf: =x: key=value"},
		{"kep=3", "plugstack.conf: kep: no such argument; there are root, default"},
		{"shared=on", "plugstack.conf: shared: on: yes or no is wanted"},
		{"keep=", "plugstack.conf: keep: empty"},
		{"keep=0", "plugstack.conf: keep: 0: not between"},
		{"every=500", "plugstack.conf: every: 500: a number needs a unit"},
		{"default=yes", "plugstack.conf: default: yes: on or off is wanted"},
		{"root=", "plugstack.conf: root: empty"},
		{"root=ckpt/%u", "plugstack.conf: root: ckpt/%u: an absolute path is wanted"},
		{"root=/ckpt/%q", "'%q' is none of %u %U"},
		{"root=/ckpt/%", "'%' is none of"},
		{"root=/ckpt/%%%", "'%' is none of"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct ck_error err = CK_ERROR_INIT;
		struct ck_site site, before;

		ck_site_init(&site);
		is_int(ck_site_arg(&site, "keep=5", NULL), 0, "a good one first");
		before = site;
		is_int(ck_site_arg(&site, bad[i].arg, &err), CK_EARG, "'%s' is refused",
		       bad[i].arg);
		like(err.text, bad[i].says, "... and told why");
		ok(memcmp(&site, &before, sizeof(site)) == 0, "... and the site is as before");
	}
}

static void root(void)
{
	static const struct {
		const char *root, *path, *trunk;
		size_t literal;
	} cases[] = {
		{"root=/ckpt", "/ckpt", "/ckpt", 5},
		{"root=/ckpt/%u", "/ckpt/anna", "/ckpt/anna", 5},
		{"root=/ckpt/of-%u/runs", "/ckpt/of-anna/runs", "/ckpt/of-anna/runs", 5},
		{"root=/c/%U/%A/%a", "/c/1001/40/3", "/c/1001", 2},
		{"root=/c/%x/%j%%", "/c/_.._my_job./43%", "/c", 2},
		{"root=/%j", "/43", "", 0},
	};
	const struct ck_site_words words = {
		.user = "anna",
		.uid = 1001,
		.job_id = 43,
		.job_name = "/../my job.",
		.array_job = 40,
		.array_task = 3,
	};
	static char long_arg[PATH_MAX];
	struct ck_error err = CK_ERROR_INIT;
	char path[PATH_MAX] = "as before";
	struct ck_site site;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_site_init(&site);
		is_int(ck_site_arg(&site, cases[i].root, NULL), 0, "%s", cases[i].root);
		is_int(ck_site_root(&site, &words, path, NULL), 0, "... is expanded");
		is_str(path, cases[i].path, "... to this");
		is_int(ck_site_trunk(&site, &words, path, NULL), 0, "... and its trunk");
		is_str(path, cases[i].trunk, "... to this");
		is_u64(ck_site_literal(&site), cases[i].literal, "... literally so far");
	}
	strcpy(long_arg, "root=/");
	for (size_t i = 0; i < 1700; i++)
		strcat(long_arg, "%x");
	ck_site_init(&site);
	is_int(ck_site_arg(&site, long_arg, NULL), 0, "a long pattern");
	strcpy(path, "as before");
	is_int(ck_site_root(&site, &words, path, &err), CK_EARG, "... is too long expanded");
	like(err.text, "too long for job 43", "... and told for which job");
	is_str(path, "as before", "... and nothing is written");
}

int main(void)
{
	struct ck_site site;

	refuses();
	root();
	ck_site_init(&site);
	ok(!site.on && !site.root[0], "no argument: off, no root");
	is_int(ck_site_arg(&site, "default=on", NULL), 0, "default=on");
	ok(site.on, "... is on");
	is_int(ck_site_arg(&site, "default=off", NULL), 0, "default=off");
	ok(!site.on, "... is off");
	is_int(ck_site_arg(&site, "every=2h", NULL), 0, "every=");
	is_u64(site.opts.every.seconds, 7200, "... in seconds");
	is_int(ck_site_arg(&site, "keep=9", NULL), 0, "keep=");
	is_u64(site.opts.keep, 9, "... is taken");
	return done_testing();
}
