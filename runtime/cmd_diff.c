/* `ckpt diff`: what differs between two checkpoints, element by element. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_source.h"
#include "parse.h"
#include "slabs.h"
#include "values.h"

#define SLAB_BYTES (UINT64_C(4) << 20)

enum state { EQUAL = 0, DIFFERENT, OTHER_SHAPE, ONLY_A, ONLY_B, STATES };

static const char *const state_names[] = {
	[EQUAL] = "equal",   [DIFFERENT] = "different", [OTHER_SHAPE] = "other-shape",
	[ONLY_A] = "only-a", [ONLY_B] = "only-b",
};

/* What was found out about one item. */
struct verdict {
	enum state state;
	uint64_t elements, count; /* of these, how many differ; of per-rank items: ranks */
	double largest;           /* difference */
	struct ck_box first;      /* where; extents are of no use */
};

struct diff {
	struct ck_cmd *cmd;
	bool json;
	struct ck_cmd_choice choice;
	struct ck_source a, b;
	char *slab_a, *slab_b;
	struct ck_cmd_progress progress;
	struct ck_cmd_json out;
	size_t counts[STATES];
};

/* --- comparing --- */

/* Where in the whole tensor element i of a slab is. */
static void locate(const struct ck_box *slab, uint64_t i, struct ck_box *out)
{
	*out = *slab;
	for (int d = slab->ndim - 1; d >= 0; d--) {
		out->offset[d] += i % slab->extent[d];
		i /= slab->extent[d];
	}
}

static void compare_slab(const struct diff *d, const struct ck_item *item,
			 const struct ck_box *slab, struct verdict *v)
{
	size_t element = ck_dtype_size((int)item->dtype);
	uint64_t volume = ck_box_volume(slab);

	if (memcmp(d->slab_a, d->slab_b, volume * element) == 0)
		return;
	for (uint64_t i = 0; i < volume; i++) {
		const char *x = d->slab_a + i * element, *y = d->slab_b + i * element;
		double distance;

		if (memcmp(x, y, element) == 0)
			continue;
		distance = ck_value_distance(item->dtype, x, y);
		if (v->count++ == 0)
			locate(slab, i, &v->first);
		if (distance > v->largest)
			v->largest = distance;
	}
}

static int compare_tensor(struct diff *d, size_t i, size_t k, struct verdict *v,
			  struct ck_error *err)
{
	const struct ck_item *item = &d->a.manifest.items.items[i];
	size_t element = ck_dtype_size((int)item->dtype);
	struct ck_box whole = {.ndim = item->ndim}, slab;
	struct ck_slabs slabs;
	int rc = 0;

	memcpy(whole.extent, item->shape, sizeof(whole.extent));
	v->elements = ck_box_volume(&whole);
	ck_slabs_init(&slabs, &whole, SLAB_BYTES / element);
	while (!rc && ck_slabs_next(&slabs, &slab)) {
		rc = ck_source_read(&d->a, i, &slab, d->slab_a, err);
		if (!rc)
			rc = ck_source_read(&d->b, k, &slab, d->slab_b, err);
		if (!rc)
			compare_slab(d, item, &slab, v);
		ck_cmd_progress_add(&d->progress, 2 * ck_box_volume(&slab) * element);
	}
	v->state = v->count ? DIFFERENT : EQUAL;
	return rc;
}

static int compare_ranks(struct diff *d, size_t i, size_t k, struct verdict *v,
			 struct ck_error *err)
{
	int rc = 0;

	v->elements = d->a.manifest.world_size;
	if (d->a.manifest.world_size != d->b.manifest.world_size) {
		v->state = OTHER_SHAPE;
		return 0;
	}
	for (uint32_t r = 0; r < d->a.manifest.world_size && !rc; r++) {
		void *x = NULL, *y = NULL;
		uint64_t nx = 0, ny = 0;

		rc = ck_source_read_rank(&d->a, i, r, &x, &nx, err);
		if (!rc)
			rc = ck_source_read_rank(&d->b, k, r, &y, &ny, err);
		if (!rc)
			v->count += nx != ny || memcmp(x, y, nx) != 0;
		free(x);
		free(y);
	}
	v->state = v->count ? DIFFERENT : EQUAL;
	return rc;
}

static int compare(struct diff *d, size_t i, size_t k, struct verdict *v, struct ck_error *err)
{
	const struct ck_item *a = &d->a.manifest.items.items[i];
	const struct ck_item *b = &d->b.manifest.items.items[k];

	if (ck_item_same(a, "", b, "", CK_EITEM, NULL)) {
		v->state = OTHER_SHAPE;
		return 0;
	}
	return a->kind == CK_SHARDED ? compare_tensor(d, i, k, v, err)
				     : compare_ranks(d, i, k, v, err);
}

/* --- telling it --- */

