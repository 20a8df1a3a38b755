#include "verify.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rundir.h"
#include "tap.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))
#define WORLD 3

static const struct ck_step_id id = {.step = 7, .generation = 1};
#define STEP "step-0000000007.g1"
#define FILE0 "rank-00000.0.safetensors"
#define FILE01 "rank-00000.1.safetensors"
#define FILE1 "rank-00001.0.safetensors"
#define FILE2 "rank-00002.0.safetensors"

/* --- spoiling a checkpoint --- */

static const char *in_step(const char *dir, const char *name)
{
	return in_dir(in_dir(dir, STEP), name);
}

static void flip_bit(const char *path, off_t offset)
{
	int fd = open(path, O_RDWR);
	char byte = 0;

	ok(pread(fd, &byte, 1, offset) == 1, "a byte to spoil in %s", path);
	byte ^= 0x10;
	ok(pwrite(fd, &byte, 1, offset) == 1, "spoilt");
	close(fd);
}

static off_t size_of(const char *path)
{
	struct stat st = {.st_size = -1};

	lstat(path, &st);
	return st.st_size;
}

/* Replace the first `old` in a file by `new`, which may be of another length. */
static void edit(const char *path, const char *old, const char *new)
{
	char *text = content_of(path), *at = text ? strstr(text, old) : NULL;
	size_t bytes = text ? strlen(text) + strlen(new) + 1 : 1;
	char *out = malloc(bytes);

	if (ok(at != NULL, "'%s' stands in %s", old, path)) {
		snprintf(out, bytes, "%.*s%s%s", (int)(at - text), text, new, at + strlen(old));
		unlink(path);
		put_file(path, out);
	}
	free(out);
	free(text);
}

static void flip_data(const char *dir)
{
	flip_bit(in_step(dir, FILE1), 4096 + 11);
}

static void flip_header(const char *dir)
{
	flip_bit(in_step(dir, FILE1), 20);
}

static void flip_padding(const char *dir)
{
	/* Still a space-like byte would be white space; this makes it '0', and the header bad. */
	flip_bit(in_step(dir, FILE1), 4095);
}

static void cut_byte(const char *dir)
{
	const char *path = in_step(dir, FILE2);

	ok(truncate(path, size_of(path) - 1) == 0, "cut");
}

static void cut_middle(const char *dir)
{
	const char *path = in_step(dir, FILE2);

	ok(truncate(path, size_of(path) / 2) == 0, "cut");
}

static void add_byte(const char *dir)
{
	const char *path = in_step(dir, FILE2);

	ok(truncate(path, size_of(path) + 1) == 0, "lengthened");
}

static void delete_shard(const char *dir)
{
	unlink(in_step(dir, FILE1));
}

static void shard_is_link(const char *dir)
{
	unlink(in_step(dir, FILE1));
	ok(symlink(FILE2, in_step(dir, FILE1)) == 0, "a link");
}

static void shard_is_fifo(const char *dir)
{
	unlink(in_step(dir, FILE1));
	ok(mkfifo(in_step(dir, FILE1), 0600) == 0, "a FIFO");
}

static void swap_shards(const char *dir)
{
	rename(in_step(dir, FILE1), in_step(dir, "x"));
	rename(in_step(dir, FILE2), in_step(dir, FILE1));
	rename(in_step(dir, "x"), in_step(dir, FILE2));
}

/* The same layout and size, other bytes. */
static void shard_of_another_step(const char *dir)
{
	struct ck_error err = CK_ERROR_INIT;

	is_int(save_step(&ck_io_posix, dir, (struct ck_step_id){8, 1}, WORLD, NULL, &err), 0,
	       "another step: %s", err.text);
	rename(in_dir(dir, "step-0000000008.g1/" FILE1), in_step(dir, FILE1));
}

static void delete_manifest(const char *dir)
{
	unlink(in_step(dir, "manifest.json"));
}

static void cut_manifest(const char *dir)
{
	ok(truncate(in_step(dir, "manifest.json"), 100) == 0, "cut");
}

static void manifest_step(const char *dir)
{
	edit(in_step(dir, "manifest.json"), "\"step\": 7,", "\"step\": 8,");
}

static void manifest_writer(const char *dir)
{
	edit(in_step(dir, "manifest.json"), "\"writer\": \"test\"", "\"writer\": \"tent\"");
}

static void manifest_sha256(const char *dir)
{
	char *text = content_of(in_step(dir, "manifest.json"));
	char old[8] = "", new[8];

	memcpy(old, strstr(text, "\"sha256\": \"") + 11, 7);
	snprintf(new, sizeof(new), "%s", strcmp(old, "0000000") == 0 ? "1111111" : "0000000");
	edit(in_step(dir, "manifest.json"), old, new);
	free(text);
}

