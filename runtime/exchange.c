#include "exchange.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/*
 * A message is a row of records, each a head, 2 x ndim u64 of the part's box, and `bytes` bytes of
 * its stream. All ranks have one byte order.
 */
struct record {
	uint32_t slot;
	uint32_t ndim; /* of the part; VOID: `bytes` bytes will not come, and nothing follows */
	uint64_t at;
	uint64_t bytes;
};

#define VOID UINT32_MAX
/* Less than this is not worth a record of its own at the end of a message. */
#define CRUMB 512

static int self(const struct ck_exchange *x)
{
	return x->comm->table.rank;
}

int ck_exchange_init(struct ck_exchange *x, struct ck_comm *comm, const struct ck_slot *slots,
		     size_t nslots, struct ck_error *err)
{
	bool failed = false;
	int rc = 0;

	*x = (struct ck_exchange){.comm = comm, .slots = slots, .nslots = nslots};
	for (size_t i = 0; i < nslots; i++)
		x->awaited += ck_box_volume(&slots[i].box) * slots[i].element;
	x->owed = calloc((size_t)comm->table.size, sizeof(*x->owed));
	failed = !x->owed;
	for (int i = 0; i < CK_EXCHANGE_SENDS; i++) {
		x->out[i] = (struct ck_outgoing){.to = -1};
		x->out[i].parcel = ck_parcel_new(CK_EXCHANGE_MESSAGE);
		failed = failed || !x->out[i].parcel;
	}
	for (int i = 0; i < CK_EXCHANGE_RECVS; i++) {
		x->in[i] = ck_parcel_new(CK_EXCHANGE_MESSAGE);
		failed = failed || !x->in[i];
	}
	if (failed)
		rc = ck_fail_nomem(err, CK_EXCHANGE_BYTES);
	for (int i = 0; i < CK_EXCHANGE_RECVS && !rc; i++)
		rc = ck_parcel_recv(comm, x->in[i], CKPT_ANY_PEER, CK_TAG_EXCHANGE, err);
	if (rc)
		ck_exchange_fini(x);
	return rc;
}

void ck_exchange_fini(struct ck_exchange *x)
{
	for (int i = 0; x->comm && i < CK_EXCHANGE_SENDS; i++)
		ck_parcel_free(x->comm, x->out[i].parcel);
	for (int i = 0; x->comm && i < CK_EXCHANGE_RECVS; i++)
		ck_parcel_free(x->comm, x->in[i]);
	free(x->owed);
	*x = (struct ck_exchange){.comm = NULL};
}

int ck_exchange_owe(struct ck_exchange *x, uint32_t rank, uint64_t bytes, struct ck_error *err)
{
	if (rank >= (uint32_t)x->comm->table.size)
		return ck_fail(err, CK_EFORMAT, "share: rank %" PRIu32 " of %d", rank,
			       x->comm->table.size);
	x->owed[rank] += bytes;
	return 0;
}

/* ---- taking ---- */

/* The memory for one range of a part's stream; false: it fits nothing that is wanted here. */
static bool find_place(const struct ck_exchange *x, uint32_t slot, const struct ck_box *part,
		       uint64_t at, uint64_t bytes, struct ck_cut *cut, void **data)
{
	const struct ck_slot *wanted = slot < x->nslots ? &x->slots[slot] : NULL;
	struct ck_box shared;

	if (!wanted || part->ndim != wanted->box.ndim || bytes > x->awaited ||
	    !ck_box_meet(part, &wanted->box, &shared) || !ck_box_equal(&shared, part))
		return false;
	ck_cut_init(cut, &wanted->box, part, wanted->element);
	*data = wanted->data;
	return at <= cut->bytes && bytes <= cut->bytes - at;
}

static int take_record(struct ck_exchange *x, const struct record *record, struct ck_reader *reader)
{
	struct ck_box part = {.ndim = (int)record->ndim};
	size_t coords = record->ndim * sizeof(uint64_t);
	const void *offset, *extent, *bytes;
	struct ck_cut cut;
	void *data;

	if (record->ndim > CK_MAX_NDIM)
		return -1;
	offset = ck_read_bytes(reader, coords);
	extent = ck_read_bytes(reader, coords);
	bytes = ck_read_bytes(reader, record->bytes);
	if (reader->failed)
		return -1;
	memcpy(part.offset, offset, coords);
	memcpy(part.extent, extent, coords);
	if (!find_place(x, record->slot, &part, record->at, record->bytes, &cut, &data))
		return -1;
	ck_cut_put(&cut, data, record->at, bytes, record->bytes);
	x->awaited -= record->bytes;
	return 0;
}

