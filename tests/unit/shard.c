#include "shard.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io_fault.h"
#include "names.h"
#include "safetensors.h"
#include "stored.h"
#include "tap.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))
#define MIB ((size_t)1 << 20)

static void fill_random(unsigned char *data, size_t bytes)
{
	uint64_t x = 88172645463325252u + bytes;

	for (size_t i = 0; i < bytes; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		data[i] = (unsigned char)x;
	}
}

static struct ck_expected expect(const struct ck_digests *digests)
{
	return (struct ck_expected){.bytes = digests->bytes,
				    .sha256 = digests->sha256,
				    .chunk_bytes = digests->chunk_bytes,
				    .chunk_crc32 = digests->chunk_crc32,
				    .crc32 = digests->crc32};
}

/* Do the digests agree with the file, does a strict parse of it, and is its end the data's? */
static void check_file(const char *path, const struct ck_part *part,
		       const struct ck_digests *digests)
{
	char hex[CK_SHA256_HEX + 1];
	struct ck_buf file = CK_BUF_INIT;
	struct ck_st_header header = {0};
	struct ck_error err = CK_ERROR_INIT;
	uint64_t json_bytes = 0;
	int rc = ck_io_read_file(&ck_io_posix, path, UINT64_C(1) << 30, &file, &err);

	is_int(rc, 0, "%s can be read: %s", path, err.text);
	is_u64(file.len, part->bytes, "size as planned");
	is_u64(digests->bytes, part->bytes, "size in the digests");
	ck_sha256_hex(file.data, file.len, hex, NULL);
	is_str(digests->sha256, hex, "sha256 is the file's");
	rc = ck_st_header_bytes(path, (unsigned char *)file.data, file.len, &json_bytes, &err);
	if (rc == 0)
		rc = ck_st_parse(path, file.data + 8, json_bytes, file.len, &header, &err);
	is_int(rc, 0, "a strict parse agrees: %s", err.text);
	is_u64(header.ntensors, part->nblocks, "as many tensors as blocks");
	is_u64(header.data_offset % 4096, 0, "data are aligned");
	ck_st_fini(&header);
	ck_buf_fini(&file);
}

/* The planned block of this name and place. */
static const struct ck_stored *find(const struct ck_part *part, const struct ck_stored *block)
{
	for (size_t i = 0; i < part->nblocks; i++)
		if (!strcmp(part->blocks[i].name, block->name) &&
		    ck_box_equal(&part->blocks[i].box, &block->box))
			return &part->blocks[i];
	return NULL;
}

static bool same_stored(const struct ck_stored *a, const struct ck_stored *b)
{
	return a && a->kind == b->kind && a->dtype == b->dtype && a->ndim == b->ndim &&
	       a->bytes == b->bytes && a->offset == b->offset &&
	       (a->kind == CK_PER_RANK || !memcmp(a->shape, b->shape, (size_t)a->ndim * 8));
}

/* Read a part at a level; are its blocks byte for byte what was planned? */
static void check_values(const char *dir, uint32_t rank, uint32_t number,
			 const struct ck_part *part, const struct ck_expected *expected,
			 enum ck_level level)
{
	struct ck_shard shard = {.fd = -1};
	struct ck_error err = CK_ERROR_INIT;
	bool same = true;
	void **dst;
	int rc = ck_shard_open(&ck_io_posix, dir, rank, number, &shard, &err);

	if (!is_int(rc, 0, "opens: %s", err.text))
		return;
	dst = calloc(shard.nblocks + 1, sizeof(*dst));
	for (size_t i = 0; i < shard.nblocks; i++)
		dst[i] = malloc(shard.blocks[i].bytes + 1);
	rc = ck_shard_read(&ck_io_posix, &shard, expected, level, dst, NULL, NULL, &err);
	is_int(rc, 0, "verifies: %s", err.text);
	is_u64(shard.nblocks, part->nblocks, "all blocks");
	for (size_t i = 0; i < shard.nblocks; i++) {
		const struct ck_stored *want = find(part, &shard.blocks[i]);

		same = same && same_stored(want, &shard.blocks[i]) &&
		       (want->bytes == 0 || !memcmp(dst[i], want->data, want->bytes));
		free(dst[i]);
	}
	ok(same, "are what was written");
	free(dst);
	ck_shard_close(&ck_io_posix, &shard);
}

