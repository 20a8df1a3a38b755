/* A handle in a forked child: every call returns at once, and what the parent has stays as it is. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ckpt.h"
#include "tap.h"

static void quiet(void *arg, const char *line)
{
	(void)arg;
	(void)line;
}

/* The first call that does not do as it should, or 0. */
static int child(ckpt *ck, int code)
{
	const uint64_t n = 1;
	uint64_t step = 77;
	float x = 0;

	if (ckpt_step(ck, 2) != code)
		return 1;
	if (code && !strstr(ckpt_error(ck), "only the one that opened may use it"))
		return 2;
	if (ckpt_save(ck, 2) != code || ckpt_wait(ck) != code || ckpt_prepare(ck) != code)
		return 3;
	if (ckpt_restore(ck, &step) != code || step != (code ? 77 : 0))
		return 4;
	if (ckpt_add_replicated(ck, "y", CKPT_F32, 1, &n, &x) != code || ckpt_alive(ck) != code)
		return 5;
	if (ckpt_complete(ck) != code)
		return 6;
	return ckpt_close(ck) ? 7 : 0;
}

static int in_child(ckpt *ck, int code)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(120);
		_exit(child(ck, code));
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void test(const char *dir)
{
	struct ckpt_options options = {
		.struct_size = sizeof(options), .dir = dir, .every = "1d", .log = quiet};
	const uint64_t n = 1;
	uint64_t step = 77;
	float x = 5;
	char path[PATH_MAX];
	struct stat st;
	ckpt *ck = NULL;

	is_int(ckpt_open(&ck, NULL, &options), 0, "open, %s", dir ? "on" : "off");
	is_int(ckpt_add_replicated(ck, "x", CKPT_F32, 1, &n, &x), 0, "an item");
	is_int(ckpt_restore(ck, &step), CKPT_FRESH, "restore");
	is_int(ckpt_save(ck, 1), 0, "save");
	is_int(in_child(ck, dir ? CKPT_EREFUSED : 0), 0, "a child can do nothing, and ends");
	is_int(ckpt_wait(ck), 0, "the parent's save is committed: %s", ckpt_error(ck));
	is_int(ckpt_save(ck, 2), 0, "and it goes on");
	is_int(ckpt_close(ck), 0, "close");
	snprintf(path, sizeof(path), "%s/step-0000000002.g1/manifest.json", dir ? dir : "/none");
	is_int(stat(path, &st) == 0, dir != NULL, "step 2 is %s", dir ? "saved" : "not saved");
}

int main(void)
{
	test(test_tmpdir());
	test(NULL);
	return done_testing();
}
