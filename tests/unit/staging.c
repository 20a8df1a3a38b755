/* Staged or direct: the option's texts, the rule, and the word that ranks agree with. */
#include "staging.h"

#include <stdbool.h>

#include "tap.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))
#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)
#define NONE CK_ROOM_UNLIMITED

static void test_texts(void)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{NULL,
		 "--s: no value: a size such as 512M, 2G, 2GiB or 5GB is wanted (or auto, or off)"},
		{"", "--s: empty: a size"},
		{"on", "--s: on: not a size such as 512M, 2G, 2GiB or 5GB (or auto, or off)"},
		{"512", "--s: 512: a number needs a unit: 512M or 512G (or auto, or off)"},
		{"AUTO", "--s: AUTO: not a size"},
		{"0G", "--s: 0G: not between"},
	};
	struct ck_staging staging;

	for (size_t i = 0; i < ROWS(bad); i++) {
		struct ck_error err = CK_ERROR_INIT;

		staging = (struct ck_staging){CK_STAGING_OFF, 7};
		is_int(ck_staging_parse("--s", bad[i].text, &staging, &err), CK_EARG,
		       "%s is refused", bad[i].text ? bad[i].text : "(NULL)");
		like(err.text, bad[i].says, "... and told why");
		ok(staging.mode == CK_STAGING_OFF && staging.most == 7, "... nothing is changed");
	}
	is_int(ck_staging_parse("", "auto", &staging, NULL), 0, "auto");
	is_int(staging.mode, CK_STAGING_AUTO, "... is that");
	is_int(ck_staging_parse("", "off", &staging, NULL), 0, "off");
	is_int(staging.mode, CK_STAGING_OFF, "... is that");
	is_int(ck_staging_parse("", "2G", &staging, NULL), 0, "a size");
	is_int(staging.mode, CK_STAGING_MOST, "... is a limit");
	is_u64(staging.most, 2 * GIB, "... of so many bytes");
}

/* Of 64 GiB in one rank, 60 GiB without the 16th, and 64 MiB less. */
#define SHARE_64 (60 * GIB - 64 * MIB)

