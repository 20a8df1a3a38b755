/* settings.h: options and environment. */
#include "settings.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "env.h"
#include "tap.h"

/* The environment of one case: name, value, …, NULL. */
static const char *const *env;

static char *get(const char *name)
{
	for (const char *const *e = env; e && *e; e += 2)
		if (strcmp(*e, name) == 0)
			return (char *)e[1];
	return NULL;
}

#define ENV(...)                    \
	env = (const char *const[]) \
	{                           \
		__VA_ARGS__, NULL   \
	}
#define JOB "SLURM_JOB_ID", "12", "SLURM_CLUSTER_NAME", "mini"
#define SEALED JOB, CK_ENV_SEAL, "mini/12/0", CK_ENV_DIR, "/runs/a"

static struct ck_settings set;
static struct ck_error err;
static char notice[CK_ERROR_TEXT];

static int load(const struct ckpt_options *options)
{
	memset(&set, 0x55, sizeof(set));
	err = (struct ck_error)CK_ERROR_INIT;
	return ck_settings_load(get, options, &set, notice, &err);
}

static void bad_options(void)
{
	static const int kill[] = {SIGKILL, 0}, wild[] = {4000, 0};
	static const struct {
		struct ckpt_options options;
		const char *text;
	} rows[] = {
		{{.struct_size = 3}, "struct_size: 3"},
		{{.struct_size = sizeof(struct ckpt_options), .keep = -1}, "keep: -1"},
		{{.struct_size = sizeof(struct ckpt_options), .every = "500"},
		 "ckpt_options.every: 500"},
		{{.struct_size = sizeof(struct ckpt_options), .every = "banana"}, "banana"},
		{{.struct_size = sizeof(struct ckpt_options), .margin_seconds = -2},
		 "margin_seconds: -2"},
		{{.struct_size = sizeof(struct ckpt_options), .stop_signals = kill},
		 "stop_signals: 9"},
		{{.struct_size = sizeof(struct ckpt_options), .save_signals = wild},
		 "save_signals: 4000"},
		{{.struct_size = sizeof(struct ckpt_options), .dir = ""}, "empty path"},
	};

	env = NULL;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		is_int(load(&rows[i].options), CK_EARG, "refused: %s", rows[i].text);
		like(err.text, rows[i].text, "the text names it");
	}
}

/* Of options that are texts: whatever they mean, "" is none of it. */
static void empty_texts(void)
{
	/* clang-format off */ /* its releases differ on a body in braces */
	static const struct {
		const char *option, *variable; /* as messages and environment name them */
		struct ckpt_options options;
	} rows[] = {
#define ROW(member, variable) {"ckpt_options." #member, variable, {.member = ""}}
		ROW(every, CK_ENV_EVERY),     ROW(resume, CK_ENV_RESUME_MODE),
		ROW(from, CK_ENV_FROM),       ROW(verify, CK_ENV_VERIFY),
		ROW(fail, CK_ENV_FAIL),       ROW(world, CK_ENV_WORLD),
		ROW(staging, CK_ENV_STAGING),
#undef ROW
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ckpt_options options = rows[i].options;
		char text[64];

		options.struct_size = sizeof(options);
		ENV(SEALED);
		is_int(load(&options), CK_EARG, "%s = \"\": refused", rows[i].option);
		snprintf(text, sizeof(text), "%s: empty", rows[i].option);
		like(err.text, text, "by name");
		ENV(SEALED, rows[i].variable, "");
		is_int(load(NULL), CK_EARG, "%s= : refused", rows[i].variable);
		snprintf(text, sizeof(text), "%s: empty", rows[i].variable);
		like(err.text, text, "by name");
	}
}

static void bad_environment(void)
{
	ENV(SEALED, CK_ENV_KEEP, "0");
	is_int(load(NULL), CK_EARG, CK_ENV_KEEP "=0 is refused");
	like(err.text, CK_ENV_KEEP, "by name");
	ENV(SEALED, CK_ENV_EVERY, "x");
	is_int(load(NULL), CK_EARG, CK_ENV_EVERY "=x is refused");
	like(err.text, CK_ENV_EVERY, "by name");
	ENV(CK_ENV_TIMEOUT, "0");
	is_int(load(NULL), CK_EARG, CK_ENV_TIMEOUT "=0 is refused, sealed or not");
}

