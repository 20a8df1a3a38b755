/* `ckpt verify`: what it says about good and bad checkpoints, and how it ends. */
#include <cjson/cJSON.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "scratch.h"
#include "tap.h"

#define SHARD_BYTES 24120

static void passes_good_ones(void)
{
	static const char *const levels[] = {"--level=sized", "--level=crc32", "-lsha256"};
	static const char *const works[] = {"headers and sizes in ", "crc32 of 94.2 KiB in ",
					    "sha256 of 94.2 KiB in "};
	const char *dir = two_steps();
	struct said said;

	for (size_t i = 0; i < 3; i++) {
		said = ckpt_cmd("verify", levels[i], dir);
		is_int(said.exit_code, 0, "%s: good", levels[i]);
		is_str(said.err, "", "%s: no bar, no complaint", levels[i]);
		ok(strncmp(said.out, "ok   /", 6) == 0, "%s: a line each", levels[i]);
		like(said.out, "step-0000002000.g1: 4 ranks, 4 files, 94.2 KiB, ", "%s: counts",
		     levels[i]);
		like(said.out, works[i], "%s: work", levels[i]);
		like(said.out, "\n2 checkpoints: 2 ok, 0 bad, 0 not checked, ", "%s: the sum",
		     levels[i]);
		said_fini(&said);
	}
	said = ckpt_cmd("verify", dir);
	like(said.out, "sha256 of 94.2 KiB in ", "sha256 when nothing is said");
	ok(strstr(said.out, "step-0000002000.g1") < strstr(said.out, "step-0000001000.g1"),
	   "newest first");
	said_fini(&said);
}

static void takes_each_form(void)
{
	const char *dir = two_steps();
	const char *forms[] = {in(dir, "../run@1000"), in(dir, "../run@latest"),
			       in_step(dir, 1, 1000, "")};
	static const char *const steps[] = {"step-0000001000.g1: 4 ranks", "step-0000002000.g1",
					    "step-0000001000.g1"};

	for (size_t i = 0; i < 3; i++) {
		struct said said = ckpt_cmd("verify", "-j1", forms[i]);

		is_int(said.exit_code, 0, "%s", forms[i]);
		like(said.out, steps[i], "this one");
		unlike(said.out, "checkpoints:", "and no sum");
		said_fini(&said);
	}
}

static void refuses_what_is_not_there(void)
{
	const char *dir = made_run("run"), *empty = test_tmpdir();
	struct said said = ckpt_cmd("verify", dir);

	is_int(said.exit_code, 1, "a run without checkpoints is no good answer");
	like(said.err, "ckpt verify: ", "told");
	like(said.err, "/run: it has no checkpoint\n", "why");
	said_fini(&said);
	said = ckpt_cmd("verify", empty);
	is_int(said.exit_code, 1, "an empty directory");
	like(said.err, "not a run directory", "why");
	said_fini(&said);
	made_save(dir, made_claim(dir), 5, 1, true);
	said = ckpt_cmd("verify", "/nowhere", dir);
	is_int(said.exit_code, 1, "one that is not there, and a good one");
	like(said.err, "/nowhere: no such run directory", "the first is told");
	like(said.out, "ok   ", "the second is verified");
	said_fini(&said);
}

/* As `ls` and a start say of it. */
static void follows_no_link(void)
{
	const char *dir = two_steps(), *step = in(dir, "step-0000002000.g1");
	struct said said;

	ok(rename(step, in(dir, "away")) == 0 && symlink("away", step) == 0, "a link");
	said = ckpt_cmd("verify", dir);
	is_int(said.exit_code, 1, "is bad");
	like(said.out, "     bad: ", "and no less");
	like(said.out, "step-0000002000.g1: a link or a file, not a directory", "named");
	said_fini(&said);
}

/* Damages of rank 2's file of step 2000, and what is said of them at each level. */
static void cut(const char *dir, const char *file)
{
	(void)dir;
	ok(truncate(file, 5000) == 0, "cut");
}

static void lose(const char *dir, const char *file)
{
	(void)dir;
	ok(unlink(file) == 0, "lost");
}

static void flip(const char *dir, const char *file)
{
	(void)dir;
	flip_bit(file, 9000);
}

