/* Options: texts in, values or one telling line out. */
#include <string.h>

#include "opts.h"
#include "tap.h"

static void refuses(void)
{
	static char long_name[200], long_dir[PATH_MAX + 10];
	static const struct {
		enum ck_opt opt;
		const char *text, *says;
	} bad[] = {
		{CK_OPT_CKPT, "banana", "--x: banana: on or off is wanted"},
		{CK_OPT_CKPT, "ON", "--x: ON: on or off"},
		{CK_OPT_CKPT, "yes", "on or off"},
		{CK_OPT_DIR, NULL, "--x: empty: a directory is wanted"},
		{CK_OPT_DIR, "", "a directory is wanted"},
		{CK_OPT_DIR, "/a\nb", "control character 0x0a at position 3"},
		{CK_OPT_DIR, "/a\x7f", "control character 0x7f at position 3"},
		{CK_OPT_DIR, long_dir, "bytes, at most"},
		{CK_OPT_NAME, "../x", "--x: ../x: a name does not begin with '.'"},
		{CK_OPT_NAME, "a/b", "position 2"},
		{CK_OPT_NAME, "-a", "does not begin with '-'"},
		{CK_OPT_NAME, "", "--x: empty"},
		{CK_OPT_NAME, NULL, "--x: no value"},
		{CK_OPT_NAME, long_name, "at most 128"},
		{CK_OPT_EVERY, "banana", "--x: banana: not a duration"},
		{CK_OPT_EVERY, "500", "500s, 500min or 500steps"},
		{CK_OPT_EVERY, "0s", "more than 0"},
		{CK_OPT_EVERY, "auto", "not a duration"},
		{CK_OPT_KEEP, "0", "--x: 0: not between 1 and"},
		{CK_OPT_KEEP, "-1", "not a whole number"},
		{CK_OPT_KEEP, "3x", "not a whole number"},
		{CK_OPT_KEEP, "", "--x: empty"},
		{CK_OPT_REQUEUE, "0", "--x: 0: 'no', or a number from 1 to 65535"},
		{CK_OPT_REQUEUE, "off", "'no', or a number"},
		{CK_OPT_REQUEUE, "65536", "'no', or a number"},
		{CK_OPT_REQUEUE, NULL, "--x: empty: 'no'"},
		{CK_OPT_MARGIN, "60", "60s or 60min"},
		{CK_OPT_MARGIN, "5steps", "not a duration"},
		{CK_OPT_RESUME, "newest", "--x: newest: expected auto, fresh, or the number"},
		{CK_OPT_RESUME, NULL, "expected auto, fresh"},
		{CK_OPT_FROM, "", "--x: empty"},
		{CK_OPT_TAKEOVER, "yes", "on or off is wanted"},
		{CK_OPT_VERIFY, "md5", "--x: md5: auto, crc32 or sha256 is wanted"},
		{CK_OPT_FAIL, "stop", "--x: stop: warn or error is wanted"},
		{CK_OPT_FAIL, NULL, "--x: empty: warn or error"},
		{CK_OPT_WORLD, "8", "--x: 8: any or fixed is wanted"},
		{CK_OPT_STAGING, NULL, "--x: no value: a size such as 512M"},
		{CK_OPT_STAGING, "on",
		 "--x: on: not a size such as 512M, 2G, 2GiB or 5GB (or auto, or off)"},
		{CK_OPT_STAGING, "2", "--x: 2: a number needs a unit: 2M or 2G (or auto, or off)"},
		{CK_OPT_KEEP_EVERY, "0", "--x: 0: not between 1 and"},
		{CK_OPT_KEEP_EVERY, "1000steps", "not a whole number"},
		{CK_OPT_COUNT, "x", "no such option"},
	};

	memset(long_name, 'a', sizeof(long_name) - 1);
	memset(long_dir, '/', sizeof(long_dir) - 1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct ck_error err = CK_ERROR_INIT;
		struct ck_opts opts, before;

		ck_opts_init(&opts);
		before = opts;
		is_int(ck_opts_set(&opts, bad[i].opt, "--x", bad[i].text, &err), CK_EARG,
		       "case %zu is refused", i);
		like(err.text, bad[i].says, "... and told why");
		ok(memcmp(&opts, &before, sizeof(opts)) == 0, "... and nothing is changed");
	}
}

