/*
 * What a save asks of the file system beside the bytes: each call may take half a second on a busy
 * one, and rank 0 makes them one after the other.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io_fault.h"
#include "manifests.h"
#include "records.h"
#include "rotation.h"
#include "rundir.h"
#include "save.h"
#include "tap.h"

/* The shard's own calls are counted apart: they grow with the files. */
static const char *const rules[] = {
	"any:*.safetensors", "open:*", "close:*",  "fstat:*",   "lstat:*", "mkdir:*", "rmdir:*",
	"rename:*",          "link:*", "unlink:*", "readdir:*", "fsync:*", "pread:*", "pwrite:*",
};
#define NRULES (sizeof(rules) / sizeof(rules[0]))
#define KEEP 3

struct world {
	const char *dir;
	struct ck_io_fault *fault;
	struct ck_io_ops ops;
	struct ck_io io;
	struct ck_records *records;
	struct ck_rotation rotation;
	struct ck_run run;
	uint64_t number;
	const struct ck_save *save; /* under way */
	int ended;                  /* what it said when the last records went */
};

static struct world world;

static int note_rmdir(const struct ck_io *io, const char *path)
{
	if (strstr(path, "records-"))
		world.ended = atomic_load(&world.save->ended);
	return ck_io_fault_io(world.fault)->ops->rmdir(io, path);
}

static void world_init(unsigned generations, const char *text)
{
	struct ck_error err = CK_ERROR_INIT;

	world = (struct world){.dir = test_tmpdir(), .records = ck_records_new(1)};
	make_run(world.dir);
	for (unsigned g = 2; g <= generations; g++)
		make_generation(world.dir, g);
	if (ck_io_fault_new(&world.fault, &ck_io_posix, text, &err))
		ok(false, "rules: %s", err.text);
	world.io = *ck_io_fault_io(world.fault);
	world.ops = *world.io.ops;
	world.ops.rmdir = note_rmdir;
	world.io.ops = &world.ops;
	if (ck_run_load(&ck_io_posix, world.dir, &world.run, &err))
		ok(false, "run.json: %s", err.text);
	world.rotation = (struct ck_rotation){.io = &world.io,
					      .dir = world.dir,
					      .generation = generations,
					      .keep = KEEP,
					      .run = &world.run};
}

static void world_fini(void)
{
	ck_rotation_fini(&world.rotation);
	ck_records_free(world.records);
	ck_io_fault_free(world.fault);
}

/* Returns the warning, or "". */
static const char *save(uint64_t step)
{
	static const float data[10];
	static char warning[CK_ERROR_TEXT];
	struct ck_stored block = {.name = "params", .kind = CK_SHARDED, .dtype = CK_F32, .ndim = 1};
	struct ck_step_id id = {.step = step, .generation = world.rotation.generation};
	struct ck_save *s = calloc(1, sizeof(*s));
	struct ck_error err = CK_ERROR_INIT;

	s->io = &world.io;
	s->dir = world.dir;
	s->number = ++world.number;
	s->head = state_manifest(id, 1);
	s->records = world.records;
	s->rotation = &world.rotation;
	block.shape[0] = block.box.extent[0] = 10;
	block.box.ndim = 1;
	block.data = data;
	block.bytes = sizeof(data);
	if (ck_shard_plan(0, 1, &block, 1, &s->plan, &err))
		ok(false, "a plan: %s", err.text);
	ck_records_begin(world.records, s->number, s->head.id, s->head.save_id);
	world.save = s;
	ck_save_run(s);
	is_int(atomic_load(&s->ended), 1, "step %u is saved: %s", (unsigned)step, s->outcome.text);
	snprintf(warning, sizeof(warning), "%s", s->warning.text);
	ck_plan_fini(&s->plan);
	ck_buf_fini(&s->record);
	ck_manifest_fini(&s->head);
	free(s);
	return warning;
}

/* The calls of the fifth save, when one old checkpoint goes for each new one. */
static unsigned calls_of_a_save(unsigned generations)
{
	uint64_t before[NRULES];
	char text[512] = "";
	unsigned total = 0;

	for (size_t i = 0; i < NRULES; i++)
		sprintf(text + strlen(text), "%s%s", i ? ";" : "", rules[i]);
	world_init(generations, text);
	for (uint64_t step = 1; step <= 4; step++)
		is_str(save(step), "", "without a warning");
	for (size_t i = 0; i < NRULES; i++)
		before[i] = ck_io_fault_count(world.fault, (unsigned)i);
	save(5);
	for (size_t i = 0; i < NRULES; i++) {
		unsigned n = (unsigned)(ck_io_fault_count(world.fault, (unsigned)i) - before[i]);

		diag("%s %u", rules[i], n);
		total += i ? n : 0;
	}
	world_fini();
	return total;
}

static void records_go_later(void)
{
	world_init(1, "rmdir:records-*:errno=EIO:times=1");
	is_str(save(1), "", "a save whose records cannot be removed");
	is_int(world.ended, 1, "was over before that");
	like(save(2), "records-0000000001: rmdir: Input/output error", "the next one tells");
	is_str(save(3), "", "once");
	world_fini();
}

int main(void)
{
	unsigned one = calls_of_a_save(1);

	ok(one <= 56, "a save makes %u calls beside those for its shard", one);
	is_u64(calls_of_a_save(40), one, "as many after forty starts");
	records_go_later();
	return done_testing();
}
