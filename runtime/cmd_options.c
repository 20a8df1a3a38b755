/* The command line: getopt_long, with messages that help. */
#include "cmd.h"

#include <string.h>

#define WORD_MAX 32
#define OPTIONS_MAX 32

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * Edits from a to b: insert, delete, replace, swap two neighbours. SIZE_MAX for words that are
 * longer than any of ours. Source: optimal string alignment distance.
 */
static size_t distance(const char *a, const char *b)
{
	size_t d[WORD_MAX + 1][WORD_MAX + 1];
	size_t na = strlen(a), nb = strlen(b);

	if (na > WORD_MAX || nb > WORD_MAX)
		return SIZE_MAX;
	for (size_t i = 0; i <= na; i++)
		d[i][0] = i;
	for (size_t j = 0; j <= nb; j++)
		d[0][j] = j;
	for (size_t i = 1; i <= na; i++) {
		for (size_t j = 1; j <= nb; j++) {
			size_t replace = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

			d[i][j] = least(least(d[i - 1][j], d[i][j - 1]) + 1, replace);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
		}
	}
	return d[na][nb];
}

const char *ck_cmd_closest(const char *text, const char *const *words, size_t count)
{
	size_t len = strlen(text), best = SIZE_MAX;
	const char *found = NULL;

	for (size_t i = 0; i < count; i++) {
		bool begins = len >= 2 && strncmp(text, words[i], len) == 0;
		size_t edits = begins ? 0 : distance(text, words[i]);

		if (edits < best) {
			best = edits;
			found = words[i];
		}
	}
	return best <= (len <= 3 ? 1 : 2) ? found : NULL;
}

static size_t long_names(const struct option *longs, const char *names[static OPTIONS_MAX])
{
	size_t count = 0;

	while (longs[count].name && count < OPTIONS_MAX) {
		names[count] = longs[count].name;
		count++;
	}
	return count;
}

/* `arg` is "--levle" or "--levle=x". */
static void tell_unknown_long(const struct ck_cmd *cmd, const char *arg, const struct option *longs)
{
	const char *names[OPTIONS_MAX], *closest;
	size_t len = strcspn(arg, "=");
	char name[WORD_MAX + 3];

	snprintf(name, sizeof(name), "%.*s", (int)least(len, sizeof(name) - 1), arg);
	closest = ck_cmd_closest(name + 2, names, long_names(longs, names));
	if (closest)
		ck_cmd_usage(cmd, "unknown option '%.*s', did you mean '--%s'?", (int)len, arg,
			     closest);
	else
		ck_cmd_usage(cmd, "unknown option '%.*s'", (int)len, arg);
}

static const struct option *find_long(const struct option *longs, int value)
{
	while (longs->name && longs->val != value)
		longs++;
	return longs->name ? longs : NULL;
}

/* What getopt_long tells through '?' and ':', and optopt. */
static void tell_mistake(const struct ck_cmd *cmd, int answer, const char *arg,
			 const struct option *longs)
{
	const struct option *known = find_long(longs, optopt);

	if (answer == ':')
		ck_cmd_usage(cmd, "option '%s' needs a value", arg);
	else if (optopt == 0)
		tell_unknown_long(cmd, arg, longs);
	else if (known && strncmp(arg, "--", 2) == 0)
		ck_cmd_usage(cmd, "option '--%s' takes no value", known->name);
	else
		ck_cmd_usage(cmd, "unknown option '-%c'", optopt);
}

int ck_cmd_getopt(const struct ck_cmd *cmd, int argc, char **argv, const char *shorts,
		  const struct option *longs)
{
	int answer;

	opterr = 0;
	answer = getopt_long(argc, argv, shorts, longs, NULL);
	if (answer != '?' && answer != ':')
		return answer;
	tell_mistake(cmd, answer, argv[optind - 1], longs);
	return CK_CMD_OPT_BAD;
}
