/* Zeroed memory, or the end of the program: mpirun and srun end the other ranks. */
#ifndef TRAIN_MEMORY_H
#define TRAIN_MEMORY_H

#include <stdio.h>
#include <stdlib.h>

static inline void *memory_zeroed(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (memory == NULL && count > 0) {
		fprintf(stderr, "train: out of memory for %zu times %zu bytes\n", count, size);
		exit(EXIT_FAILURE);
	}
	return memory;
}

#endif
