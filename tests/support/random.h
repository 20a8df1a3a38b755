/* Numbers of a fixed sequence, so that a failure comes again. Any state begins one. */
#ifndef TESTS_RANDOM_H
#define TESTS_RANDOM_H

#include <stdint.h>

uint64_t next_random(uint64_t *state);
/* The next one below `limit` (>= 1). */
uint64_t draw(uint64_t *state, uint64_t limit);

#endif
