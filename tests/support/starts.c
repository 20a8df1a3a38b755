#include "starts.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tap.h"

char dir[PATH_MAX];
struct ckpt_options options;
struct toy toys[TOY_RANKS_MAX];
struct toy_log text;

void fresh_dir(const char *name)
{
	snprintf(dir, sizeof(dir), "%s/%s", test_tmpdir(), name);
	options = (struct ckpt_options){
		.struct_size = sizeof(options), .keep = 3, .every = "1d", .dir = dir};
}

bool exists(const char *name)
{
	char path[PATH_MAX + 256];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return lstat(path, &st) == 0;
}

const char *steps_there(void)
{
	static char out[512];
	struct dirent **names;
	int n = scandir(dir, &names, NULL, alphasort);

	out[0] = '\0';
	for (int i = 0; i < n; i++) {
		unsigned long step, generation;

		if (sscanf(names[i]->d_name, "step-%lu.g%lu", &step, &generation) == 2 &&
		    strlen(names[i]->d_name) == 18)
			sprintf(out + strlen(out), "%s%lu.%lu", *out ? " " : "", step, generation);
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	return out;
}

static int resume_and_save(struct toy *toy)
{
	struct start *start = toy->arg;
	uint64_t step = 0;
	int rc;

	toy_spoil(toy);
	rc = ckpt_restore(toy->ck, &step);
	if (toy->rank == 0) {
		start->restored = rc;
		start->from = step;
	}
	if (rc > 0 && !toy_is(toy, step))
		__atomic_store_n(&start->right, false, __ATOMIC_SEQ_CST);
	for (int i = 0; rc >= 0 && start->save[i]; i++) {
		toy_train(toy, start->save[i]);
		rc = ckpt_save(toy->ck, start->save[i]);
		if (!rc)
			rc = ckpt_wait(toy->ck);
	}
	return rc > 0 ? 0 : rc;
}

int run_start(struct start *start)
{
	start->right = true;
	start->restored = -99;
	toy_run(2, &options, resume_and_save, start, toys, &text);
	return toys[0].code;
}

int toy_resume(struct toy *toy)
{
	uint64_t step = 77; /* a fresh start says 0 */
	int rc;

	toy_spoil(toy);
	rc = ckpt_restore(toy->ck, &step);
	toy->step = step;
	return rc > 0 && !toy_is(toy, step) ? -99 : rc;
}
