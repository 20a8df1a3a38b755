/* Files that are read together, in whatever way the file system and the kernel allow. */
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "names.h"
#include "scratch.h"
#include "shard.h"
#include "stored.h"
#include "tap.h"

#define MIB ((size_t)1 << 20)
#define FILES 6
#define BYTES (9 * MIB + 77)

/* Six files on disk, each with a large block between small ones, and what they must hold. */
struct stored_files {
	const char *dir;
	unsigned char *memory;
	struct ck_plan plan;
	struct ck_digests digests[FILES];
	struct ck_expected expected[FILES];
};

static void files_init(struct stored_files *f)
{
	struct ck_stored blocks[3 * FILES];
	struct ck_error err = CK_ERROR_INIT;

	f->dir = test_tmpdir();
	f->memory = scratch_pattern(BYTES);
	for (uint64_t i = 0; i < FILES; i++) {
		blocks[i] = stored_block("w", CK_U8, FILES * BYTES, i * BYTES, BYTES - 5000 * i - i,
					 f->memory + i);
		blocks[FILES + i] =
			stored_block("a", CK_F32, 6000, i * 1000, i * 7, f->memory + 4 * i);
		blocks[2 * FILES + i] =
			stored_block("z", CK_U8, 60000, i * 10000, 10000, f->memory + 11 * i);
	}
	if (ck_shard_plan(3, 2000, blocks, 3 * FILES, &f->plan, &err) ||
	    ck_shard_write_all(&ck_io_posix, f->dir, 3, &f->plan, NULL, f->digests, &err))
		ok(false, "written: %s", err.text);
	for (size_t i = 0; i < FILES; i++)
		f->expected[i] = (struct ck_expected){.bytes = f->digests[i].bytes,
						      .sha256 = f->digests[i].sha256,
						      .chunk_bytes = f->digests[i].chunk_bytes,
						      .chunk_crc32 = f->digests[i].chunk_crc32,
						      .crc32 = f->digests[i].crc32};
}

static void files_fini(struct stored_files *f)
{
	for (size_t i = 0; i < FILES; i++)
		ck_digests_fini(&f->digests[i]);
	ck_plan_fini(&f->plan);
	free(f->memory);
}

/* How destinations lie in memory. */
enum where { ALIGNED, ODD, NOWHERE };

struct opened {
	struct ck_shard shards[FILES];
	struct ck_shard_job jobs[FILES];
	void *dst[FILES][3], *memory[FILES][3];
};

static void open_all(const struct ck_io *io, const struct stored_files *f, enum where where,
		     struct opened *o)
{
	struct ck_error err = CK_ERROR_INIT;

	memset(o, 0, sizeof(*o));
	for (uint32_t i = 0; i < FILES; i++) {
		if (ck_shard_open(io, f->dir, 3, i, &o->shards[i], &err))
			ok(false, "opened: %s", err.text);
		for (size_t b = 0; b < o->shards[i].nblocks && where != NOWHERE; b++) {
			size_t room = (o->shards[i].blocks[b].bytes / 4096 + 2) * 4096;
			/* Alike in the file: what direct I/O needs of the largest block. */
			size_t at = where == ALIGNED ? o->shards[i].blocks[b].offset % 4096 : 17;

			o->memory[i][b] = aligned_alloc(4096, room);
			memset(o->memory[i][b], 0xee, room);
			o->dst[i][b] = (char *)o->memory[i][b] + at;
		}
		o->jobs[i] = (struct ck_shard_job){.shard = &o->shards[i],
						   .expected = &f->expected[i],
						   .dst = where == NOWHERE ? NULL : o->dst[i]};
	}
}

static bool has_arrived(const struct stored_files *f, const struct opened *o, size_t i)
{
	bool same = true;

	for (size_t b = 0; o->jobs[i].dst && b < o->shards[i].nblocks; b++)
		same = same && memcmp(o->dst[i][b], f->plan.parts[i].blocks[b].data,
				      o->shards[i].blocks[b].bytes) == 0;
	return same;
}

static void close_all(const struct ck_io *io, struct opened *o)
{
	for (size_t i = 0; i < FILES; i++) {
		ck_shard_close(io, &o->shards[i]);
		for (size_t b = 0; b < 3; b++)
			free(o->memory[i][b]);
	}
}

