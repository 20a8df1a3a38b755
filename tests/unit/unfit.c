/*
 * Checkpoints that are not whole, or not this program's: ckpt_restore names what is wrong, on all ranks alike,
 * and has written nothing to the program's memory. With the ranks that saved, and with others.
 */
#include <cjson/cJSON.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ckpt.h"
#include "comm_threads.h"
#include "error.h"
#include "rundir.h"
#include "state.h"
#include "tap.h"

#define SAVERS 4
#define STEP "step-0000000001.g1"

/* One item more of the program: no name, none. */
struct more {
	const char *name;
	enum ckpt_dtype dtype;
	uint64_t elements;
};

struct program {
	int size;
	bool save;
	struct more more;
	const char *dir;
	struct ck_threads *threads;
};

struct rank {
	const struct program *program;
	int rank, code;
	uint64_t step;
	bool untouched;
	char text[CK_ERROR_TEXT];
	pthread_t thread;
};

static void quiet(void *arg, const char *line)
{
	(void)arg;
	(void)line;
}

static int run(ckpt *ck, struct rank *r, struct state *state)
{
	const struct program *p = r->program;
	double more[8] = {0};
	int rc = state_register(state, ck, false);

	if (!rc && p->more.name)
		rc = ckpt_add_replicated(ck, p->more.name, p->more.dtype, 1, &p->more.elements,
					 more);
	if (!rc)
		rc = ckpt_restore(ck, &r->step);
	r->untouched = state_is_spoilt(state);
	if (rc || !p->save)
		return rc;
	state_fill(state, 1);
	rc = ckpt_save(ck, 1);
	return rc ? rc : ckpt_wait(ck);
}

static void *rank_main(void *arg)
{
	struct rank *r = arg;
	struct ckpt_options options = {.struct_size = sizeof(options),
				       .dir = r->program->dir,
				       .log = quiet};
	struct ckpt_comm comm;
	struct state state;
	ckpt *ck = NULL;

	state_init(&state, r->rank, r->program->size, 0);
	ck_threads_comm(r->program->threads, r->rank, &comm);
	r->code = ckpt_open(&ck, &comm, &options);
	if (!r->code)
		r->code = run(ck, r, &state);
	snprintf(r->text, sizeof(r->text), "%s", ckpt_error(ck));
	ckpt_close(ck);
	state_fini(&state);
	return NULL;
}

static void start(struct program *p, struct rank *ranks)
{
	p->threads = ck_threads_new(p->size);
	for (int r = 0; r < p->size; r++) {
		ranks[r] = (struct rank){.program = p, .rank = r};
		pthread_create(&ranks[r].thread, NULL, rank_main, &ranks[r]);
	}
	for (int r = 0; r < p->size; r++)
		pthread_join(ranks[r].thread, NULL);
	ck_threads_free(p->threads);
}

/* ---- what is done to it ---- */

static const char *in_step(const char *dir, const char *name)
{
	return in_dir(in_dir(dir, STEP), name);
}

/* In the first bytes of a shard, its header, put `new` where `old` is first, behind `after`; both are as long. */
static void edit_header(const char *dir, const char *file, const char *after, const char *old,
			const char *new)
{
	char head[65536] = "";
	FILE *f = fopen(in_step(dir, file), "r+b");
	size_t n = f ? fread(head, 1, sizeof(head) - 1, f) : 0;
	char *at = n > 8 ? memmem(head, n, after, strlen(after)) : NULL;

	at = at ? memmem(at, n - (size_t)(at - head), old, strlen(old)) : NULL;
	if (!ok(at != NULL, "%s has '%s'", file, old))
		return;
	fseek(f, at - head, SEEK_SET);
	fwrite(new, 1, strlen(new), f);
	fclose(f);
}

static void nothing(const char *dir)
{
	(void)dir;
}

static void lose_shard(const char *dir)
{
	ok(unlink(in_step(dir, "rank-00002.0.safetensors")) == 0, "a shard is gone");
}

/* The last file of the last rank, which has a row of "rows/i8" alone, is not in the manifest: a writer that errs. */
static void make_hole(const char *dir)
{
	char *text = content_of(in_step(dir, "manifest.json")), shell[PATH_MAX + 128];
	cJSON *tree = cJSON_Parse(text), *shards = cJSON_GetObjectItem(tree, "shards");

	cJSON_DeleteItemFromArray(shards, cJSON_GetArraySize(shards) - 1);
	free(text);
	text = cJSON_Print(tree);
	put_file(in_step(dir, "manifest.json"), text);
	free(text);
	cJSON_Delete(tree);
	snprintf(shell, sizeof(shell),
		 "cd %s && sed -i 'N;$!P;$!D;$d' SHA256SUMS && sha256sum manifest.json >> "
		 "SHA256SUMS",
		 in_dir(dir, STEP));
	is_int(system(shell), 0, "SHA256SUMS agrees");
}

