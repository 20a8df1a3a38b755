/*
 * Pieces of items on their way from the ranks that read them to those that want them.
 *
 * Each rank is both: it hands on what it reads, and takes what comes meanwhile. It knows how many
 * bytes it wants, and each reader knows how many it owes to whom, so there are no rounds to agree on:
 * a rank is done when it owes nothing and everything has come. A reader that fails tells
 * everybody it owes something that it will not come; so nobody waits for ever, and who was told
 * stops too. Then all agree on what went wrong, which is the caller's to do.
 *
 *	ck_exchange_init
 *	ck_exchange_owe      for each move of this rank's share
 *	ck_exchange_hand     as the files come in; takes what has arrived, too
 *	ck_exchange_stop     when a file turns out to be bad
 *	ck_exchange_finish   until nothing is owed or awaited
 *	ck_exchange_fini
 *	ck_comm_agree        the caller's
 *
 * Memory: CK_EXCHANGE_BYTES of messages, whatever the number of ranks; 8 bytes for each rank.
 * CK_EPEER from any of these: the communicator is dead; only fini is left.
 */
#ifndef CK_EXCHANGE_H
#define CK_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "comm.h"
#include "cut.h"
#include "error.h"
#include "tensor.h"

#define CK_EXCHANGE_MESSAGE ((size_t)2 << 20)
#define CK_EXCHANGE_SENDS 16
#define CK_EXCHANGE_RECVS 8
#define CK_EXCHANGE_BYTES ((CK_EXCHANGE_SENDS + CK_EXCHANGE_RECVS) * CK_EXCHANGE_MESSAGE)

/* A block that this rank wants. */
struct ck_slot {
	struct ck_box box;
	size_t element; /* bytes */
	void *data;     /* row-major, all of the box */
};

/* A message that is being filled, or under way. */
struct ck_outgoing {
	struct ck_parcel *parcel;
	int to; /* -1: free */
	size_t used;
	bool sent;
	uint64_t since; /* when it was begun, in messages */
};

struct ck_exchange {
	struct ck_comm *comm;
	const struct ck_slot *slots;
	size_t nslots;
	uint64_t awaited; /* bytes that have not come yet */
	uint64_t *owed;   /* by rank: bytes that have not been handed on */
	bool told;        /* somebody else has failed: stop reading */
	struct ck_outgoing out[CK_EXCHANGE_SENDS];
	struct ck_parcel *in[CK_EXCHANGE_RECVS];
	uint64_t begun; /* messages so far */
};

/* `slots` are the caller's and stay. Posts receives. Returns 0; CK_ENOMEM; CK_EPEER. */
int ck_exchange_init(struct ck_exchange *x, struct ck_comm *comm, const struct ck_slot *slots,
		     size_t nslots, struct ck_error *err);

/* This rank will hand on so many bytes. Returns 0 or CK_EFORMAT: there is no such rank. */
int ck_exchange_owe(struct ck_exchange *x, uint32_t rank, uint64_t bytes, struct ck_error *err);

/*
 * Hand on what a piece of a stored block has of one move.
 *
 *   cut, part  the move: where `part` stands in the stored block
 *   piece      bytes of the block, from its byte `base` on
 *   at, bytes  of the part's stream; the piece has all of them
 * Returns 0; CK_EFORMAT (own slot: it does not fit); CK_EPEER. Does not wait for the receiver, but
 * for a free message.
 */
int ck_exchange_hand(struct ck_exchange *x, uint32_t rank, uint32_t slot, const struct ck_cut *cut,
		     const struct ck_box *part, const void *piece, uint64_t base, uint64_t at,
		     uint64_t bytes, struct ck_error *err);

/* Take what has arrived. Returns 0 or CK_EPEER. */
int ck_exchange_poll(struct ck_exchange *x, struct ck_error *err);

/* Give up: what is still owed will not come. Returns 0 or CK_EPEER. */
int ck_exchange_stop(struct ck_exchange *x, struct ck_error *err);

/* Everything has been handed on, or given up. Returns 0; CK_EPEER. */
int ck_exchange_finish(struct ck_exchange *x, struct ck_error *err);

void ck_exchange_fini(struct ck_exchange *x);

#endif
