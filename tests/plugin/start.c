/* A start finds or makes its run, and never makes one where one should be. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "begin.h"
#include "env.h"
#include "start.h"
#include "tap.h"

static const struct ck_io *const io = &ck_io_posix;

static void make_file(const char *dir, const char *name, const char *text)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0666);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		diag("%s cannot be made", path);
	close(fd);
}

static void make_dir(const char *dir, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (mkdir(path, 0777))
		diag("%s cannot be made", path);
}

static struct ck_start new_start(const char *base, const struct ck_opts *opts, uint32_t restarts)
{
	struct ck_start start = {
		.cluster = "mini", .job_id = 7, .restarts = restarts, .submit = 1000, .opts = opts};

	snprintf(start.base, sizeof(start.base), "%s", base);
	return start;
}

static void refuses(void)
{
	const char *dir = test_tmpdir();
	struct ck_error err = CK_ERROR_INIT;
	struct ck_start start;
	struct ck_opts opts;
	char base[PATH_MAX];

	ck_opts_init(&opts);
	snprintf(base, sizeof(base), "%s/a/b", dir);
	start = new_start(base, &opts, 1);
	is_int(ck_start_open(io, &start, &err), CK_EREFUSED, "a restart without its run");
	like(err.text, "this job has run before", "... is told");
	like(err.text, "/a/b/mini-7 is missing: is the file system mounted?",
	     "... with the directory");
	like(err.text, "create the empty directory", "... and what to do");
	is_int(access(base, F_OK), -1, "... and nothing is made");

	ok(start.lost_run, "... and known to be a loss");

	snprintf(base, sizeof(base), "%s/r/1", dir);
	start = new_start(base, &opts, 0);
	is_int(ck_start_open(io, &start, &err), 0, "a run in a directory of its start");
	snprintf(base, sizeof(base), "%s/r/2", dir);
	start = new_start(base, &opts, 1);
	is_int(ck_start_open(io, &start, &err), CK_EREFUSED, "... is not in that of the next");
	like(err.text, "/r/2/mini-7 is missing: its run is ", "... that is named");
	like(err.text, "/r/1/mini-7; --ckpt-dir has to name the same", "... and so is the other");

	make_dir(dir, "mini-7");
	make_file(dir, "mini-7/strange", "");
	start = new_start(dir, &opts, 1);
	is_int(ck_start_open(io, &start, &err), CK_EREFUSED,
	       "a restart, and the run is something else");
	like(err.text, "has no run.json", "... is told");

	make_file(dir, "mini-7/run.json", "{}");
	is_int(ck_start_open(io, &start, &err), CK_EFORMAT, "a run.json that is none");
	like(err.text, "mini-7/run.json", "... is named");

	start = new_start(dir, &opts, 0);
	strcpy(start.cluster, "a/b");
	is_int(ck_start_open(io, &start, &err), CK_EARG, "a cluster that makes no name");

	make_file(dir, "file", "");
	snprintf(base, sizeof(base), "%s/file", dir);
	start = new_start(base, &opts, 0);
	is_int(ck_start_open(io, &start, &err), CK_EIO, "a directory below a file");
	like(err.text, "/file/mini-7", "... is named");

	ck_opts_set(&opts, CK_OPT_NAME, "", "n", NULL);
	memset(base, '/', PATH_MAX - 2);
	base[PATH_MAX - 2] = '\0';
	start = new_start(base, &opts, 0);
	is_int(ck_start_open(io, &start, &err), CK_EARG, "a path that does not fit");
	like(err.text, "too long", "... is told");
}

static void fresh_and_again(void)
{
	const char *dir = test_tmpdir();
	struct ck_error err = CK_ERROR_INIT;
	struct ck_start start, again;
	struct ck_opts opts;
	char base[PATH_MAX];
	struct stat st;

	ck_opts_init(&opts);
	snprintf(base, sizeof(base), "%s/x/y", dir);
	start = new_start(base, &opts, 0);
	is_int(ck_start_open(io, &start, &err), 0, "the first start (%s)", err.text);
	is_str(start.name, "mini-7", "... names its run after the job");
	is_int(strlen(start.run_id), CK_RUN_ID_HEX, "... which gets an id");
	ok(!start.has_resume, "... and has no checkpoint");

	again = new_start(base, &opts, 1);
	is_int(ck_start_open(io, &again, &err), 0, "the second start (%s)", err.text);
	is_str(again.run_id, start.run_id, "... finds it");

	again = new_start(base, &opts, 0);
	again.submit = 2000;
	is_int(ck_start_open(io, &again, &err), CK_EREFUSED, "another job with this id");
	like(err.text, "belongs to another job 7, submitted 1970-01-01T00:16:40Z", "... is told");
	like(err.text, "--ckpt-name=mini-7", "... and how to continue it all the same");
	again.submit = 0;
	is_int(ck_start_open(io, &again, &err), 0, "a submit time that is not known is no other");
	ck_opts_set(&opts, CK_OPT_NAME, "", "mini-7", NULL);
	again.submit = 2000;
	is_int(ck_start_open(io, &again, &err), 0, "a name given by hand continues it");

	make_dir(start.run, "step-0000000009.g1");
	make_dir(start.run, "step-0000000005.g2");
	make_dir(start.run, "step-0000000099.g2.bak");
	is_int(ck_start_open(io, &again, &err), 0, "with checkpoints");
	ok(again.has_resume, "... one is found");
	is_u64(again.resume.step, 5, "... the newest by generation");

	snprintf(base, sizeof(base), "%s/private/%s", dir, "z");
	ck_opts_init(&opts);
	start = new_start(base, &opts, 0);
	start.private_base = true;
	is_int(ck_start_open(io, &start, &err), 0, "below a site's root (%s)", err.text);
	ok(stat(base, &st) == 0 && (st.st_mode & 0777) == 0700, "... is for the user alone");

	start = new_start(dir, &opts, 0);
	start.array_job = 6;
	start.array_task = 2;
	is_int(ck_start_open(io, &start, &err), 0, "an array's element");
	is_str(start.name, "mini-6_2", "... is named after both numbers");
}

/* Slurm counts a launch that failed; only a start whose script ran is a past. */
static void failed_launch(void)
{
	const char *dir = test_tmpdir();
	struct ck_error err = CK_ERROR_INIT;
	struct ck_start start, again;
	struct ck_opts opts;
	char token[PATH_MAX];

	ck_opts_init(&opts);
	is_int(ck_token_make(io, dir, token, &err), 0, "sbatch leaves a token");
	start = new_start(dir, &opts, 1);
	ck_token_take(&start.token, token, dir);
	is_int(ck_start_open(io, &start, &err), 0, "a restart, and no script has run before (%s)",
	       err.text);
	ok(start.first, "... is a first start");
	again = new_start(dir, &opts, 2);
	ck_token_take(&again.token, token, dir);
	is_int(ck_start_open(io, &again, &err), 0, "the next one finds its run");
	ok(!again.first, "... and is none");
	is_int(ck_io_remove_tree(io, start.run, &err), 0, "(its run is lost)");
	is_int(ck_start_open(io, &again, &err), CK_EREFUSED, "without its run it is refused");

	again = new_start(dir, &opts, 2);
	again.first = true;
	is_int(ck_start_open(io, &again, &err), 0, "a step, and the batch script says so");
}

