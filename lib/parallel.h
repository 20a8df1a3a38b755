/*
 * Work in several threads at once, for as long as one call takes.
 */
#ifndef CK_PARALLEL_H
#define CK_PARALLEL_H

#include <pthread.h>
#include <stddef.h>
#include <time.h>

/* CPUs that the calling thread may use: those of its task, not of the machine. At least 1. */
unsigned ck_parallel_cpus(void);

/*
 * Call work(arg, i) for i in [0, count), each in a thread of its own, 0 in the caller's, and where no
 * thread can be had there too. The threads have all signals blocked. Returns when all is done.
 */
void ck_parallel(size_t count, void (*work)(void *arg, size_t i), void *arg);

/*
 * Waits that no setting of the clock prolongs: a condition whose pthread_cond_timedwait goes by the monotonic clock, and
 * a time on it.
 */
void ck_cond_init(pthread_cond_t *cond);
struct timespec ck_cond_deadline(unsigned ms);

#endif