static const struct fault_case {
	const char *rules;
	int code; /* of file 4; the others are fine */
	const char *says;
	unsigned notes;
} cases[] = {
	{"", 0, "", 0},
	{"queue:*:errno=ENOSYS", 0, "", CK_NOTE_NO_QUEUE},
	{"open:*.4.*:errno=EINVAL:after=1", 0, "", CK_NOTE_BUFFERED},
	{"pread:*.4.*:errno=EINVAL:after=2:times=1", 0, "", CK_NOTE_BUFFERED},
	{"queue:*:errno=ENOSYS;pread:*.4.*:errno=EINVAL:after=2:times=1", 0, "",
	 CK_NOTE_BUFFERED | CK_NOTE_NO_QUEUE},
	{"pread:*:errno=EINTR:after=20:times=9", 0, "", 0},
	{"pread:*:errno=EAGAIN:after=20:times=9", 0, "", 0},
	{"pread:*:cut=1000000:after=20", 0, "", 0},
	{"pread:*:cut=4099:after=20:times=30", 0, "", 0},
	{"pread:*.4.*:errno=EIO:after=4", CK_EIO, "Input/output error", 0},
	{"queue:*:errno=ENOSYS;pread:*.4.*:errno=EIO:after=4", CK_EIO, "Input/output error", 0},
	{"pread:*.4.*:cut=0:after=4", CK_EIO, "the file ends there", 0},
};

static void run_case(const struct stored_files *f, const struct fault_case *c, enum where where,
		     enum ck_level level, const struct ck_shard_options *how)
{
	static const char *const places[] = {"aligned", "odd", "nowhere"};
	struct ck_io_fault *fault = scratch_fault(c->rules);
	const struct ck_io *io = ck_io_fault_io(fault);
	struct ck_shard_options options = *how;
	_Atomic(unsigned) notes = 0;
	struct ck_error err = CK_ERROR_INIT;
	struct opened o;
	bool good = true;

	options.notes = &notes;
	open_all(io, f, where, &o);
	is_int(ck_shard_read_all(io, o.jobs, FILES, level, &options, NULL, NULL, &err), c->code,
	       "%s, level %d, %u threads, '%s': %s", places[where], level, options.threads,
	       c->rules, err.text);
	like(err.text, c->says, "text");
	for (size_t i = 0; i < FILES; i++)
		good = good && o.jobs[i].rc == (i == 4 ? c->code : 0) &&
		       (o.jobs[i].rc || has_arrived(f, &o, i));
	ok(good, "all others are right");
	is_int(notes & c->notes, options.direct ? (int)c->notes : 0, "notes");
	close_all(io, &o);
	ck_io_fault_free(fault);
}

static void test_ways(const struct stored_files *f)
{
	static const struct ck_shard_options direct[] = {
		{.direct = true}, {.direct = true, .threads = 2, .sha = CK_SHA_LIBCRYPTO}};
	static const struct ck_shard_options plain = {.threads = 4};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool both = rounds(2, 1, 1) > 1 || i < 2, odd = i / 2 % 2;

		if (both || !odd)
			run_case(f, &cases[i], ALIGNED, CK_LEVEL_SHA256, &direct[i % 2]);
		if (both || odd)
			run_case(f, &cases[i], ODD, CK_LEVEL_SHA256, &direct[(i + 1) % 2]);
	}
	run_case(f, &cases[0], NOWHERE, CK_LEVEL_SHA256, &direct[0]);
	run_case(f, &cases[0], ALIGNED, CK_LEVEL_CRC32, &direct[0]);
	run_case(f, &cases[0], ODD, CK_LEVEL_CRC32, &plain);
	run_case(f, &cases[0], ODD, CK_LEVEL_SHA256, &plain);
	run_case(f, &cases[9], ODD, CK_LEVEL_CRC32, &plain);
}

static void count(void *arg, uint64_t bytes)
{
	atomic_fetch_add((_Atomic(uint64_t) *)arg, bytes);
}

/* One bit at the beginning, in the middle, in the ragged end; and a file that has been cut. */
static void test_damage(const struct stored_files *f)
{
	static const uint64_t places[] = {5000, 5 * MIB, BYTES - 12000};
	char path[PATH_MAX], name[CK_NAME_MAX];
	struct ck_error err = CK_ERROR_INIT;
	_Atomic(uint64_t) seen = 0;
	struct opened o;
	int fd;

	ck_path_join(path, f->dir, ck_name_shard(3, 2, name));
	fd = open(path, O_RDWR);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		unsigned char byte;

		ok(pread(fd, &byte, 1, (off_t)places[i]) == 1, "a byte");
		byte ^= 1;
		ok(pwrite(fd, &byte, 1, (off_t)places[i]) == 1, "is changed");
		open_all(&ck_io_posix, f, ODD, &o);
		is_int(ck_shard_read_all(&ck_io_posix, o.jobs, FILES, CK_LEVEL_SHA256, NULL, NULL,
					 NULL, &err),
		       CK_EDIGEST, "damage is found");
		like(err.text, "rank-00003.2.safetensors: chunk 0, bytes [0, ", "with its place");
		is_int(o.jobs[1].rc + o.jobs[3].rc, 0, "others are fine");
		close_all(&ck_io_posix, &o);
		byte ^= 1;
		ok(pwrite(fd, &byte, 1, (off_t)places[i]) == 1, "mended");
	}
	open_all(&ck_io_posix, f, NOWHERE, &o);
	is_int(ck_shard_read_all(&ck_io_posix, o.jobs, FILES, CK_LEVEL_SHA256, NULL, count, &seen,
				 &err),
	       0, "all is well again");
	for (size_t i = 0; i < FILES; i++)
		seen -= f->expected[i].bytes;
	is_u64(seen, 0, "progress covers all files");
	ok(ftruncate(fd, 6 * MIB + 5000) == 0, "cut behind our back");
	is_int(ck_shard_read_all(&ck_io_posix, o.jobs, FILES, CK_LEVEL_SHA256, NULL, NULL, NULL,
				 &err),
	       CK_EIO, "a file that becomes shorter");
	like(err.text, ": the file ends there, ", "where it was to go on");
	close_all(&ck_io_posix, &o);
	close(fd);
	is_int(ck_shard_read_all(&ck_io_posix, NULL, 0, CK_LEVEL_SIZED, NULL, NULL, NULL, &err),
	       CK_EARG, "a level that reads nothing");
	is_int(ck_shard_read_all(&ck_io_posix, NULL, 0, CK_LEVEL_CRC32, NULL, NULL, NULL, &err), 0,
	       "no files");
}

