/* `ckpt export`: tensors put together again, in the files that Hugging Face's libraries read. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "catalog.h"
#include "cmd_into.h"
#include "cmd_place.h"
#include "cmd_source.h"
#include "dirfile.h"
#include "parse.h"
#include "safetensors.h"
#include "slabs.h"

#define SLAB_BYTES (UINT64_C(4) << 20)
#define DEFAULT_MAX UINT64_C(5000000000)
#define FILES_MAX 99999 /* five digits */

/* A tensor of the result. */
struct tensor {
	size_t item;
	const char *name; /* without the prefix */
	uint64_t bytes;
	size_t file;
};

struct job {
	struct ck_cmd *cmd;
	const char *to; /* directory */
	struct ck_cmd_choice choice;
	const char *prefix;
	uint64_t max_bytes;
	bool json;
	struct ck_source source;
	size_t nwritten;        /* files under their own names */
	struct tensor *tensors; /* by file; in a file as they stand there */
	size_t ntensors;
	size_t nfiles;
	uint64_t bytes; /* of all tensors */
	char *slab;
	struct ck_cmd_progress progress;
};

/* --- which tensors go where --- */

static bool is_chosen(const struct job *x, const struct ck_item *item)
{
	return item->kind != CK_PER_RANK && ck_cmd_chosen(&x->choice, item);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct tensor *)a)->name, ((const struct tensor *)b)->name);
}

static int choose(struct job *x, struct ck_error *err)
{
	const struct ck_item_list *items = &x->source.manifest.items;
	size_t cut = strlen(x->prefix);

	x->tensors = calloc(items->count + 1, sizeof(*x->tensors));
	if (!x->tensors)
		return ck_fail_nomem(err, items->count * sizeof(*x->tensors));
	for (size_t i = 0; i < items->count; i++) {
		const struct ck_item *item = &items->items[i];
		struct tensor *t = &x->tensors[x->ntensors];

		if (!is_chosen(x, item))
			continue;
		*t = (struct tensor){.item = i, .name = item->name};
		if (strncmp(item->name, x->prefix, cut) == 0 && item->name[cut])
			t->name += cut;
		t->bytes = ck_cmd_item_bytes(item);
		x->bytes += t->bytes;
		x->ntensors++;
	}
	if (!x->ntensors)
		return ck_cmd_choice_fail(&x->choice, x->source.dir, "tensor", err);
	qsort(x->tensors, x->ntensors, sizeof(*x->tensors), compare_names);
	for (size_t i = 0; i < x->ntensors; i++)
		if (strcmp(x->tensors[i].name, "__metadata__") == 0)
			return ck_fail(err, CK_EREFUSED,
				       "--strip-prefix %s: a tensor would be named "
				       "'__metadata__', which a header has for itself",
				       x->prefix);
	for (size_t i = 1; i < x->ntensors; i++)
		if (strcmp(x->tensors[i - 1].name, x->tensors[i].name) == 0)
			return ck_fail(err, CK_EREFUSED,
				       "--strip-prefix %s: two tensors would be named '%s'",
				       x->prefix, x->tensors[i].name);
	return 0;
}

/* In the order of names, each file as full as it gets; one that is too large alone has its own. */
static int fill_files(struct job *x, struct ck_error *err)
{
	uint64_t used = 0;

	x->nfiles = 1;
	for (size_t i = 0; i < x->ntensors; i++) {
		struct tensor *t = &x->tensors[i];

		if (used && used + t->bytes > x->max_bytes) {
			x->nfiles++;
			used = 0;
		}
		used += t->bytes;
		t->file = x->nfiles - 1;
	}
	if (x->nfiles > FILES_MAX)
		return ck_fail(err, CK_EREFUSED, "--max-shard-size: %zu files, the limit is %d",
			       x->nfiles, FILES_MAX);
	return 0;
}

static void name_file(const struct job *x, size_t file, char out[static CK_NAME_MAX])
{
	if (x->nfiles == 1)
		snprintf(out, CK_NAME_MAX, "model.safetensors");
	else
		snprintf(out, CK_NAME_MAX, "model-%05zu-of-%05zu.safetensors", file + 1, x->nfiles);
}

/* --- writing one file --- */

struct output {
	const struct ck_io *io;
	int fd;
	char path[PATH_MAX];
	uint64_t at;
};

static int emit(struct output *out, const void *data, size_t bytes, struct ck_error *err)
{
	int rc = ck_io_pwrite_full(out->io, out->fd, out->path, data, bytes, out->at, err);

	out->at += bytes;
	return rc;
}

