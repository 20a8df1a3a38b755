/* -i of `ckpt diff` and `export`: every one counts, and one that fits nothing is told. */
#include "command.h"
#include "tap.h"

static void diff_counts_all(const char *a, const char *b)
{
	struct said said = ckpt_cmd("diff", "-i", "w", "-i", "rng", a, b);

	is_int(said.exit_code, 1, "two patterns, the first is of what differs: %s", said.err);
	like(said.out, "w: different", "... which is told");
	like(said.out, "1 item equal, 1 not", "... both are compared");
	said_fini(&said);
	said = ckpt_cmd("diff", "-i", "typo*", "-i", "rng", a, b);
	is_int(said.exit_code, 0, "one of two fits nothing");
	like(said.out, "1 item equal, 0 not", "... the other does");
	said_fini(&said);
}

static void diff_of_nothing(const char *a, const char *b)
{
	struct said said = ckpt_cmd("diff", "-i", "typo*", "-i", "x", a, b);

	is_int(said.exit_code, 1, "no item");
	like(said.err, "no item is chosen by 'typo*', 'x'", "... is an error");
	is_str(said.out, "", "... and no answer");
	said_fini(&said);
	said = ckpt_cmd("diff", "--json", "--items=typo", a, b);
	is_int(said.exit_code, 1, "the same for programs");
	is_str(said.out, "", "... no answer");
	said_fini(&said);
}

static void diff_of_what_is_not_there(const char *dir)
{
	struct said said = ckpt_cmd("diff", in(dir, "../run@1000"), in(dir, "../run@10"));

	is_int(said.exit_code, 1, "no such step");
	like(said.err, "no checkpoint of step 10; there are: 2000, 1000", "... is told");
	said_fini(&said);
	said = ckpt_cmd("diff", in(dir, "../nowhere@9"), in(dir, "../run@1000"));
	is_int(said.exit_code, 1, "no such run");
	said_fini(&said);
}

static void export_counts_all(const char *from, const char *to)
{
	struct said said = ckpt_cmd("export", "-i", "typo*", "-i", "rng", from, to);

	is_int(said.exit_code, 1, "no tensor");
	like(said.err, "no tensor is chosen by 'typo*', 'rng'", "... is told");
	said_fini(&said);
	said = ckpt_cmd("export", "-i", "w", "-i", "typo*", from, to);
	is_int(said.exit_code, 0, "one of two: %s", said.err);
	said_fini(&said);
}

int main(void)
{
	const char *dir = two_steps();

	diff_counts_all(in(dir, "../run@1000"), in(dir, "../run@2000"));
	diff_of_nothing(in(dir, "../run@1000"), in(dir, "../run@2000"));
	diff_of_what_is_not_there(dir);
	export_counts_all(in(dir, "../run@1000"), in(dir, "../hf"));
	return done_testing();
}
