/* `ckpt export` and `reshard` that fail, are killed, or come second: nothing half, nothing mixed. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "rundir.h"
#include "tap.h"
#include "tilings.h"
#include "written.h"

static const struct ck_step_id id = {.step = 40, .generation = 1};
static char place[PATH_MAX];

/* Of the place of this test. */
static const char *at(const char *name)
{
	return in_dir(place, name);
}

/* A run with one checkpoint of three tensors, 4 KiB each, by two ranks. */
static void fresh(const char *first)
{
	const char *const names[] = {first, "model.b", "model.c"};
	struct ck_item_list table = {.count = 0};
	struct ck_error err = CK_ERROR_INIT;
	struct ck_layout layout;
	struct written w;
	uint64_t state = 7;

	snprintf(place, sizeof(place), "%s", test_tmpdir());
	for (size_t i = 0; i < 3; i++) {
		struct ck_item item = {.name = (char *)names[i],
				       .kind = CK_SHARDED,
				       .dtype = CK_F32,
				       .ndim = 1,
				       .shape = {1024}};

		if (ck_item_list_append(&table, &item, &err))
			abort();
	}
	layout = draw_layout(&state, &table, 2, 0);
	written_make(&w, at("run"), id, &table, &layout, 2, 3);
	written_free(&w);
	ck_layout_fini(&layout);
	ck_item_list_fini(&table);
}

static int export_to(const char *to, const char *size, const char *faults)
{
	const struct manner manner = {.faults = faults};
	struct said said =
		ckpt_cmd_as(&manner, "export", "--max-shard-size", size, at("run@40"), to);
	int exit_code = said.exit_code;

	said_fini(&said);
	return exit_code;
}

#define ONE "1GB"
#define SEVERAL "4kB" /* a file for each tensor */

/* Readers look for one file before they look for an index, and take what they find. */
static void second_export(void)
{
	static const char *const sizes[][2] = {{ONE, SEVERAL}, {SEVERAL, ONE}, {SEVERAL, "9kB"}};

	for (size_t i = 0; i < 3; i++) {
		size_t there;

		fresh("model.a");
		is_int(export_to(at("hf"), sizes[i][0], NULL), 0, "%s", sizes[i][0]);
		there = count_in(at("hf"));
		is_int(export_to(at("hf"), sizes[i][1], NULL), 1, "then %s: refused", sizes[i][1]);
		is_u64(count_in(at("hf")), there, "before the first byte");
	}
}

static void failing_export(void)
{
	static const char *const faults[] = {
		"pwrite:model-00002*:errno=ENOSPC",      "rename:*model-00003*:errno=EIO",
		"link,pwrite:*index.json*:errno=EDQUOT", "fsync:*/hf/:errno=EIO",
		"fsync:model-00001*:errno=EIO",
	};

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		fresh("model.a");
		is_int(export_to(at("hf"), SEVERAL, faults[i]), 3, "%s", faults[i]);
		ok(!exists_in(place, "hf"), "leaves nothing");
		ok(mkdir(at("hf"), 0777) == 0, "a directory");
		put_file(at("hf/README"), "mine");
		is_int(export_to(at("hf"), SEVERAL, faults[i]), 3, "in a directory that is there");
		is_u64(count_in(at("hf")), 1, "what was there is there alone");
		is_int(export_to(at("hf"), SEVERAL, NULL), 0, "again, without it");
		is_u64(count_in(at("hf")), 5, "three files and the index");
	}
}

static void linked_directory(void)
{
	fresh("model.a");
	ok(mkdir(at("real"), 0777) == 0 && symlink("real", at("hf")) == 0, "a linked directory");
	is_int(export_to(at("hf"), ONE, NULL), 0, "is written to");
	ok(exists_in(at("real"), "model.safetensors"), "where it leads");
	is_int(export_to(at("new"), ONE, "fsync:*ckpt-test-*/:errno=EIO:times=1"), 3,
	       "the parent of a new directory is fsynced");
}