/* The guard is against file systems that are not there, not against steps that come late. */
static void late_step(void)
{
	const char *dir = test_tmpdir(), *elsewhere = test_tmpdir();
	struct ck_error err = CK_ERROR_INIT;
	struct ck_start job, step;
	struct ck_opts opts, named;

	ck_opts_init(&opts);
	ck_opts_init(&named);
	ck_opts_set(&named, CK_OPT_NAME, "", "phase2", NULL);
	job = new_start(dir, &opts, 0);
	is_int(ck_start_open(io, &job, NULL), 0, "the job's run");

	step = new_start(dir, &named, 3);
	is_int(ck_start_open(io, &step, &err), CK_EREFUSED, "a step's run, the job's is not known");
	step = new_start(elsewhere, &named, 3);
	strcpy(step.job_run, job.run);
	is_int(ck_start_open(io, &step, &err), CK_EREFUSED, "a step's run in another place");
	step = new_start(dir, &named, 3);
	strcpy(step.job_run, job.run);
	is_int(ck_start_open(io, &step, &err), 0, "a step's run beside the job's (%s)", err.text);

	make_dir(elsewhere, "mini-7");
	step = new_start(elsewhere, &opts, 3);
	is_int(ck_start_open(io, &step, &err), 0, "an empty directory is a wish to start over");
}

/* What the environment would be, as "NAME=value NAME ..." of what begins with SLURM_CKPT_R or _E */
struct seen {
	char text[PATH_MAX * 2];
	int count, stop_at;
};

static int see(void *arg, const char *name, const char *value)
{
	struct seen *seen = arg;
	size_t len = strlen(seen->text);

	if (++seen->count == seen->stop_at)
		return 5;
	snprintf(seen->text + len, sizeof(seen->text) - len, "%s%s%s ", name, value ? "=" : "",
		 value ? value : "");
	return 0;
}