static void save_and_read(const struct ck_stored *blocks, size_t nblocks, uint32_t rank,
			  size_t nparts)
{
	const char *dir = test_tmpdir();
	struct ck_error err = CK_ERROR_INIT;
	struct ck_plan plan = {0};

	is_int(ck_shard_plan(rank, 2000, blocks, nblocks, &plan, &err), 0, "plan: %s", err.text);
	is_u64(plan.nparts, nparts, "number of files");
	for (uint32_t i = 0; i < plan.nparts; i++) {
		struct ck_digests digests = {0};
		char name[CK_NAME_MAX], path[PATH_MAX];
		struct ck_expected expected;

		ck_path_join(path, dir, ck_name_shard(rank, i, name));
		is_int(ck_shard_write(&ck_io_posix, path, &plan.parts[i], &digests, &err), 0,
		       "write: %s", err.text);
		check_file(path, &plan.parts[i], &digests);
		expected = expect(&digests);
		check_values(dir, rank, i, &plan.parts[i], &expected, CK_LEVEL_SHA256);
		check_values(dir, rank, i, &plan.parts[i], &expected, CK_LEVEL_CRC32);
		ck_digests_fini(&digests);
	}
	ck_plan_fini(&plan);
}

static void test_all_dtypes(void)
{
	unsigned char data[64 * 8];
	struct ck_stored blocks[CK_DTYPES + 4];
	size_t n = 0;

	fill_random(data, sizeof(data));
	for (int i = 0; i < CK_DTYPES; i++)
		blocks[n++] = stored_block(ck_dtype_name(i), (enum ck_dtype)i, 99, (uint64_t)i,
					   (uint64_t)(2 * i + 1), data + i);
	blocks[n++] = (struct ck_stored){
		.name = "scalar", .dtype = CK_C64, .bytes = 8, .data = data + 100};
	blocks[n++] = stored_block("empty", CK_F32, 4, 4, 0, NULL);
	blocks[n++] = stored_per_rank("rng", 100, data + 7);
	blocks[n++] = stored_per_rank("iterator", 0, NULL);
	save_and_read(blocks, n, 1048575, 1);
}

static void test_several_blocks(void)
{
	unsigned char data[1000] = {0};
	struct ck_stored blocks[] = {
		stored_block("a", CK_F32, 1000, 100, 7, data),
		stored_block("w", CK_F16, 1000, 0, 10, data + 5),
		stored_block("w", CK_F16, 1000, 20, 30, data + 25),
		stored_block("w", CK_F16, 1000, 90, 100, data + 85),
		stored_per_rank("rng", 11, data + 500),
	};

	fill_random(data, sizeof(data));
	save_and_read(blocks, ROWS(blocks), 0, 3);
	save_and_read(NULL, 0, 3, 1);
}

/* Blocks that end before, at and behind the 4 MiB steps of reading and writing. */
static void test_large(void)
{
	unsigned char *data = calloc(24, MIB);
	struct ck_stored blocks[] = {
		stored_block("a", CK_U8, 24 * MIB, 0, 4 * MIB - 4096, data),
		stored_block("b", CK_U8, 24 * MIB, 1, 9 * MIB + 1, data + 1),
		stored_block("c", CK_U8, 24 * MIB, 2, 3 * MIB - 2, data + 77),
		stored_block("d", CK_U8, 24 * MIB, 3, 1, data + 100),
		stored_block("e", CK_U8, 24 * MIB, 4, 1, data + 101),
		stored_block("f", CK_U8, 24 * MIB, 5, 7 * MIB, data + MIB),
	};

	fill_random(data, 24 * MIB);
	save_and_read(blocks, ROWS(blocks), 2, 1);
	free(data);
}

/* A written part of three blocks, and what the tests below need of it. */
struct written {
	unsigned char data[20000];
	struct ck_plan plan;
	struct ck_digests digests;
	struct ck_expected expected;
	char dir[PATH_MAX], path[PATH_MAX];
};

