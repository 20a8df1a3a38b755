/* `ckpt diff`: it names what differs, and takes no damage for a difference. */
#include <stdint.h>

#include "ckpt.h"
#include "command.h"
#include "tap.h"

#define STEP 40
#define ROWS 3
#define COLUMNS 4

/* A run with one item "w", element i of which is i, but [1, 2] `odd`. */
static const char *run_with_odd(int32_t odd)
{
	struct ckpt_options options = {.struct_size = sizeof(options), .dir = test_tmpdir()};
	const uint64_t shape[] = {ROWS, COLUMNS};
	int32_t w[ROWS * COLUMNS];
	ckpt *ck;

	for (int i = 0; i < ROWS * COLUMNS; i++)
		w[i] = i == COLUMNS + 2 ? odd : i;
	if (ckpt_open(&ck, NULL, &options) || ckpt_add_replicated(ck, "w", CKPT_I32, 2, shape, w) ||
	    ckpt_save(ck, STEP) || ckpt_wait(ck))
		ok(false, "a checkpoint: %s", ckpt_error(ck));
	ckpt_close(ck);
	return options.dir;
}

static void element(void)
{
	const char *a = run_with_odd(6), *b = run_with_odd(6 ^ 64);
	struct said said = ckpt_cmd("diff", in_step(a, 1, STEP, ""), in_step(b, 1, STEP, ""));

	is_int(said.exit_code, 1, "one element");
	like(said.out, "w: different: 1 of 12 elements, largest difference 64, first at [1, 2]",
	     "is named");
	said_fini(&said);
}

/* Byte 4096 of a shard is the first of its data. */
static void damage(void)
{
	const char *a = run_with_odd(1), *b = run_with_odd(1);
	struct said said;

	said = ckpt_cmd("diff", in_step(a, 1, STEP, ""), in_step(b, 1, STEP, ""));
	is_int(said.exit_code, 0, "two alike");
	said_fini(&said);
	flip_bit(in_step(b, 1, STEP, "rank-00000.0.safetensors"), 4096);
	for (int swapped = 0; swapped < 2; swapped++) {
		said = ckpt_cmd("diff", in_step(swapped ? b : a, 1, STEP, ""),
				in_step(swapped ? a : b, 1, STEP, ""));
		is_int(said.exit_code, 1, "one of them damaged");
		like(said.err, "rank-00000.0.safetensors: chunk 0", "its file is named");
		like(said.err, "crc32 is", "with what is wrong");
		is_str(said.out, "", "and nothing is said to differ");
		said_fini(&said);
	}
}

int main(void)
{
	element();
	damage();
	return done_testing();
}