static void describe(struct ck_buf *out, const struct ck_source *source, const struct ck_item *item)
{
	if (item->kind == CK_PER_RANK) {
		ck_buf_addf(out, "bytes of %" PRIu32 " rank%s", source->manifest.world_size,
			    ck_plural(source->manifest.world_size));
		return;
	}
	ck_buf_addf(out, "%s ", ck_dtype_name((int)item->dtype));
	ck_shape_print(out, item->ndim, item->shape);
}

static void print_different(struct ck_buf *out, const struct ck_item *item, const struct verdict *v)
{
	if (item->kind == CK_PER_RANK) {
		ck_buf_addf(out, "of %" PRIu64 " of %" PRIu64 " rank%s", v->count, v->elements,
			    ck_plural(v->elements));
		return;
	}
	ck_buf_addf(out, "%" PRIu64 " of %" PRIu64 " elements, largest difference %.9g, first at ",
		    v->count, v->elements, v->largest);
	ck_shape_print(out, v->first.ndim, v->first.offset);
}

static void print_verdict(const struct diff *d, const struct ck_item *a, const struct ck_item *b,
			  const struct verdict *v)
{
	struct ck_buf text = CK_BUF_INIT;

	if (v->state == DIFFERENT) {
		print_different(&text, a, v);
	} else if (v->state == OTHER_SHAPE) {
		describe(&text, &d->a, a);
		ck_buf_add_str(&text, " and ");
		describe(&text, &d->b, b);
	} else {
		describe(&text, a ? &d->a : &d->b, a ? a : b);
	}
	ck_cmd_line(stdout, "%s: %s: %s", a ? a->name : b->name, state_names[v->state],
		    text.data ? text.data : "");
	ck_buf_fini(&text);
}

static void json_verdict(struct diff *d, const char *name, const struct verdict *v)
{
	char largest[32];

	ck_cmd_json_open(&d->out, NULL, '{');
	ck_cmd_json_text(&d->out, "name", name);
	ck_cmd_json_text(&d->out, "state", state_names[v->state]);
	ck_cmd_json_number(&d->out, "elements", v->elements);
	ck_cmd_json_number(&d->out, "different", v->count);
	/* As text: infinity is no number of JSON. */
	snprintf(largest, sizeof(largest), "%.17g", v->largest);
	ck_cmd_json_text(&d->out, "largest", largest);
	ck_cmd_json_close(&d->out, '}');
}

static void tell(struct diff *d, const struct ck_item *a, const struct ck_item *b,
		 const struct verdict *v)
{
	d->counts[v->state]++;
	if (!d->json && v->state == EQUAL)
		return;
	ck_cmd_progress_clear(&d->progress);
	if (d->json)
		json_verdict(d, a ? a->name : b->name, v);
	else
		print_verdict(d, a, b, v);
}

/* --- both tables --- */

/* A pattern that fits nothing is a slip; "all equal" would be the wrong answer to it. */
static int check_choice(const struct diff *d, struct ck_error *err)
{
	const struct ck_item_list *lists[] = {&d->a.manifest.items, &d->b.manifest.items};

	if (!d->choice.count)
		return 0;
	for (size_t l = 0; l < 2; l++)
		for (size_t i = 0; i < lists[l]->count; i++)
			if (ck_cmd_chosen(&d->choice, &lists[l]->items[i]))
				return 0;
	return ck_cmd_choice_fail(&d->choice, d->a.dir, "item", err);
}

static int compare_all(struct diff *d, struct ck_error *err)
{
	const struct ck_item_list *as = &d->a.manifest.items, *bs = &d->b.manifest.items;
	size_t i = 0, k = 0;
	int rc = 0;

	while (!rc && (i < as->count || k < bs->count)) {
		const struct ck_item *a = i < as->count ? &as->items[i] : NULL;
		const struct ck_item *b = k < bs->count ? &bs->items[k] : NULL;
		int order = !a ? 1 : !b ? -1 : strcmp(a->name, b->name);
		struct verdict v = {.state = order < 0 ? ONLY_A : ONLY_B};

		a = order > 0 ? NULL : a;
		b = order < 0 ? NULL : b;
		if (ck_cmd_chosen(&d->choice, a ? a : b)) {
			if (a && b)
				rc = compare(d, i, k, &v, err);
			if (!rc)
				tell(d, a, b, &v);
		}
		i += a != NULL;
		k += b != NULL;
	}
	return rc;
}

static enum ck_cmd_exit finish(struct diff *d)
{
	struct ck_error err = CK_ERROR_INIT;
	size_t differ = 0;

