/* ckpt pin: keep a checkpoint whatever rotation does. */
#include "cmd.h"
#include "rotate.h"

static const char *outcome(bool was_pinned, bool take_away)
{
	if (!take_away)
		return "pinned: it is kept, and not counted";
	return was_pinned ? "not pinned any more" : "was not pinned";
}

static int pin_one(const struct ck_cmd *cmd, const char *text, bool take_away, struct ck_error *err)
{
	struct ck_cmd_targets targets = {0};
	char name[CK_NAME_MAX];
	bool was_pinned = false;
	int rc = ck_cmd_targets_add(cmd, text, false, &targets, err);

	if (!rc && !targets.items[0].has_step)
		rc = ck_fail(err, CK_EARG, "%s: name a checkpoint: RUN@STEP or RUN@latest", text);
	if (!rc)
		was_pinned = ck_is_pinned(cmd->io, targets.items[0].run, targets.items[0].id);
	if (!rc && take_away)
		rc = ck_unpin(cmd->io, targets.items[0].run, targets.items[0].id, err);
	else if (!rc)
		rc = ck_pin(cmd->io, targets.items[0].run, targets.items[0].id, err);
	if (!rc)
		ck_cmd_line(stdout, "%s/%s: %s", targets.items[0].run,
			    ck_name_step(targets.items[0].id, name),
			    outcome(was_pinned, take_away));
	ck_cmd_targets_fini(&targets);
	return rc;
}

static int run_pin(struct ck_cmd *cmd, int argc, char **argv)
{
	static const struct option options[] = {{"help", no_argument, NULL, 'h'},
						{"remove", no_argument, NULL, 'r'},
						{0}};
	enum ck_cmd_exit exit_code = CK_CMD_FINE;
	struct ck_error err = CK_ERROR_INIT;
	bool take_away = false;
	int option;

	while ((option = ck_cmd_getopt(cmd, argc, argv, ":hr", options)) != -1) {
		if (option == 'h')
			return ck_cmd_help(&ck_cmd_pin);
		if (option != 'r')
			return CK_CMD_USAGE;
		take_away = true;
	}
	if (optind == argc)
		return ck_cmd_usage(cmd, "name a checkpoint: RUN@STEP or RUN@latest");
	for (int i = optind; i < argc; i++) {
		int rc = pin_one(cmd, argv[i], take_away, &err);

		exit_code = ck_cmd_worse(exit_code, ck_cmd_tell(cmd, rc, &err));
	}
	return exit_code;
}

const struct ck_cmd_verb ck_cmd_pin = {
	.name = "pin",
	.synopsis = "pin [--remove] RUN@STEP ...",
	.summary = "keep a checkpoint: rotation does not count or delete it",
	.help = "  -r, --remove  take the pin away\n"
		"  -h, --help    this text\n"
		"\n"
		"Exit code: 0 done, 1 no such checkpoint, 2 usage, 3 the directory could not be\n"
		"written, 130 interrupted\n",
	.run = run_pin,
};