static void manifest_dtype(const char *dir)
{
	edit(in_step(dir, "manifest.json"), "\"name\": \"w\", \"dtype\": \"F32\"",
	     "\"name\": \"w\", \"dtype\": \"I32\"");
}

static void manifest_shape(const char *dir)
{
	edit(in_step(dir, "manifest.json"), "\"global_shape\": [12, 3]",
	     "\"global_shape\": [14, 3]");
}

static void manifest_kind(const char *dir)
{
	edit(in_step(dir, "manifest.json"),
	     "\"name\": \"rng\", \"dtype\": \"U8\", \"kind\": \"per-rank\", \"global_shape\": null",
	     "\"name\": \"rng\", \"dtype\": \"U8\", \"kind\": \"sharded\", \"global_shape\": [18]");
}

static void manifest_item_gone(const char *dir)
{
	edit(in_step(dir, "manifest.json"),
	     "{\"name\": \"none\", \"dtype\": \"F32\", \"kind\": \"sharded\", \"global_shape\": "
	     "[0, 7]},",
	     "");
	edit(in_step(dir, "manifest.json"),
	     "{\"name\": \"rng\", \"dtype\": \"U8\", \"kind\": \"per-rank\", \"global_shape\": "
	     "null},",
	     "");
}

static void manifest_item_more(const char *dir)
{
	edit(in_step(dir, "manifest.json"), "{\"name\": \"none\", \"dtype\": \"F32\"",
	     "{\"name\": \"bias\", \"dtype\": \"F16\", \"kind\": \"sharded\", \"global_shape\": "
	     "[5]},\n\t\t{\"name\": \"none\", \"dtype\": \"F32\"");
}

static void manifest_rank_item_more(const char *dir)
{
	edit(in_step(dir, "manifest.json"), "{\"name\": \"none\", \"dtype\": \"F32\"",
	     "{\"name\": \"data\", \"dtype\": \"U8\", \"kind\": \"per-rank\", \"global_shape\": "
	     "null},\n\t\t{\"name\": \"none\", \"dtype\": \"F32\"");
}

static void manifest_param_shard(const char *dir)
{
	edit(in_step(dir, "manifest.json"), "\"param_shard_offset\": 10,",
	     "\"param_shard_offset\": 9,");
}

static void stray_safetensors(const char *dir)
{
	put_file(in_step(dir, "x.safetensors"), "{}");
}

static void stray_part(const char *dir)
{
	put_file(in_step(dir, "rank-00001.1.safetensors"), "{}");
}

static void stray_rank(const char *dir)
{
	put_file(in_step(dir, "rank-00003.0.safetensors"), "{}");
}

static void stray_note(const char *dir)
{
	put_file(in_step(dir, "note.txt"), "x");
	put_file(in_step(dir, "\x1b[2J"), "x");
}

static void stray_directory(const char *dir)
{
	ok(mkdir(in_step(dir, "lost+found"), 0777) == 0, "a directory");
}

static void delete_sums(const char *dir)
{
	unlink(in_step(dir, "SHA256SUMS"));
}

static void sums_one_space(const char *dir)
{
	edit(in_step(dir, "SHA256SUMS"), "  " FILE1, " " FILE1);
}

static void sums_digit(const char *dir)
{
	edit(in_step(dir, "SHA256SUMS"), "  manifest.json", "0  manifest.json");
}

static void sums_line_more(const char *dir)
{
	edit(in_step(dir, "SHA256SUMS"), "  manifest.json\n", "  manifest.json\n\n");
}

static void sums_line_less(const char *dir)
{
	char *text = content_of(in_step(dir, "SHA256SUMS"));

	put_file(in_step(dir, "SHA256SUMS"), strchr(text, '\n') + 1);
	free(text);
}

static void sums_cut(const char *dir)
{
	ok(truncate(in_step(dir, "SHA256SUMS"), 64 + 2 + 25) == 0, "cut behind its first line");
}

static void sums_nul(const char *dir)
{
	int fd = open(in_step(dir, "SHA256SUMS"), O_WRONLY);

	ok(pwrite(fd, "", 1, 5) == 1, "a NUL");
	close(fd);
}

static void nothing(const char *dir)
{
	(void)dir;
}

/*
 * What is found at each level: `code` and `says` of the first bad finding (a warning where code is
 * 0), and how many there are.
 */
