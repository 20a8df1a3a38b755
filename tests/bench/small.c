/*
 * What one rank does alone: hashing, the manifest of a large world, memory.
 *
 *	small DIRECTORY ROUNDS
 */
#include <limits.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "bench.h"
#include "digest.h"
#include "manifest.h"
#include "names.h"
#include "process.h"
#include "shard.h"

#define MIB ((size_t)1 << 20)
#define STREAMS 4
#define STREAM_BYTES (32 * MIB)
#define WORLD 16384
#define CHUNKS 64

/* One stream after the other by libcrypto and zlib, 4 MiB at a time: as it is usually done. */
static double hash_alone(const unsigned char *memory)
{
	unsigned char raw[CK_SHA256_BYTES];
	double began = bench_cpu();

	for (size_t k = 0; k < STREAMS; k++) {
		EVP_MD_CTX *evp = EVP_MD_CTX_new();
		uLong crc = 0;

		EVP_DigestInit_ex(evp, EVP_sha256(), NULL);
		for (size_t at = 0; at < STREAM_BYTES; at += 4 * MIB) {
			const unsigned char *data = memory + k * STREAM_BYTES + at;

			EVP_DigestUpdate(evp, data, 4 * MIB);
			crc = crc32_z(crc, data, 4 * MIB);
		}
		EVP_DigestFinal_ex(evp, raw, NULL);
		EVP_MD_CTX_free(evp);
		bench_need(crc != 1, "crc");
	}
	return bench_cpu() - began;
}

static double hash_together(const unsigned char *memory)
{
	struct ck_digest *digests[STREAMS];
	const void *data[STREAMS];
	size_t bytes[STREAMS];
	double began = bench_cpu();

	for (size_t k = 0; k < STREAMS; k++)
		bench_need(ck_digest_new(&digests[k], STREAM_BYTES, 16 * MIB, CK_SHA_BEST, NULL) ==
				   0,
			   "digest");
	for (size_t at = 0; at < STREAM_BYTES; at += 4 * MIB) {
		for (size_t k = 0; k < STREAMS; k++) {
			data[k] = memory + k * STREAM_BYTES + at;
			bytes[k] = 4 * MIB;
		}
		bench_need(ck_digest_update_all(digests, data, bytes, STREAMS, NULL) == 0, "hash");
	}
	for (size_t k = 0; k < STREAMS; k++) {
		struct ck_digests out;

		bench_need(ck_digest_final(digests[k], &out, NULL) == 0, "hash");
		ck_digests_fini(&out);
		ck_digest_free(digests[k]);
	}
	return bench_cpu() - began;
}

static void measure_hash(int rounds)
{
	unsigned char *memory = bench_memory(STREAMS * STREAM_BYTES);
	double ratios[BENCH_ROUNDS_MAX], alone[BENCH_ROUNDS_MAX];

	hash_alone(memory);
	hash_together(memory);
	for (int i = 0; i < rounds; i++) {
		alone[i] = hash_alone(memory);
		ratios[i] = hash_together(memory) / alone[i];
	}
	bench_report("hash_cpu_vs_single_stream", "of CPU", ratios, rounds,
		     "one stream: %.2f s per GiB",
		     bench_median(alone, rounds) * 1024 * (double)MIB /
			     (double)(STREAMS * STREAM_BYTES));
}

static void make_manifest(struct ck_manifest *m)
{
	*m = (struct ck_manifest){.world_size = WORLD, .id = {5, 1}, .created = 1700000000};
	memset(m->run_id, '0', CK_RUN_ID_HEX);
	memset(m->save_id, '1', CK_RUN_ID_HEX);
	strcpy(m->run, "bench");
	strcpy(m->writer, "bench");
	m->nfiles = (size_t)WORLD * 4;
	m->files = calloc(m->nfiles, sizeof(*m->files));
	bench_need(m->files != NULL, "no memory");
	for (size_t i = 0; i < m->nfiles; i++) {
		struct ck_file *file = &m->files[i];

		file->rank = (uint32_t)(i / 4);
		file->part = (uint32_t)(i % 4);
		ck_name_shard(file->rank, file->part, file->path);
		file->chunk_bytes = CK_CHUNK_MIN;
		file->bytes = CHUNKS * CK_CHUNK_MIN - 5;
		memset(file->sha256, 'a', CK_SHA256_HEX);
		file->crc32 = (uint32_t)i;
		file->chunk_crc32 = calloc(CHUNKS, sizeof(uint32_t));
		for (uint32_t k = 0; k < CHUNKS; k++)
			file->chunk_crc32[k] = (uint32_t)i * 77 + k;
	}
}

