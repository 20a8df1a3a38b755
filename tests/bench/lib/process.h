/*
 * What a process takes: its memory, and work that is done in a fresh one.
 */
#ifndef BENCH_PROCESS_H
#define BENCH_PROCESS_H

#include <stddef.h>

/* Resident memory of this process in MiB. */
double bench_resident_mib(void);

/*
 * Call work(arg, out) in a child process whose peak memory begins anew; out[0 … count) comes back.
 * A child that fails ends the program.
 */
void bench_child(void (*work)(const void *arg, double *out), const void *arg, double *out,
		 size_t count);

#endif
