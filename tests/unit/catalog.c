#include "catalog.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io_fault.h"
#include "rundir.h"
#include "tap.h"

static const struct ck_step_id id = {.step = 7, .generation = 1};
#define STEP "step-0000000007.g1"

static void test_load(void)
{
	static const char *const names[] = {
		"step-0000000300.g2",    "step-0000005000.g1",   "step-12345678901.g1",
		"step-0000000009.g10",   "step-0000000300.g1",   "step-300.g1",
		"step-0000000400.g01",   "step-0000000400.g1.x", "Step-0000000400.g1",
		".saving-0000000400.g1", "step-0000000400",      "step-00000000400.g1",
	};
	const char *dir = test_tmpdir();
	struct ck_error err = CK_ERROR_INIT;
	struct ck_catalog catalog = {.count = 77};
	struct ck_io_fault *fault;

	is_int(ck_catalog_load(&ck_io_posix, in_dir(dir, "none"), &catalog, &err), CK_ENOENT,
	       "no directory");
	is_u64(catalog.count, 77, "the output is untouched");
	is_int(ck_catalog_load(&ck_io_posix, dir, &catalog, &err), 0, "an empty one");
	is_u64(catalog.count, 0, "has none");
	ck_catalog_fini(&catalog);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		mkdir(in_dir(dir, names[i]), 0777);
	is_int(ck_catalog_load(&ck_io_posix, dir, &catalog, &err), 0, "loaded");
	is_u64(catalog.count, 5, "look-alikes are ignored");
	is_u64(catalog.steps[0].generation, 10, "newest first: by generation, as a number");
	is_u64(catalog.steps[1].step, 300, "an older generation's step 5000 is older");
	is_u64(catalog.steps[2].step, 12345678901, "then by step, as a number");
	is_u64(catalog.steps[3].step, 5000, "then");
	is_u64(catalog.steps[4].generation, 1, "last");
	ck_catalog_fini(&catalog);
	is_int(symlink(dir, in_dir(dir, "link")), 0, "a link");
	is_int(ck_catalog_load(&ck_io_posix, in_dir(dir, "link"), &catalog, &err), 0,
	       "the run directory may be a link: %s", err.text);
	is_u64(catalog.count, 5, "the same");
	ck_catalog_fini(&catalog);
	is_int(ck_io_fault_new(&fault, &ck_io_posix, "readdir:*:errno=EIO", &err), 0, "fault");
	is_int(ck_catalog_load(ck_io_fault_io(fault), dir, &catalog, &err), CK_EIO, "unreadable");
	ck_io_fault_free(fault);
}

/* A readdir that finds nothing, once. */
static int list_nothing(const struct ck_io *io, const char *path,
			int (*entry)(void *arg, const char *name), void *arg)
{
	bool *missed = io->ctx;

	if (*missed)
		return ck_io_posix.ops->readdir(&ck_io_posix, path, entry, arg);
	*missed = true;
	return 0;
}

static void test_replaced_while_listed(void)
{
	struct ck_io_ops ops = *ck_io_posix.ops;
	bool missed = false;
	const struct ck_io io = {.ops = &ops, .ctx = &missed};
	const char *dir = test_tmpdir();
	struct ck_error err = CK_ERROR_INIT;
	struct ck_catalog catalog;

	ops.readdir = list_nothing;
	mkdir(in_dir(dir, STEP), 0777);
	is_int(ck_catalog_load(&io, dir, &catalog, &err), 0, "a listing that has neither: %s",
	       err.text);
	ok(missed, "was made");
	is_u64(catalog.count, 1, "another one has the newer");
	ck_catalog_fini(&catalog);
}

static void test_step_load(void)
{
	const char *dir = test_tmpdir();
	struct ck_error err = CK_ERROR_INIT;
	struct ck_manifest m = {.nfiles = 77};
	struct ck_buf text = CK_BUF_INIT;

	make_run(dir);
	is_int(ck_step_load(&ck_io_posix, dir, id, &m, &err), CK_ENOENT, "no such step");
	is_int(save_step(&ck_io_posix, dir, id, 2, NULL, &err), 0, "a checkpoint");
	is_int(ck_step_read(&ck_io_posix, dir, id, &m, &text, &err), 0, "reads: %s", err.text);
	is_u64(m.world_size, 2, "its manifest");
	like(text.data, "\"world_size\": 2,", "and the text of it");
	ck_manifest_fini(&m);
	ck_buf_fini(&text);

	ck_io_rename(&ck_io_posix, in_dir(dir, STEP), in_dir(dir, "step-0000000007.g2"), &err);
	is_int(ck_step_load(&ck_io_posix, dir, (struct ck_step_id){7, 2}, &m, &err), CK_EFORMAT,
	       "another name than the manifest's");
	like(err.text, "it is of step 7, generation 1, but stands in step-0000000007.g2",
	     "the text");
	put_file(in_dir(dir, "step-0000000007.g2/manifest.json"), "{\"schema_version\": 1}");
	is_int(ck_step_load(&ck_io_posix, dir, (struct ck_step_id){7, 2}, &m, &err), CK_EFORMAT,
	       "a spoilt manifest");
	like(err.text, "step-0000000007.g2/manifest.json: world_size: missing", "the text");
	unlink(in_dir(dir, "step-0000000007.g2/manifest.json"));
	is_int(ck_step_load(&ck_io_posix, dir, (struct ck_step_id){7, 2}, &m, &err), CK_ENOENT,
	       "no manifest");
	mkfifo(in_dir(dir, "step-0000000007.g2/manifest.json"), 0600);
	is_int(ck_step_load(&ck_io_posix, dir, (struct ck_step_id){7, 2}, &m, &err), CK_EFORMAT,
	       "a FIFO: it does not wait");
}

