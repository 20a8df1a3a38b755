/* token.h: what tells a failed launch from a start. */
#include "token.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tap.h"

static const struct ck_io *const io = &ck_io_posix;

static void makes(void)
{
	const char *dir = test_tmpdir();
	struct ck_token token = {.path = ""};
	struct ck_error err = CK_ERROR_INIT;
	char path[PATH_MAX], other[PATH_MAX], deep[PATH_MAX];

	is_int(ck_token_make(io, "/nowhere", path, &err), CK_ENOENT, "no directory");
	memset(deep, '/', sizeof(deep) - 2);
	deep[sizeof(deep) - 2] = '\0';
	is_int(ck_token_make(io, deep, path, &err), CK_EARG, "no room for the path");
	like(err.text, "too long", "... is told");
	is_int(ck_token_make(io, dir, path, &err), 0, "one is made (%s)", err.text);
	is_int(ck_token_make(io, dir, other, &err), 0, "and another");
	ok(strcmp(path, other) != 0, "... of another name");

	ck_token_take(&token, path, dir);
	ok(ck_token_is_unspent(io, &token), "it is not spent");
	ck_token_spend(io, &token);
	ok(!ck_token_is_unspent(io, &token), "and then it is");
	is_int(access(path, F_OK), -1, "... and gone");
	ck_token_take(&token, other, dir);
	ok(ck_token_is_unspent(io, &token), "... the other is not");
}

/* One submission, many elements, each with a past of its own. */
static void elements(void)
{
	const char *dir = test_tmpdir();
	struct ck_token token = {.in_array = true, .element = 3};
	char path[PATH_MAX];

	ck_token_make(io, dir, path, NULL);
	ck_token_take(&token, path, dir);
	ck_token_spend(io, &token);
	ok(!ck_token_is_unspent(io, &token), "an element has spent it");
	token.element = 4;
	ok(ck_token_is_unspent(io, &token), "... for itself");
	ck_token_spend(io, &token);
	ok(!ck_token_is_unspent(io, &token), "... until the next one does so too");
}

static void belongs(void)
{
	static const struct {
		const char *name, *path, *base;
		bool taken;
	} rows[] = {
		{"where the runs lie", "/r/.submitted-ab", "/r", true},
		{"above, as with root=/r/%x", "/r/.submitted-ab", "/r/train/7", true},
		{"elsewhere", "/r/.submitted-ab", "/s", false},
		{"below", "/r/x/.submitted-ab", "/r", false},
		{"beside, with the same front", "/r/.submitted-ab", "/rr", false},
		{"another name", "/r/step-1.g1", "/r", false},
		{"no name", "/r/.submitted-", "/r", false},
		{"no path", ".submitted-ab", "/r", false},
		{"nothing", NULL, "/r", false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ck_token token;

		ck_token_take(&token, rows[i].path, rows[i].base);
		is_str(token.path, rows[i].taken ? rows[i].path : "", "%s", rows[i].name);
	}
	ck_token_spend(io, &(struct ck_token){.path = ""});
	ok(!ck_token_is_unspent(io, &(struct ck_token){.path = ""}), "none is none");
}

static void sweeps(void)
{
	const char *dir = test_tmpdir();
	struct ck_token token = {.in_array = true, .element = 1};
	char path[PATH_MAX];
	time_t now = time(NULL);

	ck_token_make(io, dir, path, NULL);
	ck_token_take(&token, path, dir);
	ck_token_spend(io, &token);
	ck_token_sweep(io, dir, now - 1000);
	is_int(access(path, F_OK), 0, "a young one stays");
	ck_token_sweep(io, dir, now + 1000);
	is_int(access(path, F_OK), -1, "an old one goes, with what elements left in it");
	is_int(access(dir, F_OK), 0, "... and nothing else");
	ck_token_sweep(io, "/nowhere", now);
}

int main(void)
{
	makes();
	elements();
	belongs();
	sweeps();
	return done_testing();
}
