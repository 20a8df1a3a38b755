#include "comm_roll.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMED_MAX 16
#define TELL_MS 100

enum kind { QUESTION = 1, ANSWER, DEATH };

#define NS_PER_MS 1000000u
#define NEVER UINT32_MAX

/* News from the far end of a collective's tree come through several ranks, each of which asks four times a limit. */
#define NEWS_LIMITS 4

/*
 * serial: of the question. age_ms: of an answer, since the rank, or one it waits for, was at work, or NEVER.
 * The text of a DEATH follows, without its NUL.
 */
struct note {
	uint32_t kind;
	uint32_t serial;
	uint32_t age_ms;
};

struct ck_roll {
	struct ck_parcel *ear; /* receives notes, from the first time somebody listens */
	uint32_t serial;       /* of the last question */
	bool at_work;          /* this rank is */
	uint64_t worked_ns;    /* when one that is waited for was; 0: never */
	unsigned char *asked;  /* by rank: has asked this rank at some time */
	unsigned char *marked; /* by rank: is being asked */
	unsigned char heard[]; /* by rank: has answered the last question */
};

int ck_roll_init(struct ck_comm *comm, struct ck_error *err)
{
	size_t size = (size_t)comm->table.size, bytes = sizeof(*comm->roll) + 3 * size;

	comm->roll = calloc(1, bytes);
	if (!comm->roll)
		return ck_fail_nomem(err, bytes);
	comm->roll->asked = comm->roll->heard + size;
	comm->roll->marked = comm->roll->asked + size;
	return 0;
}

/* Returns 0: a receive for notes is posted; CK_EPEER. */
static int prick_up(struct ck_comm *comm, struct ck_error *err)
{
	struct ck_parcel **ear = &comm->roll->ear;

	if (!*ear)
		*ear = ck_parcel_new(sizeof(struct note) + CK_ERROR_TEXT);
	if (!*ear)
		return ck_comm_die(comm, err, "rank %d: out of memory: %zu bytes wanted",
				   comm->table.rank, sizeof(struct note) + CK_ERROR_TEXT);
	if ((*ear)->pending)
		return 0;
	return ck_parcel_recv(comm, *ear, CKPT_ANY_PEER, CK_TAG_ROLL_CALL, err);
}

/*
 * After a death notes may still be on their way here. A receive that is left tells the owner of the
 * communicator that it is in use: else MPI gives its number, and with it the notes, to the next
 * one.
 */
static void keep_ear(struct ck_comm *comm)
{
	if (prick_up(comm, NULL))
		return;
	comm->roll->ear->next = comm->lost;
	comm->lost = comm->roll->ear;
	comm->roll->ear = NULL;
}

void ck_roll_fini(struct ck_comm *comm)
{
	if (comm->dead.code && comm->table.size > 1)
		keep_ear(comm);
	ck_parcel_free(comm, comm->roll->ear);
	free(comm->roll);
	comm->roll = NULL;
}

/* What cannot be sent now is sent later, or never: nobody here waits for a note of its own. */
static void send_note(struct ck_comm *comm, int rank, struct note note, const char *text)
{
	size_t bytes = strlen(text);
	struct ck_parcel *parcel = ck_parcel_new(sizeof(note) + bytes);

	if (!parcel)
		return;
	memcpy(parcel->data, &note, sizeof(note));
	memcpy(parcel->data + sizeof(note), text, bytes);
	ck_parcel_send(comm, parcel, sizeof(note) + bytes, rank, CK_TAG_ROLL_CALL, NULL);
	ck_parcel_free(comm, parcel);
}

void ck_roll_tell(struct ck_comm *comm, const int *ranks, int n)
{
	struct note note = {.kind = DEATH};
	struct ck_wait wait;

	for (int i = 0; i < n; i++)
		send_note(comm, ranks[i], note, comm->dead.text);
	for (int i = 0; !ranks && i < comm->table.size; i++)
		if (comm->roll->asked[i])
			send_note(comm, i, note, comm->dead.text);
	ck_wait_begin(&wait, TELL_MS);
	while (ck_comm_sweep(comm) && ck_wait_pause(&wait, comm, NULL) == 0)
		;
}

void ck_roll_at_work(struct ck_comm *comm, bool is)
{
	comm->roll->at_work = is;
}

bool ck_roll_works(const struct ck_comm *comm, uint64_t limit_ms)
{
	uint64_t worked = comm->roll->worked_ns;

	return worked && (ck_comm_clock_ns() - worked) / NS_PER_MS / NEWS_LIMITS < limit_ms;
}

/* What is told of the time since somebody was at work. */
static uint32_t age_ms(const struct ck_roll *roll)
{
	uint64_t age = (ck_comm_clock_ns() - roll->worked_ns) / NS_PER_MS;

	if (roll->at_work)
		return 0;
	return roll->worked_ns && age < NEVER ? (uint32_t)age : NEVER;
}

