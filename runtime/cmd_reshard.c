/* `ckpt reshard`: the same checkpoint as so many other ranks would have saved it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd_into.h"
#include "cmd_source.h"
#include "commit.h"
#include "names.h"
#include "parse.h"
#include "reshard.h"
#include "slabs.h"

#define WRITER "slurm-ckpt " CK_VERSION

struct reshard {
	struct ck_cmd *cmd;
	const char *to; /* run directory */
	uint32_t world;
	bool drop, dry, json;
	struct ck_source source;
	struct ck_layout wanted;
	size_t *first, *by_rank; /* of wanted: blocks of rank r are by_rank[first[r]] … */
	struct ck_reshard plan;
	size_t ndropped;
	struct ck_cmd_progress progress;
	struct ck_claim claim;
	struct ck_manifest made; /* items and files are its own, the rest the source's */
	double seconds;
};

/* --- what is to be done --- */

static bool keeps_rank_items(const struct reshard *r)
{
	return !r->drop;
}

/* The items of the result, and whether those of single ranks can be kept. */
static int choose_items(struct reshard *r, struct ck_error *err)
{
	const struct ck_item_list *items = &r->source.manifest.items;
	bool same = r->world == r->source.manifest.world_size;
	int rc = 0;

	for (size_t i = 0; i < items->count && !rc; i++) {
		const struct ck_item *item = &items->items[i];

		if (item->kind == CK_PER_RANK && !same && !r->drop)
			return ck_fail(err, CK_EREFUSED,
				       "item '%s' belongs to one rank each, of %" PRIu32
				       " that saved: --per-rank=drop leaves such items out",
				       item->name, r->source.manifest.world_size);
		if (item->kind == CK_PER_RANK && !keeps_rank_items(r))
			r->ndropped++;
		else
			rc = ck_item_list_append(&r->made.items, item, err);
	}
	if (!rc && items->flat && !(r->made.items.flat = strdup(items->flat)))
		rc = ck_fail_nomem(err, strlen(items->flat));
	return rc;
}

static int index_ranks(struct reshard *r, struct ck_error *err)
{
	size_t *next = calloc((size_t)r->world + 1, sizeof(*next));

	r->first = calloc((size_t)r->world + 1, sizeof(*r->first));
	r->by_rank = calloc(r->wanted.nblocks + 1, sizeof(*r->by_rank));
	if (!next || !r->first || !r->by_rank) {
		free(next);
		return ck_fail_nomem(err, (r->world + r->wanted.nblocks) * sizeof(*next));
	}
	for (size_t b = 0; b < r->wanted.nblocks; b++)
		r->first[r->wanted.blocks[b].rank + 1]++;
	for (uint32_t rank = 0; rank < r->world; rank++) {
		r->first[rank + 1] += r->first[rank];
		next[rank] = r->first[rank];
	}
	for (size_t b = 0; b < r->wanted.nblocks; b++)
		r->by_rank[next[r->wanted.blocks[b].rank]++] = b;
	free(next);
	return 0;
}

static int plan(struct reshard *r, struct ck_error *err)
{
	int rc = choose_items(r, err);

	ck_layout_init(&r->wanted, &r->source.manifest.items);
	if (!rc)
		rc = ck_slabs_deal(&r->source.manifest.items, r->world, &r->wanted, err);
	if (!rc)
		rc = index_ranks(r, err);
	if (!rc)
		rc = ck_reshard_plan(&r->source.layout, r->source.manifest.nfiles,
				     r->source.manifest.world_size, &r->wanted, &r->plan, err);
	return rc;
}

/* Bytes of the rank that has most, and of all. Per-rank items aside: they are small. */
static uint64_t sum_bytes(const struct reshard *r, uint64_t *most)
{
	uint64_t total = 0;

	*most = 0;
	for (uint32_t rank = 0; rank < r->world; rank++) {
		uint64_t load = 0;

		for (size_t i = r->first[rank]; i < r->first[rank + 1]; i++)
			load += ck_layout_bytes(&r->wanted, r->by_rank[i]);
		total += load;
		*most = load > *most ? load : *most;
	}
	return total;
}

