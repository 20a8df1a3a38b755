/* Generations and claims of run.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io_fault.h"
#include "run.h"
#include "rundir.h"
#include "tap.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

#define JOB "{\"cluster\": \"c\", \"id\": \"1\", \"restart_count\": 0, \"step_id\": \"0\"}"
#define NONCE "0123456789abcdef0123456789abcdef"
#define CLAIM(resume, resumed, refused)                                                        \
	"{\"schema_version\": 1, \"generation\": 4, \"job\": " JOB ", \"submit_time\": null, " \
	"\"host\": \"n1\", \"pid\": 12, \"time\": \"2026-11-29T20:37:50Z\", "                  \
	"\"nonce\": \"" NONCE "\", \"world_size\": 8, \"resume\": " resume                     \
	", \"resumed\": " resumed ", \"refused\": " refused "}"

#define PROCESS(members)                                                                       \
	"{\"schema_version\": 1, \"generation\": 4, \"job\": " JOB ", \"submit_time\": null, " \
	"\"host\": \"n1\", \"pid\": 12, " members "}"

static const struct {
	const char *name;
	const char *text;
	const char *says;
} refusals[] = {
	{"empty", "", "c: not JSON"},
	{"version 2", "{\"schema_version\": 2}", "c: schema_version is 2, this program reads 1"},
	{"no generation", "{\"schema_version\": 1}", "c: generation: missing"},
	{"no job", "{\"schema_version\": 1, \"generation\": 1}", "c: job: missing"},
	{"resume with a word of another time", CLAIM("\"later\"", "null", "[]"),
	 "c: resume: 'later' is neither \"\" nor fresh, resumed, fell-back, complete or held"},
	{"resume null", CLAIM("null", "null", "[]"), "c: resume: null, a string"},
	{"resumed from a path", CLAIM("\"resumed\"", "\"/step-0000000001.g1\"", "[]"),
	 "c: resumed: no name of a checkpoint"},
	{"resumed from a number", CLAIM("\"resumed\"", "7", "[]"), "c: resumed: a number"},
	{"refused of numbers", CLAIM("\"\"", "null", "[1]"), "c: refused[0]: no string"},
	{"refused with escape codes", CLAIM("\"\"", "null", "[\"a\", \"\\u001b\"]"),
	 "c: refused: byte 0 is a control character (0x1b)"},
	{"a boot without a start", PROCESS("\"boot_id\": \"b\""), "c: start_ticks: missing"},
	{"a boot that is too long", PROCESS("\"boot_id\": \"" NONCE NONCE "\", \"start_ticks\": 1"),
	 "c: boot_id: "},
	{"a start that is a text", PROCESS("\"boot_id\": \"b\", \"start_ticks\": \"1\""),
	 "c: start_ticks: a string"},
	{"refused null", CLAIM("\"\"", "null", "null"), "c: refused: null, an array"},
};

static void test_parse(void)
{
	static const char good[] =
		CLAIM("\"fell-back\"", "\"step-0000000012.g3\"", "[\"step-0000000013.g3: cut\"]");
	struct ck_error err = CK_ERROR_INIT;
	struct ck_claim claim;

	for (size_t i = 0; i < ROWS(refusals); i++) {
		claim = (struct ck_claim){.pid = 5};
		is_int(ck_claim_parse("c", refusals[i].text, strlen(refusals[i].text), &claim,
				      &err),
		       CK_EFORMAT, "%s is refused", refusals[i].name);
		like(err.text, refusals[i].says, "%s: the text", refusals[i].name);
		is_u64(claim.pid, 5, "%s: the output is untouched", refusals[i].name);
	}
	is_int(ck_claim_parse("c", good, strlen(good), &claim, &err), 0, "a good one: %s",
	       err.text);
	is_str(claim.resume, "fell-back", "resume");
	is_u64(claim.resumed.step, 12, "from step");
	is_u64(claim.resumed.generation, 3, "of generation");
	is_u64(claim.nrefused, 1, "one refused");
	is_str(claim.refused[0], "step-0000000013.g3: cut", "with its reason");
	is_u64(claim.world_size, 8, "world size");
	ck_claim_fini(&claim);
}

static void test_print(void)
{
	char *refused[] = {(char *)"step-0000000009.g1: a\nb \xff", (char *)"plain"};
	struct ck_claim claim = {
		.generation = 2,
		.job = {.job_id = "9"},
		.host = "n1",
		.pid = 4,
		.boot_id = "1b78e953-5531",
		.start_ticks = 12000,
		.time = 1764448670,
		.nonce = NONCE,
		.world_size = 4,
		.resume = "resumed",
		.resumed = {.step = 8, .generation = 1},
		.refused = refused,
		.nrefused = 2,
	};
	struct ck_error err = CK_ERROR_INIT;
	struct ck_buf first = CK_BUF_INIT, second = CK_BUF_INIT;
	struct ck_claim again;

	is_int(ck_claim_print(&claim, &first, &err), 0, "prints: %s", err.text);
	is_int(ck_claim_parse("c", first.data, first.len, &again, &err), 0, "reads: %s", err.text);
	is_str(again.boot_id, "1b78e953-5531", "the boot");
	is_u64(again.start_ticks, 12000, "the start");
	is_str(again.refused[0], "step-0000000009.g1: a\\x0ab \\xff", "reasons are escaped");
	is_int(ck_claim_print(&again, &second, &err), 0, "prints again: %s", err.text);
	is_str(second.data, first.data, "the same text");
	ck_claim_fini(&again);
	ck_buf_clear(&first);
	strcpy(claim.resume, "maybe");
	is_int(ck_claim_print(&claim, &first, &err), CK_EFORMAT, "an unknown word is refused");
	like(err.text, "claim.json: resume: 'maybe'", "the text");
	is_u64(first.len, 0, "nothing printed");
	ck_buf_fini(&first);
	ck_buf_fini(&second);
}

static void test_take(void)
{
	const char *dir = test_tmpdir();
	struct ck_claim claim = {.host = "n1", .pid = 7, .time = 1764448670, .world_size = 2};
	struct ck_claim loaded;
	struct ck_error err = CK_ERROR_INIT;
	uint64_t highest = 9;

	is_int(ck_generation_highest(&ck_io_posix, in_dir(dir, "none"), &highest, &err), CK_ENOENT,
	       "no directory");
	is_int(ck_claim_take(&ck_io_posix, in_dir(dir, "none"), &claim, &err), CK_ENOENT,
	       "no claim without a run directory");
	is_u64(claim.generation, 0, "the claim is untouched");
	is_int(ck_generation_highest(&ck_io_posix, dir, &highest, &err), 0, "an empty directory");
	is_u64(highest, 0, "has generation 0");

	is_int(ck_claim_take(&ck_io_posix, dir, &claim, &err), 0, "first claim");
	is_u64(claim.generation, 1, "is generation 1");
	is_u64(strlen(claim.nonce), 32, "with a nonce");
	is_int(ck_claim_load(&ck_io_posix, dir, 1, &loaded, &err), 0, "loads: %s", err.text);
	is_str(loaded.nonce, claim.nonce, "as taken");
	is_u64(loaded.pid, 7, "pid");
	ck_claim_fini(&loaded);

	mkdir(in_dir(dir, ".gen-41"), 0777);
	mkdir(in_dir(dir, ".gen-99.bak"), 0777);
	mkdir(in_dir(dir, ".gen-007"), 0777);
	mkdir(in_dir(dir, "gen-50"), 0777);
	is_int(ck_claim_take(&ck_io_posix, dir, &claim, &err), 0, "next claim");
	is_u64(claim.generation, 42, "gaps are fine, look-alikes do not count");
	strcpy(claim.resume, "fresh");
	is_int(ck_claim_store(&ck_io_posix, dir, &claim, &err), 0, "stored again");
	is_int(ck_claim_load(&ck_io_posix, dir, 42, &loaded, &err), 0, "loaded");
	is_str(loaded.resume, "fresh", "with the choice");
	ck_claim_fini(&loaded);
	is_int(ck_claim_load(&ck_io_posix, dir, 41, &loaded, &err), CK_ENOENT,
	       "a generation without a claim");
	put_file(in_dir(dir, ".gen-41/claim.json"), "{}");
	is_int(ck_claim_load(&ck_io_posix, dir, 41, &loaded, &err), CK_EFORMAT, "a spoilt claim");
	like(err.text, "/.gen-41/claim.json: schema_version: missing", "the text");
}

static void test_take_failures(void)
{
	const char *dir = test_tmpdir();
	struct ck_claim claim = {.time = 1764448670};
	struct ck_error err = CK_ERROR_INIT;
	struct ck_io_fault *fault;

	/* Another claimant's directory appears between our readdir and our mkdir. */
	is_int(ck_io_fault_new(&fault, &ck_io_posix, "mkdir:.gen-1:errno=EEXIST", &err), 0,
	       "fault");
	is_int(ck_claim_take(ck_io_fault_io(fault), dir, &claim, &err), 0, "a lost race");
	is_u64(claim.generation, 2, "takes the next number");
	ck_io_fault_free(fault);

	is_int(ck_io_fault_new(&fault, &ck_io_posix, "pwrite:claim.json*:errno=ENOSPC", &err), 0,
	       "fault");
	is_int(ck_claim_take(ck_io_fault_io(fault), dir, &claim, &err), CK_EIO, "no space");
	like(err.text, "No space left on device", "the text");
	is_u64(claim.generation, 2, "the claim is untouched");
	ck_io_fault_free(fault);
	ok(!exists_in(dir, ".gen-3"), "its number is given back");
	is_int(ck_claim_take(&ck_io_posix, dir, &claim, &err), 0, "the next attempt");
	is_u64(claim.generation, 3, "gets it");

	is_int(ck_io_fault_new(&fault, &ck_io_posix,
			       "mkdir:.gen-4:errno=EIO:done=1;rename:claim.json:errno=EIO:done=1",
			       &err),
	       0, "fault");
	is_int(ck_claim_take(ck_io_fault_io(fault), dir, &claim, &err), 0,
	       "answers that are lost: %s", err.text);
	is_u64(claim.generation, 5, "a number that may be another's is passed over");
	ck_io_fault_free(fault);
	is_int(ck_io_fault_new(&fault, &ck_io_posix, "mkdir:.gen-*:errno=EIO:done=1", &err), 0,
	       "fault");
	is_int(ck_claim_take(ck_io_fault_io(fault), dir, &claim, &err), CK_EIO,
	       "for ever: an end comes");
	ck_io_fault_free(fault);
}