static void write_three(struct written *w)
{
	struct ck_stored blocks[] = {stored_block("a", CK_U8, 20000, 0, 5000, w->data),
				     stored_block("b", CK_U8, 20000, 0, 6000, w->data + 5000),
				     stored_block("c", CK_U8, 20000, 0, 9000, w->data + 11000)};
	struct ck_error err = CK_ERROR_INIT;
	struct ck_digest *digest = NULL;
	struct ck_buf file = CK_BUF_INIT;

	fill_random(w->data, sizeof(w->data));
	snprintf(w->dir, sizeof(w->dir), "%s", test_tmpdir());
	ck_path_join(w->path, w->dir, "rank-00000.0.safetensors");
	if (ck_shard_plan(0, 1, blocks, 3, &w->plan, &err) ||
	    ck_shard_write(&ck_io_posix, w->path, &w->plan.parts[0], &w->digests, &err))
		ok(false, "written: %s", err.text);
	/* Chunks of 4 KiB, as a reader accepts them: six of this file. */
	ck_io_read_file(&ck_io_posix, w->path, 100000, &file, NULL);
	ck_digests_fini(&w->digests);
	if (ck_digest_new(&digest, file.len, 4096, CK_SHA_BEST, NULL) ||
	    ck_digest_update(digest, file.data, file.len, NULL) ||
	    ck_digest_final(digest, &w->digests, NULL))
		ok(false, "hashed");
	ck_digest_free(digest);
	ck_buf_fini(&file);
	w->expected = expect(&w->digests);
}

static void written_fini(struct written *w)
{
	ck_plan_fini(&w->plan);
	ck_digests_fini(&w->digests);
}

static int open_and_read(const struct ck_io *io, const struct written *w, enum ck_level level,
			 struct ck_error *err)
{
	struct ck_shard shard;
	int rc = ck_shard_open(io, w->dir, 0, 0, &shard, err);

	if (rc)
		return rc;
	rc = ck_shard_read(io, &shard, &w->expected, level, NULL, NULL, NULL, err);
	ck_shard_close(io, &shard);
	return rc;
}

static void test_expected_differs(void)
{
	static struct written w;
	struct ck_error err = CK_ERROR_INIT;
	uint32_t *chunks;
	char text[128];

	write_three(&w);
	chunks = w.digests.chunk_crc32;
	is_int(open_and_read(&ck_io_posix, &w, CK_LEVEL_SIZED, &err), CK_EARG,
	       "a level that reads nothing");
	like(err.text, "/rank-00000.0.safetensors: level 0 cannot be read", "text");
	w.expected.chunk_bytes = 4095;
	is_int(open_and_read(&ck_io_posix, &w, CK_LEVEL_CRC32, &err), CK_EARG, "chunks of 4,095");
	w.expected.chunk_bytes = 4096;
	w.expected.bytes++;
	is_int(open_and_read(&ck_io_posix, &w, CK_LEVEL_CRC32, &err), CK_EDIGEST, "another size");
	like(err.text, "/rank-00000.0.safetensors: 24096 bytes, 24097 were written", "both sizes");
	w.expected.bytes--;
	chunks[3] ^= 1;
	is_int(open_and_read(&ck_io_posix, &w, CK_LEVEL_CRC32, &err), CK_EDIGEST, "another chunk");
	snprintf(text, sizeof(text),
		 "chunk 3, bytes [12288, 16384): crc32 is %08x, %08x was written", chunks[3] ^ 1,
		 chunks[3]);
	like(err.text, text, "chunk, range, both values");
	chunks[3] ^= 1;
	chunks[5] ^= 1;
	is_int(open_and_read(&ck_io_posix, &w, CK_LEVEL_SHA256, &err), CK_EDIGEST,
	       "the last chunk");
	like(err.text, "chunk 5, bytes [20480, 24096): crc32 is ", "its range ends with the file");
	chunks[5] ^= 1;
	w.expected.crc32 ^= 1;
	is_int(open_and_read(&ck_io_posix, &w, CK_LEVEL_CRC32, &err), CK_EDIGEST, "the whole");
	snprintf(text, sizeof(text), "bytes [0, 24096): crc32 is %08x, %08x was written",
		 w.digests.crc32, w.digests.crc32 ^ 1);
	like(err.text, text, "both values");
	w.expected.crc32 ^= 1;
	w.expected.sha256 = "0123456789012345678901234567890123456789012345678901234567890123";
	is_int(open_and_read(&ck_io_posix, &w, CK_LEVEL_SHA256, &err), CK_EDIGEST, "sha256");
	snprintf(text, sizeof(text), "sha256 is %s, 0123456789", w.digests.sha256);
	like(err.text, text, "both values");
	is_int(open_and_read(&ck_io_posix, &w, CK_LEVEL_CRC32, &err), 0,
	       "crc32 does not look at it");
	written_fini(&w);
}