static void take_answer(struct ck_roll *roll, int peer, uint32_t age_ms)
{
	uint64_t now = ck_comm_clock_ns(), age = (uint64_t)age_ms * NS_PER_MS;

	roll->heard[peer] = 1;
	if (age_ms != NEVER && age < now && now - age > roll->worked_ns)
		roll->worked_ns = now - age;
}

static int take_note(struct ck_comm *comm, struct ck_parcel *ear, struct ck_error *err)
{
	size_t bytes = ear->message.bytes;
	int peer = ear->message.peer;
	struct note note;

	if (bytes < sizeof(note))
		return 0;
	memcpy(&note, ear->data, sizeof(note));
	if (note.kind == DEATH)
		return ck_comm_die(comm, err, "%.*s", (int)(bytes - sizeof(note)),
				   (const char *)ear->data + sizeof(note));
	if (note.kind == QUESTION) {
		comm->roll->asked[peer] = 1;
		note = (struct note){ANSWER, note.serial, age_ms(comm->roll)};
		send_note(comm, peer, note, "");
	} else if (note.kind == ANSWER && note.serial == comm->roll->serial) {
		take_answer(comm->roll, peer, note.age_ms);
	}
	return 0;
}

int ck_roll_listen(struct ck_comm *comm, struct ck_error *err)
{
	int rc = 0;

	if (comm->table.size == 1 || comm->dead.code)
		return 0;
	while (rc == 0) {
		rc = prick_up(comm, err);
		if (rc)
			return rc;
		rc = ck_parcel_test(comm, comm->roll->ear, err);
		if (rc <= 0)
			return rc;
		rc = take_note(comm, comm->roll->ear, err);
	}
	return rc;
}

/* ---- whom requests wait for ---- */

typedef void (*visit)(const struct ck_comm *comm, int rank, void *arg);

/* Of a reduction or any-source receive: rank 0 minds everybody, the others mind rank 0. */
static void each_unknown(const struct ck_comm *comm, visit call, void *arg)
{
	int end = comm->table.rank == 0 ? comm->table.size : 1;

	for (int rank = 0; rank < end; rank++)
		if (rank != comm->table.rank)
			call(comm, rank, arg);
}

/* A rank may be visited more than once. */
static void each_awaited(const struct ck_comm *comm, struct ck_parcel *const *parcels, int n,
			 visit call, void *arg)
{
	int unknown = 0;

	for (int i = 0; i < n; i++) {
		for (int k = 0; parcels[i] && k < parcels[i]->pending; k++) {
			if (parcels[i]->peers[k] < 0)
				unknown = 1;
			else
				call(comm, parcels[i]->peers[k], arg);
		}
	}
	if (unknown)
		each_unknown(comm, call, arg);
}

static void ask(const struct ck_comm *comm, int rank, void *arg)
{
	struct ck_comm *self = arg;

	if (rank == comm->table.rank || comm->roll->marked[rank])
		return;
	self->roll->marked[rank] = 1;
	send_note(self, rank, (struct note){.kind = QUESTION, .serial = comm->roll->serial}, "");
}

void ck_roll_ask(struct ck_comm *comm, struct ck_parcel *const *parcels, int n, bool again)
{
	size_t size = (size_t)comm->table.size;

	if (!again) {
		comm->roll->serial++;
		memset(comm->roll->heard, 0, size);
	}
	memset(comm->roll->marked, 0, size);
	each_awaited(comm, parcels, n, ask, comm);
}

/* Ranks by name, each once. */
struct roster {
	int silent; /* only those that have not answered */
	int ranks[NAMED_MAX];
	int named;
	int more;
};

static void enlist(const struct ck_comm *comm, int rank, void *arg)
{
	struct roster *roster = arg;

	if (roster->silent && comm->roll->heard[rank])
		return;
	for (int i = 0; i < roster->named; i++)
		if (roster->ranks[i] == rank)
			return;
	if (roster->named < NAMED_MAX)
		roster->ranks[roster->named++] = rank;
	else
		roster->more++;
}

static void print_roster(const struct roster *roster, char *out, size_t bytes)
{
	size_t at;

	at = (size_t)snprintf(out, bytes, roster->named > 1 ? "ranks" : "rank");
	for (int i = 0; i < roster->named && at < bytes; i++)
		at += (size_t)snprintf(out + at, bytes - at, "%s %d", i ? "," : "",
				       roster->ranks[i]);
	if (roster->more && at < bytes)
		snprintf(out + at, bytes - at, " and %d more", roster->more);
}

int ck_roll_missing(const struct ck_comm *comm, struct ck_parcel *const *parcels, int n, char *out,
		    size_t bytes)
{
	struct roster silent = {.silent = 1}, all = {.silent = 0};

	each_awaited(comm, parcels, n, enlist, &silent);
	each_awaited(comm, parcels, n, enlist, &all);
	if (!all.named) /* one rank alone, waiting for somebody */
		snprintf(out, bytes, "anybody");
	else
		print_roster(silent.named ? &silent : &all, out, bytes);
	return silent.named || !all.named;
}
