#include "manifest.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "manifests.h"
#include "random.h"
#include "tap.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static void test_content(void)
{
	struct ck_manifest m = manifest_valid(), again;
	struct ck_error err = CK_ERROR_INIT;
	struct ck_buf text = CK_BUF_INIT;

	is_int(ck_manifest_print(&m, true, &text, &err), 0, "prints: %s", err.text);
	like(text.data, "\n\t\"wall_clock_seconds\": 3600.250,\n", "wall clock in milliseconds");
	like(text.data, "\n\t\"user\": {\"lr\":1e-3,\"one\":1.0,\"t\":\"a \\\\\"},\n",
	     "the program's values as it spelled them, on one line");
	like(text.data,
	     "\n\t\t{\"name\": \"rng\", \"dtype\": \"U8\", \"kind\": \"per-rank\", "
	     "\"global_shape\": null},\n",
	     "one line per item");
	like(text.data, "\"chunk_bytes\": 16777216, \"chunk_crc32\": \"000000019e3779b23c6ef363",
	     "chunks as one string");
	is_int(ck_manifest_parse("m", text.data, text.len, true, &again, &err), 0, "reads: %s",
	       err.text);
	is_u64(again.world_size, 2, "world size");
	is_u64(again.id.step, 1234, "step");
	is_u64(again.id.generation, 3, "generation");
	ok(again.wall_clock_seconds == 3600.25, "wall clock");
	is_str(again.run, m.run, "run");
	is_str(again.save_id, m.save_id, "save id");
	is_str(again.job.nodes, "n[1-2]", "nodes");
	is_u64(again.job.restart_count, 2, "restart count");
	is_int(again.created, 1764448670, "created");
	is_str(again.items.flat, "params", "flat");
	is_u64(again.items.items[0].shape[0], 100, "shape");
	is_u64(again.files[1].part, 0, "part");
	is_u64(again.files[2].part, 1, "next part");
	is_u64(again.files[1].chunk_crc32[3], m.files[1].chunk_crc32[3], "CRC of the last chunk");
	is_u64(again.files[1].crc32, m.files[1].crc32, "CRC of the file");
	ck_manifest_fini(&again);
	ck_manifest_fini(&m);
	ck_buf_fini(&text);
}

static void test_save(void)
{
	struct ck_manifest m = manifest_valid(), again;
	struct ck_error err = CK_ERROR_INIT;
	struct ck_buf text = CK_BUF_INIT;

	manifest_drop_files(&m);
	is_int(ck_manifest_print(&m, false, &text, &err), 0, "save.json prints: %s", err.text);
	unlike(text.data, "shards", "without files");
	is_int(ck_manifest_parse("s", text.data, text.len, false, &again, &err), 0, "reads: %s",
	       err.text);
	is_u64(again.nfiles, 0, "no files");
	is_str(again.save_id, m.save_id, "save id");
	ck_manifest_fini(&again);
	is_int(ck_manifest_parse("s", text.data, text.len, true, &again, &err), CK_EFORMAT,
	       "it is no manifest.json");
	like(err.text, "shards: missing", "and the text says why");
	ck_manifest_fini(&m);
	ck_buf_fini(&text);
}

static void test_rank_files(void)
{
	struct ck_manifest m = manifest_valid();
	size_t first, count;

	ok(ck_manifest_rank_files(&m, 0, &first, &count), "rank 0 has files");
	is_u64(first, 0, "from the first");
	is_u64(count, 1, "one");
	ok(ck_manifest_rank_files(&m, 1, &first, &count), "rank 1 has files");
	is_u64(first, 1, "from the second");
	is_u64(count, 2, "two");
	ok(!ck_manifest_rank_files(&m, 2, &first, &count), "rank 2 has none");
	ck_manifest_fini(&m);
}

static void test_sums(void)
{
	struct ck_manifest m = manifest_valid();
	struct ck_error err = CK_ERROR_INIT;
	struct ck_buf text = CK_BUF_INIT;
	char sha256[CK_SHA256_HEX + 1] = "", want[1024];

	memset(sha256, 'e', CK_SHA256_HEX);
	is_int(ck_sums_print(&m, sha256, &text, &err), 0, "sums print");
	snprintf(want, sizeof(want), "%s  %s\n%s  %s\n%s  %s\n%s  manifest.json\n",
		 m.files[0].sha256, m.files[0].path, m.files[1].sha256, m.files[1].path,
		 m.files[2].sha256, m.files[2].path, sha256);
	is_str(text.data, want, "in the order of the files, the manifest last");
	ck_manifest_fini(&m);
	ck_buf_fini(&text);
}

static void test_locale(void)
{
	static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
	struct ck_manifest m, again;
	struct ck_buf text = CK_BUF_INIT;
	struct ck_error err = CK_ERROR_INIT;
	const char *set = NULL;

	for (size_t i = 0; i < ROWS(names) && !set; i++)
		set = setlocale(LC_ALL, names[i]);
	if (!set) {
		skip("no locale with a decimal comma on this machine");
		return;
	}
	m = manifest_valid();
	is_int(ck_manifest_print(&m, true, &text, &err), 0, "prints with a decimal comma set");
	is_int(ck_manifest_parse("m", text.data, text.len, true, &again, &err), 0, "reads: %s",
	       err.text);
	ok(again.wall_clock_seconds == 3600.25, "the same wall clock");
	setlocale(LC_ALL, "C");
	ck_manifest_fini(&again);
	ck_manifest_fini(&m);
	ck_buf_fini(&text);
}

