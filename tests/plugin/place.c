/* The directory of runs, and the command line that goes on by hand. */
#include <string.h>

#include "place.h"
#include "tap.h"

static void base(void)
{
	static const struct {
		const char *dir, *scratch, *path;
		bool surprise;
	} cases[] = {
		{NULL, NULL, "/home/a/ckpt", true},
		{NULL, "", "/home/a/ckpt", true},
		{NULL, "scratch", "/home/a/ckpt", true},
		{NULL, "/scratch/a", "/scratch/a/ckpt", false},
		{"/x/y", "/scratch/a", "/x/y", false},
		{"runs", "/scratch/a", "/home/a/runs", false},
		{"../runs", NULL, "/home/a/../runs", false},
	};
	static char deep[PATH_MAX];
	struct ck_error err = CK_ERROR_INIT;
	char path[PATH_MAX];
	struct ck_opts opts;
	bool surprise;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_opts_init(&opts);
		if (cases[i].dir)
			ck_opts_set(&opts, CK_OPT_DIR, "", cases[i].dir, NULL);
		is_int(ck_place_base(&opts, cases[i].scratch, "/home/a", path, &surprise, NULL), 0,
		       "base %zu", i);
		is_str(path, cases[i].path, "... is this");
		is_int(surprise, cases[i].surprise, "... and nobody named it, or somebody did");
	}
	memset(deep, '/', sizeof(deep) - 2);
	ck_opts_init(&opts);
	is_int(ck_place_base(&opts, NULL, deep, path, NULL, &err), CK_EARG, "too deep");
	like(err.text, "too long", "... and told so");
}

static void command(const char *args, size_t len, const char *want)
{
	struct ck_buf out = CK_BUF_INIT;

	ck_place_command(args, len, "mini-7", "/a b", &out);
	is_str(out.data, want, "command");
	ck_buf_fini(&out);
}

int main(void)
{
	static const char plain[] = "srun\0-n2\0./train";
	static const char named[] = "srun\0--ckpt-name=x\0--ckpt-dir\0/y\0./train";
	static const char quoted[] = "srun\0sh\0-c\0echo 'it''s' $x\0";

	static const char lines[] = "srun\0echo\0a\nb'c\\d";

	base();
	command(lines, sizeof(lines),
		"srun --ckpt-name=mini-7 --ckpt-dir='/a b' echo $'a\\012b\\'c\\\\d'");
	command(plain, sizeof(plain), "srun --ckpt-name=mini-7 --ckpt-dir='/a b' -n2 ./train");
	command(named, sizeof(named), "srun --ckpt-name=x --ckpt-dir /y ./train");
	command(quoted, sizeof(quoted) - 1,
		"srun --ckpt-name=mini-7 --ckpt-dir='/a b' sh -c 'echo '\\''it'\\'''\\''s'\\'' "
		"$x'");
	return done_testing();
}