/* --- one rank's shard --- */

static struct ck_stored stored_of(const struct ck_item *item, const struct ck_box *box)
{
	struct ck_stored block = {.name = item->name,
				  .kind = item->kind,
				  .dtype = item->dtype,
				  .ndim = box->ndim,
				  .box = *box};

	memcpy(block.shape, item->shape, sizeof(block.shape));
	block.bytes = ck_box_volume(box) * ck_dtype_size((int)item->dtype);
	return block;
}

static int fetch_block(struct reshard *r, size_t b, struct ck_stored *out, struct ck_error *err)
{
	size_t item = r->wanted.blocks[b].item;
	struct ck_box box;
	void *data;
	int rc;

	ck_layout_box(&r->wanted, b, &box);
	*out = stored_of(&r->source.manifest.items.items[item], &box);
	data = malloc(out->bytes + 1);
	if (!data)
		return ck_fail_nomem(err, out->bytes);
	out->data = data;
	rc = ck_source_read(&r->source, item, &box, data, err);
	ck_cmd_progress_add(&r->progress, out->bytes);
	return rc;
}

static int fetch_own(struct reshard *r, size_t item, uint32_t rank, struct ck_stored *out,
		     struct ck_error *err)
{
	struct ck_box box = {.ndim = 1};
	uint64_t bytes = 0;
	void *data = NULL;
	int rc = ck_source_read_rank(&r->source, item, rank, &data, &bytes, err);

	box.extent[0] = bytes;
	*out = stored_of(&r->source.manifest.items.items[item], &box);
	out->data = data;
	return rc;
}

/* Everything of one rank, in memory. *count tells what to free, after a failure too. */
static int fetch(struct reshard *r, uint32_t rank, struct ck_stored *blocks, size_t *count,
		 struct ck_error *err)
{
	const struct ck_item_list *items = &r->source.manifest.items;
	int rc = 0;

	for (size_t i = r->first[rank]; i < r->first[rank + 1] && !rc; i++)
		rc = fetch_block(r, r->by_rank[i], &blocks[(*count)++], err);
	for (size_t i = 0; i < items->count && !rc; i++)
		if (items->items[i].kind == CK_PER_RANK && keeps_rank_items(r))
			rc = fetch_own(r, i, rank, &blocks[(*count)++], err);
	return rc;
}

static int take_files(struct ck_manifest *m, struct ck_record *record, struct ck_error *err)
{
	struct ck_file *files =
		reallocarray(m->files, m->nfiles + record->nfiles, sizeof(*m->files));

	if (!files)
		return ck_fail_nomem(err, record->nfiles * sizeof(*files));
	m->files = files;
	memcpy(m->files + m->nfiles, record->files, record->nfiles * sizeof(*m->files));
	m->nfiles += record->nfiles;
	record->nfiles = 0; /* their chunk tables have moved */
	return 0;
}

static int write_rank(struct reshard *r, uint32_t rank, struct ck_error *err)
{
	size_t most = r->first[rank + 1] - r->first[rank] + r->source.manifest.items.count;
	size_t count = 0;
	struct ck_stored *blocks = calloc(most + 1, sizeof(*blocks));
	struct ck_record record = {.files = NULL};
	struct ck_plan shard = {.parts = NULL};
	int rc = blocks ? fetch(r, rank, blocks, &count, err)
			: ck_fail_nomem(err, most * sizeof(*blocks));

	if (!rc)
		rc = ck_shard_plan(rank, r->made.world_size, blocks, count, &shard, err);
	if (!rc)
		rc = ck_save_write(r->cmd->io, r->to, r->made.id, r->made.save_id, rank, &shard,
				   r->made.items.flat, NULL, &record, err);
	if (!rc)
		rc = take_files(&r->made, &record, err);
	ck_record_fini(&record);
	ck_plan_fini(&shard);
	for (size_t i = 0; i < count; i++)
		free((void *)blocks[i].data);
	free(blocks);
	return rc;
}

