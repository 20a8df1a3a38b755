#include "rotate.h"

#include <stdlib.h>
#include <string.h>

#include "io_fault.h"
#include "leave.h"
#include "rundir.h"
#include "tap.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))
#define STEPS_MAX 8

/*
 * Steps newest first, each "<step>" or "<generation>/<step>", followed by letters: b bad, p pinned,
 * r the one resumed from, h held until a commit. `goes` lists those that are deleted.
 */
static const struct {
	const char *name;
	const char *steps;
	unsigned keep;
	bool save_to_come;
	const char *goes;
} rows[] = {
	{"nothing there", "", 3, true, ""},
	{"nothing there, after the commit", "", 1, false, ""},
	{"fewer than kept", "11 10", 3, true, ""},
	{"room for the save", "12 11 10", 3, true, "10"},
	{"after the commit nothing more goes", "12 11 10", 3, false, ""},
	{"after the commit, one too many", "13 12 11 10", 3, false, "10"},
	{"keep 2 with 9, 10, 11", "11 10 9", 2, true, "10 9"},
	{"keep 2, the save is committed", "12 11", 2, false, ""},
	{"keep 1: the last one waits for the commit", "11", 1, true, ""},
	{"keep 1: all but the last", "11 10 9", 1, true, "10 9"},
	{"keep 1: then it goes", "12 11", 1, false, "11"},
	{"keep 0 is keep 1, before", "11", 0, true, ""},
	{"keep 0 is keep 1, after", "12 11", 0, false, "11"},
	{"keep was lowered", "15 14 13 12 11 10", 2, true, "14 13 12 11 10"},
	{"keep beyond all numbers", "12 11 10", 4294967295u, true, ""},

	{"bad ones are not counted", "13b 12 11b 10", 3, true, ""},
	{"of bad ones the newest two stay", "14b 13b 12b 11b 10", 3, true, "12b 11b"},
	{"all bad", "12b 11b 10b", 1, true, "10b"},
	{"bad ones and good ones", "15b 14 13b 12b 11 10", 2, true, "12b 11 10"},
	{"the only good one stays, bad ones around", "13b 12b 11 10b", 1, true, "10b"},

	{"pins are not counted", "13 12p 11 10p", 3, true, ""},
	{"pins never go", "14 13p 12p 11p 10p", 1, false, ""},
	{"a pin is no substitute for the last good one", "11 10p", 1, true, ""},
	{"older ones go past pins", "14 13p 12 11p 10", 2, true, "12 10"},
	{"a pinned bad one stays beside two others", "13b 12b 11bp 10", 3, true, ""},

	{"the one resumed from stays", "12 11 10r", 2, true, "12 11"},
	{"resumed from, in the middle", "12 11r 10", 2, true, "12 10"},
	{"resumed from, kept by its place", "12r 11 10", 2, true, "11 10"},
	{"resumed from counts", "12 11 10r", 3, true, "11"},
	{"resumed from, with keep 1", "11r", 1, true, ""},
	{"released after its commit", "13 12 10", 2, false, "10"},
	{"resumed from after newer bad ones", "13b 12b 11r 10 9", 2, true, "10 9"},
	{"bad and resumed from: not deleted", "14b 13b 12br 11", 3, true, ""},

	{"newer than what was resumed from: not before a commit", "12h 11h 10r 9", 2, true, "9"},
	{"then they go", "2/11 1/12h 1/11h 1/10", 2, false, "1/11h 1/10"},
	{"an abandoned timeline goes first", "2/300 1/5000 1/4000", 2, true, "1/5000 1/4000"},
	{"an abandoned timeline, after the commit", "2/400 2/300 1/5000", 2, false, "1/5000"},
};

static size_t parse_steps(const char *text, struct ck_rotate_step *steps)
{
	size_t n = 0;
	char *end;

	for (; *text; text = end + (*end == ' ')) {
		struct ck_rotate_step *step = &steps[n++];

		*step = (struct ck_rotate_step){.id = {.generation = 1}};
		step->id.step = strtoull(text, &end, 10);
		if (*end == '/') {
			step->id.generation = step->id.step;
			step->id.step = strtoull(end + 1, &end, 10);
		}
		for (; *end && *end != ' '; end++) {
			step->bad |= *end == 'b';
			step->pinned |= *end == 'p';
			step->protected |= *end == 'r';
			step->held |= *end == 'h';
		}
	}
	return n;
}

static bool contains(const struct ck_rotate_step *list, size_t count, struct ck_step_id id)
{
	for (size_t i = 0; i < count; i++)
		if (ck_step_id_cmp(&list[i].id, &id) == 0)
			return true;
	return false;
}

static void test_decisions(void)
{
	for (size_t i = 0; i < ROWS(rows); i++) {
		struct ck_rotate_step steps[STEPS_MAX], goes[STEPS_MAX];
		size_t count = parse_steps(rows[i].steps, steps);
		size_t want = parse_steps(rows[i].goes, goes);
		bool out[STEPS_MAX];
		unsigned right = 0;

		memset(out, 0xff, sizeof(out));
		is_u64(ck_rotate_decide(steps, count, rows[i].keep, rows[i].save_to_come, out),
		       want, "%s: how many", rows[i].name);
		for (size_t k = 0; k < count; k++)
			right += out[k] == contains(goes, want, steps[k].id);
		is_u64(right, count, "%s: which", rows[i].name);
	}
}

