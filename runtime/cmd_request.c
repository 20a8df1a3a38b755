/* ckpt stop, ckpt save: ask the program that has a run open. */
#include <errno.h>
#include <inttypes.h>
#include <time.h>
#include <unistd.h>

#include "cmd.h"
#include "dirfile.h"
#include "takeover.h"

/* The owner looks about once a second. */
#define ANSWER_SECONDS 10

static bool is_there(const struct ck_cmd *cmd, const char *path)
{
	struct stat st;

	return cmd->io->ops->lstat(cmd->io, path, &st) == 0;
}

/* Has anybody opened this run, and not closed it nor been killed where we can see it? */
static int check_owner(const struct ck_cmd *cmd, const char *run, struct ck_error *err)
{
	char host[CK_SHORT_TEXT] = "";
	struct ck_claim claim;
	int rc = ck_owner_load(cmd->io, run, &claim, err);

	if (rc)
		return rc;
	if (claim.ended)
		rc = ck_fail(err, CK_ENOENT,
			     "%s: no program has this run open; the last one has ended", run);
	gethostname(host, sizeof(host) - 1);
	if (!rc && ck_owner_is_gone(cmd->io, &claim, host))
		rc = ck_fail(err, CK_ENOENT,
			     "%s: no program has this run open; the last one, process %" PRIu64
			     " on %s, was killed",
			     run, claim.pid, claim.host);
	ck_claim_fini(&claim);
	return rc;
}

/* Wait until the owner has taken the request, and take it back when nobody does. */
static int await(const struct ck_cmd *cmd, const char *run, const char *path, struct ck_error *err)
{
	double end = ck_cmd_clock() + ANSWER_SECONDS;

	while (!ck_cmd_interrupted() && is_there(cmd, path) && ck_cmd_clock() < end)
		nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
	/* An interrupt makes every look fail, so it says nothing. */
	if (!ck_cmd_interrupted() && !is_there(cmd, path))
		return 0;
	cmd->io->ops->unlink(cmd->io, path);
	return ck_fail(err, CK_ENOENT,
		       "%s: nobody took the request within %d s: does the program run?", run,
		       ANSWER_SECONDS);
}

static int ask(const struct ck_cmd *cmd, const char *run, const char *name, struct ck_error *err)
{
	char path[PATH_MAX];
	int rc = check_owner(cmd, run, err), fd = -1;

	if (!rc)
		rc = ck_dirfile_path(path, run, name, err);
	if (!rc)
		rc = ck_io_create(cmd->io, path, &fd, err);
	ck_io_close(cmd->io, &fd);
	if (rc && rc != CK_EEXIST) /* there already: somebody asks for the same */
		return rc;
	return await(cmd, run, path, err);
}

static int request(struct ck_cmd *cmd, int argc, char **argv, const struct ck_cmd_verb *verb,
		   const char *name, const char *answer)
{
	static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
	struct ck_cmd_targets targets = {0};
	struct ck_error err = CK_ERROR_INIT;
	enum ck_cmd_exit exit_code = CK_CMD_FINE;
	int option, rc;

	while ((option = ck_cmd_getopt(cmd, argc, argv, ":h", options)) != -1)
		return option == 'h' ? ck_cmd_help(verb) : CK_CMD_USAGE;
	if (optind == argc)
		return ck_cmd_usage(cmd, "name a run");
	for (int i = optind; i < argc; i++) {
		rc = ck_cmd_targets_add(cmd, argv[i], false, &targets, &err);
		if (rc)
			exit_code = ck_cmd_worse(exit_code, ck_cmd_tell(cmd, rc, &err));
	}
	for (size_t i = 0; i < targets.count; i++) {
		rc = ask(cmd, targets.items[i].run, name, &err);
		if (!rc)
			ck_cmd_line(stdout, "%s: %s", targets.items[i].run, answer);
		exit_code = ck_cmd_worse(exit_code, ck_cmd_tell(cmd, rc, &err));
	}
	ck_cmd_targets_fini(&targets);
	return exit_code;
}

static int run_stop(struct ck_cmd *cmd, int argc, char **argv)
{
	return request(cmd, argc, argv, &ck_cmd_stop, CK_REQUEST_STOP,
		       "taken: it saves and stops at its next step, and is not requeued");
}

static int run_save(struct ck_cmd *cmd, int argc, char **argv)
{
	return request(cmd, argc, argv, &ck_cmd_save, CK_REQUEST_SAVE,
		       "taken: it saves at its next step");
}

#define HELP                                                                               \
	"  -h, --help   this text\n"                                                       \
	"\n"                                                                               \
	"Exit code: 0 the program has taken the request, 1 no program has the run open,\n" \
	"or none answers, 2 usage, 3 the directory could not be written, 130 interrupted\n"

const struct ck_cmd_verb ck_cmd_stop = {
	.name = "stop",
	.synopsis = "stop RUN ...",
	.summary = "ask the running program to save and stop; its job is not requeued",
	.help = HELP,
	.run = run_stop,
};

const struct ck_cmd_verb ck_cmd_save = {
	.name = "save",
	.synopsis = "save RUN ...",
	.summary = "ask the running program to save now and go on",
	.help = HELP,
	.run = run_save,
};
