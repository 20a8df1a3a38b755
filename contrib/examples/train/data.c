#include "data.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "rng.h"

#define TEXT_MAX ((size_t)16 << 20)

/* Returns the number of bytes, 0 after a failure. */
static size_t read_text(unsigned char *text, const char *path, size_t least, char *error,
			size_t error_size)
{
	FILE *file = fopen(path, "rb");
	size_t size = file != NULL ? fread(text, 1, TEXT_MAX, file) : 0;

	if (file == NULL || ferror(file))
		snprintf(error, error_size, "--text: %s: %s", path, strerror(errno));
	else if (size < least)
		snprintf(error, error_size, "--text: %s: %zu bytes, expected at least %zu", path,
			 size, least);
	size = file == NULL || ferror(file) || size < least ? 0 : size;
	if (file != NULL)
		fclose(file);
	return size;
}

int data_load(struct data *d, MPI_Comm comm, const char *path, size_t context, uint64_t seed,
	      char *error, size_t error_size)
{
	uint64_t size = 0;
	int rank;

	*d = (struct data){.text = memory_zeroed(TEXT_MAX, 1), .seed = seed};
	MPI_Comm_rank(comm, &rank);
	if (rank == 0)
		size = read_text(d->text, path, context + 1, error, error_size);
	MPI_Bcast(&size, 1, MPI_UINT64_T, 0, comm);
	MPI_Bcast(d->text, (int)size, MPI_BYTE, 0, comm);
	d->size = size;
	d->places = size - context;
	return size > 0 ? 0 : -1;
}

void data_free(struct data *d)
{
	free(d->text);
	d->text = NULL;
}

const unsigned char *data_sample(const struct data *d, uint64_t index)
{
	return d->text + rng_hash(d->seed, index) % d->places;
}