static void test_summed(void)
{
	const char *dir = test_tmpdir();
	struct ck_error err = CK_ERROR_INIT;
	struct ck_manifest m;
	struct ck_io_fault *fault;
	char *text, *at;

	make_run(dir);
	is_int(save_step(&ck_io_posix, dir, id, 2, NULL, &err), 0, "a checkpoint");
	is_int(ck_step_load_summed(&ck_io_posix, dir, id, &m, &err), 0, "vouched for: %s",
	       err.text);
	is_u64(m.world_size, 2, "its manifest");
	ck_manifest_fini(&m);
	is_int(ck_io_fault_new(&fault, &ck_io_posix, "open:*SHA256SUMS:errno=EACCES", &err), 0,
	       "fault");
	is_int(ck_step_load_summed(ck_io_fault_io(fault), dir, id, &m, &err), CK_EIO,
	       "SHA256SUMS unreadable: %s", err.text);
	ck_io_fault_free(fault);
	text = content_of(in_dir(dir, STEP "/manifest.json"));
	at = strstr(text, "\"created\": \"2");
	if (ok(at != NULL, "it says when"))
		at[15] = at[15] == '1' ? '2' : '1';
	put_file(in_dir(dir, STEP "/manifest.json"), text);
	free(text);
	is_int(ck_step_load(&ck_io_posix, dir, id, &m, &err), 0, "valid, with another date");
	ck_manifest_fini(&m);
	is_int(ck_step_load_summed(&ck_io_posix, dir, id, &m, &err), CK_EFORMAT,
	       "nothing vouches for it");
	like(err.text, STEP "/SHA256SUMS: line 4 is '", "the text names the line");
	unlink(in_dir(dir, STEP "/SHA256SUMS"));
	is_int(ck_step_load_summed(&ck_io_posix, dir, id, &m, &err), CK_ENOENT, "no SHA256SUMS");
	like(err.text, STEP "/SHA256SUMS", "the text names it");
}

static void test_link(void)
{
	const char *dir = test_tmpdir();
	struct ck_error err = CK_ERROR_INIT;
	struct ck_manifest m;

	make_run(dir);
	is_int(save_step(&ck_io_posix, dir, id, 2, NULL, &err), 0, "a checkpoint");
	is_int(rename(in_dir(dir, STEP), in_dir(dir, "away")), 0, "moved away");
	is_int(symlink("away", in_dir(dir, STEP)), 0, "and a link left");
	is_int(ck_step_load(&ck_io_posix, dir, id, &m, &err), CK_EFORMAT, "is not followed");
	like(err.text, STEP ": a link or a file, not a directory", "the text");
	unlink(in_dir(dir, STEP));
	put_file(in_dir(dir, STEP), "");
	is_int(ck_step_load(&ck_io_posix, dir, id, &m, &err), CK_EFORMAT, "a file");
}

static void test_sized(void)
{
	const char *dir = test_tmpdir();
	struct ck_error err = CK_ERROR_INIT;
	struct ck_io_fault *fault;
	struct ck_manifest m;
	const char *file;

	make_run(dir);
	is_int(save_step(&ck_io_posix, dir, id, 2, NULL, &err), 0, "a checkpoint");
	is_int(ck_step_load(&ck_io_posix, dir, id, &m, &err), 0, "its manifest");
	is_int(ck_step_sized(&ck_io_posix, dir, &m, -1, &err), 0, "complete: %s", err.text);

	file = in_dir(dir, STEP "/rank-00001.0.safetensors");
	is_int(truncate(file, (off_t)m.files[2].bytes - 3), 0, "a file cut");
	is_int(ck_step_sized(&ck_io_posix, dir, &m, -1, &err), CK_EFORMAT, "is found");
	like(err.text, "rank-00001.0.safetensors: it has 4186 bytes, the manifest says 4189",
	     "the text has both sizes");
	is_int(ck_step_sized(&ck_io_posix, dir, &m, 1, &err), CK_EFORMAT, "by its rank");
	is_int(ck_step_sized(&ck_io_posix, dir, &m, 0, &err), 0, "not by another");
	unlink(file);
	is_int(ck_step_sized(&ck_io_posix, dir, &m, -1, &err), CK_ENOENT, "a file missing");
	like(err.text,
	     "rank-00001.0.safetensors: the file is missing, the manifest says 4189 bytes",
	     "the text");
	is_int(symlink("rank-00000.0.safetensors", file), 0, "a link");
	is_int(ck_step_sized(&ck_io_posix, dir, &m, -1, &err), CK_EFORMAT, "a link in its place");
	like(err.text, "not a regular file", "the text");
	is_int(ck_io_fault_new(&fault, &ck_io_posix, "lstat:*.safetensors:errno=ESTALE", &err), 0,
	       "fault");
	is_int(ck_step_sized(ck_io_fault_io(fault), dir, &m, 0, &err), CK_EIO, "unreadable");
	like(err.text, "Stale file handle", "the text");
	ck_io_fault_free(fault);
	ck_manifest_fini(&m);
}

int main(void)
{
	test_load();
	test_replaced_while_listed();
	test_step_load();
	test_summed();
	test_link();
	test_sized();
	return done_testing();
}