static void test_rule(void)
{
	static const struct {
		const char *what;
		struct ck_staging setting;
		uint64_t needed, held;
		struct ck_room room;
		enum ck_staging_answer answer;
		uint64_t allowed;
	} rows[] = {
		{"off", {CK_STAGING_OFF, 0}, 1, 0, {NONE, 0, NONE, 1}, CK_DIRECT_ASKED, 0},
		{"off, with memory held",
		 {CK_STAGING_OFF, 0},
		 1,
		 9,
		 {NONE, 0, NONE, 1},
		 CK_DIRECT_ASKED,
		 0},
		{"a size, exactly", {CK_STAGING_MOST, GIB}, GIB, 0, {0, 0, 0, 1}, CK_STAGED, GIB},
		{"a size, a byte more",
		 {CK_STAGING_MOST, GIB},
		 GIB + 1,
		 0,
		 {NONE, 0, NONE, 1},
		 CK_DIRECT_MOST,
		 GIB},
		{"nothing known", {0}, 900 * GIB, 0, {NONE, 0, NONE, 1}, CK_STAGED, NONE},
		{"it is there already", {0}, GIB, GIB, {0, 0, 0, 1}, CK_STAGED, NONE},
		{"the node, exactly",
		 {0},
		 SHARE_64,
		 0,
		 {NONE, 0, 64 * GIB, 1},
		 CK_STAGED,
		 SHARE_64},
		{"the node, a byte more",
		 {0},
		 SHARE_64 + 1,
		 0,
		 {NONE, 0, 64 * GIB, 1},
		 CK_DIRECT_NODE,
		 SHARE_64},
		{"the node, among four",
		 {0},
		 SHARE_64,
		 0,
		 {NONE, 0, 256 * GIB, 4},
		 CK_STAGED,
		 SHARE_64},
		{"the node, among five",
		 {0},
		 SHARE_64,
		 0,
		 {NONE, 0, 256 * GIB, 5},
		 CK_DIRECT_NODE,
		 48 * GIB - 64 * MIB},
		{"no rank counted", {0}, SHARE_64, 0, {NONE, 0, 64 * GIB, 0}, CK_STAGED, SHARE_64},
		{"the limit is tighter",
		 {0},
		 12 * GIB,
		 0,
		 {20 * GIB, 12 * GIB, 64 * GIB, 1},
		 CK_DIRECT_LIMIT,
		 8 * GIB - 512 * MIB - 64 * MIB},
		{"the limit, among two",
		 {0},
		 4 * GIB,
		 0,
		 {20 * GIB, 12 * GIB, 64 * GIB, 2},
		 CK_DIRECT_LIMIT,
		 4 * GIB - 256 * MIB - 64 * MIB},
		{"the node is tighter",
		 {0},
		 12 * GIB,
		 0,
		 {200 * GIB, 12 * GIB, 8 * GIB, 1},
		 CK_DIRECT_NODE,
		 8 * GIB - 512 * MIB - 64 * MIB},
		{"the limit alone is known",
		 {0},
		 12 * GIB,
		 0,
		 {20 * GIB, 12 * GIB, NONE, 1},
		 CK_DIRECT_LIMIT,
		 8 * GIB - 512 * MIB - 64 * MIB},
		{"the limit is used up",
		 {0},
		 1,
		 0,
		 {20 * GIB, 20 * GIB, 64 * GIB, 1},
		 CK_DIRECT_LIMIT,
		 0},
		{"more than the limit is used",
		 {0},
		 1,
		 0,
		 {20 * GIB, 21 * GIB, 64 * GIB, 1},
		 CK_DIRECT_LIMIT,
		 0},
		{"less than the reserve", {0}, 1, 0, {NONE, 0, 64 * MIB, 1}, CK_DIRECT_NODE, 0},
		{"what is held can be used again",
		 {0},
		 SHARE_64 + GIB,
		 GIB,
		 {NONE, 0, 64 * GIB, 1},
		 CK_STAGED,
		 SHARE_64 + GIB},
		{"and no more",
		 {0},
		 SHARE_64 + GIB + 1,
		 GIB,
		 {NONE, 0, 64 * GIB, 1},
		 CK_DIRECT_NODE,
		 SHARE_64 + GIB},
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		uint64_t allowed = 5;

		is_int(ck_staging_decide(&rows[i].setting, rows[i].needed, rows[i].held,
					 &rows[i].room, &allowed),
		       rows[i].answer, "%s", rows[i].what);
		is_u64(allowed, rows[i].allowed, "... allowed");
	}
}

/* The largest of several words, as a reduction makes it. */
static void test_words(void)
{
	uint64_t needed = 0, allowed = 0, most;
	uint64_t staged = ck_staging_pack(CK_STAGED, 900 * GIB, CK_ROOM_UNLIMITED);
	uint64_t node = ck_staging_pack(CK_DIRECT_NODE, 12 * GIB, 3 * GIB + 1);
	uint64_t less = ck_staging_pack(CK_DIRECT_NODE, 12 * GIB, 2 * GIB);

	is_int(ck_staging_unpack(node, &needed, &allowed), CK_DIRECT_NODE, "an answer");
	is_u64(needed, 12 * GIB, "... needed");
	is_u64(allowed, 3 * GIB, "... allowed, in pages");
	ck_staging_unpack(ck_staging_pack(CK_DIRECT_MOST, 1, 0), &needed, &allowed);
	is_u64(needed, 4096, "a page, rounded up");
	ok(node > staged, "one rank that lacks memory decides");
	ok(less > node, "of two, the one that lacks more is told");
	ok(ck_staging_pack(CK_DIRECT_LIMIT, 1, 0) > less, "a limit before the node");
	most = ck_staging_pack(CK_DIRECT_MOST, UINT64_MAX, UINT64_MAX);
	is_int(ck_staging_unpack(most, &needed, &allowed), CK_DIRECT_MOST, "beyond any number");
	is_u64(needed, 4096 * GIB - 4096, "... is the largest");
	is_u64(allowed, 4096 * GIB - 4096, "... both of them");
}

int main(void)
{
	test_texts();
	test_rule();
	test_words();
	return done_testing();
}
