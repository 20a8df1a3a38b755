/* The `ckpt` command: from words to verbs. */
#include "cmd.h"

#include <stdlib.h>
#include <string.h>

#include "env.h"
#include "manifest.h"

static const struct ck_cmd_verb *const verbs[] = {&ck_cmd_ls,     &ck_cmd_verify, &ck_cmd_save,
						  &ck_cmd_stop,   &ck_cmd_pin,    &ck_cmd_reshard,
						  &ck_cmd_export, &ck_cmd_diff};

#define VERBS (sizeof(verbs) / sizeof(verbs[0]))

static void print_overview(FILE *stream)
{
	fputs("usage: ckpt VERB [OPTION ...] [RUN ...]\n\n", stream);
	for (size_t i = 0; i < VERBS; i++)
		fprintf(stream, "  %-8s %s\n", verbs[i]->name, verbs[i]->summary);
	fputs("  help     show a verb's options: ckpt help VERB\n"
	      "\n"
	      "  RUN is a run directory; RUN@STEP or RUN@latest is one of its checkpoints.\n"
	      "  --version prints the version. Manual: ckpt(1).\n",
	      stream);
}

int ck_cmd_help(const struct ck_cmd_verb *verb)
{
	printf("usage: ckpt %s\n\n%s.\n\n%s", verb->synopsis, verb->summary, verb->help);
	return CK_CMD_FINE;
}

static const struct ck_cmd_verb *find_verb(const struct ck_cmd *cmd, const char *name)
{
	const char *names[VERBS + 1], *closest;

	for (size_t i = 0; i < VERBS; i++) {
		if (strcmp(verbs[i]->name, name) == 0)
			return verbs[i];
		names[i] = verbs[i]->name;
	}
	names[VERBS] = "help";
	closest = ck_cmd_closest(name, names, VERBS + 1);
	if (closest)
		ck_cmd_usage(cmd, "unknown verb '%s', did you mean '%s'?", name, closest);
	else
		ck_cmd_usage(cmd, "unknown verb '%s'", name);
	return NULL;
}

static int help(const struct ck_cmd *cmd, int count, char **names)
{
	const struct ck_cmd_verb *verb;

	if (count == 0) {
		print_overview(stdout);
		return CK_CMD_FINE;
	}
	if (count > 1)
		return ck_cmd_usage(cmd, "help is about one verb at a time");
	verb = find_verb(cmd, names[0]);
	return verb ? ck_cmd_help(verb) : CK_CMD_USAGE;
}

static int run_verb(struct ck_cmd *cmd, const struct ck_cmd_verb *verb, int argc, char **argv)
{
	const char *rules = getenv(CK_ENV_IO_FAULT);
	struct ck_error err = CK_ERROR_INIT;
	struct ck_cmd_io cmd_io;
	int exit_code;

	cmd->verb = verb->name;
	if (ck_cmd_io_init(&cmd_io, rules, &err)) {
		ck_cmd_complain(cmd, "%s", err.text);
		exit_code = CK_CMD_USAGE;
	} else {
		if (rules && *rules)
			ck_cmd_complain(cmd, "warning: rehearsing failures: " CK_ENV_IO_FAULT "=%s",
					rules);
		cmd->io = &cmd_io.io;
		exit_code = verb->run(cmd, argc, argv);
	}
	ck_cmd_io_fini(&cmd_io);
	return exit_code;
}

/* Options before the verb. */
static int run_option(const struct ck_cmd *cmd, const char *option)
{
	static const char *const options[] = {"--help", "--version"};
	const char *closest;

	if (strcmp(option, "--version") == 0 || strcmp(option, "-V") == 0) {
		printf("ckpt (slurm-ckpt) " CK_VERSION ", checkpoint schema version %d\n",
		       CK_SCHEMA_VERSION);
		return CK_CMD_FINE;
	}
	if (strcmp(option, "--help") == 0 || strcmp(option, "-h") == 0)
		return help(cmd, 0, NULL);
	closest = ck_cmd_closest(option, options, 2);
	if (closest)
		return ck_cmd_usage(cmd, "unknown option '%s', did you mean '%s'?", option,
				    closest);
	return ck_cmd_usage(cmd, "unknown option '%s'", option);
}

int main(int argc, char **argv)
{
	struct ck_cmd cmd = {.verb = ""};
	const struct ck_cmd_verb *verb;
	int exit_code = CK_CMD_USAGE;

	if (argc < 2)
		print_overview(stderr);
	else if (argv[1][0] == '-')
		exit_code = run_option(&cmd, argv[1]);
	else if (strcmp(argv[1], "help") == 0)
		exit_code = help(&cmd, argc - 2, argv + 2);
	else if ((verb = find_verb(&cmd, argv[1])))
		exit_code = run_verb(&cmd, verb, argc - 1, argv + 1);
	return ck_cmd_finish(&cmd, exit_code);
}
