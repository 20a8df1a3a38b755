/*
 * Writing and reading shards against what the disk and the page cache can do without any digest.
 *
 *	shards DIRECTORY RANKS MIB ROUNDS [THREADS]
 *
 * THREADS of each rank: two where the CPUs suffice for all ranks, else one.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"
#include "names.h"
#include "queue.h"
#include "shard.h"

#define MIB ((size_t)1 << 20)
#define BLOCK (4 * MIB)
#define IN_FLIGHT_MAX 4
#define FILES 4
#define RANKS_MAX 16

/* The turns of one round. */
enum turn {
	DIRECT_WRITE,
	SAVE,
	SAVE_LIBCRYPTO,
	DIRECT_WARM_UP, /* below us: what was just written is being written back */
	DIRECT_READ,
	COLD,
	COLD_LIBCRYPTO,
	WARM_UP, /* into the page cache */
	PREAD,
	WARM,
	TURNS
};

/* Of one rank, made in its process when it begins. */
struct rank {
	char dir[PATH_MAX], raw[PATH_MAX];
	unsigned char *memory; /* the state, as images of the files */
	size_t bytes;
	struct ck_plan plan;
	struct ck_digests digests[FILES];
	struct ck_stored block;
	unsigned threads;
};

struct bench {
	const char *dir;
	size_t mib;
	unsigned threads;
	struct rank ranks[RANKS_MAX];
};

static void plan_images(struct bench *b, struct rank *r, int rank)
{
	struct ck_error err = CK_ERROR_INIT;
	unsigned char *at;

	r->bytes = b->mib * MIB;
	r->threads = b->threads;
	r->memory = bench_memory(r->bytes + FILES * 2 * 4096);
	r->block = (struct ck_stored){.name = "state",
				      .dtype = CK_F32,
				      .ndim = 1,
				      .shape = {r->bytes / 4},
				      .box = {.ndim = 1, .extent = {r->bytes / 4}},
				      .bytes = r->bytes,
				      .data = r->memory};
	bench_need(ck_shard_plan((uint32_t)rank, RANKS_MAX, &r->block, 1, &r->plan, &err) == 0,
		   "%s", err.text);
	at = r->memory;
	for (size_t p = 0; p < r->plan.nparts; p++) {
		struct ck_part *part = &r->plan.parts[p];

		memcpy(at, part->header.data, part->header.len);
		part->image = at;
		part->blocks[0].data = at + part->blocks[0].offset;
		at += (part->bytes + 4095) / 4096 * 4096;
	}
}

static void rank_init(struct bench *b, int rank)
{
	struct rank *r = &b->ranks[rank];

	snprintf(r->dir, sizeof(r->dir), "%s/rank-%d", b->dir, rank);
	ck_path_join(r->raw, r->dir, "raw");
	bench_need(mkdir(r->dir, 0700) == 0, "%s", r->dir);
	plan_images(b, r, rank);
}

static void clear(struct rank *r, int rank)
{
	char path[PATH_MAX], name[CK_NAME_MAX];

	for (uint32_t p = 0; p < r->plan.nparts; p++) {
		ck_path_join(path, r->dir, ck_name_shard((uint32_t)rank, p, name));
		unlink(path);
	}
}

/* Memory that is written to a file, or read from it. */
struct file {
	int fd;
	unsigned char *memory;
	size_t bytes;
};

static struct ck_transfer *reap(struct ck_queue *queue)
{
	struct ck_transfer *t = ck_queue_reap(queue);

	bench_need(!t || t->errnum == 0, "a transfer: %s", strerror(t ? t->errnum : 0));
	return t;
}

/* Blocks of 4 MiB, so many under way, from the first file to the last: the disk alone. */
static void move_files(const struct file *files, size_t count, bool write, size_t in_flight)
{
	struct ck_transfer transfers[IN_FLIGHT_MAX], *t;
	struct ck_queue *queue;
	size_t begun = 0;

	bench_need(ck_queue_new(&ck_io_posix, IN_FLIGHT_MAX, CK_QUEUE_KERNEL, &queue, NULL) == 0,
		   "queue");
	for (const struct file *f = files; f < files + count; f++)
		for (size_t at = 0; at < f->bytes; at += BLOCK) {
			t = begun < in_flight ? &transfers[begun++] : reap(queue);
			*t = (struct ck_transfer){.write = write,
						  .fd = f->fd,
						  .plain_fd = f->fd,
						  .data = f->memory + at,
						  .bytes = f->bytes - at < BLOCK ? f->bytes - at
										 : BLOCK,
						  .offset = at};
			ck_queue_submit(queue, t);
		}
	while (reap(queue))
		;
	ck_queue_free(queue);
}