/* Who has looked claims only what he has seen. */
static void test_take_after(void)
{
	const char *dir = test_tmpdir();
	struct ck_claim claim = {.time = 1764448670};
	struct ck_error err = CK_ERROR_INIT;
	struct ck_io_fault *fault;
	uint64_t seen = 9;

	is_int(ck_owner_wait(&ck_io_posix, in_dir(dir, "none"), &seen, &err), CK_ENOENT,
	       "no directory");
	is_int(ck_owner_wait(&ck_io_posix, dir, &seen, &err), 0, "nobody yet");
	is_u64(seen, 0, "... is generation 0");
	is_int(ck_claim_take_after(&ck_io_posix, dir, seen, &claim, &err), 0, "the first claim");
	is_u64(claim.generation, 1, "is generation 1");
	is_int(ck_claim_take_after(&ck_io_posix, dir, seen, &claim, &err), CK_EEXIST,
	       "who has not seen that");
	ok(!exists_in(dir, ".gen-2"), "... leaves nothing");
	is_int(ck_io_fault_new(&fault, &ck_io_posix, "mkdir:.gen-2:errno=EEXIST", &err), 0,
	       "fault");
	is_int(ck_claim_take_after(ck_io_fault_io(fault), dir, 1, &claim, &err), CK_EEXIST,
	       "who comes second");
	ck_io_fault_free(fault);
	is_int(ck_owner_wait(&ck_io_posix, dir, &seen, &err), 0, "looking again");
	is_int(ck_claim_take_after(&ck_io_posix, dir, seen, &claim, &err), 0, "the next claim");
	is_u64(claim.generation, 2, "is generation 2");
	mkdir(in_dir(dir, ".gen-7"), 0777);
	is_int(ck_owner_wait(&ck_io_posix, dir, &seen, &err), 0, "a claimant that died");
	is_u64(seen, 7, "... is not waited for for ever");
	put_file(in_dir(dir, "step-0000000001.g9"), "");
	is_int(ck_claim_take_after(&ck_io_posix, dir, seen, &claim, &err), 0,
	       "a checkpoint whose generation is gone");
	is_u64(claim.generation, 10, "... has its number kept");
}