static void environment(void)
{
	struct ck_opts opts;
	struct ck_start start;
	struct seen seen = {.text = ""};
	char seal[CK_SEAL_BYTES];

	ck_opts_init(&opts);
	start = new_start("/c", &opts, 2);
	strcpy(start.run, "/c/mini-7");
	strcpy(start.name, "mini-7");
	strcpy(start.run_id, "abc");
	is_str(ck_start_seal(&start, seal), "mini/7/2", "the seal");
	is_int(ck_start_env(&start, see, &seen), 0, "environment");
	is_str(seen.text,
	       "SLURM_CKPT_JOB=mini/7/2 SLURM_CKPT_DIR=/c/mini-7 SLURM_CKPT_NAME=mini-7 "
	       "SLURM_CKPT_EVERY=1800s SLURM_CKPT_KEEP=3 SLURM_CKPT_MARGIN=60 SLURM_CKPT_END_TIME "
	       "SLURM_CKPT_OVERTIME SLURM_CKPT_SUBMIT_TIME=1000 SLURM_CKPT_RESUME_MODE "
	       "SLURM_CKPT_FROM "
	       "SLURM_CKPT_TAKEOVER SLURM_CKPT_VERIFY SLURM_CKPT_WORLD SLURM_CKPT_FAIL "
	       "SLURM_CKPT_STAGING SLURM_CKPT_KEEP_EVERY "
	       "SLURM_CKPT_RUN_ID=abc SLURM_CKPT_RESUME "
	       "SLURM_CKPT_RESUME_STEP SLURM_CKPT_GENERATION SLURM_CKPT_FIRST "
	       "SLURM_RESTART_COUNT=2 ",
	       "... without a limit and a checkpoint");

	ck_opts_set(&opts, CK_OPT_RESUME, "", "fresh", NULL);
	ck_opts_set(&opts, CK_OPT_KEEP_EVERY, "", "1000", NULL);
	ck_opts_set(&opts, CK_OPT_STAGING, "", "512M", NULL);
	start.end = 5000;
	start.looked = start.first = true;
	start.generation = 6;
	start.has_resume = true;
	start.resume = (struct ck_step_id){.step = 12, .generation = 3};
	seen = (struct seen){.text = ""};
	ck_start_env(&start, see, &seen);
	like(seen.text, "SLURM_CKPT_END_TIME=5000 ", "with a limit");
	like(seen.text, "SLURM_CKPT_RESUME=/c/mini-7/step-0000000012.g3 ", "with a checkpoint");
	like(seen.text, "SLURM_CKPT_RESUME_STEP=12 ", "... and its step");
	like(seen.text, "SLURM_CKPT_RESUME_MODE=fresh ", "with a choice");
	like(seen.text, "SLURM_CKPT_KEEP_EVERY=1000 ", "with pins");
	like(seen.text, "SLURM_CKPT_GENERATION=6 SLURM_CKPT_FIRST=1 ", "with the newest claim");
	start.restarts = 0;
	seen = (struct seen){.text = ""};
	ck_start_env(&start, see, &seen);
	like(seen.text, "SLURM_CKPT_FIRST SLURM_RESTART_COUNT ",
	     "a first start has nothing of another job's count");
	like(seen.text, "SLURM_CKPT_STAGING=536870912B ", "with a limit of staging");

	seen = (struct seen){.stop_at = 3};
	is_int(ck_start_env(&start, see, &seen), 5, "a setter that fails");
	is_int(seen.count, 3, "... is not called again");
	seen = (struct seen){.text = ""};
	is_int(ck_start_env_clear(see, &seen), 0, "cleared");
	like(seen.text, "SLURM_CKPT_REFUSED ", "... with the refusal");
	unlike(seen.text, "=", "... and nothing is set");
}

/* The environment's count, 2, is the job's, or of a job from within which this one was submitted. */
static void counting(char *const *env, const struct ck_site *site, const struct ck_opts *opts)
{
	static const struct {
		const char *name;
		bool loaded, outside;
		uint32_t restarts, counted;
	} rows[] = {
		{"slurmctld is at the next start already", true, false, 3, 2},
		{"slurmctld counts the same", true, false, 2, 2},
		{"a first start: the count is the outer job's", true, false, 0, 0},
		{"a second start, submitted from a third one", true, false, 1, 1},
		{"slurmctld does not answer", false, false, 0, 2},
		{"srun --jobid: the environment is another's", true, true, 5, 5},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ck_jobinfo job = {.job_id = rows[i].loaded ? 7 : 0,
					 .restarts = rows[i].restarts};
		struct ck_start start = {.job_id = 7, .opts = opts, .outside = rows[i].outside};
		bool surprise;

		ck_begin(&start, site, &job, env, &surprise, NULL);
		is_u64(start.restarts, rows[i].counted, "%s", rows[i].name);
	}
}