static void make_overlap(const char *dir)
{
	edit_header(dir, "rank-00001.0.safetensors", "DCP_SHARDING_INFO", "[251]", "[250]");
}

static void make_dtype(const char *dir)
{
	edit_header(dir, "rank-00001.0.safetensors", "\"grid/2d\"", "BF16", "BF17");
}

/* A writer that errs: the elements have the same size, so the blocks fit. */
static void make_other_dtype(const char *dir)
{
	edit_header(dir, "rank-00001.0.safetensors", "\"grid/2d\"", "\"BF16\"", " \"I16\"");
}

static void make_shape(const char *dir)
{
	edit_header(dir, "rank-00001.0.safetensors", "\"ckpt\"", "[1003]", "[1103]");
}

/* ---- the cases ---- */

static const struct {
	const char *what;
	void (*spoil)(const char *dir);
	struct more saved, wanted;
	int code;
	const char *text;
} cases[] = {
	{"a shard is missing", lose_shard, .code = CKPT_ENOENT,
	 .text = "rank-00002.0.safetensors: the file is missing"},
	{"a hole", make_hole, .code = CKPT_EFORMAT,
	 .text = "item 'rows/i8': hole: 5 of 105 elements"},
	{"an overlap", make_overlap, .code = CKPT_EFORMAT,
	 .text = "item 'adam/exp_avg': [0:251] (rank 0) and [250:501] (rank 1) overlap"},
	{"an unknown dtype", make_dtype, .code = CKPT_EFORMAT,
	 .text = "rank-00001.0.safetensors: tensor 'grid/2d': unknown dtype 'BF17'"},
	{"another dtype in one shard", make_other_dtype, .code = CKPT_EFORMAT,
	 .text = "rank-00001.0.safetensors: item 'grid/2d': of another dtype than the manifest"},
	{"another global shape in one shard", make_shape, .code = CKPT_EFORMAT,
	 .text = "rank-00001.0.safetensors: item 'adam/exp_avg': of another global shape than"},
	{"an item that the program does not know", nothing, .saved = {"more", CKPT_F32, 3},
	 .code = CKPT_EITEM, .text = "'more': only in the checkpoint"},
	{"an item that the program wants", nothing, .wanted = {"more", CKPT_F32, 3},
	 .code = CKPT_EITEM, .text = "'more': only in the program"},
	{"another dtype", nothing, .saved = {"more", CKPT_F32, 3}, .wanted = {"more", CKPT_I32, 3},
	 .code = CKPT_EITEM, .text = ".g1: 'more': saved as F32 [3], the program has I32 [3]"},
	{"another shape", nothing, .saved = {"more", CKPT_F32, 3}, .wanted = {"more", CKPT_F32, 4},
	 .code = CKPT_EITEM, .text = ".g1: 'more': saved as F32 [3], the program has F32 [4]"},
	{"nothing", nothing, .code = CKPT_RESUMED, .text = ""},
};

static void test(size_t i, int size)
{
	char dir[PATH_MAX];
	struct program saver = {.size = SAVERS, .save = true, .more = cases[i].saved, .dir = dir};
	struct program taker = {.size = size, .more = cases[i].wanted, .dir = dir};
	struct rank ranks[8];
	bool alike = true, untouched = true;

	snprintf(dir, sizeof(dir), "%s/run", test_tmpdir());
	start(&saver, ranks);
	if (!is_int(ranks[0].code, 0, "%s: %d ranks save: %s", cases[i].what, SAVERS,
		    ranks[0].text))
		return;
	cases[i].spoil(dir);
	start(&taker, ranks);
	is_int(ranks[0].code, cases[i].code, "%s, on %d ranks", cases[i].what, size);
	like(ranks[0].text, cases[i].text, "... is told");
	for (int r = 0; r < size; r++) {
		alike = alike && ranks[r].code == ranks[0].code &&
			strcmp(ranks[r].text, ranks[0].text) == 0;
		untouched = untouched && ranks[r].untouched;
	}
	ok(alike, "... alike on all ranks");
	is_int(untouched, cases[i].code < 0, "... and memory is as it was, unless it is loaded");
}

int main(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		test(i, SAVERS);
		test(i, 3);
	}
	return done_testing();
}