/* One bit, anywhere in the file, and the size. */
static void test_damage(void)
{
	static const long places[] = {4095, 4096, 9999, 20480, 24095};
	static struct written w;
	struct ck_error err = CK_ERROR_INIT;

	write_three(&w);
	for (size_t i = 0; i < ROWS(places); i++) {
		FILE *file = fopen(w.path, "r+");
		char text[64];
		int byte;

		fseek(file, places[i], SEEK_SET);
		byte = fgetc(file);
		fseek(file, places[i], SEEK_SET);
		/* A blank of the padding becomes a tab: still a good header, other bytes. */
		fputc(byte == ' ' ? '\t' : byte ^ 0x10, file);
		fflush(file);
		is_int(open_and_read(&ck_io_posix, &w, CK_LEVEL_CRC32, &err), CK_EDIGEST,
		       "byte %ld differs", places[i]);
		snprintf(text, sizeof(text), "chunk %ld, ", places[i] / 4096);
		like(err.text, text, "and the chunk is named");
		fseek(file, places[i], SEEK_SET);
		fputc(byte, file);
		fclose(file);
	}
	is_int(open_and_read(&ck_io_posix, &w, CK_LEVEL_SHA256, &err), 0, "mended: %s", err.text);
	written_fini(&w);
}

struct counted {
	uint64_t bytes;
	unsigned calls;
};

static void count(void *arg, uint64_t bytes)
{
	struct counted *counted = arg;

	counted->bytes += bytes;
	counted->calls++;
}

static void test_some_destinations(void)
{
	static struct written w;
	unsigned char got[6000] = {0};
	void *dst[] = {NULL, got, NULL};
	struct counted counted = {0};
	struct ck_error err = CK_ERROR_INIT;
	struct ck_shard shard;

	write_three(&w);
	is_int(ck_shard_open(&ck_io_posix, w.dir, 0, 0, &shard, &err), 0, "opens: %s", err.text);
	is_int(ck_shard_read(&ck_io_posix, &shard, &w.expected, CK_LEVEL_CRC32, dst, count,
			     &counted, &err),
	       0, "reads: %s", err.text);
	ok(!memcmp(got, w.data + 5000, 6000), "the one that was wanted");
	is_u64(counted.bytes, w.expected.bytes, "progress covers the whole file");
	ck_shard_close(&ck_io_posix, &shard);
	written_fini(&w);
}

struct reader {
	pthread_t thread;
	const struct ck_shard *shard;
	const struct ck_expected *expected;
	unsigned char got[3][9000];
	int rc;
};

static void *read_it(void *arg)
{
	struct reader *reader = arg;
	void *dst[] = {reader->got[0], reader->got[1], reader->got[2]};

	for (int i = 0; i < 20 && reader->rc == 0; i++)
		reader->rc = ck_shard_read(&ck_io_posix, reader->shard, reader->expected,
					   CK_LEVEL_SHA256, dst, NULL, NULL, NULL);
	return NULL;
}

