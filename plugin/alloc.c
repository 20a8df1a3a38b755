#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "limit.h"
#include "notice.h"
#include "place.h"
#include "plugin.h"
#include "script.h"
#include "start.h"

/* sbatch's own limit for a script is 4 MiB; its #SBATCH lines stand in front. */
#define SCRIPT_BYTES (1 << 20)
#define ARGS_MAX 4096
/* A job that waits for longer than this is not told a failed launch from a start any more. */
#define TOKEN_SECONDS (180 * 86400)

extern char **environ;

/* What was set so that sbatch reads it, and is taken away again before the job is made. */
static struct {
	bool is_sbatch;
	bool requeue, append; /* set by us */
	bool doubt;           /* the script could not be looked at */
	bool says_requeue, says_open_mode;
	bool het;            /* the script or the command line seem to have several components */
	unsigned components; /* that have come by */
	int64_t limit;       /* the job's, in seconds; 0: not given */
} arranged;

/* A token, see token.h. */
static struct {
	pid_t pid; /* who left it; 0: none was left */
	char token[PATH_MAX];
} left;

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* Variables that a job has been given for itself. */
static bool is_inherited(const char *variable)
{
	static const char *const ours[] = {
		"SLURM_CKPT_",
		"SLURM_SPANK_CKPT_",
		"_SLURM_SPANK_OPTION_ckpt_",
		"SLURM_SPANK__SLURM_SPANK_OPTION_ckpt_",
	};
	static const char *const of_people[] = {"SLURM_CKPT_TIMEOUT=", "SLURM_CKPT_IO_FAULT=",
						"SLURM_CKPT_SHA="};

	for (size_t i = 0; i < sizeof(of_people) / sizeof(of_people[0]); i++) {
		if (begins(variable, of_people[i]))
			return false;
	}
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		if (begins(variable, ours[i]))
			return true;
	}
	return false;
}

/* A job submitted from within a job is a job of its own. */
static void forget_outer_job(void)
{
	char name[256];
	char **variable = environ;

	if (!getenv("SLURM_JOB_ID"))
		return;
	if (getenv(CK_ENV_KILL_SET))
		unsetenv("SLURM_KILL_BAD_EXIT");
	if (getenv(CK_ENV_APPENDED))
		unsetenv("SLURM_OPEN_MODE");
	while (*variable) {
		size_t len = strcspn(*variable, "=");

		if (is_inherited(*variable) && len < sizeof(name)) {
			memcpy(name, *variable, len);
			name[len] = '\0';
			unsetenv(name); /* closes the gap: the next one is here now */
		} else {
			variable++;
		}
	}
}

/* Whole regular file, at most `size` - 1 bytes, NUL behind. Returns its length or -1. */
static ssize_t read_text(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t len = 0, n;
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return -1;
	}
	while ((size_t)len + 1 < size && (n = read(fd, out + len, size - 1 - (size_t)len)) > 0)
		len += n;
	close(fd);
	out[len] = '\0';
	return len;
}

/*
 * Look at our own command line and the script in it: the first argument that is a file which begins
 * with "#!". What stands before it are options of sbatch, what follows are the script's.
 */
static void look(struct ck_says *line, struct ck_says *script, bool *found)
{
	char *args = malloc(SCRIPT_BYTES), *text = malloc(SCRIPT_BYTES);
	ssize_t len = args && text ? read_text("/proc/self/cmdline", args, SCRIPT_BYTES) : -1;
	char *arg = args;

	*found = false;
	for (int i = 0; len > 0 && arg < args + len && i < ARGS_MAX && !*found; i++) {
		ssize_t bytes = *arg != '-' && i > 0 ? read_text(arg, text, SCRIPT_BYTES) : -1;

		if (bytes > 2 && begins(text, "#!")) {
			ck_says_script(script, text, (size_t)bytes);
			*found = true;
		}
		ck_says_word(line, arg);
		arg += strlen(arg) + 1;
	}
	free(args);
	free(text);
}