/* --- all of them --- */

static int describe(struct reshard *r, struct ck_error *err)
{
	struct ck_item_list items = r->made.items;

	r->made = r->source.manifest;
	r->made.items = items;
	r->made.files = NULL;
	r->made.nfiles = 0;
	r->made.world_size = r->world;
	r->made.id.generation = r->claim.generation;
	r->made.created = time(NULL);
	strcpy(r->made.writer, WRITER);
	return ck_random_hex(r->made.save_id, CK_RUN_ID_HEX / 2, err);
}

/* An interrupt must not keep us from it. */
static void clean_up(struct reshard *r)
{
	struct ck_error err = CK_ERROR_INIT;

	if (ck_save_abandon(ck_cmd_io_below(r->cmd->io), r->to, r->made.id, &err))
		ck_cmd_complain(r->cmd, "warning: what was written is left there: %s", err.text);
}

/*
 * What reshards that were killed have left here: saves that the next start would remove. Those that it would commit
 * are left to it, and so is what cannot be removed.
 */
static void sweep(const struct reshard *r)
{
	const struct ck_io *io = ck_cmd_io_below(r->cmd->io);
	uint64_t ours = r->claim.generation;
	struct ck_names names;

	if (ck_owner_list(io, r->to, ours, &names, NULL))
		return;
	for (size_t i = 0; i < names.count; i++) {
		struct ck_names one = {.names = &names.names[i], .count = 1};
		struct ck_manifest m;
		struct ck_step_id id;
		int rc;

		if (!ck_is_saving(names.names[i], &id) || id.generation >= ours)
			continue;
		rc = ck_salvage_look(io, r->to, id, false, &m, NULL);
		if (rc == 0)
			ck_manifest_fini(&m);
		else if (!ck_is_unseen(rc))
			ck_sweep_fenced(io, r->to, &one, ours, NULL);
	}
	ck_names_fini(&names);
}

static int save(struct reshard *r, struct ck_error *err)
{
	char staging[PATH_MAX];
	struct ck_error warning = CK_ERROR_INIT;
	const struct ck_io *io = r->cmd->io, *whole = ck_cmd_io_below(io);
	int rc = describe(r, err);

	if (!rc)
		rc = ck_save_begin(io, r->to, r->made.id, staging, err);
	if (!rc)
		rc = ck_save_announce(io, r->to, &r->made, err);
	for (uint32_t rank = 0; rank < r->world && !rc; rank++)
		rc = write_rank(r, rank, err);
	if (!rc)
		rc = ck_save_commit(whole, r->to, &r->made, &warning, err);
	if (rc) {
		clean_up(r);
	} else {
		ck_save_tidy(whole, r->to, r->made.id, NULL);
		sweep(r);
	}
	if (warning.code)
		ck_cmd_complain(r->cmd, "warning: committed, but %s", warning.text);
	r->claim.ended = true;
	ck_claim_store(whole, r->to, &r->claim, NULL);
	return rc;
}

/* --- telling it --- */

static void print_plan(const struct reshard *r)
{
	char read[16], copied[16], written[16], memory[16];
	uint64_t most, total = sum_bytes(r, &most);

	ck_cmd_line(stdout, "%s, %" PRIu32 " rank%s -> %s, %" PRIu32 " rank%s", r->source.dir,
		    r->source.manifest.world_size, ck_plural(r->source.manifest.world_size), r->to,
		    r->world, ck_plural(r->world));
	ck_cmd_line(stdout,
		    "reads %s to verify and %s to copy, writes %s; %zu moves; peak memory %s",
		    ck_format_bytes(ck_cmd_source_bytes(&r->source), read),
		    ck_format_bytes(total, copied), ck_format_bytes(total, written), r->plan.nmoves,
		    ck_format_bytes(most + (UINT64_C(32) << 20), memory));
	if (r->ndropped)
		ck_cmd_line(stdout, "leaves out %zu per-rank item%s", r->ndropped,
			    ck_plural(r->ndropped));
}

