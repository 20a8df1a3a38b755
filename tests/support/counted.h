/* The operating system's calls, with the bytes counted that are read: by pread, or by a queue. */
#ifndef TESTS_COUNTED_H
#define TESTS_COUNTED_H

#include <stdatomic.h>
#include <stdint.h>

#include "io.h"

struct counted {
	struct ck_io io; /* the one to use */
	struct ck_io_ops ops;
	atomic_uint_fast64_t bytes;
};

/* It must stay where it is. Any number of threads may read. */
void counted_init(struct counted *counted);

#endif
