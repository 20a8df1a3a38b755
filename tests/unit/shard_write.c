/* Parts that are written together, in whatever way the file system and the kernel allow. */
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "names.h"
#include "queue.h"
#include "scratch.h"
#include "shard.h"
#include "stored.h"
#include "tap.h"

#define MIB ((size_t)1 << 20)
#define PARTS 3
#define BYTES (9 * MIB + 77)

/* A shard of three files, each with a large block and what stands before and behind it. */
struct source {
	unsigned char *memory;
	struct ck_plan plan;
	char *image;
};

static void source_init(struct source *s, size_t misaligned)
{
	struct ck_stored blocks[2 * PARTS];

	s->memory = scratch_pattern(BYTES * PARTS + 8192);
	for (uint64_t i = 0; i < PARTS; i++) {
		uint64_t at = (i * BYTES + 4095) / 4096 * 4096 + misaligned;

		blocks[i] = stored_block("w", CK_U8, 3 * BYTES, i * BYTES, BYTES - 5000 * i,
					 s->memory + at);
		blocks[PARTS + i] =
			stored_block("a", CK_F32, 3000, i * 1000, i * 7, s->memory + 4 * i);
	}
	if (ck_shard_plan(3, 1, blocks, 2 * PARTS, &s->plan, NULL))
		ok(false, "planned");
	s->image = NULL;
}

/* The same bytes as one image of each file, as staging makes them. */
static void source_stage(struct source *s)
{
	char *image = s->image = aligned_alloc(4096, (BYTES + 8192) * PARTS / 4096 * 4096);

	for (size_t p = 0; p < s->plan.nparts; p++) {
		struct ck_part *part = &s->plan.parts[p];

		memcpy(image, part->header.data, part->header.len);
		for (size_t b = 0; b < part->nblocks; b++)
			memcpy(image + part->blocks[b].offset, part->blocks[b].data,
			       part->blocks[b].bytes);
		part->image = image;
		image += (part->bytes + 4095) / 4096 * 4096;
	}
}

static void source_fini(struct source *s)
{
	ck_plan_fini(&s->plan);
	free(s->image);
	free(s->memory);
}

static const char *part_path(const char *dir, size_t part)
{
	static char path[PATH_MAX];
	char name[CK_NAME_MAX];

	ck_path_join(path, dir, ck_name_shard(3, (uint32_t)part, name));
	return path;
}

/* The file's bytes, against the plan, and the digests against libcrypto's and zlib's of them. */
static bool as_planned(const char *dir, const struct ck_plan *plan, size_t p,
		       const struct ck_digests *digests)
{
	const struct ck_part *part = &plan->parts[p];
	struct ck_buf file = CK_BUF_INIT;
	char hex[CK_SHA256_HEX + 1];
	bool good;

	good = ck_io_read_file(&ck_io_posix, part_path(dir, p), 100 * MIB, &file, NULL) == 0 &&
	       file.len == part->bytes && digests->bytes == part->bytes &&
	       memcmp(file.data, part->header.data, part->header.len) == 0;
	for (size_t b = 0; good && b < part->nblocks; b++)
		good = memcmp(file.data + part->blocks[b].offset, part->blocks[b].data,
			      part->blocks[b].bytes) == 0;
	if (good)
		good = ck_sha256_hex(file.data, file.len, hex, NULL) == 0 &&
		       strcmp(hex, digests->sha256) == 0 &&
		       crc32_z(0, (const Bytef *)file.data, file.len) == digests->crc32;
	ck_buf_fini(&file);
	return good;
}

/* No file may be longer than its content, not even one that was given up. */
static bool none_longer(const char *dir, const struct ck_plan *plan)
{
	struct stat st;
	bool good = true;

	for (size_t p = 0; p < plan->nparts; p++)
		if (stat(part_path(dir, p), &st) == 0)
			good = good && (uint64_t)st.st_size <= plan->parts[p].bytes;
	return good;
}

static void clear(const char *dir, const struct ck_plan *plan)
{
	for (size_t p = 0; p < plan->nparts; p++)
		unlink(part_path(dir, p));
}

static const char *const memory_kinds[] = {"an image", "aligned memory", "odd memory"};

static void source_of_kind(struct source *s, int kind)
{
	source_init(s, kind == 2 ? 16 : 0);
	if (kind == 0)
		source_stage(s);
}

struct fault_case {
	const char *rules;
	int code;
	const char *says;
	unsigned notes; /* that are seen in any case */
};

static const struct fault_case cases[] = {
	{"", 0, "", 0},
	{"queue:*:errno=ENOSYS", 0, "", CK_NOTE_NO_QUEUE},
	{"queue:*:errno=EPERM;pwrite:*:cut=5000:after=2", 0, "", CK_NOTE_NO_QUEUE},
	{"open:*.2.*:errno=EINVAL:after=1", 0, "", CK_NOTE_BUFFERED},
	{"open:*.0.*:errno=EINVAL:after=1:times=1", 0, "", CK_NOTE_BUFFERED},
	{"pwrite:*.0.*:errno=EINVAL:times=1", 0, "", CK_NOTE_BUFFERED},
	{"queue:*:errno=ENOSYS;pwrite:*.1.*:errno=EINVAL:times=1", 0, "",
	 CK_NOTE_BUFFERED | CK_NOTE_NO_QUEUE},
	{"pwrite:*:errno=EINTR:times=9", 0, "", 0},
	{"pwrite:*:errno=EAGAIN:after=1:times=9", 0, "", 0},
	{"pwrite:*:cut=1000000", 0, "", 0},
	{"pwrite:*:cut=0:times=5", 0, "", 0},
	{"fallocate:*:errno=EOPNOTSUPP", 0, "", 0},
	{"fallocate:*:errno=ENOSPC", CK_EIO, "room for ", 0},
	{"pwrite:*.2.*:errno=ENOSPC:after=1", CK_EIO, "No space left on device", 0},
	{"queue:*:errno=ENOSYS;pwrite:*.2.*:errno=ENOSPC:after=1", CK_EIO, "write of ", 0},
	{"pwrite:*.1.*:errno=EIO:after=3", CK_EIO, "Input/output error", 0},
	{"fsync:*.1.*:errno=EIO", CK_EIO, "fsync", 0},
	{"close:*.1.*:errno=EDQUOT:times=1", CK_EIO, "Disk quota exceeded", 0},
	{"open:*.1.*:errno=EACCES", CK_EIO, "Permission denied", 0},
};