static const struct {
	const char *name;
	void (*spoil)(const char *dir);
	enum ck_level level; /* the lowest one that finds it */
	int code;
	const char *says;
	size_t count; /* findings at that level and above it */
	size_t more;  /* and at CK_LEVEL_SHA256 beyond them */
} rows[] = {
	{"sound", nothing, CK_LEVEL_SIZED, 0, NULL, 0, 0},
	{"a bit of the data", flip_data, CK_LEVEL_CRC32, CK_EDIGEST, FILE1, 1, 0},
	{"a bit of the header", flip_header, CK_LEVEL_SIZED, CK_EFORMAT, FILE1, 1, 0},
	{"a bit of the padding", flip_padding, CK_LEVEL_SIZED, CK_EFORMAT, FILE1, 1, 0},
	{"one byte cut", cut_byte, CK_LEVEL_SIZED, CK_EFORMAT,
	 FILE2 ": it has 4188 bytes, the manifest says 4189", 1, 0},
	{"cut in the middle", cut_middle, CK_LEVEL_SIZED, CK_EFORMAT,
	 FILE2 ": it has 2094 bytes, the manifest says 4189", 1, 0},
	{"one byte more", add_byte, CK_LEVEL_SIZED, CK_EFORMAT,
	 FILE2 ": it has 4190 bytes, the manifest says 4189", 1, 0},
	{"a shard missing", delete_shard, CK_LEVEL_SIZED, CK_ENOENT,
	 FILE1 ": the file is missing, the manifest says 4189 bytes", 1, 0},
	{"a link in place of a shard", shard_is_link, CK_LEVEL_SIZED, CK_EFORMAT,
	 FILE1 ": not a regular file", 1, 0},
	{"a FIFO in place of a shard", shard_is_fifo, CK_LEVEL_SIZED, CK_EFORMAT,
	 FILE1 ": not a regular file", 1, 0},
	{"two shards swapped", swap_shards, CK_LEVEL_SIZED, CK_EFORMAT, FILE1, 2, 0},
	{"a shard of another step", shard_of_another_step, CK_LEVEL_CRC32, CK_EDIGEST,
	 FILE1 ": chunk 0, bytes [0, 4189): crc32 is ", 1, 0},
	{"no manifest", delete_manifest, CK_LEVEL_SIZED, CK_ENOENT, "manifest.json", 1, 0},
	{"the manifest cut", cut_manifest, CK_LEVEL_SIZED, CK_EFORMAT,
	 "manifest.json: not JSON: byte 100: the text ends early", 1, 0},
	{"another step in the manifest", manifest_step, CK_LEVEL_SIZED, CK_EFORMAT,
	 "manifest.json: it is of step 8, generation 1, but stands in " STEP, 1, 0},
	{"a word in the manifest", manifest_writer, CK_LEVEL_SIZED, CK_EFORMAT,
	 "SHA256SUMS: line 5 is '", 1, 0},
	{"a digest in the manifest", manifest_sha256, CK_LEVEL_SIZED, CK_EFORMAT,
	 "SHA256SUMS: line 1 is '", 1, 1},
	{"another dtype in the manifest", manifest_dtype, CK_LEVEL_SIZED, CK_EFORMAT,
	 "SHA256SUMS: line 5 is '", 6, 0},
	{"another shape in the manifest", manifest_shape, CK_LEVEL_SIZED, CK_EFORMAT,
	 "SHA256SUMS: line 5 is '", 6, 0},
	{"another kind in the manifest", manifest_kind, CK_LEVEL_SIZED, CK_EFORMAT,
	 "SHA256SUMS: line 5 is '", 5, 0},
	{"an item less in the manifest", manifest_item_gone, CK_LEVEL_SIZED, CK_EFORMAT,
	 "SHA256SUMS: line 5 is '", 4, 0},
	{"an item more in the manifest", manifest_item_more, CK_LEVEL_SIZED, CK_EFORMAT,
	 "SHA256SUMS: line 5 is '", 2, 0},
	{"a per-rank item more", manifest_rank_item_more, CK_LEVEL_SIZED, CK_EFORMAT,
	 "SHA256SUMS: line 5 is '", 4, 0},
	{"another range in the manifest", manifest_param_shard, CK_LEVEL_SIZED, CK_EFORMAT,
	 "SHA256SUMS: line 5 is '", 2, 0},
	{"a stray safetensors file", stray_safetensors, CK_LEVEL_SIZED, CK_EFORMAT,
	 STEP "/x.safetensors: not in the manifest, but other readers would load it", 1, 0},
	{"a part too many", stray_part, CK_LEVEL_SIZED, CK_EFORMAT,
	 STEP "/rank-00001.1.safetensors: not in the manifest", 1, 0},
	{"a rank too many", stray_rank, CK_LEVEL_SIZED, CK_EFORMAT,
	 STEP "/rank-00003.0.safetensors: not in the manifest", 1, 0},
	{"a stray note", stray_note, CK_LEVEL_SIZED, 0, STEP "/\\x1b[2J: not in the manifest", 2,
	 0},
	{"a stray directory", stray_directory, CK_LEVEL_SIZED, 0,
	 STEP "/lost+found: not in the manifest", 1, 0},
	{"no SHA256SUMS", delete_sums, CK_LEVEL_SIZED, CK_ENOENT, "SHA256SUMS", 1, 0},
	{"SHA256SUMS with one space", sums_one_space, CK_LEVEL_SIZED, CK_EFORMAT,
	 "SHA256SUMS: line 3 is '", 1, 0},
	{"SHA256SUMS with a digit more", sums_digit, CK_LEVEL_SIZED, CK_EFORMAT,
	 "SHA256SUMS: line 5 is '", 1, 0},
	{"SHA256SUMS with a line more", sums_line_more, CK_LEVEL_SIZED, CK_EFORMAT,
	 "SHA256SUMS: line 6 is '', by the manifest there is none", 1, 0},
	{"SHA256SUMS cut", sums_cut, CK_LEVEL_SIZED, CK_EFORMAT,
	 "SHA256SUMS: line 2 is missing, by the manifest it is '", 1, 0},
	{"SHA256SUMS with a NUL", sums_nul, CK_LEVEL_SIZED, CK_EFORMAT,
	 "SHA256SUMS: a NUL byte at byte 5", 1, 0},
	{"SHA256SUMS with a line less", sums_line_less, CK_LEVEL_SIZED, CK_EFORMAT,
	 "SHA256SUMS: line 1 is '", 1, 0},
};