static void beginning(void)
{
	static char *env[] = {"SLURM_CLUSTER_NAME=mini",
			      "SLURM_RESTART_COUNT=2",
			      "SLURM_SPANK_CKPT_SUBMITTED=1234",
			      "SLURM_JOB_USER=anna",
			      "SLURM_JOB_NAME=train it",
			      "SCRATCH=/scratch/anna",
			      "EMPTY=",
			      NULL};
	static char *first[] = {"SLURM_ARRAY_JOB_ID=6", "SLURM_ARRAY_TASK_ID=4",

				"SLURM_SPANK_CKPT_SUBMITTED=x", NULL};
	struct ck_jobinfo job = {.job_id = 7, .restarts = 3, .submit = 99, .end = 500};
	const struct ck_jobinfo none = {.job_id = 0};
	struct ck_site site;
	struct ck_opts opts;
	struct ck_start start;
	bool surprise;
	char text[CK_REFUSED_BYTES];

	ck_site_init(&site);
	ck_opts_init(&opts);
	is_str(ck_begin_getenv(env, "SLURM_JOB_USER"), "anna", "a variable");
	is_str(ck_begin_getenv(env, "SLURM_JOB_USE"), NULL, "the front of a name is none");
	is_str(ck_begin_getenv(env, "EMPTY"), NULL, "an empty one is none");
	is_str(ck_begin_getenv(NULL, "X"), NULL, "no environment");

	start = (struct ck_start){.job_id = 7, .opts = &opts};
	is_int(ck_begin(&start, &site, &job, env, &surprise, NULL), 0, "a restart");
	is_u64(start.restarts, 2, "... counts as the environment does");
	is_int(start.submit, 1234, "... was submitted when sbatch said");
	is_str(start.base, "/scratch/anna/ckpt", "... has its runs in $SCRATCH");
	ck_begin_job_run(&start, "mini/7/1", "/stale", NULL);
	is_str(start.job_run, "", "... another start's run does not count");
	ck_begin_job_run(&start, NULL, "/x", NULL);
	is_str(start.job_run, "", "... nor one without a seal");
	ck_begin_job_run(&start, "mini/7/2", "/c/mini-7", NULL);
	is_str(start.job_run, "/c/mini-7", "... its own does");
	ok(!start.first, "... and it is no first start");
	ck_begin_job_run(&start, "mini/7/2", "/c/mini-7", "1");
	ok(start.first, "... unless the batch script says so");
	ok(!surprise && !start.private_base, "... which was named, by the user");

	counting(env, &site, &opts);
	ck_site_arg(&site, "root=/r/%u/%x/%A", NULL);
	is_int(ck_begin(&start, &site, &job, env, &surprise, NULL), 0, "with a site's root");
	is_str(start.base, "/r/anna/train_it/7", "... it is there");
	ok(start.private_base, "... for the user alone");
	is_u64(start.literal, 2, "... whose own /r/anna must be, and what is below");

	ck_opts_set(&opts, CK_OPT_DIR, "", "/mine", NULL);
	start = (struct ck_start){.job_id = 7, .opts = &opts};
	is_int(ck_begin(&start, &site, &none, first, &surprise, NULL), 0,
	       "slurmctld does not answer");
	is_str(start.base, "/mine", "... the user's directory goes first");
	ok(!start.private_base, "... and is made as the user makes directories");
	is_u64(start.array_job, 6, "... the array is known all the same");
	is_u64(start.array_task, 4, "... and the element");
	is_int(start.submit, 0, "... a submit time that is no number is unknown");
	is_str(start.cluster, "slurm", "... a cluster without a name");
	job.array_job = 6;
	is_int(ck_begin(&start, &site, &job, first, &surprise, NULL), 0, "slurmctld answers");
	is_int(start.submit, 99, "... at the first start its submit time holds");

	strcpy(start.cluster, "mini");
	is_str(ck_begin_refusal(&start, "no, \n!", text), "mini/7/0 no, \n!", "a refusal");
	is_str(ck_begin_refused(text, 7), "no, \n!", "... comes back");
	is_str(ck_begin_refused(text, 8), NULL, "... but not for another job");
	is_str(ck_begin_refused("mini/7/0", 7), NULL, "... nor without a text");
	is_str(ck_begin_refused("x /7/", 7), NULL, "... nor from a text alone");
	is_str(ck_begin_refused(NULL, 7), NULL, "... nor from nothing");
}

int main(void)
{
	refuses();
	fresh_and_again();
	failed_launch();
	late_step();
	environment();
	beginning();
	return done_testing();
}
