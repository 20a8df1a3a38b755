/*
 * Rank 0's collection of the ranks' reports on one save: a record of what was written, or a failure.
 * The training thread brings in messages, the background thread waits and reads files. Thread-safe.
 */
#ifndef CK_RECORDS_H
#define CK_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "io.h"
#include "manifest.h"

struct ck_records;

/* For saves of `size` ranks. NULL: no memory. */
struct ck_records *ck_records_new(uint32_t size);
void ck_records_free(struct ck_records *records);

/* Forget the last save; the next is number `number`, with this identity. */
void ck_records_begin(struct ck_records *records, uint64_t number, struct ck_step_id id,
		      const char *save_id);

/* A rank's record as text. One of another save, or a second one, is dropped; one that cannot be read is a failure. */
void ck_records_put(struct ck_records *records, uint64_t number, uint32_t rank, const char *text,
		    size_t bytes);
/* A rank's failure. */
void ck_records_fail(struct ck_records *records, uint64_t number, uint32_t rank, int code,
		     const char *text);
/* Nobody will report any more: the wait ends. */
void ck_records_give_up(struct ck_records *records);

/*
 * Wait until every rank has reported.
 * Returns 1: they have; 0: the time is up; CK_EPEER: given up.
 */
int ck_records_wait(struct ck_records *records, unsigned timeout_ms);

/* Look for records of those who have not reported, in .gen-<n>/records-<step>/. */
void ck_records_look(struct ck_records *records, const struct ck_io *io, const char *dir);

/*
 * When all have reported: their files, ordered; the caller's then (free chunk_crc32 of each, and the array).
 * Returns 0; the code of the lowest rank that failed, "rank 3 (and 1 more): …"; CK_ENOMEM.
 */
int ck_records_take(struct ck_records *records, struct ck_file **files, size_t *count,
		    struct ck_error *err);

#endif
