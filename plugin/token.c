#include "token.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "digest.h"
#include "names.h"

#define PREFIX ".submitted-"
#define RANDOM_BYTES 16

static bool is_token(const char *name)
{
	return strncmp(name, PREFIX, strlen(PREFIX)) == 0 && name[strlen(PREFIX)];
}

int ck_token_make(const struct ck_io *io, const char *dir, char path[static PATH_MAX],
		  struct ck_error *err)
{
	char name[sizeof(PREFIX) + 2 * RANDOM_BYTES] = PREFIX;
	int rc = ck_random_hex(name + strlen(PREFIX), RANDOM_BYTES, err);

	if (!rc && !ck_path_join(path, dir, name))
		rc = ck_fail(err, CK_EARG, "%.80s...: the path is too long", dir);
	return rc ? rc : ck_io_mkdir(io, path, err);
}

/* "/a" leads to "/a" and "/a/b", not to "/ab". */
static bool leads_to(const char *dir, size_t len, const char *base)
{
	return strncmp(dir, base, len) == 0 && (base[len] == '/' || base[len] == '\0');
}

void ck_token_take(struct ck_token *token, const char *path, const char *base)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	token->path[0] = '\0';
	if (slash && strlen(path) < sizeof(token->path) && is_token(slash + 1) &&
	    leads_to(path, (size_t)(slash - path), base))
		strcpy(token->path, path);
}

/* An element's own entry in it. */
static bool element_path(const struct ck_token *token, char out[static PATH_MAX])
{
	char name[16];

	snprintf(name, sizeof(name), "%" PRIu32, token->element);
	return ck_path_join(out, token->path, name);
}

static bool is_there(const struct ck_io *io, const char *path)
{
	struct stat st;

	return io->ops->lstat(io, path, &st) == 0;
}

bool ck_token_is_unspent(const struct ck_io *io, const struct ck_token *token)
{
	char path[PATH_MAX];

	if (!token->path[0] || !is_there(io, token->path))
		return false;
	return !token->in_array || (element_path(token, path) && !is_there(io, path));
}

void ck_token_spend(const struct ck_io *io, const struct ck_token *token)
{
	char path[PATH_MAX];

	if (!token->path[0])
		return;
	if (!token->in_array)
		io->ops->rmdir(io, token->path);
	else if (element_path(token, path))
		io->ops->mkdir(io, path, 0700);
}

/* Those of other users cannot be removed, and need not. */
void ck_token_sweep(const struct ck_io *io, const char *dir, int64_t before)
{
	struct ck_names names = {NULL, 0};
	char path[PATH_MAX];
	struct stat st;

	if (ck_io_list(io, dir, &names, NULL))
		return;
	for (size_t i = 0; i < names.count; i++) {
		if (is_token(names.names[i]) && ck_path_join(path, dir, names.names[i]) &&
		    io->ops->lstat(io, path, &st) == 0 && st.st_uid == geteuid() &&
		    st.st_mtime < before)
			ck_io_remove_tree(io, path, NULL);
	}
	ck_names_fini(&names);
}