static void name_of_the_header(void)
{
	struct said said;

	fresh("model.__metadata__");
	said = ckpt_cmd("export", "--strip-prefix=model.", at("run@40"), at("hf"));
	is_int(said.exit_code, 1, "a tensor that would be named __metadata__");
	like(said.err, "a tensor would be named '__metadata__'", "is refused");
	ok(!exists_in(place, "hf"), "nothing is written");
	said_fini(&said);
}

/* At each call on the new directory. */
static void killed_reshard(void)
{
	unsigned n = 0, fresh_starts = 0, failed = 0;
	int killed = 1;

	fresh("model.a");
	for (; killed && n < 200; n++) {
		char rules[128], name[32], to[PATH_MAX];
		struct manner manner = {.faults = rules};
		struct said said;

		snprintf(name, sizeof(name), "to-%u", n);
		snprintf(to, sizeof(to), "%s", at(name));
		snprintf(rules, sizeof(rules),
			 "mkdir,rename,link,unlink,rmdir,pwrite,fsync:*%s*:kill=KILL:after=%u",
			 name, n);
		said = ckpt_cmd_as(&manner, "reshard", at("run@40"), to, "--world=3");
		killed = said.exit_code == 128 + 9;
		said_fini(&said);
		said = ckpt_cmd("ls", to);
		fresh_starts += strstr(said.out, "begins afresh") != NULL;
		said_fini(&said);
		if (killed) {
			said = ckpt_cmd("reshard", at("run@40"), to, "--world=3");
			if (said.exit_code && !failed++)
				ok(false, "%s: the retry: %s", rules, said.err);
			said_fini(&said);
		}
	}
	ok(n > 20 && n < 200, "killed %u times", n - 1);
	is_u64(failed, 0, "each retry is done");
	is_u64(fresh_starts, 0, "a start there never begins afresh");
}

/* ---- bytes that are read twice ---- */

/* Is there an answer that is not right: a copy that was vouched for, and differs? */
static bool is_wrong(const char *const *arguments, const char *faults, const char *to)
{
	const struct manner manner = {.faults = faults};
	struct said said = command(&manner, arguments);
	bool done = said.exit_code == 0, wrong = false;

	said_fini(&said);
	if (!done)
		return false;
	if (strcmp(arguments[0], "reshard") == 0) {
		said = ckpt_cmd("diff", at("run@40"), to);
	} else {
		char line[3 * PATH_MAX];

		said = ckpt_cmd("export", at("run@40"), at("right"));
		said_fini(&said);
		said = (struct said){.exit_code = 0};
		snprintf(line, sizeof(line), "cmp -s '%s/model.safetensors' '%s/model.safetensors'",
			 at("right"), to);
		wrong = system(line) != 0;
	}
	wrong |= said.exit_code != 0;
	said_fini(&said);
	return wrong;
}

/* One bit of a read is wrong, of each read in turn: of the header, or of the data. */
static void flipped_reads(void)
{
	/* Headers of three files are read twice each, in two calls, before any data. */
	static const struct {
		const char *place;
		unsigned count;
	} reads[] = {{"100", 13}, {"4099", 30}};
	unsigned wrong = 0;

	fresh("model.a");
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned n = 0; n < reads[i].count; n++) {
			char name[32], to[PATH_MAX], back[PATH_MAX + 8], rules[128];
			const char *const export[] = {"export", at("run@40"), to, NULL};
			const char *const reshard[] = {"reshard", at("run@40"), to, "--world=3",
						       NULL};

			snprintf(rules, sizeof(rules),
				 "pread:*/run/*rank-00000*:flip=%s:after=%u:times=1",
				 reads[i].place, n);
			snprintf(name, sizeof(name), "hf-%u-%u", i, n);
			snprintf(to, sizeof(to), "%s", at(name));
			wrong += is_wrong(export, rules, to);
			snprintf(name, sizeof(name), "to-%u-%u", i, n);
			snprintf(to, sizeof(to), "%s", at(name));
			snprintf(back, sizeof(back), "%s@40", to);
			wrong += is_wrong(reshard, rules, back);
		}
	}
	is_u64(wrong, 0, "no copy of what was not verified");
}

int main(void)
{
	second_export();
	failing_export();
	linked_directory();
	name_of_the_header();
	killed_reshard();
	flipped_reads();
	return done_testing();
}