/* -1: the message is not one of ours. */
static int take_message(struct ck_exchange *x, const struct ck_parcel *parcel)
{
	struct ck_reader reader = {.data = parcel->data, .len = parcel->message.bytes};

	while (reader.pos < reader.len) {
		const void *head = ck_read_bytes(&reader, sizeof(struct record));
		struct record record;

		if (!head)
			return -1;
		memcpy(&record, head, sizeof(record));
		if (record.ndim != VOID) {
			if (take_record(x, &record, &reader))
				return -1;
			continue;
		}
		if (record.bytes > x->awaited)
			return -1;
		x->awaited -= record.bytes;
		x->told = true;
	}
	return 0;
}

static int take(struct ck_exchange *x, struct ck_parcel *parcel, struct ck_error *err)
{
	if (take_message(x, parcel))
		return ck_comm_die(
			x->comm, err,
			"exchange: a message of %zu bytes from rank %d fits nothing that "
			"rank %d wants",
			parcel->message.bytes, parcel->message.peer, self(x));
	return ck_parcel_recv(x->comm, parcel, CKPT_ANY_PEER, CK_TAG_EXCHANGE, err);
}

/* Take what has come, and find messages that are free again. */
static int progress(struct ck_exchange *x, struct ck_error *err)
{
	int rc;

	for (int i = 0; i < CK_EXCHANGE_RECVS; i++) {
		while ((rc = ck_parcel_test(x->comm, x->in[i], err)) == 1)
			if ((rc = take(x, x->in[i], err)))
				return rc;
		if (rc < 0)
			return rc;
	}
	for (int i = 0; i < CK_EXCHANGE_SENDS; i++) {
		struct ck_outgoing *out = &x->out[i];

		if (!out->sent)
			continue;
		rc = ck_parcel_test(x->comm, out->parcel, err);
		if (rc < 0)
			return rc;
		if (rc)
			*out = (struct ck_outgoing){.parcel = out->parcel, .to = -1};
	}
	return 0;
}

int ck_exchange_poll(struct ck_exchange *x, struct ck_error *err)
{
	int rc = progress(x, err);

	return rc ? rc : ck_comm_listen(x->comm, err);
}

/* Wait until something has come or gone. `more` may be NULL. */
static int wait_any(struct ck_exchange *x, struct ck_parcel *more, const char *what,
		    struct ck_error *err)
{
	struct ck_parcel *parcels[CK_EXCHANGE_SENDS + CK_EXCHANGE_RECVS + 1];
	int n = 0, rc;

	for (int i = 0; i < CK_EXCHANGE_SENDS; i++)
		if (x->out[i].sent)
			parcels[n++] = x->out[i].parcel;
	for (int i = 0; i < CK_EXCHANGE_RECVS; i++)
		parcels[n++] = x->in[i];
	parcels[n++] = more;
	rc = ck_parcels_wait_any(x->comm, parcels, n, x->comm->timeout_ms, what, err);
	return rc ? rc : progress(x, err);
}

/* ---- handing on ---- */

static int send_off(struct ck_exchange *x, struct ck_outgoing *out, struct ck_error *err)
{
	out->sent = true;
	return ck_parcel_send(x->comm, out->parcel, out->used, out->to, CK_TAG_EXCHANGE, err);
}

/* The message to `to` that is being filled, if there is room for `bytes` and a bit. */
static struct ck_outgoing *find_open(struct ck_exchange *x, int to)
{
	for (int i = 0; i < CK_EXCHANGE_SENDS; i++)
		if (x->out[i].to == to && !x->out[i].sent)
			return &x->out[i];
	return NULL;
}

/* A message to `to` with room for a head and something; the one that was begun first has to go. */
static int open_message(struct ck_exchange *x, int to, size_t room, struct ck_outgoing **out,
			struct ck_error *err)
{
	struct ck_outgoing *open = find_open(x, to);
	int rc = 0;

	if (open && CK_EXCHANGE_MESSAGE - open->used < room) {
		rc = send_off(x, open, err);
		open = NULL;
	}
	while (!open && !rc) {
		struct ck_outgoing *oldest = NULL;

		open = find_open(x, -1);
		for (int i = 0; i < CK_EXCHANGE_SENDS && !open; i++)
			if (!x->out[i].sent && (!oldest || x->out[i].since < oldest->since))
				oldest = &x->out[i];
		if (open)
			*open = (struct ck_outgoing){.parcel = open->parcel,
						     .to = to,
						     .since = x->begun++};
		else
			rc = oldest ? send_off(x, oldest, err)
				    : wait_any(x, NULL, "exchange: sending pieces of items", err);
	}
	*out = open;
	return rc;
}

static void append(struct ck_outgoing *out, const void *data, size_t bytes)
{
	memcpy(out->parcel->data + out->used, data, bytes);
	out->used += bytes;
}

