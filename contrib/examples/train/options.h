/*
 * The command line of the example. The limits keep the counts of MPI calls within an int.
 */
#ifndef TRAIN_OPTIONS_H
#define TRAIN_OPTIONS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct options {
	uint64_t steps, global_batch, context, embed, hidden, seed, step_ms, log_every;
	double lr, dropout;
	const char *text, *losses, *final, *pace; /* of argv; all but the first may be NULL */
	uint64_t die_step, die_rank;              /* step 0: never */
	int help;
};

/* Returns 0, or -1 with one line in `error`: option, value, what was expected. */
int options_parse(struct options *o, int argc, char **argv, char *error, size_t error_size);

void options_usage(FILE *out);

#endif
