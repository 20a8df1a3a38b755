#include "place.h"

#include <stdio.h>
#include <string.h>

int ck_place_base(const struct ck_opts *opts, const char *scratch, const char *cwd,
		  char out[static PATH_MAX], bool *surprise, struct ck_error *err)
{
	const char *below = cwd, *dir = "ckpt";
	int len;

	if (surprise)
		*surprise = false;
	if (ck_opts_has(opts, CK_OPT_DIR))
		dir = opts->dir;
	else if (scratch && scratch[0] == '/')
		below = scratch;
	else if (surprise)
		*surprise = true;
	if (dir[0] == '/')
		len = snprintf(out, PATH_MAX, "%s", dir);
	else
		len = snprintf(out, PATH_MAX, "%s/%s", below, dir);
	if (len >= PATH_MAX)
		return ck_fail(err, CK_EARG, "%.80s...: the path is too long", below);
	return 0;
}

/* In the form that has escapes: the word would break the line. */
static void add_escaped_word(struct ck_buf *out, const char *word)
{
	ck_buf_add_str(out, "$'");
	for (; *word; word++) {
		unsigned char byte = (unsigned char)*word;

		if (byte < 0x20 || byte == 0x7f)
			ck_buf_addf(out, "\\%03o", byte);
		else if (byte == '\'' || byte == '\\')
			ck_buf_addf(out, "\\%c", byte);
		else
			ck_buf_add(out, word, 1);
	}
	ck_buf_add_str(out, "'");
}

static bool has_control(const char *word)
{
	for (; *word; word++) {
		if ((unsigned char)*word < 0x20 || *word == 0x7f)
			return true;
	}
	return false;
}

static void add_word(struct ck_buf *out, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-./=:,@%+";

	if (*word && word[strspn(word, plain)] == '\0') {
		ck_buf_add_str(out, word);
		return;
	}
	if (has_control(word)) {
		add_escaped_word(out, word);
		return;
	}
	ck_buf_add_str(out, "'");
	for (; *word; word++) {
		if (*word == '\'')
			ck_buf_add_str(out, "'\\''");
		else
			ck_buf_add(out, word, 1);
	}
	ck_buf_add_str(out, "'");
}

static bool has_word(const char *args, size_t len, const char *with)
{
	for (const char *word = args; word < args + len; word += strlen(word) + 1) {
		if (strncmp(word, with, strlen(with)) == 0)
			return true;
	}
	return false;
}

void ck_place_command(const char *args, size_t len, const char *name, const char *base,
		      struct ck_buf *out)
{
	for (const char *word = args; word < args + len; word += strlen(word) + 1) {
		if (word != args)
			ck_buf_add_str(out, " ");
		add_word(out, word);
		if (word != args)
			continue;
		if (!has_word(args, len, "--ckpt-name"))
			ck_buf_addf(out, " --ckpt-name=%s", name);
		if (!has_word(args, len, "--ckpt-dir")) {
			ck_buf_add_str(out, " --ckpt-dir=");
			add_word(out, base);
		}
	}
}
