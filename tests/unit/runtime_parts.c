/* A state of more than 128 MiB through <ckpt.h>: saved in several files, verified, resumed. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog.h"
#include "ckpt.h"
#include "manifest.h"
#include "tap.h"
#include "verify.h"

#define ELEMENTS (UINT64_C(34) << 20)
#define ROWS 3
#define STEP 7

static const struct ck_step_id id = {.step = STEP, .generation = 1};

static void quiet(void *arg, const char *line)
{
	(void)arg;
	diag("%s", line);
}

static ckpt *open_run(const char *dir)
{
	struct ckpt_options options = {
		.struct_size = sizeof(options), .dir = dir, .every = "1d", .log = quiet};
	ckpt *ck = NULL;

	is_int(ckpt_open(&ck, NULL, &options), 0, "open");
	return ck;
}

static void add_items(ckpt *ck, float *flat, float *small)
{
	const uint64_t elements = ELEMENTS, zero = 0, shape[] = {ROWS, 5};

	is_int(ckpt_add_sharded(ck, "flat", CKPT_F32, 1, &elements, &zero, &elements, flat), 0,
	       "flat: %s", ckpt_error(ck));
	is_int(ckpt_add_replicated(ck, "small", CKPT_F32, 2, shape, small), 0, "small: %s",
	       ckpt_error(ck));
	is_int(ckpt_set_flat(ck, "flat"), 0, "flat is the flat item");
}

static void save(const char *dir, float *flat, float *small)
{
	ckpt *ck = open_run(dir);
	uint64_t step = 77;

	add_items(ck, flat, small);
	is_int(ckpt_restore(ck, &step), CKPT_FRESH, "fresh");
	is_int(ckpt_save(ck, STEP), 0, "save: %s", ckpt_error(ck));
	is_int(ckpt_close(ck), 0, "close");
}

static void check_manifest(const char *dir)
{
	struct ck_manifest manifest = {0};
	uint64_t next = 0;
	bool follow = true;

	is_int(ck_step_load(&ck_io_posix, dir, id, &manifest, NULL), 0, "manifest");
	is_u64(manifest.nfiles, 2, "two files");
	for (size_t i = 0; i < manifest.nfiles; i++) {
		follow = follow && manifest.files[i].param_shard_offset == next;
		next += manifest.files[i].param_shard_numel;
	}
	ok(follow, "the pieces of the flat item follow each other");
	is_u64(next, ELEMENTS, "their union is the rank's range");
	ck_manifest_fini(&manifest);
}

static void check_verify(const char *dir)
{
	struct ck_report report = {0};

	is_int(ck_verify(&ck_io_posix, dir, id, CK_LEVEL_SHA256, 1, NULL, NULL, &report, NULL), 0,
	       "verify");
	for (size_t i = 0; i < report.count; i++)
		diag("%s", report.findings[i].text);
	is_u64(report.count, 0, "without findings");
	ck_report_fini(&report);
}

static void resume(const char *dir, const float *flat, const float *small)
{
	float *got = calloc(ELEMENTS, sizeof(*got)), got_small[5 * ROWS] = {0};
	ckpt *ck = open_run(dir);
	uint64_t step = 77;

	add_items(ck, got, got_small);
	is_int(ckpt_restore(ck, &step), CKPT_RESUMED, "resume: %s", ckpt_error(ck));
	is_u64(step, STEP, "at its step");
	ok(memcmp(got, flat, ELEMENTS * sizeof(*got)) == 0, "the large item is as it was");
	ok(memcmp(got_small, small, sizeof(got_small)) == 0, "and the small one");
	is_int(ckpt_close(ck), 0, "close");
	free(got);
}

int main(void)
{
	const char *dir = test_tmpdir();
	float *flat = calloc(ELEMENTS, sizeof(*flat)), small[5 * ROWS];

	for (size_t i = 0; i < ELEMENTS; i++)
		flat[i] = (float)(i % 8388593);
	for (size_t i = 0; i < 5 * ROWS; i++)
		small[i] = (float)(i + 1);
	save(dir, flat, small);
	check_manifest(dir);
	check_verify(dir);
	resume(dir, flat, small);
	free(flat);
	return done_testing();
}