/* --- print, parse, print --- */

static struct ck_manifest build_random(uint64_t *state)
{
	struct ck_manifest m = manifest_valid();
	uint32_t world = 1 + (uint32_t)draw(state, 40);
	char name[32];

	manifest_drop_files(&m);
	m.world_size = world;
	m.id.step = next_random(state) >> (11 + draw(state, 53));
	m.id.generation = 1 + (next_random(state) >> 12);
	m.wall_clock_seconds =
		(double)next_random(state) / (double)(1 + (next_random(state) >> 32));
	m.wall_clock_seconds =
		m.wall_clock_seconds > 9e15 ? m.wall_clock_seconds / 1e9 : m.wall_clock_seconds;
	m.created = (int64_t)draw(state, 253402300800);
	if (draw(state, 2)) {
		free(m.user);
		m.user = NULL;
	}
	for (int i = 0; i < (int)draw(state, 20); i++) {
		snprintf(name, sizeof(name), "t%02d/\xe2\x82\xac\"\\", i);
		manifest_add_item(&m, name, CK_SHARDED, (enum ck_dtype)draw(state, CK_DTYPES),
				  (int)draw(state, 4), draw(state, 1000), draw(state, 1000));
	}
	for (uint32_t rank = 0; rank < world; rank++)
		for (uint32_t part = 0; part <= draw(state, 3); part++)
			manifest_add_file(&m, rank, part,
					  next_random(state) >> (24 + draw(state, 40)));
	return m;
}

static void test_property(void)
{
	uint64_t state = 88172645463325252u;
	unsigned same = 0;

	for (int i = 0; i < 300; i++) {
		struct ck_manifest m = build_random(&state), again = {.user = NULL};
		struct ck_buf first = CK_BUF_INIT, second = CK_BUF_INIT;
		struct ck_error err = CK_ERROR_INIT;

		if (ck_manifest_print(&m, true, &first, &err) ||
		    ck_manifest_parse("m", first.data, first.len, true, &again, &err) ||
		    ck_manifest_print(&again, true, &second, &err))
			diag("manifest %d: %s", i, err.text);
		else
			same += strcmp(first.data, second.data) == 0;
		ck_manifest_fini(&again);
		ck_manifest_fini(&m);
		ck_buf_fini(&first);
		ck_buf_fini(&second);
	}
	is_int(same, 300, "300 random manifests: print, parse, print gives the same text");
}

/*
 * A manifest with a few bytes changed, cut or repeated is refused, or is one that prints. Mostly
 * for the sanitizers.
 */
static void mutate(uint64_t *state, char *text, size_t *bytes)
{
	static const char marks[] = "\"\\{}[],:0-9e.un \x80\xc2\x1f";

	for (uint64_t n = 1 + draw(state, 2); n > 0; n--) {
		size_t at = draw(state, *bytes), span = 1 + draw(state, 9);

		if (at + span > *bytes)
			span = *bytes - at;
		switch (draw(state, 4)) {
		case 0:
			/* A digit stays one, a letter too: this goes deeper than the grammar. */
			text[at] = (char)(text[at] ^ (next_random(state) & 3));
			break;
		case 1:
			text[at] = marks[draw(state, sizeof(marks) - 1)];
			break;
		case 2:
			memmove(text + at, text + at + span, *bytes - at - span);
			*bytes -= *bytes > span ? span : 0;
			break;
		default:
			memmove(text + draw(state, *bytes - span + 1), text + at, span);
		}
	}
}

static void test_mutations(void)
{
	struct ck_manifest valid = manifest_valid(), m;
	struct ck_buf text = CK_BUF_INIT, again = CK_BUF_INIT;
	uint64_t state = 1442695040888963407u;
	unsigned accepted = 0, printed = 0, refused = 0, told = 0;
	struct ck_error err;

	is_int(ck_manifest_print(&valid, true, &text, &err), 0, "a text to spoil");
	for (int i = 0; i < 4000; i++) {
		size_t bytes = text.len;
		char *spoilt = malloc(bytes), *exact;

		memcpy(spoilt, text.data, bytes);
		mutate(&state, spoilt, &bytes);
		/* Of exactly its size, so that a read behind the end is seen. */
		exact = realloc(spoilt, bytes);
		spoilt = exact ? exact : spoilt;
		ck_buf_clear(&again);
		if (ck_manifest_parse("m", spoilt, bytes, true, &m, &err) == 0) {
			accepted++;
			printed += ck_manifest_print(&m, true, &again, &err) == 0;
			ck_manifest_fini(&m);
		} else {
			refused++;
			told += err.code == CK_EFORMAT && strncmp(err.text, "m: ", 3) == 0;
		}
		free(spoilt);
	}
	ok(refused > 1000 && accepted > 100, "%u refused, %u accepted", refused, accepted);
	is_u64(printed, accepted, "all that are accepted print");
	is_u64(told, refused, "all refusals are of the format, and name the file");
	ck_manifest_fini(&valid);
	ck_buf_fini(&text);
	ck_buf_fini(&again);
}

int main(void)
{
	test_content();
	test_save();
	test_rank_files();
	test_sums();
	test_locale();
	test_property();
	test_mutations();
	return done_testing();
}