/* As Slurm will find it, as far as one can see that before: command line, environment, script. */
static bool will_be_on(const struct ck_says *line, const struct ck_says *script)
{
	const char *env = getenv("SBATCH_CKPT");

	if (line->ckpt)
		return line->ckpt_on;
	if (env)
		return strcmp(env, "off") != 0;
	if (script->ckpt)
		return script->ckpt_on;
	return line->other || script->other || ck_plugin()->site.on;
}

/* As sbatch ranks them: command line, environment, script. */
static int64_t limit_given(const struct ck_says *line, const struct ck_says *script)
{
	const char *env = getenv("SBATCH_TIMELIMIT");

	return ck_limit_parse(*line->time ? line->time : env ? env : script->time);
}

/*
 * sbatch reads SBATCH_REQUEUE and SBATCH_OPEN_MODE after the script and lets them win, so they are
 * set only where nobody has said anything.
 */
static void arrange(void)
{
	struct ck_says line = {false}, script = {false};
	const char *never = getenv("SBATCH_CKPT_REQUEUE");
	bool found;

	look(&line, &script, &found);
	ck_notice_init(line.parsable);
	arranged.het = line.het || script.het;
	arranged.limit = limit_given(&line, &script);
	if (!will_be_on(&line, &script))
		return;
	arranged.doubt = !found && !line.wrap;
	arranged.says_requeue = line.requeue || script.requeue || getenv("SBATCH_REQUEUE") ||
				getenv("SBATCH_NO_REQUEUE") || (never && strcmp(never, "no") == 0);
	arranged.says_open_mode = line.open_mode || script.open_mode || getenv("SBATCH_OPEN_MODE");
	if (arranged.doubt)
		return;
	arranged.requeue = !arranged.says_requeue && !setenv("SBATCH_REQUEUE", "1", 1);
	arranged.append = !arranged.says_open_mode && !setenv("SBATCH_OPEN_MODE", "append", 1);
}

void ck_alloc_init(void)
{
	arranged.is_sbatch = strncmp(program_invocation_short_name, "salloc", 6) != 0;
	forget_outer_job();
	ck_spankopts_defaults(arranged.is_sbatch ? "SBATCH" : "SALLOC");
	if (arranged.is_sbatch)
		arrange();
}

static void say_arranged(void)
{
	static bool said;
	bool requeue = arranged.requeue, append = arranged.append;

	if (said || !arranged.is_sbatch)
		return;
	said = true;
	if (requeue || append)
		ck_notice("%s%s%s", requeue ? "the job may be requeued" : "",
			  requeue && append ? ", " : "",
			  append ? "its output is appended to the file" : "");
	else if (!arranged.says_requeue || !arranged.says_open_mode)
		ck_notice("the batch script could not be examined; if it does not have them, "
			  "add%s%s",
			  arranged.says_requeue ? "" : " --requeue",
			  arranged.says_open_mode ? "" : " --open-mode=append");
}

/* A submission that Slurm refuses needs none. */
static void drop_token(int status, void *unused)
{
	(void)unused;
	if (status && getpid() == left.pid)
		rmdir(left.token);
}

/*
 * So that a launch that fails is not taken for a start, see token.h. Where none can be left (the
 * directory is not there on this machine, say), Slurm's count has to do.
 */
static void leave_token(spank_t spank, const char *dir, bool private_base)
{
	if (left.pid || !arranged.is_sbatch || strcmp(dir, "") == 0)
		return;
	if (ck_start_make_base(&ck_io_posix, dir, private_base, NULL) ||
	    ck_token_make(&ck_io_posix, dir, left.token, NULL))
		return;
	left.pid = getpid();
	on_exit(drop_token, NULL);
	spank_job_control_setenv(spank, CK_TOKEN, left.token, 1);
	ck_token_sweep(&ck_io_posix, dir, time(NULL) - TOKEN_SECONDS);
}