/* `due` lists those that are to be pinned, with a multiple of 100. */
static void test_due(void)
{
	static const struct {
		const char *name, *steps, *due;
	} pins[] = {
		{"none there", "", ""},
		{"none at a multiple yet", "90 80", ""},
		{"killed between commit and pin", "100 90 80", "100"},
		{"the first behind it", "120 110 90", "110"},
		{"pinned already", "120 110p 90", ""},
		{"a pin that failed once", "210 200 190 110p", "200"},
		{"somebody took the pin away", "320 310p 210 200", ""},
		{"two missed", "210 200 190 110", "200 110"},
		{"a bad one does not count", "120 110b 90", "120"},
		{"of another time line", "2/510 2/500 2/400p 1/500p", "2/500"},
		{"a salvaged one", "1/300 1/210p", "1/300"},
	};

	for (size_t i = 0; i < ROWS(pins); i++) {
		struct ck_rotate_step steps[STEPS_MAX], want[STEPS_MAX];
		size_t count = parse_steps(pins[i].steps, steps);
		size_t due = parse_steps(pins[i].due, want);
		bool out[STEPS_MAX];
		unsigned right = 0;

		is_u64(ck_rotate_due(steps, count, 100, out), due, "%s: how many to pin",
		       pins[i].name);
		for (size_t k = 0; k < count; k++)
			right += out[k] == contains(want, due, steps[k].id);
		is_u64(right, count, "%s: which", pins[i].name);
		is_u64(ck_rotate_due(steps, count, 0, out), 0, "%s: none without keep_every",
		       pins[i].name);
	}
}

/*
 * A training that saves, commits and rotates: after each act at least one good checkpoint is there,
 * and after each commit no more than keep are.
 */
static void test_life(unsigned keep)
{
	struct ck_rotate_step steps[STEPS_MAX], all[STEPS_MAX];
	size_t count = 0, least = 99, most = 0;
	bool out[STEPS_MAX];

	for (uint64_t step = 1; step <= 12; step++) {
		for (int committed = 0; committed < 2; committed++) {
			size_t left = 0;

			if (committed) {
				memmove(steps + 1, steps, count * sizeof(steps[0]));
				steps[0] = (struct ck_rotate_step){.id = {step, 1}};
				count++;
			}
			ck_rotate_decide(steps, count, keep, !committed, out);
			memcpy(all, steps, sizeof(all));
			for (size_t i = 0; i < count; i++)
				if (!out[i])
					steps[left++] = all[i];
			count = left;
			if (step > 1 && count < least)
				least = count;
			if (committed && count > most)
				most = count;
		}
	}
	is_u64(least, 1, "keep %u: at every instant at least one is there", keep);
	is_u64(most, keep, "keep %u: never more after a commit", keep);
	is_u64(steps[0].id.step, 12, "keep %u: the newest is there", keep);
}

static void test_unpublish(void)
{
	static const struct ck_step_id id = {.step = 7, .generation = 1};
	const char *dir = test_tmpdir();
	struct ck_error err = CK_ERROR_INIT;
	struct ck_io_fault *fault;

	make_run(dir);
	is_int(ck_leave(&ck_io_posix, dir, id, 1, &err), 0, "gone already is fine");
	is_int(ck_unpublished_remove(&ck_io_posix, dir, id, &err), 0, "here too");
	is_int(save_step(&ck_io_posix, dir, id, 1, NULL, &err), 0, "a checkpoint");

	is_int(ck_io_fault_new(&fault, &ck_io_posix, "rename:*:errno=EIO", &err), 0, "fault");
	is_int(ck_leave(ck_io_fault_io(fault), dir, id, 1, &err), CK_EIO, "a rename that fails");
	like(err.text, "step-0000000007.g1: rename to ", "the text");
	ok(exists_in(dir, "step-0000000007.g1/manifest.json"), "it is still there");
	ck_io_fault_free(fault);

	is_int(ck_leave(&ck_io_posix, dir, id, 1, &err), 0, "un-published");
	ok(!exists_in(dir, "step-0000000007.g1"), "it is no checkpoint any more");
	ok(exists_in(dir, ".deleting-0000000007.g1/manifest.json"), "its files are still there");
	is_int(ck_io_fault_new(&fault, &ck_io_posix, "unlink:manifest.json:errno=EACCES", &err), 0,
	       "fault");
	is_int(ck_unpublished_remove(ck_io_fault_io(fault), dir, id, &err), CK_EIO,
	       "a file that stays is told");
	like(err.text, "manifest.json", "the text");
	ck_io_fault_free(fault);
	is_int(ck_unpublished_remove(&ck_io_posix, dir, id, &err), 0, "removed");
	ok(!exists_in(dir, ".deleting-0000000007.g1"), "all gone");
}

int main(void)
{
	test_decisions();
	test_due();
	for (unsigned keep = 1; keep <= 4; keep++)
		test_life(keep);
	test_unpublish();
	return done_testing();
}
