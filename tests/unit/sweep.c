/* ck_salvage and ck_sweep of commit.h: what a new owner does with what dead ones left. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commit.h"
#include "io_fault.h"
#include "leave.h"
#include "rotate.h"
#include "rundir.h"
#include "tap.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static void make_dirs(const char *dir, const char *const *names)
{
	for (; *names; names++) {
		if (mkdir(in_dir(dir, *names), 0777) < 0)
			ok(false, "%s can be made", *names);
		put_file(in_dir(in_dir(dir, *names), "file"), "x");
	}
}

static const char *const goes[] = {
	".saving-0000000010.g1",      ".saving-0000000010.g2",
	".deleting-0000000005.g1",    ".deleting-0000000006.g3",
	".salvage-0000000007.g2",     ".gen-1/records-0000000010",
	".gen-2/records-12345678901", NULL,
};

static const char *const stays[] = {
	".saving-0000000010.g3",     ".saving-0000000010.g4",     ".saving-10.g1",
	".saving-0000000010.g1.bak", "step-0000000003.g1",        ".deleting-me",
	"records-0000000010",        ".gen-1/records-10",         ".gen-1/records-0000000010x",
	".gen-3/records-0000000010", ".gen-4/records-0000000010", NULL,
};

static void make_all(const char *dir)
{
	for (uint64_t n = 1; n <= 4; n++)
		make_generation(dir, n);
	make_dirs(dir, goes);
	make_dirs(dir, stays);
	put_file(in_dir(dir, ".gen-1/claim.json"), "{}");
}

/* As an opener does. */
static int recover(const struct ck_io *io, const char *dir, uint64_t generation,
		   struct ck_error *err)
{
	struct ck_salvaged salvaged;
	int rc = ck_salvage(io, dir, generation, &salvaged, err);
	int swept = sweep_now(io, dir, generation, rc ? NULL : err);

	ck_salvaged_fini(&salvaged);
	return rc ? rc : swept;
}

static void test_sweep(void)
{
	const char *dir = test_tmpdir();
	struct ck_error err = CK_ERROR_INIT;

	is_int(recover(&ck_io_posix, in_dir(dir, "none"), 1, &err), CK_ENOENT, "no directory");
	make_all(dir);
	is_int(recover(&ck_io_posix, dir, 3, &err), 0, "swept by generation 3: %s", err.text);
	for (size_t i = 0; goes[i]; i++)
		ok(!exists_in(dir, goes[i]), "%s goes", goes[i]);
	for (size_t i = 0; stays[i]; i++)
		ok(exists_in(in_dir(dir, stays[i]), "file"), "%s stays", stays[i]);
	ok(exists_in(dir, ".gen-1/claim.json"), "claims stay");
	ok(!exists_in(dir, ".deleting-0000000010.g1"), "nothing on its way out is left");
	is_int(recover(&ck_io_posix, dir, 3, &err), 0, "again: nothing to do");
}

/* A directory that was on its way out already, of the same name. */
static void test_half_swept(void)
{
	static const char *const both[] = {".saving-0000000010.g1", ".deleting-0000000010.g1",
					   NULL};
	const char *dir = test_tmpdir();
	struct ck_error err = CK_ERROR_INIT;

	make_dirs(dir, both);
	is_int(recover(&ck_io_posix, dir, 2, &err), 0, "swept: %s", err.text);
	is_u64(count_in(dir), 0, "both are gone");
}

static void test_failures(void)
{
	static const struct {
		const char *rule;
		const char *says;
		int left;
	} rows[] = {
		/* with its records, which may be wanted yet */
		{"rename:.saving-0000000010.g1:errno=EIO", ".saving-0000000010.g1: rename to", 2},
		{"unlink:*/.deleting-0000000005*:errno=EACCES", "Permission denied", 1},
		{"rmdir:records-0000000010:errno=EBUSY", "records-0000000010: rmdir", 1},
		{"readdir:.gen-1:errno=EIO", ".gen-1", 1},
		{"unlink:latest.tmp*:errno=EACCES", "/latest.tmp-0123456789abcdef: unlink", 0},
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		const char *dir = test_tmpdir();
		struct ck_error err = CK_ERROR_INIT;
		struct ck_io_fault *fault;
		unsigned left = 0;

		make_all(dir);
		put_file(in_dir(dir, "latest.tmp-0123456789abcdef"), "x");
		is_int(ck_io_fault_new(&fault, &ck_io_posix, rows[i].rule, &err), 0, "%s",
		       rows[i].rule);
		is_int(recover(ck_io_fault_io(fault), dir, 3, &err), CK_EIO, "%s: is told",
		       rows[i].rule);
		like(err.text, rows[i].says, "%s: the text", rows[i].rule);
		for (size_t k = 0; goes[k]; k++)
			left += exists_in(dir, goes[k]);
		is_int(left, rows[i].left, "%s: the rest went", rows[i].rule);
		is_int(recover(&ck_io_posix, dir, 3, &err), 0, "%s: the next one: %s", rows[i].rule,
		       err.text);
		for (size_t k = 0; goes[k]; k++)
			if (exists_in(dir, goes[k]))
				ok(false, "%s: %s goes at last", rows[i].rule, goes[k]);
		ck_io_fault_free(fault);
	}
}