static void worlds(void)
{
	struct ckpt_options options = {.struct_size = sizeof(options), .world = "any"};

	ENV(SEALED);
	is_int(load(NULL), 0, "nothing said about the number of ranks");
	ok(!set.world_fixed, "any may resume");
	ENV(SEALED, CK_ENV_WORLD, "fixed");
	is_int(load(NULL), 0, "fixed in the environment");
	ok(set.world_fixed, "only as many as saved");
	is_int(load(&options), 0, "the program says any");
	ok(!set.world_fixed, "and wins");
	options.world = "4";
	is_int(load(&options), CK_EARG, "a number");
	like(err.text, "ckpt_options.world: 4: expected any or fixed", "is refused");
}

static void staging(void)
{
	struct ckpt_options options = {.struct_size = sizeof(options), .staging = "2G"};

	ENV(SEALED);
	is_int(load(NULL), 0, "nothing said about staging");
	is_int(set.staging.mode, CK_STAGING_AUTO, "is auto");
	ENV(SEALED, CK_ENV_STAGING, "off");
	is_int(load(NULL), 0, "off in the environment");
	is_int(set.staging.mode, CK_STAGING_OFF, "is off");
	is_int(load(&options), 0, "the program says 2G");
	is_int(set.staging.mode, CK_STAGING_MOST, "and wins");
	is_u64(set.staging.most, UINT64_C(2) << 30, "in bytes");
	options.staging = "on";
	is_int(load(&options), CK_EARG, "on");
	like(err.text, "ckpt_options.staging: on: not a size", "is refused");
	ENV(SEALED, CK_ENV_STAGING, "1");
	is_int(load(NULL), CK_EARG, "a bare number in the environment");
	like(err.text, CK_ENV_STAGING ": 1: a number needs a unit", "is refused");
}

static void off(void)
{
	env = NULL;
	is_int(load(NULL), 0, "nothing set");
	ok(set.off, "checkpointing is off");
	is_str(notice, "", "and nothing is said");
	ENV("CKPT_DIR", "/home/me/weights");
	is_int(load(NULL), 0, "CKPT_DIR belongs to the user");
	ok(set.off, "and is never read");
}

static void seals(void)
{
	ENV(JOB, CK_ENV_DIR, "/runs/a", CK_ENV_SEAL, "mini/11/0");
	is_int(load(NULL), 0, "sealed for another job");
	ok(set.off, "is ignored");
	like(notice, "job mini/11/0", "and that is said");
	ENV(JOB, "SLURM_RESTART_COUNT", "1", CK_ENV_DIR, "/runs/a", CK_ENV_SEAL, "mini/12/0");
	is_int(load(NULL), 0, "sealed for an earlier start of this job");
	ok(set.off, "is ignored");
	ENV(CK_ENV_DIR, "/runs/a", CK_ENV_SEAL, "mini/12/0");
	is_int(load(NULL), 0, "sealed, but in no job");
	ok(set.off, "is ignored");
	like(notice, "no Slurm job", "and that is said");
	ENV(JOB, CK_ENV_DIR, "/runs/a");
	is_int(load(NULL), 0, "no seal");
	ok(set.off, "is ignored");
}

static void no_plugin(void)
{
	ENV(JOB, CK_ENV_SUBMITTED, "1700000000", "SLURM_JOB_NODELIST", "n[02-03,5]");
	is_int(load(NULL), CK_EREFUSED,
	       "submitted with --ckpt, and no plugin on the node: refused");
	like(err.text, "plugin was not loaded on node n02,", "with the reason and the node");
	ENV(JOB, CK_ENV_SUBMITTED, "1700000000", CK_ENV_OFF, "1");
	is_int(load(NULL), 0, "a step that has it switched off");
	ok(set.off, "is off");
	ENV(SEALED, CK_ENV_SUBMITTED, "1700000000");
	is_int(load(NULL), 0, "with the plugin");
	ok(!set.off, "it is on");
}

