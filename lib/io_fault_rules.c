#include "io_fault_rules.h"

#include <errno.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"

#define BIT(op) (1u << (op))
#define OPS_ANY (BIT(CK_FAULT_COUNT) - 1)
#define OPS_DATA (BIT(CK_FAULT_PREAD) | BIT(CK_FAULT_PWRITE))
#define OPS_QUEUE (BIT(CK_FAULT_QUEUE) | BIT(CK_FAULT_SUBMIT) | BIT(CK_FAULT_REAP))

#define DELAY_MAX_MS 3600000

struct name_value {
	const char *name;
	unsigned value;
};

static const struct name_value op_names[] = {
	{"open", BIT(CK_FAULT_OPEN)},
	{"close", BIT(CK_FAULT_CLOSE)},
	{"pread", BIT(CK_FAULT_PREAD)},
	{"pwrite", BIT(CK_FAULT_PWRITE)},
	{"fsync", BIT(CK_FAULT_FSYNC)},
	{"fallocate", BIT(CK_FAULT_FALLOCATE)},
	{"fstat", BIT(CK_FAULT_FSTAT)},
	{"lstat", BIT(CK_FAULT_LSTAT)},
	{"mkdir", BIT(CK_FAULT_MKDIR)},
	{"rmdir", BIT(CK_FAULT_RMDIR)},
	{"rename", BIT(CK_FAULT_RENAME)},
	{"link", BIT(CK_FAULT_LINK)},
	{"unlink", BIT(CK_FAULT_UNLINK)},
	{"readdir", BIT(CK_FAULT_READDIR)},
	{"lock", BIT(CK_FAULT_LOCK)},
	{"queue", BIT(CK_FAULT_QUEUE)},
	{"submit", BIT(CK_FAULT_SUBMIT)},
	{"reap", BIT(CK_FAULT_REAP)},
	{"meta", OPS_ANY & ~(OPS_DATA | OPS_QUEUE)},
	{"any", OPS_ANY},
	{NULL, 0},
};

/* What file systems answer; strerrorname_np is not everywhere. */
static const struct name_value errno_names[] = {
	{"EACCES", EACCES},
	{"EAGAIN", EAGAIN},
	{"EBADF", EBADF},
	{"EBUSY", EBUSY},
	{"EDQUOT", EDQUOT},
	{"EEXIST", EEXIST},
	{"EFBIG", EFBIG},
	{"EINTR", EINTR},
	{"EINVAL", EINVAL},
	{"EIO", EIO},
	{"EISDIR", EISDIR},
	{"ELOOP", ELOOP},
	{"EMFILE", EMFILE},
	{"EMLINK", EMLINK},
	{"ENAMETOOLONG", ENAMETOOLONG},
	{"ENFILE", ENFILE},
	{"ENODEV", ENODEV},
	{"ENOENT", ENOENT},
	{"ENOLCK", ENOLCK},
	{"ENOMEM", ENOMEM},
	{"ENOSPC", ENOSPC},
	{"ENOSYS", ENOSYS},
	{"ENOTCONN", ENOTCONN},
	{"ENOTDIR", ENOTDIR},
	{"ENOTEMPTY", ENOTEMPTY},
	{"ENOTSUP", ENOTSUP},
	{"ENXIO", ENXIO},
	{"EOPNOTSUPP", EOPNOTSUPP},
	{"EPERM", EPERM},
	{"EREMOTEIO", EREMOTEIO},
	{"EROFS", EROFS},
	{"ESHUTDOWN", ESHUTDOWN},
	{"ESTALE", ESTALE},
	{"ETIMEDOUT", ETIMEDOUT},
	{"EXDEV", EXDEV},
	{NULL, 0},
};

static const struct name_value signal_names[] = {
	{"ABRT", SIGABRT}, {"ALRM", SIGALRM}, {"BUS", SIGBUS},   {"CONT", SIGCONT},
	{"HUP", SIGHUP},   {"INT", SIGINT},   {"KILL", SIGKILL}, {"QUIT", SIGQUIT},
	{"SEGV", SIGSEGV}, {"STOP", SIGSTOP}, {"TERM", SIGTERM}, {"USR1", SIGUSR1},
	{"USR2", SIGUSR2}, {"XCPU", SIGXCPU}, {NULL, 0},
};

static bool look_up(const struct name_value *table, const char *name, unsigned *value)
{
	for (; table->name; table++) {
		if (strcmp(table->name, name) == 0) {
			*value = table->value;
			return true;
		}
	}
	return false;
}

static int parse_ops(struct ck_fault_rule *rule, char *text, struct ck_error *err)
{
	char *next = text, *name;
	unsigned ops;

	while ((name = strsep(&next, ","))) {
		if (!look_up(op_names, name, &ops))
			return ck_fail(
				err, CK_EARG,
				"'%s': not an operation: open, pwrite, fsync, ..., meta or any",
				name);
		rule->ops |= ops;
	}
	return CK_OK;
}

static int parse_errno(struct ck_fault_rule *rule, const char *value, struct ck_error *err)
{
	unsigned errnum;

	if (!look_up(errno_names, value, &errnum))
		return ck_fail(err, CK_EARG, "errno=%s: not the name of an error such as ENOSPC",
			       value);
	rule->action.errnum = (int)errnum;
	return CK_OK;
}

static int parse_signal(struct ck_fault_rule *rule, const char *value, struct ck_error *err)
{
	unsigned number;

	if (!look_up(signal_names, strncmp(value, "SIG", 3) == 0 ? value + 3 : value, &number))
		return ck_fail(err, CK_EARG, "kill=%s: not a signal such as SIGKILL", value);
	rule->action.signal = (int)number;
	return CK_OK;
}

