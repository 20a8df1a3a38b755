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
 * All of it are short messages on CK_TAG_ROLL_CALL, none of them in a run in which nobody is late.
 */
#ifndef CK_COMM_ROLL_H
#define CK_COMM_ROLL_H

#include "comm.h"
#include "error.h"

/* Returns 0 or CK_ENOMEM. */
int ck_roll_init(struct ck_comm *comm, struct ck_error *err);
void ck_roll_fini(struct ck_comm *comm);

/* Ask those whom the pending requests wait for; answers to earlier questions count no more. */
void ck_roll_ask(struct ck_comm *comm, struct ck_parcel *const *parcels, int n);

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