/* Each call of a claim fails in turn: nothing may stay that fences the owner. */
static void test_nothing_left(void)
{
	static const char *const rules[] = {
		"mkdir:.gen-2:errno=ENOSPC",
		"open:claim.json*:errno=ENOSPC",
		"pwrite:claim.json*:errno=ENOSPC",
		"fsync:claim.json*:errno=EIO",
		"rename:claim.json:errno=EIO",
		"fsync:*/.gen-2/:errno=EIO",
		"fsync:*/:errno=EIO:after=1",
		"open:claim.json*:errno=EDQUOT;unlink:*:errno=EIO:times=1",
	};

	for (size_t i = 0; i < ROWS(rules); i++) {
		const char *dir = test_tmpdir();
		struct ck_claim claim = {.time = 1764448670};
		struct ck_error err = CK_ERROR_INIT;
		struct ck_io_fault *fault;

		make_run(dir);
		is_int(ck_io_fault_new(&fault, &ck_io_posix, rules[i], &err), 0, "%s", rules[i]);
		is_int(ck_claim_take(ck_io_fault_io(fault), dir, &claim, &err), CK_EIO,
		       "%s: no claim", rules[i]);
		is_int(ck_owner_check(&ck_io_posix, dir, 1, &err), 0, "%s: the owner stays: %s",
		       rules[i], err.text);
		ck_io_fault_free(fault);
	}
}