static int parse_until(struct ck_fault_rule *rule, const char *value, struct ck_error *err)
{
	if (*value != '/')
		return ck_fail(err, CK_EARG, "until=%s: not an absolute path", value);
	free(rule->action.until);
	rule->action.until = strdup(value);
	return rule->action.until ? CK_OK : ck_fail_nomem(err, strlen(value) + 1);
}

static int parse_key(struct ck_fault_rule *rule, char *text, struct ck_error *err)
{
	const struct {
		const char *key;
		uint64_t min, max;
		uint64_t *out;
	} numbers[] = {
		{"cut", 0, UINT32_MAX, &rule->action.cut},
		{"flip", 0, UINT32_MAX, &rule->action.flip},
		{"delay", 0, DELAY_MAX_MS, &rule->action.delay_ms},
		{"after", 0, UINT32_MAX, &rule->after},
		{"times", 1, UINT32_MAX, &rule->times},
		{"done", 1, 1, &rule->action.done},
	};
	char *value = text;
	const char *key = strsep(&value, "=");

	for (size_t i = 0; value && i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (strcmp(key, numbers[i].key) == 0)
			return ck_parse_u64(key, value, numbers[i].min, numbers[i].max,
					    numbers[i].out, err);
	}
	if (value && strcmp(key, "errno") == 0)
		return parse_errno(rule, value, err);
	if (value && strcmp(key, "kill") == 0)
		return parse_signal(rule, value, err);
	if (value && strcmp(key, "until") == 0)
		return parse_until(rule, value, err);
	return ck_fail(
		err, CK_EARG,
		"'%s': not errno=, done=, cut=, flip=, delay=, until=, after=, times= or kill=",
		key);
}

static int check_rule(const struct ck_fault_rule *rule, struct ck_error *err)
{
	if (rule->action.cut != UINT64_MAX && (rule->ops & ~OPS_DATA))
		return ck_fail(err, CK_EARG, "cut= is for pread and pwrite only");
	if (rule->action.flip != UINT64_MAX && rule->ops != BIT(CK_FAULT_PREAD))
		return ck_fail(err, CK_EARG, "flip= is for pread only");
	if (rule->action.done && !rule->action.errnum)
		return ck_fail(err, CK_EARG, "done=1 needs errno=");
	return CK_OK;
}

/* `text` is a copy that may be cut up. */
static int parse_rule(struct ck_fault_rule *rule, char *text, struct ck_error *err)
{
	char *next = text, *ops, *glob, *key;
	int rc;

	*rule = (struct ck_fault_rule){.times = UINT64_MAX,
				       .action = {.cut = UINT64_MAX, .flip = UINT64_MAX}};
	ops = strsep(&next, ":");
	glob = strsep(&next, ":");
	if (!glob || !*glob)
		return ck_fail(err, CK_EARG, "wanted is <op>:<glob>[:<key>=<value>...]");
	rc = parse_ops(rule, ops, err);
	while (!rc && (key = strsep(&next, ":")))
		rc = parse_key(rule, key, err);
	if (!rc)
		rc = check_rule(rule, err);
	if (rc)
		return rc;
	rule->glob = strdup(glob);
	return rule->glob ? CK_OK : ck_fail_nomem(err, strlen(glob) + 1);
}

/* Cut `text`, a copy, into rules. */
static int parse_all(struct ck_fault_rules *rules, char *text, struct ck_error *err)
{
	char shown[128];
	char *next = text, *one;
	int rc;

	while ((one = strsep(&next, ";"))) {
		if (!*one)
			continue;
		if (rules->count == CK_FAULT_RULES_MAX)
			return ck_fail(err, CK_EARG, "more than %d rules", CK_FAULT_RULES_MAX);
		snprintf(shown, sizeof(shown), "%s", one);
		rc = parse_rule(&rules->rules[rules->count], one, err);
		if (rc) {
			ck_error_prefix(err, "rule %u: %s", rules->count, shown);
			return rc;
		}
		rules->count++;
	}
	return CK_OK;
}

int ck_fault_rules_parse(struct ck_fault_rules *rules, const char *text, struct ck_error *err)
{
	char *copy = strdup(text);
	int rc;

	if (!copy)
		return ck_fail_nomem(err, strlen(text) + 1);
	rc = parse_all(rules, copy, err);
	free(copy);
	return rc;
}

static bool glob_matches(const char *glob, const char *path)
{
	const char *slash = strrchr(path, '/');

	return fnmatch(glob, path, 0) == 0 || (slash && fnmatch(glob, slash + 1, 0) == 0);
}

static bool rule_matches(const struct ck_fault_rule *rule, enum ck_fault_op op, const char *path,
			 const char *other)
{
	return (rule->ops & BIT(op)) &&
	       (glob_matches(rule->glob, path) || (other && glob_matches(rule->glob, other)));
}

struct ck_fault_action ck_fault_rules_decide(struct ck_fault_rules *rules, enum ck_fault_op op,
					     const char *path, const char *other)
{
	struct ck_fault_action none = {.cut = UINT64_MAX, .flip = UINT64_MAX};

	for (unsigned i = 0; i < rules->count; i++) {
		struct ck_fault_rule *rule = &rules->rules[i];
		uint64_t before = rule->count;

		if (!rule_matches(rule, op, path, other))
			continue;
		rule->count++;
		if (before >= rule->after && before - rule->after < rule->times)
			return rule->action;
	}
	return none;
}

void ck_fault_rules_fini(struct ck_fault_rules *rules)
{
	for (unsigned i = 0; i < CK_FAULT_RULES_MAX; i++) {
		free(rules->rules[i].glob);
		free(rules->rules[i].action.until);
	}
	memset(rules->rules, 0, sizeof(rules->rules));
	rules->count = 0;
}