static void defaults(void)
{
	ENV(SEALED);
	is_int(load(NULL), 0, "sealed for this job");
	ok(!set.off, "is on");
	is_str(set.dir, "/runs/a", "directory");
	is_str(set.name, "a", "name: its last component");
	is_u64(set.every.seconds, 1800, "every 30 min");
	is_u64(set.keep, 3, "keep 3");
	is_int((long long)set.margin_seconds, 60, "margin 60 s");
	is_u64(set.timeout_ms, 600000, "time-out 10 min");
	is_int(set.end_time, 0, "no end time");
	is_int(set.stop_signals[0], SIGTERM, "SIGTERM stops");
	is_int(set.stop_signals[1], SIGUSR1, "SIGUSR1 stops");
	is_int(set.stop_signals[2], 0, "no more");
	is_int(set.save_signals[0], SIGUSR2, "SIGUSR2 saves");
}

static void precedence(void)
{
	struct ckpt_options options = {.struct_size = sizeof(options),
				       .every = "500steps",
				       .keep = 7,
				       .margin_seconds = 5};

	ENV(SEALED, CK_ENV_EVERY, "900s", CK_ENV_KEEP, "2", CK_ENV_MARGIN, "10", CK_ENV_END_TIME,
	    "1700000000", CK_ENV_NAME, "big", "SLURM_STEP_ID", "3");
	is_int(load(NULL), 0, "from the environment");
	is_u64(set.every.seconds, 900, "every");
	is_u64(set.keep, 2, "keep");
	is_int((long long)set.margin_seconds, 10, "margin");
	is_int(set.end_time, 1700000000, "end time");
	is_str(set.name, "big", "name");
	is_str(set.job.step_id, "3", "Slurm step");
	is_int(load(&options), 0, "options win");
	is_u64(set.every.steps, 500, "every");
	is_u64(set.keep, 7, "keep");
	is_int((long long)set.margin_seconds, 5, "margin");
	options.dir = "/elsewhere/b/";
	is_int(load(&options), 0, "a directory of the program's own");
	is_str(set.dir, "/elsewhere/b", "wins, without the slash at its end");
	is_str(set.name, "b", "and names the run");
}

static void dirty_texts(void)
{
	struct ckpt_options options = {.struct_size = sizeof(options), .dir = "/runs/a\nb\xff"};

	ENV("SLURM_JOB_ID", "12", "SLURM_CLUSTER_NAME", "mini", "SLURM_JOB_NODELIST",
	    "n[1-2]\x1b[31m");
	is_int(load(&options), 0, "control characters in names");
	is_str(set.job.nodes, "n[1-2]?[31m", "do not reach a manifest");
	is_str(set.name, "a?b?", "nor does what is no UTF-8");
	is_str(set.dir, "/runs/a\nb\xff", "the path stays what it is");
}

/* For people who measure: no seal is needed. */
static void who_hashes(void)
{
	const struct ckpt_options options = {.struct_size = sizeof(options), .dir = "/a"};

	ENV(JOB);
	is_int(load(&options), 0, "nobody asks");
	is_int(set.sha, CK_SHA_BEST, "SHA-256 by the fastest");
	ENV(JOB, CK_ENV_SHA, "libcrypto");
	is_int(load(&options), 0, "asked for");
	is_int(set.sha, CK_SHA_LIBCRYPTO, "SHA-256 by libcrypto");
	ENV(JOB, CK_ENV_SHA, "md5");
	is_int(load(&options), CK_EARG, "SHA-256 by something else");
	like(err.text, CK_ENV_SHA ": md5", "the text names it");
}

int main(void)
{
	dirty_texts();
	bad_options();
	empty_texts();
	bad_environment();
	off();
	seals();
	no_plugin();
	defaults();
	worlds();
	staging();
	precedence();
	who_hashes();
	return done_testing();
}