static void stray_shard(const char *dir, const char *file)
{
	(void)file;
	scratch_put_text(in_step(dir, 1, 2000, "rank-00009.0.safetensors"), "x");
}

static void other_sums(const char *dir, const char *file)
{
	(void)file;
	flip_bit(in_step(dir, 1, 2000, "SHA256SUMS"), 3);
}

static void half_manifest(const char *dir, const char *file)
{
	(void)file;
	scratch_put_text(in_step(dir, 1, 2000, "manifest.json"), "{\"schema_version\": 1");
}

static void make_fifo(const char *dir, const char *file)
{
	(void)dir;
	ok(unlink(file) == 0 && mkfifo(file, 0666) == 0, "a FIFO in its place");
}

static const struct {
	const char *what;
	void (*damage)(const char *dir, const char *file);
	const char *text[2];
	bool by_bytes; /* found by reading only */
} damages[] = {
	{"cut",
	 cut,
	 {"rank-00002.0.safetensors: it has 5000 bytes, the manifest says 24120"},
	 false},
	{"missing", lose, {"rank-00002.0.safetensors: the file is missing"}, false},
	{"one bit",
	 flip,
	 {"rank-00002.0.safetensors: chunk 0, bytes [0, 24120): crc32 is ", " was written"},
	 true},
	{"a stray shard", stray_shard, {"rank-00009.0.safetensors: not in the manifest"}, false},
	{"another sum", other_sums, {"SHA256SUMS: line 1 is '", "by the manifest it is '"}, false},
	{"half a manifest", half_manifest, {"manifest.json: "}, false},
	{"a FIFO", make_fifo, {"rank-00002.0.safetensors: "}, false},
};

static void finds_damage(void)
{
	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		const char *what = damages[i].what, *dir = two_steps();
		struct said said;

		damages[i].damage(dir, in_step(dir, 1, 2000, "rank-00002.0.safetensors"));
		said = ckpt_cmd("verify", dir);
		is_int(said.exit_code, 1, "%s: bad", what);
		is_str(said.err, "", "%s: no complaint", what);
		ok(strncmp(said.out, "BAD  /", 6) == 0, "%s: BAD", what);
		like(said.out, ": 1 bad\n     bad: /", "%s: a finding below", what);
		for (int t = 0; t < 2 && damages[i].text[t]; t++)
			like(said.out, damages[i].text[t], "%s: what it is", what);
		like(said.out, "\nok   /", "%s: the other one is good", what);
		like(said.out, "\n2 checkpoints: 1 ok, 1 bad, 0 not checked, ", "%s: the sum",
		     what);
		said_fini(&said);
		said = ckpt_cmd("verify", "--level=crc32", dir);
		is_int(said.exit_code, 1, "%s: bad at level crc32", what);
		said_fini(&said);
		said = ckpt_cmd("verify", "--level=sized", dir);
		is_int(said.exit_code, damages[i].by_bytes ? 0 : 1, "%s: at level sized", what);
		said_fini(&said);
	}
}

static void tells_no_rate_of_nothing(void)
{
	const char *dir = made_run("run");
	struct said said;

	made_save(dir, made_claim(dir), 1000, 1, true);
	lose(dir, in_step(dir, 1, 1000, "rank-00000.0.safetensors"));
	said = ckpt_cmd("verify", dir);
	is_int(said.exit_code, 1, "the only file is lost");
	like(said.out, ", headers and sizes in ", "no byte was hashed");
	said_fini(&said);
}

static void warns_of_strays(void)
{
	const char *dir = two_steps();
	struct said said;

	scratch_put_text(in_step(dir, 1, 2000, "no\033tes.txt"), "x");
	scratch_put_text(in_step(dir, 1, 2000, "more.txt"), "x");
	said = ckpt_cmd("verify", dir);
	is_int(said.exit_code, 0, "strays are no damage");
	like(said.out, ": 2 warnings\n     warning: /", "but are told");
	like(said.out, "/no\\x1btes.txt: not in the manifest\n", "escaped");
	ok(!strchr(said.out, '\033'), "so that no terminal is steered");
	said_fini(&said);
}