static void accepts(void)
{
	static const char *const on[] = {NULL, "", "(null)", "on"};
	struct ck_opts opts;
	char text[32];

	for (size_t i = 0; i < 4; i++) {
		ck_opts_init(&opts);
		is_int(ck_opts_set(&opts, CK_OPT_CKPT, "--ckpt", on[i], NULL), 0, "on, form %zu",
		       i);
		ok(opts.on, "... is on");
		ok(ck_opts_has(&opts, CK_OPT_CKPT), "... and given");
		ok(!ck_opts_has(&opts, CK_OPT_KEEP), "... and nothing else is");
	}
	is_int(ck_opts_set(&opts, CK_OPT_CKPT, "--ckpt", "off", NULL), 0, "off");
	ok(!opts.on, "... is off; the last one counts");

	is_int(ck_opts_set(&opts, CK_OPT_DIR, "", "a b/$x", NULL), 0, "any directory");
	is_str(opts.dir, "a b/$x", "... as it is");
	is_int(ck_opts_set(&opts, CK_OPT_NAME, "", "Run_1.b-c", NULL), 0, "a name");
	is_str(opts.name, "Run_1.b-c", "... as it is");
	is_int(ck_opts_set(&opts, CK_OPT_KEEP, "", "7", NULL), 0, "keep");
	is_u64(opts.keep, 7, "... 7");
	is_int(ck_opts_set(&opts, CK_OPT_REQUEUE, "", "no", NULL), 0, "requeue=no");
	is_int(opts.requeue, 0, "... is 0");
	is_int(ck_opts_set(&opts, CK_OPT_REQUEUE, "", "65535", NULL), 0, "requeue=65535");
	is_int(opts.requeue, 65535, "... is that");
	is_int(ck_opts_set(&opts, CK_OPT_MARGIN, "", "2min", NULL), 0, "margin");
	is_u64(opts.margin_seconds, 120, "... in seconds");
	is_int(ck_opts_set(&opts, CK_OPT_EVERY, "", "1:00:00", NULL), 0, "every, as a clock");
	is_str(ck_opts_every_text(&opts.every, text), "3600s", "... in seconds");
	is_int(ck_opts_set(&opts, CK_OPT_EVERY, "", "500steps", NULL), 0, "every, in steps");
	is_str(ck_opts_every_text(&opts.every, text), "500steps", "... in steps");
}

int main(void)
{
	struct ck_opts opts;
	char text[32];

	refuses();
	accepts();
	ck_opts_init(&opts);
	is_str(ck_opts_every_text(&opts.every, text), "1800s", "default of --ckpt-every");
	is_u64(opts.keep, 3, "default of --ckpt-keep");
	is_u64(opts.margin_seconds, 60, "default of --ckpt-margin");
	is_int(opts.requeue, CK_REQUEUE_AUTO, "default of --ckpt-requeue");
	is_int(ck_opts_set(&opts, CK_OPT_RESUME, "", "12", NULL), 0, "a step to resume from");
	is_str(ck_opts_resume_text(&opts.resume, text), "12", "... as text");
	is_int(ck_opts_set(&opts, CK_OPT_RESUME, "", "fresh", NULL), 0, "a fresh start");
	is_str(ck_opts_resume_text(&opts.resume, text), "fresh", "... as text");
	is_int(ck_opts_set(&opts, CK_OPT_TAKEOVER, "", NULL, NULL), 0, "a takeover");
	ok(opts.takeover, "... is on without a value");
	is_str(ck_opts_staging_text(&opts.staging, text), "auto", "default of --ckpt-staging");
	is_int(ck_opts_set(&opts, CK_OPT_STAGING, "", "off", NULL), 0, "no staging");
	is_str(ck_opts_staging_text(&opts.staging, text), "off", "... as text");
	is_int(ck_opts_set(&opts, CK_OPT_STAGING, "", "2G", NULL), 0, "so much staging");
	is_str(ck_opts_staging_text(&opts.staging, text), "2147483648B", "... as text");
	is_str(ck_opt_name(CK_OPT_STAGING), "ckpt-staging", "name of --ckpt-staging");
	is_str(ck_opt_name(CK_OPT_CKPT), "ckpt", "name of --ckpt");
	is_str(ck_opt_name(CK_OPT_KEEP_EVERY), "ckpt-keep-every", "name of --ckpt-keep-every");
	is_str(ck_opt_name(CK_OPT_MARGIN), "ckpt-margin", "name of --ckpt-margin");
	return done_testing();
}
