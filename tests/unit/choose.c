/* choose.h: which checkpoints a start may resume from. */
#include "choose.h"

#include <stdio.h>
#include <string.h>

#include "tap.h"

/* "5.2o 4.1" -> step 5 of generation 2, ours; step 4 of generation 1. */
static size_t read_candidates(const char *text, struct ck_candidate *out)
{
	char copy[128], *save = NULL;
	size_t n = 0;

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		out[n] = (struct ck_candidate){.ours = strchr(word, 'o') != NULL};
		sscanf(word, "%lu.%lu", &out[n].id.step, &out[n].id.generation);
		n++;
	}
	return n;
}

static void choices(void)
{
	static const struct {
		const char *asked, *there, *chosen; /* "fresh", "error", or as `there` */
	} rows[] = {
		{"auto", "", "fresh"},
		{"auto", "5.2 9.1 4.1", "5.2 9.1 4.1"},
		{"auto", "5.2o 9.1", "5.2 9.1"},
		{"fresh", "", "fresh"},
		{"fresh", "9.1 4.1", "fresh"},
		{"fresh", "5.2o 9.1 4.1", "5.2"}, /* our own first commit ends it */
		{"fresh", "7.3o 5.2o 9.1", "7.3 5.2"},
		{"4", "9.1 4.1", "4.1"},
		{"4", "4.2 9.1 4.1", "4.2 4.1"},
		{"4", "9.1", "error"},
		{"4", "", "error"},
		{"4", "6.2o 9.1 4.1",
		 "6.2 4.1"}, /* after our own commit: that, and what it began from */
		{"0", "0.1", "0.1"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ck_candidate all[8];
		struct ck_step_id out[8];
		struct ck_error err = CK_ERROR_INIT;
		struct ck_resume asked;
		char got[128] = "";
		bool fresh = false;
		int n;

		is_int(ck_resume_parse("x", rows[i].asked, &asked, &err), 0, "%s: parsed",
		       rows[i].asked);
		n = ck_choose(&asked, all, read_candidates(rows[i].there, all), out, &fresh, &err);
		for (int k = 0; k < n; k++)
			sprintf(got + strlen(got), "%s%lu.%lu", k ? " " : "", out[k].step,
				out[k].generation);
		if (fresh)
			strcpy(got, "fresh");
		if (n < 0)
			strcpy(got, "error");
		is_str(got, rows[i].chosen, "--ckpt-resume=%s with '%s'", rows[i].asked,
		       rows[i].there);
		if (n < 0)
			like(err.text, "step 4 was asked for", "the text names it");
	}
}

static void bad_words(void)
{
	static const char *const rows[] = {"", "Fresh", "-1", "1.5", "9007199254740992", "newest"};
	struct ck_resume asked;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ck_error err = CK_ERROR_INIT;

		is_int(ck_resume_parse("--ckpt-resume", rows[i], &asked, &err), CK_EARG,
		       "'%s' is refused", rows[i]);
		like(err.text, "expected auto, fresh, or the number of a step",
		     "saying what was expected");
	}
}

static struct ck_claim claim(const char *job, const char *resume, uint64_t step)
{
	struct ck_claim c = {.resumed = {.step = step, .generation = 1}, .submit_time = 7};

	snprintf(c.job.job_id, sizeof(c.job.job_id), "%s", job);
	snprintf(c.resume, sizeof(c.resume), "%s", resume);
	return c;
}

static void progress(void)
{
	struct ck_claim ours = claim("12", "", 0);
	struct ck_step_id id = {.step = 5, .generation = 1};
	struct ck_claim same[] = {claim("12", "resumed", 5), claim("12", "fell-back", 5),
				  claim("12", "resumed", 5)};
	struct ck_claim other[] = {claim("12", "resumed", 5), claim("13", "resumed", 5),
				   claim("12", "resumed", 5)};
	struct ck_claim older[] = {claim("12", "resumed", 5), claim("12", "resumed", 5),
				   claim("12", "resumed", 4)};
	struct ck_claim held[] = {claim("12", "held", 5), claim("12", "resumed", 5),
				  claim("12", "resumed", 5)};
	struct ck_claim outside[] = {claim("", "resumed", 5), claim("", "resumed", 5),
				     claim("", "resumed", 5)};
	struct ck_claim none = claim("", "", 0);

	ok(ck_no_progress(same, 3, &ours, id), "resumed three times at the same step: no progress");
	ok(!ck_no_progress(same, 2, &ours, id), "twice is not yet");
	ok(!ck_no_progress(other, 3, &ours, id), "another job's starts do not count");
	ok(!ck_no_progress(older, 3, &ours, id), "another checkpoint before is progress");
	ok(!ck_no_progress(held, 3, &ours, id), "a start that was held begins a new count");
	ok(!ck_no_progress(outside, 3, &none, id), "outside of Slurm nothing is held");
}

int main(void)
{
	bad_words();
	choices();
	progress();
	return done_testing();
}
