/*
 * A save: begun by the training thread, done by the background thread, told to all ranks by the next
 * agreement.
 *
 *	ck_save_start      all ranks; copies the state aside and hands it over
 *	ck_save_progress   each rank, at each call: sends its report, rank 0 receives
 *	ck_save_result     rank 0's word for the agreement, once it is over
 *	ck_save_conclude   all ranks, when that word came back
 *	ck_save_finish     all ranks: wait for the end instead
 */
#ifndef CK_SAVE_H
#define CK_SAVE_H

#include <stdatomic.h>

#include "handle.h"
#include "shard.h"
#include "stage.h"

/* A report to rank 0 is at most this long; longer records are read from their file. */
#define CK_REPORT_BYTES 65536

/* One save on one rank. */
struct ck_save {
	/* Set at the start, then only read. */
	const struct ck_io *io;
	const char *dir;
	uint32_t rank;
	uint64_t number;         /* counts the saves of the handle, alike on all ranks */
	struct ck_manifest head; /* rank 0: all but files; elsewhere id and save_id */
	char *flat;
	struct ck_stored *stored;
	struct ck_rank_bytes *rank_bytes;
	size_t nrank_bytes;
	struct ck_plan plan;
	struct ck_shard_options options;
	int refused; /* the state could not even be gathered: why is in error */
	double started;
	bool staged;
	uint64_t most_bytes;        /* of files of a rank, the largest of all ranks */
	struct ck_records *records; /* rank 0's */
	struct ck_rotation *rotation;

	/* The background thread's, until the flag below it is set. */
	char staging[PATH_MAX];
	struct ck_error error;
	struct ck_buf record; /* text */
	_Atomic int written;  /* 0: not yet; 1: durable; < 0: failed */
	struct ck_error outcome, warning;
	double ended_at;   /* on rank 0 of all ranks, elsewhere of this one */
	_Atomic int ended; /* rank 0; 0: not yet; 1: committed; < 0: failed */

	/* The training thread's. */
	bool told; /* the report is on its way to rank 0 */
	double took;
};

/* Do the whole of it, on the background thread. `arg` is the save. */
void ck_save_run(void *arg);

/*
 * Begin a save of `step`. Collective; no save is under way.
 *
 *   staged  copy the state aside if --ckpt-staging and the memory of all ranks allow it (ck->save->staged says
 *           whether they did), so that the program may change it when the call returns; else it must not until
 *           ck_save_finish
 * Returns 0: a save is under way (what fails from here on, fails the save); the code of registrations
 * that do not fit, CK_EPEER.
 */
int ck_save_start(ckpt *ck, uint64_t step, bool staged, struct ck_error *err);

/*
 * Reserve the memory that a staged save of the state as it is now would need, if one is possible. Collective.
 * Returns 0; CK_ENOMEM; CK_EARG (of a callback, too); CK_EPEER.
 */
int ck_save_reserve(ckpt *ck, struct ck_error *err);

/* Move messages; local, never waits. Returns 0 or CK_EPEER. */
int ck_save_progress(ckpt *ck, struct ck_error *err);

/* Rank 0: the word to agree on, 0 while nothing has ended. */
uint64_t ck_save_result(const ckpt *ck);

/*
 * A result came out of an agreement: if it is of the save under way, that is over, on all ranks. Rank 0
 * says how it ended. Returns 0, also when the save failed; CK_EFENCED.
 */
int ck_save_conclude(ckpt *ck, uint64_t result, struct ck_error *err);

/*
 * Wait until the save under way (if any) is over. Collective. Returns 0 or the code of its failure with the
 * text, alike on all ranks; CK_EPEER.
 */
int ck_save_finish(ckpt *ck, struct ck_error *err);

/* Neither a thread nor the handle has it any more. */
void ck_save_free(struct ck_save *save);

/* Free what is left of a save whose handle is dead. */
void ck_save_drop(ckpt *ck);

#endif