static void tells_what_it_cannot_read(void)
{
	const char *dir = two_steps();
	const struct manner nobody = {.as_nobody = true};
	const struct manner broken = {.faults = "pread:*rank-00001*:errno=EIO"};
	struct said said;

	ok(chmod(in_step(dir, 1, 2000, "rank-00003.0.safetensors"), 0) == 0, "no permission");
	said = ckpt_cmd_as(&nobody, "verify", dir);
	is_int(said.exit_code, 3, "could not check everything");
	ok(strncmp(said.out, "???  /", 6) == 0, "neither good nor bad");
	like(said.out, ": 1 not checked\n     not checked: /", "counted");
	like(said.out, "rank-00003.0.safetensors: ", "which");
	like(said.out, "Permission denied\n", "why");
	like(said.out, "\n2 checkpoints: 1 ok, 0 bad, 1 not checked, ", "the sum");
	said_fini(&said);
	said = ckpt_cmd_as(&broken, "verify", "--level", "crc32", in(dir, "../run@1000"));
	is_int(said.exit_code, 3, "a file system that fails");
	like(said.out, "Input/output error", "why");
	like(said.err, "warning: rehearsing failures", "and that it is a rehearsal");
	said_fini(&said);
	ok(unlink(in_step(dir, 1, 1000, "rank-00000.0.safetensors")) == 0, "a lost file too");
	said = ckpt_cmd_as(&broken, "verify", in(dir, "../run@1000"));
	is_int(said.exit_code, 1, "what is bad outweighs what could not be read");
	like(said.out, ": 1 bad, 1 not checked\n", "both are counted");
	said_fini(&said);
}

static void rejects_bad_rehearsal(void)
{
	const struct manner manner = {.faults = "sing:*"};
	struct said said = ckpt_cmd_as(&manner, "verify", "/nowhere");

	is_int(said.exit_code, 2, "a rule that is none");
	like(said.err, "sing:*", "named");
	said_fini(&said);
}

/* --- while it runs --- */

static void ends_when_interrupted(void)
{
	const char *dir = two_steps();
	/* In the middle of the first of many reads. */
	const struct manner manner = {.faults = "pread:*.safetensors:kill=INT:times=1"};
	struct said said = ckpt_cmd_as(&manner, "verify", "-j1", dir);

	is_int(said.exit_code, 130, "interrupted");
	like(said.out, "???  /", "the one under way is not judged");
	like(said.out, "step-0000002000.g1: interrupted\n", "and named");
	unlike(said.out, "anceled", "no findings of our own making");
	like(said.err, "ckpt verify: interrupted: 0 of 2 checkpoints checked, 0 bad\n",
	     "what was checked");
	said_fini(&said);
	said = ckpt_cmd_as(&manner, "verify", "-j1", "--json", dir);
	is_int(said.exit_code, 130, "interrupted, for programs");
	like(said.out, "\"interrupted\": true\n}\n", "says so, in whole JSON");
	said_fini(&said);
}

static void ignores_an_ignored_interrupt(void)
{
	const char *dir = two_steps();
	const struct manner manner = {.faults = "pread:*:kill=INT", .no_interrupts = true};
	struct said said = ckpt_cmd_as(&manner, "verify", "-j4", dir);

	is_int(said.exit_code, 0, "as a shell's background job it goes on");
	said_fini(&said);
}

static void take_away(void *arg)
{
	const char *dir = arg;

	ok(rename(in_step(dir, 1, 1000, ""), in(dir, ".deleting-0000001000.g1")) == 0,
	   "the older one is rotated away");
}

static void forgives_rotation(void)
{
	const char *dir = two_steps();
	/* While the newer one, which comes first, is being read. */
	const struct manner manner = {.faults = "pread:*rank-00000*:kill=STOP:times=1",
				      .meanwhile = take_away,
				      .arg = (void *)dir};
	struct said said = ckpt_cmd_as(&manner, "verify", dir);

	is_int(said.exit_code, 0, "a checkpoint that is removed meanwhile is not bad");
	like(said.out, "--   /", "it is marked");
	like(said.out, "step-0000001000.g1: gone, removed meanwhile\n", "and named");
	like(said.out, "\n1 checkpoints: 1 ok, 0 bad, 0 not checked, ", "and not counted");
	said_fini(&said);
}

