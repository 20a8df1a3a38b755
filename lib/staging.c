#include "staging.h"

#include <string.h>

#include "parse.h"

/* The word: the answer, pages needed, pages that are missing to the most that fits here. */
#define PAGE CK_STAGING_PAGE
#define PAGES_BITS 30
#define PAGES_MAX ((UINT64_C(1) << PAGES_BITS) - 1)

int ck_staging_parse(const char *what, const char *text, struct ck_staging *out,
		     struct ck_error *err)
{
	struct ck_error why = CK_ERROR_INIT;
	struct ck_staging staging = {.mode = CK_STAGING_MOST};

	if (text && strcmp(text, "auto") == 0)
		staging.mode = CK_STAGING_AUTO;
	else if (text && strcmp(text, "off") == 0)
		staging.mode = CK_STAGING_OFF;
	else if (ck_parse_bytes(what, text, &staging.most, &why))
		return ck_fail(err, CK_EARG, "%s (or auto, or off)", why.text);
	*out = staging;
	return 0;
}

/* A rank's part of the memory that all of its node have together. */
static uint64_t share(uint64_t room, uint32_t ranks)
{
	uint64_t mine = room / (ranks ? ranks : 1);

	mine -= mine / 16;
	return mine > CK_STAGING_RESERVE ? mine - CK_STAGING_RESERVE : 0;
}

enum ck_staging_answer ck_staging_decide(const struct ck_staging *setting, uint64_t needed,
					 uint64_t held, const struct ck_room *room,
					 uint64_t *allowed)
{
	enum ck_staging_answer why = CK_DIRECT_NODE;
	uint64_t least;

	*allowed = CK_ROOM_UNLIMITED;
	if (setting->mode == CK_STAGING_OFF) {
		*allowed = 0;
		return CK_DIRECT_ASKED;
	}
	if (setting->mode == CK_STAGING_MOST) {
		*allowed = setting->most;
		return needed > setting->most ? CK_DIRECT_MOST : CK_STAGED;
	}
	if (needed <= held)
		return CK_STAGED;
	least = room->available;
	if (room->limit != CK_ROOM_UNLIMITED) {
		uint64_t left = room->limit > room->use ? room->limit - room->use : 0;

		if (left <= least) {
			least = left;
			why = CK_DIRECT_LIMIT;
		}
	}
	if (least == CK_ROOM_UNLIMITED)
		return CK_STAGED;
	*allowed = held + share(least, room->ranks);
	return needed > *allowed ? why : CK_STAGED;
}

static uint64_t at_most(uint64_t pages)
{
	return pages < PAGES_MAX ? pages : PAGES_MAX;
}

uint64_t ck_staging_pack(enum ck_staging_answer answer, uint64_t needed, uint64_t allowed)
{
	uint64_t pages = at_most(needed / PAGE + (needed % PAGE != 0));

	return (uint64_t)answer << 2 * PAGES_BITS | pages << PAGES_BITS |
	       (PAGES_MAX - at_most(allowed / PAGE));
}

enum ck_staging_answer ck_staging_unpack(uint64_t word, uint64_t *needed, uint64_t *allowed)
{
	*needed = (word >> PAGES_BITS & PAGES_MAX) * PAGE;
	*allowed = (PAGES_MAX - (word & PAGES_MAX)) * PAGE;
	return (enum ck_staging_answer)(word >> 2 * PAGES_BITS);
}
