/*
 * The training text, and which of its places a sample shows.
 *
 * All ranks count the samples consumed by all of them together. Sample number `index` of the run
 * begins at a place that depends on the seed and that number alone: whoever computes it and on
 * however many ranks, a resumed run sees the samples that the undisturbed one would have seen.
 */
#ifndef TRAIN_DATA_H
#define TRAIN_DATA_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

struct data {
	unsigned char *text;
	size_t size;
	size_t places; /* a sample begins at [0, places) */
	uint64_t seed;
};

/*
 * Rank 0 reads the file (of a larger one the first 16 MiB) and gives it to all. A sample is
 * `context` bytes and the one to predict. Collective; the result is the same on all ranks: 0, or
 * -1 with one line in `error` on rank 0.
 */
int data_load(struct data *d, MPI_Comm comm, const char *path, size_t context, uint64_t seed,
	      char *error, size_t error_size);
void data_free(struct data *d);

/* The context + 1 bytes of a sample. */
const unsigned char *data_sample(const struct data *d, uint64_t index);

#endif