static void test_owner_load(void)
{
	const char *dir = test_tmpdir();
	struct ck_error err = CK_ERROR_INIT;
	struct ck_claim owner = {.pid = 9};

	is_int(ck_owner_load(&ck_io_posix, in_dir(dir, "none"), &owner, &err), CK_ENOENT,
	       "no directory");
	is_int(ck_owner_load(&ck_io_posix, dir, &owner, &err), CK_ENOENT, "an empty one");
	like(err.text, "no program has opened this run yet", "the text");
	make_generation(dir, 3);
	put_file(in_dir(dir, ".gen-9"), "somebody's notes");
	is_int(ck_owner_load(&ck_io_posix, dir, &owner, &err), CK_ENOENT,
	       "nothing but look-alikes");
	is_u64(owner.pid, 9, "the output is untouched");

	put_file(in_dir(dir, ".gen-3/claim.json"), CLAIM("\"\"", "null", "[]"));
	make_generation(dir, 5);
	is_int(ck_owner_load(&ck_io_posix, dir, &owner, &err), 0,
	       "one who never wrote its claim hides nobody: %s", err.text);
	is_u64(owner.pid, 12, "the last one who did is the owner");
	ck_claim_fini(&owner);

	put_file(in_dir(dir, ".gen-5/claim.json"), "");
	is_int(ck_owner_load(&ck_io_posix, dir, &owner, &err), CK_EFORMAT,
	       "an empty claim may be anybody's");
	like(err.text, ".gen-5/claim.json: not JSON", "the text");
}

static void test_owner(void)
{
	const char *dir = test_tmpdir();
	struct ck_error err = CK_ERROR_INIT;

	is_int(ck_owner_check(&ck_io_posix, in_dir(dir, "none"), 1, &err), CK_ENOENT,
	       "no directory");
	is_int(ck_owner_check(&ck_io_posix, dir, 1, &err), CK_EIO, "our claim is gone");
	like(err.text, ".gen-1, our claim, is gone", "the text");
	make_generation(dir, 1);
	is_int(ck_owner_check(&ck_io_posix, dir, 1, &err), 0, "the highest owns");
	make_generation(dir, 3);
	is_int(ck_owner_check(&ck_io_posix, dir, 1, &err), CK_EFENCED, "a lower one is fenced");
	like(err.text, "generation 3 has taken over this run, this program holds generation 1",
	     "the text names both");
	is_int(ck_owner_check(&ck_io_posix, dir, 3, &err), 0, "the newer owns");
}