static void run_case(const struct source *s, const char *dir, const struct fault_case *c,
		     unsigned threads, const char *what)
{
	struct ck_io_fault *fault = scratch_fault(c->rules);
	_Atomic(unsigned) notes = 0;
	struct ck_shard_options options = {.direct = true, .threads = threads, .notes = &notes};
	struct ck_digests digests[PARTS] = {{.bytes = 77}, {.bytes = 77}, {.bytes = 77}};
	struct ck_error err = CK_ERROR_INIT;
	bool good = true;

	is_int(ck_shard_write_all(ck_io_fault_io(fault), dir, 3, &s->plan, &options, digests, &err),
	       c->code, "%s, %u threads, '%s': %s", what, threads, c->rules, err.text);
	like(err.text, c->says, "text");
	for (size_t p = 0; p < PARTS; p++) {
		if (c->code) {
			good = good && digests[p].bytes == 77;
			continue;
		}
		good = good && as_planned(dir, &s->plan, p, &digests[p]);
		ck_digests_fini(&digests[p]);
	}
	ok(good, c->code ? "output untouched" : "files and digests are right");
	ok(none_longer(dir, &s->plan), "no file is longer than its content");
	is_int(notes & c->notes, (int)c->notes, "what stood in the way is noted");
	clear(dir, &s->plan);
	ck_io_fault_free(fault);
}

/* Every case of every kind of memory; or each of one kind, and of all where nothing fails. */
static void test_ways(void)
{
	const char *dir = test_tmpdir();
	bool all = rounds(3, 1, 1) > 1;
	struct source s;

	for (int kind = 0; kind < 3; kind++) {
		source_of_kind(&s, kind);
		is_u64(s.plan.nparts, PARTS, "%s: three files", memory_kinds[kind]);
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
			if (all || i < 2 || i % 3 == (size_t)kind)
				run_case(&s, dir, &cases[i], (i + i / 3) % 3, memory_kinds[kind]);
		source_fini(&s);
	}
}

/* The kernel has been given blocks, and then never says what became of them. */
static void test_silence(void)
{
	static const struct fault_case silent = {"reap:*:errno=EBADF:after=2", CK_EIO,
						 "Bad file descriptor", 0};
	struct ck_queue *queue;
	struct source s;

	if (ck_queue_new(&ck_io_posix, 1, CK_QUEUE_KERNEL, &queue, NULL) ||
	    ck_queue_kind(queue) < CK_QUEUE_KERNEL) {
		skip("no io_uring here");
	} else {
		source_of_kind(&s, 0);
		run_case(&s, test_tmpdir(), &silent, 1, memory_kinds[0]);
		source_fini(&s);
	}
	ck_queue_free(queue);
}

/* The unaltered files of one thread and of three, and without direct I/O. */
static void test_options(void)
{
	static const struct ck_shard_options rows[] = {
		{.threads = 0},
		{.threads = 9, .direct = true},
		{.direct = true, .sha = CK_SHA_LIBCRYPTO},
	};
	const char *dir = test_tmpdir();
	struct ck_digests digests[PARTS];
	struct source s;

	source_of_kind(&s, 2);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		is_int(ck_shard_write_all(&ck_io_posix, dir, 3, &s.plan, &rows[i], digests, NULL),
		       0, "options %zu", i);
		for (size_t p = 0; p < PARTS; p++) {
			ok(as_planned(dir, &s.plan, p, &digests[p]), "options %zu: file %zu", i, p);
			ck_digests_fini(&digests[p]);
		}
		clear(dir, &s.plan);
	}
	scratch_put_text(part_path(dir, 1), "there");
	is_int(ck_shard_write_all(&ck_io_posix, dir, 3, &s.plan, NULL, digests, NULL), CK_EEXIST,
	       "a part that is there");
	is_int(ck_shard_write_all(&ck_io_posix, "/nowhere", 3, &s.plan, NULL, digests, NULL),
	       CK_ENOENT, "no directory");
	source_fini(&s);
}

/* /dev/shm answers O_DIRECT in its own way; the files are the same. */
static void test_tmpfs(void)
{
	char dir[] = "/dev/shm/ckpt-test-XXXXXX";
	struct ck_digests digests[PARTS];
	struct source s;

	if (!mkdtemp(dir)) {
		skip("no /dev/shm");
		return;
	}
	source_of_kind(&s, 0);
	is_int(ck_shard_write_all(&ck_io_posix, dir, 3, &s.plan, NULL, digests, NULL), 0, "tmpfs");
	for (size_t p = 0; p < PARTS; p++) {
		ok(as_planned(dir, &s.plan, p, &digests[p]), "tmpfs: file %zu", p);
		ck_digests_fini(&digests[p]);
	}
	clear(dir, &s.plan);
	rmdir(dir);
	source_fini(&s);
}

int main(void)
{
	test_ways();
	test_silence();
	test_options();
	test_tmpfs();
	return done_testing();
}