static int write_tensor(struct job *x, struct output *out, const struct tensor *t,
			struct ck_error *err)
{
	const struct ck_item *item = &x->source.manifest.items.items[t->item];
	size_t element = ck_dtype_size((int)item->dtype);
	struct ck_box whole = {.ndim = item->ndim}, slab;
	struct ck_slabs slabs;
	int rc = 0;

	memcpy(whole.extent, item->shape, sizeof(whole.extent));
	ck_slabs_init(&slabs, &whole, SLAB_BYTES / element);
	while (!rc && ck_slabs_next(&slabs, &slab)) {
		size_t bytes = ck_box_volume(&slab) * element;

		rc = ck_source_read(&x->source, t->item, &slab, x->slab, err);
		if (!rc)
			rc = emit(out, x->slab, bytes, err);
		ck_cmd_progress_add(&x->progress, bytes);
	}
	return rc;
}

static int print_header(const struct job *x, const struct tensor *tensors, size_t count,
			struct ck_buf *out, struct ck_error *err)
{
	struct ck_st_tensor *list = calloc(count + 1, sizeof(*list));
	struct ck_st_meta meta = {(char *)"format", (char *)"pt"};
	struct ck_st_header header = {
		.tensors = list, .ntensors = count, .meta = &meta, .nmeta = 1};
	uint64_t at = 0;
	int rc;

	if (!list)
		return ck_fail_nomem(err, count * sizeof(*list));
	for (size_t i = 0; i < count; i++) {
		const struct ck_item *item = &x->source.manifest.items.items[tensors[i].item];

		list[i].name = (char *)tensors[i].name;
		list[i].dtype = item->dtype;
		list[i].ndim = item->ndim;
		memcpy(list[i].shape, item->shape, sizeof(list[i].shape));
		list[i].begin = at;
		at += tensors[i].bytes;
		list[i].end = at;
	}
	rc = ck_st_print(&header, out, err);
	free(list);
	return rc;
}

static int write_content(struct job *x, struct output *out, const struct tensor *tensors,
			 size_t count, struct ck_error *err)
{
	struct ck_buf header = CK_BUF_INIT;
	int rc = print_header(x, tensors, count, &header, err);

	if (!rc)
		rc = emit(out, header.data, header.len, err);
	ck_buf_fini(&header);
	for (size_t i = 0; i < count && !rc; i++)
		rc = write_tensor(x, out, &tensors[i], err);
	return rc ? rc : ck_io_sync_close(out->io, &out->fd, out->path, err);
}

/* Under another name until it is whole; what an export that was killed has left under it, goes. */
static int create_partial(struct output *out, struct ck_error *err)
{
	int rc = ck_io_create(out->io, out->path, &out->fd, err);

	if (rc != CK_EEXIST)
		return rc;
	if (out->io->ops->unlink(out->io, out->path) < 0)
		return ck_fail_errno(err, errno, "%s: unlink", out->path);
	return ck_io_create(out->io, out->path, &out->fd, err);
}

static int write_file(struct job *x, size_t file, const struct tensor *tensors, size_t count,
		      struct ck_error *err)
{
	struct output out = {.io = x->cmd->io, .fd = -1};
	char name[CK_NAME_MAX], path[PATH_MAX], partial[CK_NAME_MAX + 16];
	struct stat st;
	int rc;

	name_file(x, file, name);
	snprintf(partial, sizeof(partial), "%s.partial", name);
	if (!ck_path_join(path, x->to, name) || !ck_path_join(out.path, x->to, partial))
		return ck_fail(err, CK_EIO, "%s: path too long", x->to);
	if (out.io->ops->lstat(out.io, path, &st) == 0)
		return ck_fail(err, CK_EEXIST, "%s: is there already", path);
	rc = create_partial(&out, err);
	if (rc)
		return rc;
	rc = write_content(x, &out, tensors, count, err);
	ck_io_close(out.io, &out.fd);
	if (!rc)
		rc = ck_io_rename(out.io, out.path, path, err);
	if (rc)
		ck_cmd_io_below(out.io)->ops->unlink(ck_cmd_io_below(out.io), out.path);
	else
		x->nwritten++;
	return rc;
}

/* --- all of them --- */

