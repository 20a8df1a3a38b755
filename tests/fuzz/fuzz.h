/*
 * A fuzz target is one file here with one function, as libFuzzer wants it. `make fuzz` builds it with
 * libFuzzer; `make check-unit` replays its corpus, tests/fuzz/corpus/<target>/, with replay.c.
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the program where the code under test breaks a promise. */
#define fuzz_expect(cond) ((cond) ? (void)0 : abort())

#endif