static struct ck_report verify(const char *dir, enum ck_level level, int threads)
{
	struct ck_report report = {.findings = NULL};
	struct ck_error err = CK_ERROR_INIT;

	is_int(ck_verify(&ck_io_posix, dir, id, level, threads, NULL, NULL, &report, &err), 0,
	       "verified: %s", err.text);
	return report;
}

static const char *first_text(const struct ck_report *report)
{
	return report->count ? report->findings[0].text : "";
}

static void test_corruptions(void)
{
	for (size_t i = 0; i < ROWS(rows); i++) {
		const char *dir = run_with(id, WORLD);

		rows[i].spoil(dir);
		for (int level = CK_LEVEL_SIZED; level <= CK_LEVEL_SHA256; level++) {
			struct ck_report report = verify(dir, (enum ck_level)level, 1 + level);
			size_t want = level < (int)rows[i].level ? 0 : rows[i].count;

			want += level == CK_LEVEL_SHA256 ? rows[i].more : 0;
			is_u64(report.count, want, "%s, level %d: findings: %s", rows[i].name,
			       level, first_text(&report));
			is_u64(report.nbad, rows[i].code ? want : 0, "%s, level %d: bad ones",
			       rows[i].name, level);
			if (report.count) {
				like(first_text(&report), rows[i].says, "%s, level %d: the text",
				     rows[i].name, level);
				is_int(report.findings[0].code, rows[i].code,
				       "%s, level %d: the code", rows[i].name, level);
				is_int(report.findings[0].severity,
				       rows[i].code ? CK_BAD : CK_WARNING,
				       "%s, level %d: the severity", rows[i].name, level);
			}
			ck_report_fini(&report);
		}
	}
}

/* The findings behind the one that SHA256SUMS makes of every edited manifest. */
static void test_tables(void)
{
	static const struct {
		const char *name;
		void (*spoil)(const char *dir);
		const char *says;
		size_t at;
	} texts[] = {
		{"dtype", manifest_dtype,
		 FILE0 ": item 'w' has dtype F32 there, I32 in the manifest", 1},
		{"dtype: the hole", manifest_dtype, "item 'w': hole: 36 of 36 elements", 5},
		{"shape", manifest_shape,
		 FILE01 ": item 'w' has global shape [12, 3] there, [14, 3] in the manifest", 2},
		{"kind", manifest_kind,
		 FILE2 ": item 'rng' is per-rank there, sharded in the manifest", 3},
		{"item less", manifest_item_gone,
		 FILE1 ": item 'rng' is not in the manifest's items", 2},
		{"item more", manifest_item_more, "item 'bias': hole: 5 of 5 elements", 1},
		{"per-rank item more", manifest_rank_item_more,
		 "item 'data' of rank 2 is stored in no file", 3},
		{"range", manifest_param_shard,
		 FILE1
		 ": it holds 10 elements of the flat item from 10 on, the manifest says 10 from 9",
		 1},
	};

	for (size_t i = 0; i < ROWS(texts); i++) {
		const char *dir = run_with(id, WORLD);
		struct ck_report report;

		texts[i].spoil(dir);
		report = verify(dir, CK_LEVEL_SIZED, 2);
		if (ok(report.count > texts[i].at, "%s: enough findings", texts[i].name)) {
			like(report.findings[texts[i].at].text, texts[i].says, "%s: the text",
			     texts[i].name);
			is_int(report.findings[texts[i].at].code, CK_EITEM, "%s: the code",
			       texts[i].name);
		}
		ck_report_fini(&report);
	}
}

int main(void)
{
	test_corruptions();
	test_tables();
	return done_testing();
}