static void shows_a_bar(void)
{
	const char *dir = two_steps();
	const struct manner terminal = {.faults = "pread:*.safetensors:delay=60",
					.on_terminal = true};
	const struct manner quick = {.on_terminal = true};
	struct said said = ckpt_cmd_as(&terminal, "verify", "-j1", dir);
	double began;

	is_int(said.exit_code, 0, "on a terminal");
	like(said.err, "\rckpt verify [", "a bar");
	like(said.err, "KiB/s", "a rate");
	like(said.err, " left\033[K", "what is left");
	ok(said.err[strlen(said.err) - 1] == 'K', "taken away at the end");
	unlike(said.out, "\r", "stdout has none of it");
	said_fini(&said);
	began = seconds();
	said = ckpt_cmd_as(&quick, "verify", dir);
	ok(!*said.err || seconds() - began > 1, "none for what takes less than a second");
	said_fini(&said);
}

/* --- for programs --- */

static int number_at(const cJSON *tree, const char *key)
{
	return cJSON_IsNumber(json_at(tree, key)) ? (int)cJSON_GetNumberValue(json_at(tree, key))
						  : -1;
}

static void json_of_both(void)
{
	const char *dir = two_steps();
	const cJSON *row, *finding;
	struct said said;
	cJSON *tree;

	flip_bit(in_step(dir, 1, 2000, "rank-00001.0.safetensors"), 20000);
	scratch_put_text(in_step(dir, 1, 1000, "notes"), "x");
	said = ckpt_cmd("verify", "--json", dir);
	is_int(said.exit_code, 1, "JSON of a bad one and a good one");
	tree = cJSON_Parse(said.out);
	is_str(json_text(tree, "level"), "sha256", "level");
	is_int(number_at(tree, "ok"), 1, "ok");
	is_int(number_at(tree, "bad"), 1, "bad");
	is_int(number_at(tree, "unknown"), 0, "unknown");
	ok(cJSON_IsFalse(json_at(tree, "interrupted")), "interrupted");
	row = cJSON_GetArrayItem(json_at(tree, "checkpoints"), 0);
	is_str(json_text(row, "path"), in(dir, "step-0000002000.g1"), "path");
	is_str(json_text(row, "state"), "bad", "state");
	is_int(number_at(row, "step"), 2000, "step");
	is_int(number_at(row, "generation"), 1, "generation");
	is_int(number_at(row, "world_size"), 4, "world_size");
	is_int(number_at(row, "files"), 4, "files");
	is_int(number_at(row, "bytes"), 4 * SHARD_BYTES, "bytes");
	is_int(number_at(row, "bytes_read"), 4 * SHARD_BYTES, "bytes_read");
	ok(cJSON_IsNumber(json_at(row, "seconds")), "seconds");
	ok(cJSON_IsNull(json_at(row, "error")), "error");
	finding = cJSON_GetArrayItem(json_at(row, "findings"), 0);
	is_str(json_text(finding, "severity"), "bad", "severity");
	is_str(json_text(finding, "code"), "digest mismatch", "code");
	like(json_text(finding, "text"), "rank-00001.0.safetensors: chunk 0", "text");
	row = cJSON_GetArrayItem(json_at(tree, "checkpoints"), 1);
	is_str(json_text(row, "state"), "ok", "the good one");
	finding = cJSON_GetArrayItem(json_at(row, "findings"), 0);
	is_str(json_text(finding, "severity"), "warning", "its warning");
	ok(cJSON_IsNull(json_at(finding, "code")), "has no code");
	cJSON_Delete(tree);
	said_fini(&said);
}

int main(void)
{
	passes_good_ones();
	takes_each_form();
	refuses_what_is_not_there();
	follows_no_link();
	finds_damage();
	tells_no_rate_of_nothing();
	warns_of_strays();
	tells_what_it_cannot_read();
	rejects_bad_rehearsal();
	ends_when_interrupted();
	ignores_an_ignored_interrupt();
	forgives_rotation();
	shows_a_bar();
	json_of_both();
	return done_testing();
}