/* Where the runs of this job will lie, as far as that is known before it has an id. */
static int site_dir(char dir[static PATH_MAX], struct ck_error *err)
{
	const struct passwd *user = getpwuid(getuid());
	const struct ck_site_words words = {
		.user = user ? user->pw_name : "unknown",
		.uid = getuid(),
		.job_name = "",
	};

	return ck_site_trunk(&ck_plugin()->site, &words, dir, err);
}

/* The directory as the job needs it: absolute, and chosen where $SCRATCH has the user's value. */
static int forward_dir(spank_t spank, const struct ck_opts *opts, struct ck_error *err)
{
	char cwd[PATH_MAX], dir[PATH_MAX];
	bool surprise;
	int rc;

	if (!ck_opts_has(opts, CK_OPT_DIR) && ck_plugin()->site.root[0]) {
		/* Not handed on: it is made of words that only the job knows. */
		if (site_dir(dir, NULL) == 0)
			leave_token(spank, dir, true);
		return 0;
	}
	if (!getcwd(cwd, sizeof(cwd)))
		return ck_fail_errno(err, errno, "current directory");
	rc = ck_place_base(opts, getenv("SCRATCH"), cwd, dir, &surprise, err);
	if (rc)
		return rc;
	if (surprise)
		ck_notice("checkpoints go to %s; --ckpt-dir or $SCRATCH change that", dir);
	ck_spankopts_forward(spank, CK_OPT_DIR, dir);
	leave_token(spank, dir, false);
	return 0;
}

/*
 * We are called for each component of a heterogeneous job. One of them cannot be requeued, nor do its
 * steps share a run with those of the others: whoever asks for checkpoints there is told, and a
 * site's default leaves such a job alone.
 */
static void check_components(struct ck_opts *opts)
{
	bool several = arranged.components > 1;

	if (!opts->on || !(several || arranged.het))
		return;
	if (several && (ck_spankopts_asked() || (arranged.is_sbatch && !arranged.het))) {
		slurm_error("ckpt: " CK_NO_HET);
		exit(1);
	}
	if (!ck_spankopts_asked())
		opts->on = false;
}

static void forward_off(spank_t spank)
{
	for (int opt = 0; opt < CK_OPT_COUNT; opt++)
		ck_spankopts_forward(spank, (enum ck_opt)opt, NULL);
	if (ck_plugin()->site.on)
		ck_spankopts_forward(spank, CK_OPT_CKPT, "off");
}

void ck_alloc_post_opt(spank_t spank)
{
	struct ck_opts opts = ck_spankopts_effective();
	struct ck_error err = CK_ERROR_INIT;
	char now[24], text[CK_LIMIT_TEXT];

	ck_spankopts_defaults_done();
	if (arranged.requeue)
		unsetenv("SBATCH_REQUEUE");
	if (arranged.append)
		unsetenv("SBATCH_OPEN_MODE");
	arranged.components++;
	check_components(&opts);
	if (!opts.on) {
		forward_off(spank);
		return;
	}
	unsetenv(CK_ENV_RESTARTS); /* of the job that we are called from, if any */
	ck_spankopts_forward(spank, CK_OPT_CKPT, "on");
	if (ck_spankopts_bad() || forward_dir(spank, &opts, &err)) {
		slurm_error("ckpt: %s", ck_spankopts_bad() ? ck_spankopts_bad() : err.text);
		exit(1);
	}
	snprintf(now, sizeof(now), "%lld", (long long)time(NULL));
	spank_job_control_setenv(spank, CK_SUBMITTED, now, 1);
	if (arranged.append)
		spank_job_control_setenv(spank, CK_APPENDED, "1", 1);
	if (ck_spankopts_asked() && ck_limit_is_short(arranged.limit, opts.margin_seconds, text))
		ck_notice("%s", text);
	say_arranged();
}