static enum ck_cmd_exit print_json(const struct reshard *r)
{
	struct ck_cmd_json out = {.depth = 0};
	struct ck_error err = CK_ERROR_INIT;
	char path[PATH_MAX] = "", name[CK_NAME_MAX];
	uint64_t most, total = sum_bytes(r, &most);

	ck_cmd_json_open(&out, NULL, '{');
	ck_cmd_json_text(&out, "from", r->source.dir);
	if (!r->dry)
		ck_path_join(path, r->to, ck_name_step(r->made.id, name));
	ck_cmd_json_text(&out, "path", r->dry ? NULL : path);
	ck_cmd_json_number(&out, "from_world_size", r->source.manifest.world_size);
	ck_cmd_json_number(&out, "world_size", r->world);
	ck_cmd_json_number(&out, "bytes_verified", ck_cmd_source_bytes(&r->source));
	ck_cmd_json_number(&out, "bytes_read", total);
	ck_cmd_json_number(&out, "bytes_written", total);
	ck_cmd_json_number(&out, "moves", r->plan.nmoves);
	ck_cmd_json_number(&out, "peak_memory", most + (UINT64_C(32) << 20));
	ck_cmd_json_number(&out, "dropped", r->ndropped);
	ck_cmd_json_flag(&out, "dry_run", r->dry);
	ck_cmd_json_close(&out, '}');
	return ck_cmd_tell(r->cmd, ck_cmd_json_print(&out, stdout, &err), &err);
}

static void print_result(const struct reshard *r)
{
	char name[CK_NAME_MAX], bytes[16], took[16];
	uint64_t total = 0;

	for (size_t f = 0; f < r->made.nfiles; f++)
		total += r->made.files[f].bytes;
	ck_cmd_line(stdout, "%s/%s: %" PRIu32 " rank%s, %zu file%s, %s in %s", r->to,
		    ck_name_step(r->made.id, name), r->world, ck_plural(r->world), r->made.nfiles,
		    ck_plural(r->made.nfiles), ck_format_bytes(total, bytes),
		    ck_format_seconds(r->seconds, took));
}

/* --- the command --- */

static enum ck_cmd_exit work(struct reshard *r)
{
	struct ck_error err = CK_ERROR_INIT;
	double started = ck_cmd_clock();
	enum ck_cmd_exit exit_code;
	uint64_t most;
	int rc;

	ck_cmd_progress_begin(&r->progress, "ckpt reshard", true,
			      ck_cmd_source_bytes(&r->source) + sum_bytes(r, &most));
	exit_code = ck_cmd_source_verify(r->cmd, &r->source, &r->progress);
	if (exit_code == CK_CMD_FINE) {
		rc = ck_cmd_into_claim(r->cmd->io, r->to, &r->source, r->world, &r->claim, &err);
		if (!rc)
			rc = save(r, &err);
		exit_code = ck_cmd_tell(r->cmd, rc, &err);
	}
	ck_cmd_progress_end(&r->progress);
	if (exit_code == CK_CMD_INTERRUPTED)
		ck_cmd_complain(r->cmd, "interrupted: no checkpoint was made in %s", r->to);
	r->seconds = ck_cmd_clock() - started;
	return exit_code;
}

static enum ck_cmd_exit reshard(struct reshard *r, const char *from)
{
	struct ck_error err = CK_ERROR_INIT;
	enum ck_cmd_exit exit_code;
	int rc = ck_cmd_source_open(r->cmd, from, &r->source, &err);