/* The kernel has been asked for blocks, and then never says that they came. */
static void test_silence(void)
{
	struct ck_io_fault *fault = scratch_fault("reap:*:errno=EBADF:after=2");
	const struct ck_io *io = ck_io_fault_io(fault);
	unsigned char *memory = aligned_alloc(4096, 16 * MIB);
	struct ck_stored block = stored_block("w", CK_U8, 16 * MIB, 0, 16 * MIB, memory);
	struct ck_error err = CK_ERROR_INIT;
	const char *dir = test_tmpdir();
	struct ck_digests digests = {0};
	struct ck_expected expected;
	struct ck_shard shard;
	struct ck_plan plan;
	void *dst = memory;
	int rc;

	memset(memory, 7, 16 * MIB);
	is_int(ck_shard_plan(3, 1, &block, 1, &plan, &err), 0, "planned");
	is_int(ck_shard_write_all(&ck_io_posix, dir, 3, &plan, NULL, &digests, &err), 0, "written");
	expected = (struct ck_expected){.bytes = digests.bytes,
					.sha256 = digests.sha256,
					.chunk_bytes = digests.chunk_bytes,
					.chunk_crc32 = digests.chunk_crc32,
					.crc32 = digests.crc32};
	is_int(ck_shard_open(io, dir, 3, 0, &shard, &err), 0, "opened");
	rc = ck_shard_read(io, &shard, &expected, CK_LEVEL_SHA256, &dst, NULL, NULL, &err);
	if (ck_io_fault_count(fault, 0)) {
		is_int(rc, CK_EIO, "a kernel that falls silent");
		like(err.text,
		     "/rank-00003.0.safetensors: read of 4194304 bytes at byte 4194304: Bad file "
		     "descriptor",
		     "file, place and reason");
	} else {
		skip("no io_uring here");
	}
	ck_shard_close(io, &shard);
	ck_digests_fini(&digests);
	ck_plan_fini(&plan);
	free(memory);
	ck_io_fault_free(fault);
}

/*
 * The header is read to know what belongs where, and again to be verified. What was wrong the first time alone must not
 * decide where bytes go.
 */
static void test_header_read_wrongly(const struct stored_files *f)
{
	static const enum ck_level levels[] = {CK_LEVEL_CRC32, CK_LEVEL_SHA256};
	const struct ck_buf *header = &f->plan.parts[2].header;
	const char *found = memmem(header->data, header->len, "[20000]", 7);
	struct ck_error err = CK_ERROR_INIT;
	char rules[96];

	if (!ok(found != NULL, "a block at 20000"))
		return;
	snprintf(rules, sizeof(rules), "pread:rank-00003.2*:flip=%td:after=1:times=1",
		 found + 1 - header->data);
	for (size_t i = 0; i < 2; i++) {
		struct ck_io_fault *fault;
		struct ck_shard shard;
		bool moved = false;

		is_int(ck_io_fault_new(&fault, &ck_io_posix, rules, &err), 0, "%s", rules);
		is_int(ck_shard_open(ck_io_fault_io(fault), f->dir, 3, 2, &shard, &err), 0,
		       "a header that was read wrongly looks well: %s", err.text);
		for (size_t b = 0; b < shard.nblocks; b++)
			moved |= shard.blocks[b].box.offset[0] == 30000;
		ok(moved, "but moves a block");
		is_int(ck_shard_read(ck_io_fault_io(fault), &shard, &f->expected[2], levels[i],
				     NULL, NULL, NULL, &err),
		       CK_EIO, "level %d: nothing is loaded by it, nor is the file bad", levels[i]);
		like(err.text, "the header: two reads of it differ", "saying so");
		ck_shard_close(ck_io_fault_io(fault), &shard);
		ck_io_fault_free(fault);
	}
}

int main(void)
{
	struct stored_files f;

	files_init(&f);
	test_ways(&f);
	test_header_read_wrongly(&f);
	test_damage(&f);
	test_silence();
	files_fini(&f);
	return done_testing();
}