static void test_several_threads(void)
{
	static struct written w;
	static struct reader readers[4];
	struct ck_shard shard = {.fd = -1};

	write_three(&w);
	is_int(ck_shard_open(&ck_io_posix, w.dir, 0, 0, &shard, NULL), 0, "opens");
	for (size_t i = 0; i < ROWS(readers); i++) {
		readers[i] = (struct reader){.shard = &shard, .expected = &w.expected};
		is_int(pthread_create(&readers[i].thread, NULL, read_it, &readers[i]), 0, "thread");
	}
	for (size_t i = 0; i < ROWS(readers); i++) {
		pthread_join(readers[i].thread, NULL);
		is_int(readers[i].rc, 0, "thread %zu reads the same shard", i);
		ok(!memcmp(readers[i].got[0], w.data, 5000) &&
			   !memcmp(readers[i].got[1], w.data + 5000, 6000) &&
			   !memcmp(readers[i].got[2], w.data + 11000, 9000),
		   "and gets it all");
	}
	ck_shard_close(&ck_io_posix, &shard);
	written_fini(&w);
}

static void test_read_faults(void)
{
	static const struct {
		const char *rule;
		int code;
		const char *says;
	} rows[] = {
		{"pread:*:errno=EIO:after=2", CK_EIO, "Input/output error"},
		{"pread:*:cut=0:after=2", CK_EIO, "/rank-00000.0.safetensors: "},
		{"pread:*:errno=EINTR:after=2:times=3", 0, ""},
		{"pread:*:cut=1000", 0, ""},
	};
	static struct written w;

	write_three(&w);
	for (size_t i = 0; i < ROWS(rows); i++) {
		struct ck_io_fault *fault = NULL;
		struct ck_error err = CK_ERROR_INIT;

		is_int(ck_io_fault_new(&fault, &ck_io_posix, rows[i].rule, &err), 0, "rule: %s",
		       err.text);
		is_int(open_and_read(ck_io_fault_io(fault), &w, CK_LEVEL_SHA256, &err),
		       rows[i].code, "%s: code", rows[i].rule);
		like(err.text, rows[i].says, "%s: text", rows[i].rule);
		ck_io_fault_free(fault);
	}
	written_fini(&w);
}

static void test_write_faults(void)
{
	static const struct {
		const char *rule;
		int code;
		const char *says;
	} rows[] = {
		{"open:*:errno=EACCES", CK_EIO, "Permission denied"},
		{"pwrite:*:errno=ENOSPC", CK_EIO, "No space left on device"},
		{"fsync:*:errno=EIO", CK_EIO, "Input/output error"},
		{"close:*:errno=EDQUOT", CK_EIO, "Disk quota exceeded"},
		{"pwrite:*:errno=EINTR:times=2", 0, ""},
		{"pwrite:*:cut=1000", 0, ""},
	};
	static struct written w;
	struct ck_digests digests = {.bytes = 77};
	struct ck_error err = CK_ERROR_INIT;

	write_three(&w);
	is_int(ck_shard_write(&ck_io_posix, w.path, &w.plan.parts[0], &digests, &err), CK_EEXIST,
	       "a file that is there");
	like(err.text, w.path, "path");
	for (size_t i = 0; i < ROWS(rows); i++) {
		struct ck_io_fault *fault = NULL;

		unlink(w.path);
		err = (struct ck_error)CK_ERROR_INIT;
		ck_io_fault_new(&fault, &ck_io_posix, rows[i].rule, NULL);
		is_int(ck_shard_write(ck_io_fault_io(fault), w.path, &w.plan.parts[0], &digests,
				      &err),
		       rows[i].code, "%s: code", rows[i].rule);
		like(err.text, rows[i].code ? w.path : "", "%s: path", rows[i].rule);
		like(err.text, rows[i].says, "%s: cause", rows[i].rule);
		is_u64(digests.bytes, rows[i].code ? 77 : w.digests.bytes, "%s: output",
		       rows[i].rule);
		if (rows[i].code == 0) {
			is_str(digests.sha256, w.digests.sha256, "%s: digests", rows[i].rule);
			is_int(open_and_read(&ck_io_posix, &w, CK_LEVEL_SHA256, &err), 0,
			       "%s: all there", rows[i].rule);
			ck_digests_fini(&digests);
		}
		ck_io_fault_free(fault);
	}
	written_fini(&w);
}

int main(void)
{
	test_all_dtypes();
	test_several_blocks();
	test_large();
	test_expected_differs();
	test_damage();
	test_some_destinations();
	test_several_threads();
	test_read_faults();
	test_write_faults();
	return done_testing();
}