static int compare_width(const void *a, const void *b, void *arg)
{
	const struct ck_item *items = arg;
	const struct tensor *x = a, *y = b;
	size_t wide_x = ck_dtype_size((int)items[x->item].dtype);
	size_t wide_y = ck_dtype_size((int)items[y->item].dtype);

	if (wide_x != wide_y)
		return wide_x > wide_y ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int write_index(const struct job *x, struct ck_error *err)
{
	struct ck_buf text = CK_BUF_INIT;
	char path[PATH_MAX], name[CK_NAME_MAX];
	int rc;

	ck_buf_addf(&text, "{\n  \"metadata\": {\n    \"total_size\": %" PRIu64 "\n  },\n",
		    x->bytes);
	ck_buf_add_str(&text, "  \"weight_map\": {\n");
	for (size_t i = 0; i < x->ntensors; i++) {
		name_file(x, x->tensors[i].file, name);
		ck_buf_add_str(&text, "    ");
		ck_buf_add_json_string(&text, x->tensors[i].name);
		ck_buf_addf(&text, ": \"%s\"%s\n", name, i + 1 < x->ntensors ? "," : "");
	}
	ck_buf_add_str(&text, "  }\n}\n");
	rc = ck_buf_check(&text, err);
	if (!rc)
		rc = ck_dirfile_path(path, x->to, CK_CMD_INDEX_FILE, err);
	if (!rc)
		rc = ck_io_write_file_new(x->cmd->io, path, text.data, text.len, err);
	ck_buf_fini(&text);
	return rc;
}

/* The index comes last: who finds it, finds everything. */
static int write_all(struct job *x, struct ck_error *err)
{
	size_t begin = 0, end;
	int rc = 0;

	for (size_t f = 0; f < x->nfiles && !rc; f++, begin = end) {
		for (end = begin; end < x->ntensors && x->tensors[end].file == f;)
			end++;
		/* Wide elements first, so that each is aligned. */
		qsort_r(x->tensors + begin, end - begin, sizeof(*x->tensors), compare_width,
			x->source.manifest.items.items);
		rc = write_file(x, f, x->tensors + begin, end - begin, err);
	}
	qsort(x->tensors, x->ntensors, sizeof(*x->tensors), compare_names);
	if (!rc && x->nfiles > 1)
		rc = write_index(x, err);
	return rc ? rc : ck_dirfile_sync(x->cmd->io, x->to, err);
}

/* After a failure: half a model is none. An interrupt must not keep us from it. */
static void take_back(struct job *x)
{
	const struct ck_io *io = ck_cmd_io_below(x->cmd->io);
	char path[PATH_MAX], name[CK_NAME_MAX];

	for (size_t f = 0; f < x->nwritten; f++) {
		name_file(x, f, name);
		if (ck_path_join(path, x->to, name))
			io->ops->unlink(io, path);
	}
	if (x->nfiles > 1 && x->nwritten == x->nfiles &&
	    ck_path_join(path, x->to, CK_CMD_INDEX_FILE))
		io->ops->unlink(io, path);
}

static int write_locked(struct job *x, struct ck_error *err)
{
	struct ck_cmd_place place;
	int rc = ck_cmd_place_take(&place, x->cmd->io, x->to, err);

	if (!rc) {
		rc = write_all(x, err);
		if (rc)
			take_back(x);
	}
	ck_cmd_place_leave(&place, rc != 0);
	return rc;
}

static enum ck_cmd_exit tell(const struct job *x)
{
	struct ck_cmd_json out = {.depth = 0};
	struct ck_error err = CK_ERROR_INIT;
	char bytes[16], name[CK_NAME_MAX];

	if (!x->json) {
		ck_cmd_line(stdout, "%s: %zu tensor%s, %s, in %zu file%s", x->to, x->ntensors,
			    ck_plural(x->ntensors), ck_format_bytes(x->bytes, bytes), x->nfiles,
			    ck_plural(x->nfiles));
		return CK_CMD_FINE;
	}
	ck_cmd_json_open(&out, NULL, '{');
	ck_cmd_json_text(&out, "from", x->source.dir);
	ck_cmd_json_text(&out, "path", x->to);
	ck_cmd_json_number(&out, "tensors", x->ntensors);
	ck_cmd_json_number(&out, "bytes", x->bytes);
	ck_cmd_json_open(&out, "files", '[');
	for (size_t f = 0; f < x->nfiles; f++) {
		name_file(x, f, name);
		ck_cmd_json_text(&out, NULL, name);
	}
	ck_cmd_json_close(&out, ']');
	ck_cmd_json_close(&out, '}');
	return ck_cmd_tell(x->cmd, ck_cmd_json_print(&out, stdout, &err), &err);
}

/* In a checkpoint one more *.safetensors makes it bad; in a run directory nothing of others has a place. */
static int check_place(const struct job *x, struct ck_error *err)
{
	struct ck_step_id id;
	char run[PATH_MAX];
	bool has_step;
	int rc = ck_resolve(x->cmd->io, x->to, run, &has_step, &id, err);

	if (rc)
		return rc == CK_ENOENT ? ck_cmd_place_check(x->cmd->io, x->to, err) : rc;
	return ck_fail(err, CK_EREFUSED, "%s: is a %s: name another directory", x->to,
		       has_step ? "checkpoint" : "run directory");
}

static enum ck_cmd_exit export_tensors(struct job *x, const char *from)
{
	struct ck_error err = CK_ERROR_INIT;
	enum ck_cmd_exit exit_code;
	int rc = ck_cmd_source_open(x->cmd, from, &x->source, &err);

	if (!rc)
		rc = check_place(x, &err);
	if (!rc)
		rc = ck_cmd_place_free(x->cmd->io, x->to, &err);
	if (!rc)
		rc = choose(x, &err);
	if (!rc)
		rc = fill_files(x, &err);
	if (!rc && !(x->slab = malloc(SLAB_BYTES)))
		rc = ck_fail_nomem(&err, SLAB_BYTES);
	if (rc)
		return ck_cmd_tell(x->cmd, rc, &err);
	ck_cmd_progress_begin(&x->progress, "ckpt export", true,
			      ck_cmd_source_bytes(&x->source) + x->bytes);
	exit_code = ck_cmd_source_verify(x->cmd, &x->source, &x->progress);
	if (exit_code == CK_CMD_FINE)
		exit_code = ck_cmd_tell(x->cmd, write_locked(x, &err), &err);
	ck_cmd_progress_end(&x->progress);
	return exit_code == CK_CMD_FINE ? tell(x) : exit_code;
}

/* --- the command line --- */

static int parse_option(struct job *x, int option)
{
	struct ck_error err = CK_ERROR_INIT;

	switch (option) {
	case 'f':
		if (strcmp(optarg, "hf") == 0)
			return CK_CMD_FINE;
		return ck_cmd_usage(x->cmd, "--format: %s: expected hf", optarg);
	case 'i':
		return ck_cmd_choice_add(x->cmd, optarg, &x->choice);
	case 's':
		x->prefix = optarg;
		return CK_CMD_FINE;
	case 'm':
		if (ck_parse_bytes("--max-shard-size", optarg, &x->max_bytes, &err) == 0)
			return CK_CMD_FINE;
		return ck_cmd_usage(x->cmd, "%s", err.text);
	case 256:
		x->json = true;
		return CK_CMD_FINE;
	default:
		return CK_CMD_USAGE;
	}
}

static int run_export(struct ck_cmd *cmd, int argc, char **argv)
{
	static const struct option longs[] = {
		{"format", required_argument, NULL, 'f'},
		{"items", required_argument, NULL, 'i'},
		{"strip-prefix", required_argument, NULL, 's'},
		{"max-shard-size", required_argument, NULL, 'm'},
		{"json", no_argument, NULL, 256},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct job x = {.cmd = cmd, .prefix = "", .max_bytes = DEFAULT_MAX, .source = {.fd = -1}};
	enum ck_cmd_exit exit_code;
	int option, rc = CK_CMD_FINE;

	while (rc == CK_CMD_FINE &&
	       (option = ck_cmd_getopt(cmd, argc, argv, ":hf:i:", longs)) != -1) {
		if (option == 'h')
			return ck_cmd_help(&ck_cmd_export);
		rc = parse_option(&x, option);
	}
	if (rc != CK_CMD_FINE)
		return rc;
	if (argc - optind != 2)
		return ck_cmd_usage(cmd, "a checkpoint and a directory are expected");
	x.to = argv[optind + 1];
	exit_code = export_tensors(&x, argv[optind]);
	free(x.tensors);
	free(x.slab);
	if (x.source.io)
		ck_source_close(&x.source);
	return exit_code;
}

const struct ck_cmd_verb ck_cmd_export = {
	.name = "export",
	.synopsis = "export [--format hf] [OPTION ...] RUN@STEP DIRECTORY",
	.summary = "put tensors together and write them as Hugging Face's libraries read them",
	.help = "Writes model.safetensors, or model-00001-of-0000N.safetensors and\n"
		"model.safetensors.index.json. What belongs to single ranks is left out.\n"
		"The checkpoint is verified first; what fails leaves no file. DIRECTORY has no "
		"model\n"
		"yet; it is neither a run's nor a checkpoint's, nor in one of the latter.\n"
		"\n"
		"  -f, --format hf            the only one\n"
		"  -i, --items GLOB           only these; may be given several times\n"
		"      --strip-prefix PREFIX  take it off the names that begin with it\n"
		"      --max-shard-size SIZE  of a file: 500MB, 5GB (default), 2GiB; a larger\n"
		"                             tensor has a file of its own\n"
		"      --json                 for programs; the keys stand in ckpt(1)\n"
		"  -h, --help                 this text\n"
		"\n"
		"Exit code: 0 done, 1 the checkpoint is bad, or a file is there already, 2 usage,\n"
		"3 something could not be read or written, 130 interrupted\n",
	.run = run_export,
};
