/*
 * The roll call: who is it that does not answer? For comm.c and comm_tree.c only.
 *
 * A rank whose wait has become long asks those it waits for whether they are there. Every rank
 * answers from inside any of its own waits. So a rank that waits for a rank that waits for a silent
 * one knows that it is not the silent one, whatever the skew between them and whatever they are in;
 * and has asked, so it is told when that one gives up: the text of the first death goes to whoever
 * asked, and on from there. Waiting for a reduction or for anybody, rank 0 asks all and all ask
 * rank 0.
 *
 * An answer also tells how long ago the rank was at work outside of any wait (ck_comm_listen), or heard
 * that of one it waits for itself: so those who wait for a waiting rank know, too. News grow old on their
 * way, so that ranks which wait for each other do not excuse each other for ever.
 *
 * All of it are short messages on CK_TAG_ROLL_CALL, none of them in a run in which nobody is late.
 */
#ifndef CK_COMM_ROLL_H
#define CK_COMM_ROLL_H

#include <stdbool.h>
#include <stdint.h>

#include "comm.h"
#include "error.h"

/* Returns 0 or CK_ENOMEM. */
int ck_roll_init(struct ck_comm *comm, struct ck_error *err);
void ck_roll_fini(struct ck_comm *comm);

/*
 * Ask those whom the pending requests wait for. Answers to earlier questions count no more, unless this is
 * the same question `again`.
 */
void ck_roll_ask(struct ck_comm *comm, struct ck_parcel *const *parcels, int n, bool again);

/* From now on this rank answers as one that is at work, or as one that waits. */
void ck_roll_at_work(struct ck_comm *comm, bool is);

/* Was one that is waited for, or one it waits for itself, at work in the last few limits? */
bool ck_roll_works(const struct ck_comm *comm, uint64_t limit_ms);

/*
 * Take what has come: answer questions, note answers. Returns 0; CK_EPEER: somebody told of its
 * death.
 */
int ck_roll_listen(struct ck_comm *comm, struct ck_error *err);

/*
 * Time is up: name in `out` (bytes >= 16) those of the pending requests' ranks which did not answer
 * the last question, or, if all did, all of them. Returns 1 when some did not, else 0.
 */
int ck_roll_missing(const struct ck_comm *comm, struct ck_parcel *const *parcels, int n, char *out,
		    size_t bytes);

/*
 * comm has died: tell these ranks, or, with ranks NULL, all that have asked, why. Takes 100 ms at
 * most.
 */
void ck_roll_tell(struct ck_comm *comm, const int *ranks, int n);

#endif
