#include "script.h"

#include <stdio.h>
#include <string.h>

#define WORD_BYTES 512

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/* `word` is `option` or an abbreviation of at least `shortest` bytes, with or without "=value". */
static bool is_option(const char *word, const char *option, size_t shortest)
{
	size_t len = strcspn(word, "=");

	return len >= shortest && len <= strlen(option) && strncmp(word, option, len) == 0;
}

/* -t 5, -t5, --time 5, --time=5. Returns whether the word was one of these. */
static bool take_time(struct ck_says *says, const char *word)
{
	const char *value = NULL;

	if (says->time_follows)
		value = word;
	else if (strncmp(word, "-t", 2) == 0)
		value = word + 2;
	else if (is_option(word, "--time", 6))
		value = word[6] ? word + 7 : word + 6;
	if (!value)
		return false;
	says->time_follows = !says->time_follows && !*value;
	snprintf(says->time, sizeof(says->time), "%s", value);
	return true;
}

void ck_says_word(struct ck_says *says, const char *word)
{
	if (take_time(says, word))
		return;
	if (is_option(word, "--ckpt", 6)) {
		says->ckpt = true;
		says->ckpt_on = strcmp(word, "--ckpt=off") != 0;
	} else if (strncmp(word, "--ckpt-", 7) == 0) {
		says->other = true;
		if (strcmp(word, "--ckpt-requeue=no") == 0)
			says->requeue = true;
	} else if (is_option(word, "--requeue", 5) || is_option(word, "--no-requeue", 6)) {
		says->requeue = true;
	} else if (is_option(word, "--open-mode", 4)) {
		says->open_mode = true;
	} else if (is_option(word, "--wrap", 4)) {
		says->wrap = true;
	} else if (is_option(word, "--parsable", 6)) {
		says->parsable = true;
	} else if (strcmp(word, ":") == 0) {
		says->het = true;
	}
}

/*
 * The next word of a line as sbatch cuts it: at blanks, quotes and backslashes taken away, a bare
 * '#' ends the line. A word too long for `out` is cut. Returns behind the word, NULL at the end.
 */
static const char *next_word(const char *at, const char *end, char out[static WORD_BYTES])
{
	char quote = '\0';
	size_t n = 0;

	while (at < end && is_blank(*at))
		at++;
	if (at == end || *at == '#')
		return NULL;
	for (; at < end && (quote || !is_blank(*at)); at++) {
		if (*at == quote) {
			quote = '\0';
			continue;
		}
		if (!quote && (*at == '"' || *at == '\'')) {
			quote = *at;
			continue;
		}
		if (!quote && *at == '#')
			break;
		if (*at == '\\')
			at++;
		if (at == end)
			break;
		if (n + 1 < WORD_BYTES)
			out[n++] = *at;
	}
	out[n] = '\0';
	return at;
}

static bool begins(const char *line, const char *end, const char *with)
{
	size_t len = strlen(with);

	return (size_t)(end - line) >= len && memcmp(line, with, len) == 0;
}

/* Returns false at the first line that is a command. */
static bool take_line(struct ck_says *says, const char *line, const char *end)
{
	char word[WORD_BYTES] = "";
	const char *at = line;

	if (begins(line, end, "#SBATCH")) {
		at += strlen("#SBATCH");
		while ((at = next_word(at, end, word))) {
			ck_says_word(says, word);
			if (strcmp(word, "hetjob") == 0 || strcmp(word, "packjob") == 0)
				says->het = true;
		}
		return true;
	}
	if (begins(line, end, "#PBS") || begins(line, end, "#BSUB")) {
		if (memmem(line, (size_t)(end - line), " -r", 3))
			says->requeue = true;
		return true;
	}
	while (at < end && is_blank(*at))
		at++;
	return at == end || *at == '#';
}

void ck_says_script(struct ck_says *says, const char *text, size_t len)
{
	const char *stop = text + len, *line = text, *end;

	for (; line < stop; line = end + 1) {
		end = memchr(line, '\n', (size_t)(stop - line));
		if (!end)
			end = stop;
		if (!take_line(says, line, end))
			break;
	}
}