/* Two in flight: more gain nothing where writes are concerned. */
static void direct_write(struct rank *r)
{
	int fd = open(r->raw, O_WRONLY | O_CREAT | O_EXCL | O_DIRECT, 0600);
	const struct file file = {fd, r->memory, r->bytes};

	bench_need(fd >= 0 && fallocate(fd, 0, 0, (off_t)r->bytes) == 0, "%s", r->raw);
	move_files(&file, 1, true, 2);
	bench_need(fsync(fd) == 0 && close(fd) == 0, "%s", r->raw);
}

/* The files that are loaded, to where they are loaded; but for a ragged end. */
static void direct_read(struct rank *r, int rank)
{
	char path[PATH_MAX], name[CK_NAME_MAX];
	struct file files[FILES];

	for (uint32_t p = 0; p < r->plan.nparts; p++) {
		const struct ck_part *part = &r->plan.parts[p];

		ck_path_join(path, r->dir, ck_name_shard((uint32_t)rank, p, name));
		files[p] = (struct file){open(path, O_RDONLY | O_DIRECT),
					 (unsigned char *)part->image, part->bytes / 4096 * 4096};
		bench_need(files[p].fd >= 0, "%s", path);
	}
	move_files(files, r->plan.nparts, false, IN_FLIGHT_MAX);
	for (size_t p = 0; p < r->plan.nparts; p++)
		close(files[p].fd);
}

static void save(struct rank *r, int rank, enum ck_sha sha)
{
	const struct ck_shard_options options = {.threads = r->threads, .direct = true, .sha = sha};
	struct ck_error err = CK_ERROR_INIT;

	for (size_t p = 0; p < r->plan.nparts; p++)
		ck_digests_fini(&r->digests[p]);
	bench_need(ck_shard_write_all(&ck_io_posix, r->dir, (uint32_t)rank, &r->plan, &options,
				      r->digests, &err) == 0,
		   "%s", err.text);
}

static void load(struct rank *r, int rank, enum ck_level level, enum ck_sha sha)
{
	const struct ck_shard_options options = {.threads = r->threads,
						 .direct = level == CK_LEVEL_SHA256,
						 .sha = sha};
	struct ck_expected expected[FILES];
	struct ck_shard_job jobs[FILES];
	struct ck_shard shards[FILES];
	struct ck_error err = CK_ERROR_INIT;
	void *dst[FILES];

	for (uint32_t p = 0; p < r->plan.nparts; p++) {
		const struct ck_digests *d = &r->digests[p];

		bench_need(ck_shard_open(&ck_io_posix, r->dir, (uint32_t)rank, p, &shards[p],
					 &err) == 0,
			   "%s", err.text);
		expected[p] = (struct ck_expected){.bytes = d->bytes,
						   .sha256 = d->sha256,
						   .chunk_bytes = d->chunk_bytes,
						   .chunk_crc32 = d->chunk_crc32,
						   .crc32 = d->crc32};
		dst[p] = (void *)r->plan.parts[p].blocks[0].data;
		jobs[p] = (struct ck_shard_job){.shard = &shards[p],
						.expected = &expected[p],
						.dst = &dst[p]};
	}
	bench_need(ck_shard_read_all(&ck_io_posix, jobs, r->plan.nparts, level, &options, NULL,
				     NULL, &err) == 0,
		   "%s", err.text);
	for (size_t p = 0; p < r->plan.nparts; p++)
		ck_shard_close(&ck_io_posix, &shards[p]);
}

/* The files through the page cache, unchecked. */
static void read_cached(struct rank *r, int rank)
{
	char path[PATH_MAX], name[CK_NAME_MAX];

	for (uint32_t p = 0; p < r->plan.nparts; p++) {
		const struct ck_part *part = &r->plan.parts[p];
		char *to = (char *)part->image;
		int fd;

		ck_path_join(path, r->dir, ck_name_shard((uint32_t)rank, p, name));
		fd = open(path, O_RDONLY);
		for (uint64_t at = 0; at < part->bytes; at += MIB) {
			size_t want = part->bytes - at < MIB ? part->bytes - at : MIB;

			bench_need(pread(fd, to + at, want, (off_t)at) == (ssize_t)want, "%s",
				   path);
		}
		close(fd);
	}
}

static void forget_all(struct rank *r, int rank)
{
	char path[PATH_MAX], name[CK_NAME_MAX];

	for (uint32_t p = 0; p < r->plan.nparts; p++) {
		ck_path_join(path, r->dir, ck_name_shard((uint32_t)rank, p, name));
		bench_forget(path);
	}
}

/* Files to be written are removed, and caches dropped, in the turn before: outside of what counts. */
static void prepare(struct rank *r, int rank, enum turn next)
{
	if (next == SAVE || next == SAVE_LIBCRYPTO)
		clear(r, rank);
	else if (next == DIRECT_WRITE)
		unlink(r->raw);
	else if (next == COLD || next == COLD_LIBCRYPTO)
		forget_all(r, rank);
}