/* The owner takes for left over what is about to become our claim. */
static void test_swept_by_the_owner(void)
{
	const char *dir = test_tmpdir();
	struct ck_io_fault *fault;
	struct ck_claim claim = {.time = 1764448670};
	struct ck_error err = CK_ERROR_INIT;

	if (ck_io_fault_new(&fault, &ck_io_posix, "rename:claim.json*:errno=ENOENT", &err))
		ok(false, "%s", err.text);
	is_int(ck_claim_take(&ck_io_posix, dir, &claim, &err), 0, "a claim");
	claim.time++; /* what stands there already needs no rename */
	is_int(ck_claim_store(ck_io_fault_io(fault), dir, &claim, &err), CK_ENOENT,
	       "it is swept, nobody knows why");
	like(err.text, "claim.json: No such file", "the text");
	make_generation(dir, 2);
	is_int(ck_claim_store(ck_io_fault_io(fault), dir, &claim, &err), CK_EFENCED,
	       "it is swept by who has taken over");
	like(err.text, "generation 2 has taken over this run", "the text");
	ck_io_fault_free(fault);
}

/* Somebody cleans up while the owner runs: its number must not be given out again, or it would not be fenced. */
static void test_removed_generations(void)
{
	static const struct {
		const char *name;
		uint64_t next;
	} rows[] = {
		{"step-0000000100.g3", 4},      {"step-0000000007.g5", 6},
		{"step-0000000008.g4", 7},      {".saving-0000000101.g7", 8},
		{".salvage-0000000101.g9", 10}, {".deleting-0000000101.g11", 12},
		{".pin-0000000100.g13", 14},    {"step-0000000100.g15.bak", 15},
	};
	const char *dir = test_tmpdir();
	struct ck_error err = CK_ERROR_INIT;
	char gen[CK_NAME_MAX];

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct ck_claim claim = {.time = 1764448670};

		mkdir(in_dir(dir, rows[i].name), 0777);
		is_int(ck_claim_take(&ck_io_posix, dir, &claim, &err), 0, "%s: %s", rows[i].name,
		       err.text);
		is_u64(claim.generation, rows[i].next, "%s: the next number", rows[i].name);
		if (i + 1 < ROWS(rows))
			ck_io_remove_tree(&ck_io_posix,
					  in_dir(dir, ck_name_generation(claim.generation, gen)),
					  NULL);
	}
	is_int(ck_owner_check(&ck_io_posix, dir, 13, &err), CK_EFENCED,
	       "who had an earlier one is fenced");
}

static int claim_one(const char *dir, int i)
{
	struct ck_claim claim = {.pid = (uint64_t)i, .time = 1764448670};

	return ck_claim_take(&ck_io_posix, dir, &claim, NULL) ? 99 : (int)claim.generation;
}

static void test_race(void)
{
	const char *dir = test_tmpdir();
	struct ck_error err = CK_ERROR_INIT;
	struct ck_claim loaded;
	bool taken[10] = {false};
	int results[8];

	race(8, claim_one, dir, results);
	for (int i = 0; i < 8; i++) {
		int n = results[i];

		ok(n >= 1 && n <= 8 && !taken[n], "claimant %d has a generation of its own: %d", i,
		   n);
		taken[n >= 0 && n < 10 ? n : 0] = true;
		is_int(ck_claim_load(&ck_io_posix, dir, (uint64_t)n, &loaded, &err), 0, "loads: %s",
		       err.text);
		is_u64(loaded.pid, (uint64_t)i, "and holds its claim");
		ck_claim_fini(&loaded);
	}
}

int main(void)
{
	test_parse();
	test_print();
	test_take();
	test_take_failures();
	test_take_after();
	test_nothing_left();
	test_owner_load();
	test_owner();
	test_swept_by_the_owner();
	test_removed_generations();
	test_race();
	return done_testing();
}