	for (int s = DIFFERENT; s < STATES; s++)
		differ += d->counts[s];
	if (d->json) {
		ck_cmd_json_close(&d->out, ']');
		ck_cmd_json_number(&d->out, "equal", d->counts[EQUAL]);
		ck_cmd_json_number(&d->out, "different", differ);
		ck_cmd_json_close(&d->out, '}');
		if (ck_cmd_json_print(&d->out, stdout, &err))
			return ck_cmd_tell(d->cmd, CK_ENOMEM, &err);
	} else {
		ck_cmd_line(stdout, "%zu item%s equal, %zu not", d->counts[EQUAL],
			    ck_plural(d->counts[EQUAL]), differ);
	}
	return differ ? CK_CMD_BAD : CK_CMD_FINE;
}

static int open_both(struct diff *d, char **names, struct ck_error *err)
{
	int rc = ck_cmd_source_open(d->cmd, names[0], &d->a, err);

	if (!rc)
		rc = ck_cmd_source_open(d->cmd, names[1], &d->b, err);
	if (!rc)
		rc = check_choice(d, err);
	d->slab_a = malloc(SLAB_BYTES);
	d->slab_b = malloc(SLAB_BYTES);
	if (!rc && (!d->slab_a || !d->slab_b))
		rc = ck_fail_nomem(err, SLAB_BYTES);
	return rc;
}

/* Damaged bytes would look like a difference that the program has made. */
static enum ck_cmd_exit verify_both(struct diff *d)
{
	enum ck_cmd_exit exit_code = ck_cmd_source_verify(d->cmd, &d->a, &d->progress);

	if (exit_code == CK_CMD_INTERRUPTED)
		return exit_code;
	return ck_cmd_worse(exit_code, ck_cmd_source_verify(d->cmd, &d->b, &d->progress));
}

static enum ck_cmd_exit compare_and_tell(struct diff *d)
{
	struct ck_error err = CK_ERROR_INIT;
	int rc;

	ck_cmd_json_open(&d->out, NULL, '{');
	ck_cmd_json_text(&d->out, "a", d->a.dir);
	ck_cmd_json_text(&d->out, "b", d->b.dir);
	ck_cmd_json_open(&d->out, "items", '[');
	rc = compare_all(d, &err);
	ck_cmd_progress_clear(&d->progress);
	return rc ? ck_cmd_tell(d->cmd, rc, &err) : finish(d);
}

static enum ck_cmd_exit diff(struct diff *d, char **names)
{
	struct ck_error err = CK_ERROR_INIT;
	enum ck_cmd_exit exit_code;
	int rc = open_both(d, names, &err);

	if (rc)
		return ck_cmd_tell(d->cmd, rc, &err);
	/* All is read twice: once to verify it. */
	ck_cmd_progress_begin(&d->progress, "ckpt diff", true,
			      2 * (ck_cmd_source_bytes(&d->a) + ck_cmd_source_bytes(&d->b)));
	exit_code = verify_both(d);
	if (exit_code == CK_CMD_FINE)
		exit_code = compare_and_tell(d);
	ck_cmd_progress_end(&d->progress);
	return exit_code;
}

static int run_diff(struct ck_cmd *cmd, int argc, char **argv)
{
	static const struct option longs[] = {
		{"items", required_argument, NULL, 'i'},
		{"json", no_argument, NULL, 256},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct diff d = {.cmd = cmd, .a = {.fd = -1}, .b = {.fd = -1}};
	enum ck_cmd_exit exit_code;
	int option;

	while ((option = ck_cmd_getopt(cmd, argc, argv, ":hi:", longs)) != -1) {
		if (option == 'h')
			return ck_cmd_help(&ck_cmd_diff);
		if (option == CK_CMD_OPT_BAD)
			return CK_CMD_USAGE;
		if (option != 'i')
			d.json = true;
		else if (ck_cmd_choice_add(cmd, optarg, &d.choice))
			return CK_CMD_USAGE;
	}
	if (argc - optind != 2)
		return ck_cmd_usage(cmd, "two checkpoints are expected");
	exit_code = diff(&d, argv + optind);
	free(d.slab_a);
	free(d.slab_b);
	if (d.a.io)
		ck_source_close(&d.a);
	if (d.b.io)
		ck_source_close(&d.b);
	ck_buf_fini(&d.out.text);
	return exit_code;
}

const struct ck_cmd_verb ck_cmd_diff = {
	.name = "diff",
	.synopsis = "diff [-i GLOB] [--json] RUN@STEP RUN@STEP",
	.summary = "compare the items of two checkpoints, of whatever numbers of ranks",
	.help = "Says of each item that is not equal, bit for bit, how many elements differ, by\n"
		"how much at most, and where the first is. Both are verified first; where one is\n"
		"bad, that is told, and nothing is compared.\n"
		"\n"
		"  -i, --items GLOB  only these items; may be given several times\n"
		"      --json        for programs; the keys stand in ckpt(1)\n"
		"  -h, --help        this text\n"
		"\n"
		"Exit code: 0 all are equal, 1 some are not, or a checkpoint is bad, or there is\n"
		"no such checkpoint or item, 2 usage, 3 something could not be read,\n"
		"130 interrupted\n",
	.run = run_diff,
};
