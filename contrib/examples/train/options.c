#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>

enum kind { INTEGER, REAL, TEXT, DIE_AT, HELP };

#define MAX_INTEGER 9007199254740991.0 /* 2^53 - 1: exact as a double and in JSON */
#define AT(field) offsetof(struct options, field)

static const struct spec {
	const char *name;
	enum kind kind;
	size_t at;
	double min, max;
	const char *value, *help;
} specs[] = {
	{"steps", INTEGER, AT(steps), 1, MAX_INTEGER, "N", "steps of the whole run (200)"},
	{"global-batch", INTEGER, AT(global_batch), 1, 1 << 20, "N", "samples of a step (256)"},
	{"context", INTEGER, AT(context), 1, 64, "N", "bytes that a prediction sees (8)"},
	{"embed", INTEGER, AT(embed), 1, 256, "N", "numbers that a byte becomes (16)"},
	{"hidden", INTEGER, AT(hidden), 1, 16384, "N", "hidden units (64)"},
	{"lr", REAL, AT(lr), 1e-9, 10, "RATE", "highest learning rate (0.01)"},
	{"dropout", REAL, AT(dropout), 0, 0.9, "SHARE", "hidden units left out (0.05)"},
	{"seed", INTEGER, AT(seed), 0, MAX_INTEGER, "N", "of all random numbers (1)"},
	{"text", TEXT, AT(text), 0, 0, "FILE", "/usr/share/common-licenses/GPL-3"},
	{"step-ms", INTEGER, AT(step_ms), 0, 1e7, "MS", "a step takes at least this long (0)"},
	{"pace", TEXT, AT(pace), 0, 0, "FILE", "holds --step-ms, read at each step"},
	{"log-every", INTEGER, AT(log_every), 1, MAX_INTEGER, "N", "steps from line to line (10)"},
	{"losses", TEXT, AT(losses), 0, 0, "FILE", "append each step and its exact loss"},
	{"final", TEXT, AT(final), 0, 0, "FILE", "write loss and whole state at the end"},
	{"die-at", DIE_AT, 0, 0, 0, "STEP[:RANK]", "SIGKILL after STEP, if begun before it"},
	{"help", HELP, 0, 0, 0, "", "print this"},
};

#define SPECS (sizeof(specs) / sizeof(specs[0]))

/* Digits only: strtoull itself takes signs and spaces. Returns the end, NULL if there is none. */
static const char *parse_integer(const char *text, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	return isdigit((unsigned char)*text) && errno == 0 ? end : NULL;
}

static int set_number(const struct spec *s, void *field, const char *text)
{
	uint64_t integer;
	char *real_end;
	double real = strtod(text, &real_end);
	const char *end = s->kind == REAL ? real_end : parse_integer(text, &integer);

	if (end == NULL || end == text || *end != '\0' || !(real >= s->min && real <= s->max))
		return -1;
	if (s->kind == REAL)
		*(double *)field = real;
	else
		*(uint64_t *)field = integer;
	return 0;
}

static int set_die_at(struct options *o, const char *text)
{
	const char *end = parse_integer(text, &o->die_step);

	if (end != NULL && *end == ':')
		end = parse_integer(end + 1, &o->die_rank);
	return end != NULL && *end == '\0' && o->die_step > 0 ? 0 : -1;
}

static int set_option(struct options *o, const struct spec *s, char *text, char *error,
		      size_t error_size)
{
	void *field = (char *)o + s->at;

	if (s->kind == HELP) {
		o->help = 1;
	} else if (s->kind == TEXT) {
		*(const char **)field = text;
	} else if (s->kind == DIE_AT) {
		if (set_die_at(o, text) == 0)
			return 0;
		snprintf(error, error_size, "--die-at: '%s': expected STEP or STEP:RANK", text);
		return -1;
	} else if (set_number(s, field, text) != 0) {
		snprintf(error, error_size, "--%s: '%s': expected a %snumber from %.16g to %.16g",
			 s->name, text, s->kind == REAL ? "" : "whole ", s->min, s->max);
		return -1;
	}
	return 0;
}

int options_parse(struct options *o, int argc, char **argv, char *error, size_t error_size)
{
	struct option known[SPECS + 1] = {{0}};
	int index = 0, c;

	*o = (struct options){.steps = 200, .global_batch = 256, .context = 8, .embed = 16};
	o->hidden = 64;
	o->seed = 1;
	o->log_every = 10;
	o->lr = 0.01;
	o->dropout = 0.05;
	o->text = "/usr/share/common-licenses/GPL-3";
	for (size_t i = 0; i < SPECS; i++) {
		known[i].name = specs[i].name;
		known[i].has_arg = specs[i].kind == HELP ? no_argument : required_argument;
	}
	opterr = 0; /* the line is ours, and from one rank */
	while ((c = getopt_long(argc, argv, "+:", known, &index)) == 0)
		if (set_option(o, &specs[index], optarg, error, error_size) != 0)
			return -1;
	if (c == -1 && optind == argc)
		return 0;
	if (c == -1)
		snprintf(error, error_size, "'%s': expected an option", argv[optind]);
	else
		snprintf(error, error_size, "%s: %s, see --help", argv[optind - 1],
			 c == ':' ? "expected a value" : "not an option");
	return -1;
}

void options_usage(FILE *out)
{
	fprintf(out, "usage: train [options], under srun or mpirun\n");
	for (size_t i = 0; i < SPECS; i++)
		fprintf(out, "  --%-12s %-11s %s\n", specs[i].name, specs[i].value, specs[i].help);
	fprintf(out, "exit codes: 0 finished, 1 failed, 2 bad option, 75 saved: start me again\n");
}