/* What writers leave that are killed between a write and its rename. */
static void test_temporary(void)
{
	static const char *const gone[] = {"run.json.tmp-0123456789abcdef",
					   "latest.tmp-fedcba9876543210",
					   ".gen-1/claim.json.tmp-0123456789abcdef",
					   ".gen-2/mark.json.tmp-0123456789abcdef"};
	static const char *const kept[] = {"run.json.tmp-0123456789ABCDEF",
					   "run.json.tmp-0123456789abcde",
					   "run.json.tmp-",
					   "latest.tmp-0123456789abcdef0",
					   "notes.tmp-0123456789abcdef",
					   "run.json.bak",
					   ".gen-3/claim.json.tmp-0123456789abcdef",
					   ".gen-4/claim.json.tmp-0123456789abcdef",
					   ".gen-1/events.jsonl",
					   "claim.json.tmp-0123456789abcdef"};
	static const char *const dirs[] = {"latest.tmp-0123456789abcdef", NULL};
	const char *dir = test_tmpdir();
	struct ck_error err = CK_ERROR_INIT;
	struct ck_names names;

	for (uint64_t n = 1; n <= 4; n++)
		make_generation(dir, n);
	for (size_t i = 0; i < ROWS(gone); i++)
		put_file(in_dir(dir, gone[i]), "x");
	for (size_t i = 0; i < ROWS(kept); i++)
		put_file(in_dir(dir, kept[i]), "x");
	make_dirs(dir, dirs);
	is_int(ck_io_list(&ck_io_posix, dir, &names, &err), 0, "a listing at the claim");
	put_file(in_dir(dir, "run.json.tmp-0000000000000001"), "x");
	is_int(ck_sweep(&ck_io_posix, dir, &names, 3, &err), 0, "swept: %s", err.text);
	ck_names_fini(&names);
	for (size_t i = 0; i < ROWS(gone); i++)
		ok(!exists_in(dir, gone[i]), "%s goes", gone[i]);
	for (size_t i = 0; i < ROWS(kept); i++)
		ok(exists_in(dir, kept[i]), "%s stays", kept[i]);
	ok(exists_in(dir, "latest.tmp-0123456789abcdef/file"), "a directory of such a name stays");
	ok(exists_in(dir, "run.json.tmp-0000000000000001"),
	   "so does one that is newer than the listing, our own");
}

static int sweep_fenced(const char *dir, uint64_t generation, struct ck_error *err)
{
	struct ck_names names;
	int rc = ck_io_list(&ck_io_posix, dir, &names, err);

	if (!rc)
		rc = ck_sweep_fenced(&ck_io_posix, dir, &names, generation, err);
	ck_names_fini(&names);
	return rc;
}

/* Files and links that only have such names: nobody is told, nothing of them goes. */
static void test_look_alikes(void)
{
	static const char *const files[] = {
		".gen-1",
		".saving-0000000010.g1",
		".deleting-0000000005.g1",
		".salvage-0000000007.g2",
		".gen-2/records-0000000010",
		"step-0000000003.g1",
	};
	const struct ck_step_id step = {.step = 3, .generation = 1};
	const char *dir = test_tmpdir();
	struct ck_error err = CK_ERROR_INIT;

	make_generation(dir, 2);
	for (size_t i = 0; i < ROWS(files); i++)
		put_file(in_dir(dir, files[i]), "mine");
	if (mkdir(in_dir(dir, "elsewhere"), 0777) ||
	    symlink("elsewhere", in_dir(dir, ".deleting-0000000006.g1")) ||
	    symlink("elsewhere", in_dir(dir, ".saving-0000000006.g1")))
		ok(false, "links can be made");
	put_file(in_dir(dir, "elsewhere/file"), "mine");
	is_int(recover(&ck_io_posix, dir, 3, &err), 0, "recovered: %s", err.text);
	is_int(sweep_fenced(dir, 3, &err), 0, "swept: %s", err.text);
	is_int(ck_leave(&ck_io_posix, dir, step, 1, &err), 0, "rotated: %s", err.text);
	for (size_t i = 0; i < ROWS(files); i++) {
		char *text = content_of(in_dir(dir, files[i]));

		is_str(text, "mine", "%s stays", files[i]);
		free(text);
	}
	ok(exists_in(dir, ".deleting-0000000006.g1") && exists_in(dir, ".saving-0000000006.g1"),
	   "links stay");
	ok(exists_in(dir, "elsewhere/file"), "and what they lead to");
}

/* A zombie's save, begun after the new owner looked. */
static void test_fenced(void)
{
	static const char *const some[] = {".saving-0000000010.g1", ".saving-0000000010.g3",
					   ".salvage-0000000011.g1", NULL};
	const char *dir = test_tmpdir();
	struct ck_error err = CK_ERROR_INIT;

	make_dirs(dir, some);
	is_int(sweep_fenced(dir, 3, &err), 0, "after a commit: %s", err.text);
	ok(!exists_in(dir, some[0]), "a lower generation's save goes");
	ok(exists_in(dir, some[1]), "our own stays");
	ok(exists_in(dir, some[2]), "what waits to be salvaged stays");
}

int main(void)
{
	test_fenced();
	test_look_alikes();
	test_temporary();
	test_sweep();
	test_half_swept();
	test_failures();
	return done_testing();
}