/* In a process of its own: its memory is what counts, and it is as fresh as a resume's. */
static void parse_once(const struct ck_buf *text, double *out)
{
	double before = bench_peak_mib(), began = bench_now();
	struct ck_manifest parsed = {0};
	struct ck_error err = CK_ERROR_INIT;

	bench_need(ck_manifest_parse("manifest", text->data, text->len, true, &parsed, &err) == 0,
		   "%s", err.text);
	out[0] = (bench_now() - began) * 1e3;
	out[1] = bench_peak_mib() - before + (double)text->len / (double)MIB;
}

static void parse_work(const void *arg, double *out)
{
	parse_once(arg, out);
}

static void measure_manifest(int rounds)
{
	double ms[BENCH_ROUNDS_MAX], mib[BENCH_ROUNDS_MAX], print_ms[BENCH_ROUNDS_MAX], out[2];
	struct ck_buf text = CK_BUF_INIT;
	struct ck_manifest manifest;

	make_manifest(&manifest);
	for (int i = 0; i < rounds; i++) {
		double began = bench_now();

		ck_buf_clear(&text);
		bench_need(ck_manifest_print(&manifest, true, &text, NULL) == 0, "print");
		print_ms[i] = (bench_now() - began) * 1e3;
	}
	ck_manifest_fini(&manifest);
	for (int i = 0; i < rounds; i++) {
		bench_child(parse_work, &text, out, 2);
		ms[i] = out[0];
		mib[i] = out[1];
	}
	bench_report("manifest_16384_ms", "ms", ms, rounds, "parse and check %.0f MB of text",
		     (double)text.len / 1e6);
	bench_report("manifest_16384_print_ms", "ms", print_ms, rounds, "check and print it");
	bench_report("manifest_16384_mib", "MiB", mib, rounds, "peak memory, text included");
	ck_buf_fini(&text);
}

/* A save from the program's own memory, that is not aligned: what it takes beside the state. */
static void emergency_work(const void *arg, double *out)
{
	const size_t bytes = 256 * MIB;
	char *memory = (char *)bench_memory(bytes + 4096) + 64;
	struct ck_stored block = {.name = "state",
				  .dtype = CK_F32,
				  .ndim = 1,
				  .shape = {bytes / 4},
				  .box = {.ndim = 1, .extent = {bytes / 4}},
				  .bytes = bytes,
				  .data = memory};
	struct ck_digests digests[4];
	struct ck_plan plan;
	double before = bench_peak_mib();

	bench_need(ck_shard_plan(0, 1, &block, 1, &plan, NULL) == 0 && plan.nparts == 4 &&
			   ck_shard_write_all(&ck_io_posix, arg, 0, &plan, NULL, digests, NULL) ==
				   0,
		   "save");
	out[0] = bench_peak_mib() - before;
}

static void measure_emergency(const char *dir)
{
	double mib;

	bench_child(emergency_work, dir, &mib, 1);
	bench_report("memory_emergency", "MiB", &mib, 1, "beside 256 MiB written in place");
}

int main(int argc, char **argv)
{
	int rounds;

	bench_need(argc == 3, "usage: small DIRECTORY ROUNDS");
	rounds = atoi(argv[2]);
	bench_need(rounds > 0 && rounds <= BENCH_ROUNDS_MAX, "1 to %d rounds", BENCH_ROUNDS_MAX);
	measure_hash(rounds);
	measure_manifest(rounds);
	measure_emergency(argv[1]);
	return 0;
}