/* Put as much of a range into one message as it has room for. */
static int hand_some(struct ck_exchange *x, int to, struct record *record, const struct ck_cut *cut,
		     const struct ck_box *part, const void *piece, uint64_t base,
		     struct ck_error *err)
{
	size_t coords = record->ndim * sizeof(uint64_t), head = sizeof(*record) + 2 * coords;
	uint64_t left = record->bytes;
	struct ck_outgoing *out;
	size_t room;
	int rc = open_message(x, to, head + (left < CRUMB ? left : CRUMB), &out, err);

	if (rc)
		return rc;
	room = CK_EXCHANGE_MESSAGE - out->used - head;
	record->bytes = left < room ? left : room;
	append(out, record, sizeof(*record));
	append(out, part->offset, coords);
	append(out, part->extent, coords);
	ck_cut_get(cut, piece, base, record->at, out->parcel->data + out->used, record->bytes);
	out->used += record->bytes;
	record->at += record->bytes;
	record->bytes = left - record->bytes;
	return 0;
}

static int hand_self(struct ck_exchange *x, uint32_t slot, const struct ck_cut *cut,
		     const struct ck_box *part, const void *piece, uint64_t base, uint64_t at,
		     uint64_t bytes, struct ck_error *err)
{
	struct ck_cut to;
	void *data;

	if (!find_place(x, slot, part, at, bytes, &to, &data))
		return ck_fail(err, CK_EFORMAT, "share: slot %" PRIu32 " of %zu does not fit", slot,
			       x->nslots);
	ck_cut_move(cut, piece, base, &to, data, at, bytes);
	x->awaited -= bytes;
	return 0;
}

int ck_exchange_hand(struct ck_exchange *x, uint32_t rank, uint32_t slot, const struct ck_cut *cut,
		     const struct ck_box *part, const void *piece, uint64_t base, uint64_t at,
		     uint64_t bytes, struct ck_error *err)
{
	struct record record = {
		.slot = slot, .ndim = (uint32_t)part->ndim, .at = at, .bytes = bytes};
	int rc = 0;

	if (rank >= (uint32_t)x->comm->table.size || bytes > x->owed[rank])
		return ck_fail(err, CK_EFORMAT,
			       "share: more bytes for rank %" PRIu32 " than are owed", rank);
	if (rank == (uint32_t)self(x))
		rc = hand_self(x, slot, cut, part, piece, base, at, bytes, err);
	while (record.bytes && rank != (uint32_t)self(x) && !rc)
		rc = hand_some(x, (int)rank, &record, cut, part, piece, base, err);
	if (!rc)
		x->owed[rank] -= bytes;
	return rc;
}

/* ---- the end ---- */

static int give_up(struct ck_exchange *x, int rank, struct ck_error *err)
{
	struct record record = {.ndim = VOID, .bytes = x->owed[rank]};
	struct ck_outgoing *out;
	int rc;

	if (!record.bytes)
		return 0;
	x->owed[rank] = 0;
	if (rank == self(x)) {
		x->awaited -= record.bytes < x->awaited ? record.bytes : x->awaited;
		return 0;
	}
	rc = open_message(x, rank, sizeof(record), &out, err);
	if (!rc)
		append(out, &record, sizeof(record));
	return rc;
}

int ck_exchange_stop(struct ck_exchange *x, struct ck_error *err)
{
	int rc = 0;

	for (int r = 0; r < x->comm->table.size && !rc; r++)
		rc = give_up(x, r, err);
	return rc;
}

static bool under_way(const struct ck_exchange *x)
{
	for (int i = 0; i < CK_EXCHANGE_SENDS; i++)
		if (x->out[i].sent)
			return true;
	return false;
}

/* Leave together: who is done early waits here, not in a collective that has only so much patience. */
static int wait_for_all(struct ck_exchange *x, struct ck_error *err)
{
	struct ck_parcel *all = ck_parcel_new(2 * sizeof(uint64_t));
	int rc;

	if (!all)
		return ck_comm_die(x->comm, err, "rank %d: out of memory", self(x));
	memset(all->data, 0, 2 * sizeof(uint64_t));
	rc = ck_parcel_reduce(x->comm, all, 1, err);
	while (!rc && (rc = ck_parcel_test(x->comm, all, err)) == 0)
		rc = wait_any(x, all, "exchange: waiting for the others to be done", err);
	ck_parcel_free(x->comm, all);
	return rc < 0 ? rc : 0;
}

int ck_exchange_finish(struct ck_exchange *x, struct ck_error *err)
{
	int rc = 0;

	for (int i = 0; i < CK_EXCHANGE_SENDS && !rc; i++)
		if (x->out[i].to >= 0 && !x->out[i].sent)
			rc = send_off(x, &x->out[i], err);
	if (!rc)
		rc = progress(x, err);
	while (!rc && (x->awaited || under_way(x)))
		rc = wait_any(x, NULL, "exchange: waiting for pieces of items", err);
	return rc ? rc : wait_for_all(x, err);
}
