#include "site.h"

#include <stdio.h>
#include <string.h>

#define LETTERS "uUjxAa%"

void ck_site_init(struct ck_site *site)
{
	*site = (struct ck_site){.on = false};
	ck_opts_init(&site->opts);
}

static int set_root(struct ck_site *site, const char *what, const char *text, struct ck_error *err)
{
	struct ck_opts path;
	int rc;

	ck_opts_init(&path);
	rc = ck_opts_set(&path, CK_OPT_DIR, what, text, err);
	if (rc)
		return rc;
	if (text[0] != '/')
		return ck_fail(err, CK_EARG, "%s: %s: an absolute path is wanted", what, text);
	for (const char *p = strchr(text, '%'); p; p = strchr(p + 2, '%')) {
		if (!p[1] || !strchr(LETTERS, p[1]))
			return ck_fail(err, CK_EARG,
				       "%s: %s: '%.2s' is none of %%u %%U %%j %%x %%A %%a %%%%",
				       what, text, p);
	}
	memcpy(site->root, path.dir, sizeof(site->root));
	return 0;
}

static int set_default(struct ck_site *site, const char *what, const char *text,
		       struct ck_error *err)
{
	if (strcmp(text, "on") != 0 && strcmp(text, "off") != 0)
		return ck_fail(err, CK_EARG, "%s: %s: on or off is wanted", what, text);
	site->on = strcmp(text, "on") == 0;
	return 0;
}

static int set_shared(struct ck_site *site, const char *what, const char *text,
		      struct ck_error *err)
{
	if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
		return ck_fail(err, CK_EARG, "%s: %s: yes or no is wanted", what, text);
	site->shared = strcmp(text, "yes") == 0;
	return 0;
}

int ck_site_arg(struct ck_site *site, const char *arg, struct ck_error *err)
{
	static const char *const where = "plugstack.conf: ";
	const char *value = strchr(arg, '=');
	int key_len = value ? (int)(value - arg) : 0;
	char what[64];

	if (key_len == 0)
		return ck_fail(err, CK_EARG, "%s%.80s: key=value is wanted", where, arg);
	snprintf(what, sizeof(what), "%s%.*s", where, key_len, arg);
	value++;
	if (strncmp(arg, "root=", 5) == 0)
		return set_root(site, what, value, err);
	if (strncmp(arg, "default=", 8) == 0)
		return set_default(site, what, value, err);
	if (strncmp(arg, "shared=", 7) == 0)
		return set_shared(site, what, value, err);
	if (strncmp(arg, "every=", 6) == 0)
		return ck_opts_set(&site->opts, CK_OPT_EVERY, what, value, err);
	if (strncmp(arg, "keep=", 5) == 0)
		return ck_opts_set(&site->opts, CK_OPT_KEEP, what, value, err);
	return ck_fail(err, CK_EARG,
		       "%s: no such argument; there are root, default, shared, every and keep",
		       what);
}

/* A job's name may hold anything: here it becomes one component of a path. */
static void print_component(const char *text, char *out, size_t size)
{
	size_t n;

	for (n = 0; text[n] && n + 1 < size; n++) {
		char c = text[n];
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9') || c == '_' || c == '-' || (c == '.' && n > 0);

		out[n] = plain ? c : '_';
	}
	out[n] = '\0';
}

static void print_word(char letter, const struct ck_site_words *words, char *out, size_t size)
{
	switch (letter) {
	case 'u':
		print_component(words->user, out, size);
		break;
	case 'U':
		snprintf(out, size, "%u", words->uid);
		break;
	case 'j':
		snprintf(out, size, "%u", words->job_id);
		break;
	case 'x':
		print_component(words->job_name, out, size);
		break;
	case 'A':
		snprintf(out, size, "%u", words->array_job);
		break;
	case 'a':
		snprintf(out, size, "%u", words->array_task);
		break;
	default:
		snprintf(out, size, "%c", letter);
	}
}

/* The first `bytes` bytes of root=, with their letters replaced. */
static int expand(const struct ck_site *site, size_t bytes, const struct ck_site_words *words,
		  char out[static PATH_MAX], struct ck_error *err)
{
	char root[PATH_MAX], word[256];
	size_t len = 0;

	for (const char *p = site->root; p < site->root + bytes; p++) {
		if (*p == '%')
			print_word(*++p, words, word, sizeof(word));
		else
			snprintf(word, sizeof(word), "%c", *p);
		if (len + strlen(word) >= sizeof(root))
			return ck_fail(err, CK_EARG,
				       "plugstack.conf: root=%.80s...: too long for job %u",
				       site->root, words->job_id);
		strcpy(root + len, word);
		len += strlen(word);
	}
	root[len] = '\0';
	memcpy(out, root, len + 1);
	return 0;
}

int ck_site_root(const struct ck_site *site, const struct ck_site_words *words,
		 char out[static PATH_MAX], struct ck_error *err)
{
	return expand(site, strlen(site->root), words, out, err);
}

/* Bytes of root= before the '/' of the first component that has one of these letters. */
static size_t leading(const struct ck_site *site, const char *letters)
{
	const char *p = strchr(site->root, '%');

	while (p && !strchr(letters, p[1]))
		p = strchr(p + 2, '%');
	if (!p)
		return strlen(site->root);
	while (p > site->root && *p != '/')
		p--;
	return (size_t)(p - site->root);
}

int ck_site_trunk(const struct ck_site *site, const struct ck_site_words *words,
		  char out[static PATH_MAX], struct ck_error *err)
{
	return expand(site, leading(site, "jxAa"), words, out, err);
}

size_t ck_site_literal(const struct ck_site *site)
{
	return leading(site, LETTERS);
}
