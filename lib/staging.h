/*
 * Does a save copy the state aside first (staged), or is it written from the program's memory while the
 * program waits (direct)? The rule of --ckpt-staging. Pure.
 */
#ifndef CK_STAGING_H
#define CK_STAGING_H

#include <stdint.h>

#include "error.h"

enum ck_staging_mode {
	CK_STAGING_AUTO = 0, /* where there is memory for it */
	CK_STAGING_OFF,      /* never */
	CK_STAGING_MOST      /* where it takes at most so many bytes; memory is not looked at */
};

struct ck_staging {
	enum ck_staging_mode mode;
	uint64_t most; /* bytes per rank, of CK_STAGING_MOST */
};

/* "auto", "off", or a size (ck_parse_bytes). Returns 0; CK_EARG: "<what>: <text>: expected …". */
int ck_staging_parse(const char *what, const char *text, struct ck_staging *out,
		     struct ck_error *err);

#define CK_ROOM_UNLIMITED UINT64_MAX

/* What is known of the memory of a rank's node; bytes. */
struct ck_room {
	uint64_t limit;     /* of the cgroup with the least room; CK_ROOM_UNLIMITED: of none */
	uint64_t use;       /* of that cgroup, without what the kernel gives back when asked */
	uint64_t available; /* on the node; CK_ROOM_UNLIMITED: not known */
	uint32_t ranks;     /* of this node, which share all this */
};

/* Why a save is direct; by urgency, the largest is told. */
enum ck_staging_answer {
	CK_STAGED = 0,
	CK_DIRECT_ASKED,  /* CK_STAGING_OFF */
	CK_DIRECT_MOST,   /* more than CK_STAGING_MOST allows */
	CK_DIRECT_NODE,   /* more than the node has */
	CK_DIRECT_LIMIT,  /* more than a cgroup has */
	CK_DIRECT_REFUSED /* it was to be staged, and the system did not give the memory */
};

/* Of each rank's share this much is left alone: what a save takes beside staging, and a 16th. */
#define CK_STAGING_RESERVE (UINT64_C(64) << 20)

/*
 * How is this rank to save?
 *
 *   needed   bytes of its files, as they will be
 *   held     bytes of staging memory that it has already; they can be used again
 *   room     looked at by CK_STAGING_AUTO only, when needed > held
 *   allowed  out: how many bytes it may stage; CK_ROOM_UNLIMITED: nothing is in the way
 */
enum ck_staging_answer ck_staging_decide(const struct ck_staging *setting, uint64_t needed,
					 uint64_t held, const struct ck_room *room,
					 uint64_t *allowed);

/*
 * An answer as one word: the largest of all ranks' is the answer of all, with the numbers of one rank that
 * gave it. Numbers are of pages, the first rounded up, the second down, and at most 4 TiB.
 */
#define CK_STAGING_PAGE 4096
uint64_t ck_staging_pack(enum ck_staging_answer answer, uint64_t needed, uint64_t allowed);
enum ck_staging_answer ck_staging_unpack(uint64_t word, uint64_t *needed, uint64_t *allowed);

#endif