static void take_turn(struct rank *r, int rank, enum turn turn)
{
	static const enum ck_sha best = CK_SHA_BEST, libcrypto = CK_SHA_LIBCRYPTO;

	switch (turn) {
	case DIRECT_WRITE:
		return direct_write(r);
	case SAVE:
		return save(r, rank, best);
	case SAVE_LIBCRYPTO:
		return save(r, rank, libcrypto);
	case DIRECT_WARM_UP:
	case DIRECT_READ:
		return direct_read(r, rank);
	case COLD:
		return load(r, rank, CK_LEVEL_SHA256, best);
	case COLD_LIBCRYPTO:
		return load(r, rank, CK_LEVEL_SHA256, libcrypto);
	case WARM:
		return load(r, rank, CK_LEVEL_CRC32, best);
	default:
		return read_cached(r, rank);
	}
}

/*
 * Turns that are compared change places from round to round: what one leaves behind (the host of a
 * virtual disk still writes) meets all alike. From a place to its turn by `round`, back by -round.
 */
static int rotate(int place, int by)
{
	static const struct {
		int first, count;
	} compared[] = {{DIRECT_WRITE, 3}, {DIRECT_READ, 3}, {PREAD, 2}};

	for (size_t i = 0; i < sizeof(compared) / sizeof(compared[0]); i++) {
		int first = compared[i].first, count = compared[i].count;

		if (place >= first && place < first + count)
			return first + (place - first + by % count + count) % count;
	}
	return place;
}

/* Even times prepare, odd ones are measured. */
static void work(void *arg, int rank, int time)
{
	struct bench *b = arg;
	enum turn turn = (enum turn)rotate(time / 2 % TURNS, time / 2 / TURNS);

	if (time < 0)
		rank_init(b, rank);
	else if (time % 2 == 0)
		prepare(&b->ranks[rank], rank, turn);
	else
		take_turn(&b->ranks[rank], rank, turn);
}

static void report(const struct bench *b, int ranks, const double *seconds, int rounds,
		   const char *name, enum turn limit, enum turn ours)
{
	double ratios[BENCH_ROUNDS_MAX], limits[BENCH_ROUNDS_MAX];
	double bytes = (double)b->mib * (double)MIB * ranks / 1e9;
	char full[96];

	/* Round 0 warms up. */
	for (int i = 1; i <= rounds; i++) {
		const double *round = seconds + 2 * TURNS * i + 1;
		double at_limit = round[2 * rotate(limit, -i)];

		limits[i - 1] = bytes / at_limit;
		ratios[i - 1] = at_limit / round[2 * rotate(ours, -i)];
	}
	snprintf(full, sizeof(full), "%s/%dx%zuMiB", name, ranks, b->mib);
	bench_report(full, "of limit", ratios, rounds, "limit %.2f GB/s, all ranks",
		     bench_median(limits, rounds));
}

int main(int argc, char **argv)
{
	static struct bench b;
	double *seconds;
	int ranks, rounds;

	bench_need(argc == 5 || argc == 6, "usage: shards DIRECTORY RANKS MIB ROUNDS [THREADS]");
	b.dir = argv[1];
	ranks = atoi(argv[2]);
	b.mib = (size_t)atoi(argv[3]);
	rounds = atoi(argv[4]);
	b.threads = argc == 6                                    ? (unsigned)atoi(argv[5])
		    : sysconf(_SC_NPROCESSORS_ONLN) / ranks >= 2 ? 2
								 : 1;
	bench_need(ranks > 0 && ranks <= RANKS_MAX && b.mib % 4 == 0 && rounds > 0 &&
			   rounds <= BENCH_ROUNDS_MAX,
		   "1 to %d ranks, MiB in fours, 1 to %d rounds", RANKS_MAX, BENCH_ROUNDS_MAX);
	seconds = calloc((size_t)(2 * TURNS * (rounds + 1)), sizeof(*seconds));
	bench_ranks(ranks, 2 * TURNS * (rounds + 1), work, &b, seconds);
	report(&b, ranks, seconds, rounds, "save_vs_direct_write", DIRECT_WRITE, SAVE);
	report(&b, ranks, seconds, rounds, "save_libcrypto_vs_direct_write", DIRECT_WRITE,
	       SAVE_LIBCRYPTO);
	report(&b, ranks, seconds, rounds, "cold_vs_direct_read", DIRECT_READ, COLD);
	report(&b, ranks, seconds, rounds, "cold_libcrypto_vs_direct_read", DIRECT_READ,
	       COLD_LIBCRYPTO);
	report(&b, ranks, seconds, rounds, "warm_vs_pread", PREAD, WARM);
	free(seconds);
	return 0;
}