	if (rc)
		return ck_cmd_tell(r->cmd, rc, &err);
	rc = ck_cmd_into_check(r->cmd->io, r->to, &r->source, &err);
	if (!rc)
		rc = plan(r, &err);
	exit_code = ck_cmd_tell(r->cmd, rc, &err);
	if (exit_code == CK_CMD_FINE && r->dry && !r->json)
		print_plan(r);
	if (exit_code == CK_CMD_FINE && !r->dry)
		exit_code = work(r);
	if (exit_code == CK_CMD_FINE && r->json)
		exit_code = print_json(r);
	else if (exit_code == CK_CMD_FINE && !r->dry)
		print_result(r);
	for (size_t f = 0; f < r->made.nfiles; f++)
		free(r->made.files[f].chunk_crc32);
	free(r->made.files);
	ck_item_list_fini(&r->made.items);
	free(r->first);
	free(r->by_rank);
	ck_reshard_fini(&r->plan);
	ck_layout_fini(&r->wanted);
	ck_source_close(&r->source);
	return exit_code;
}

static int parse_option(struct reshard *r, int option)
{
	struct ck_error err = CK_ERROR_INIT;
	uint64_t world;

	switch (option) {
	case 'w':
		if (ck_parse_u64("--world", optarg, 1, CK_WORLD_MAX, &world, &err))
			return ck_cmd_usage(r->cmd, "%s", err.text);
		r->world = (uint32_t)world;
		return CK_CMD_FINE;
	case 'p':
		if (strcmp(optarg, "drop") != 0)
			return ck_cmd_usage(r->cmd, "--per-rank: %s: expected drop", optarg);
		r->drop = true;
		return CK_CMD_FINE;
	case 'n':
		r->dry = true;
		return CK_CMD_FINE;
	case 256:
		r->json = true;
		return CK_CMD_FINE;
	default:
		return CK_CMD_USAGE;
	}
}

static int run_reshard(struct ck_cmd *cmd, int argc, char **argv)
{
	static const struct option longs[] = {
		{"world", required_argument, NULL, 'w'}, {"per-rank", required_argument, NULL, 'p'},
		{"dry-run", no_argument, NULL, 'n'},     {"json", no_argument, NULL, 256},
		{"help", no_argument, NULL, 'h'},        {NULL, 0, NULL, 0},
	};
	struct reshard r = {.cmd = cmd, .source = {.fd = -1}};
	int option, rc = CK_CMD_FINE;

	while (rc == CK_CMD_FINE &&
	       (option = ck_cmd_getopt(cmd, argc, argv, ":hnw:", longs)) != -1) {
		if (option == 'h')
			return ck_cmd_help(&ck_cmd_reshard);
		rc = parse_option(&r, option);
	}
	if (rc != CK_CMD_FINE)
		return rc;
	if (argc - optind != 2)
		return ck_cmd_usage(cmd, "a checkpoint and a run directory are expected");
	if (!r.world)
		return ck_cmd_usage(cmd, "--world: how many ranks?");
	r.to = argv[optind + 1];
	return reshard(&r, argv[optind]);
}

const struct ck_cmd_verb ck_cmd_reshard = {
	.name = "reshard",
	.synopsis = "reshard RUN@STEP DIRECTORY --world N [--per-rank=drop] [-n] [--json]",
	.summary = "write a checkpoint again, as that many ranks would have saved it",
	.help = "A restore needs no reshard: it loads on any number of ranks. The result is\n"
		"a checkpoint of the same run and step, of the next generation of DIRECTORY,\n"
		"which is a run directory of this run, or made. Everything is verified first.\n"
		"A run that has got to another step, or is complete, is refused: a start there\n"
		"would resume from the result.\n"
		"\n"
		"  -w, --world N        how many ranks\n"
		"      --per-rank=drop  leave out what belongs to single ranks; needed when N\n"
		"                       is not the number that saved\n"
		"  -n, --dry-run        say what would be read and written, and how much memory\n"
		"      --json           for programs; the keys stand in ckpt(1)\n"
		"  -h, --help           this text\n"
		"\n"
		"Exit code: 0 done, 1 the checkpoint is bad or the directory is of another run or\n"
		"has got further, 2 usage, 3 something could not be read or written, 130\n"
		"interrupted\n",
	.run = run_reshard,
};
