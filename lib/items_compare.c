#include <string.h>

#include "items.h"

#define LISTED 8 /* differences named; the rest is counted */

static void describe(struct ck_buf *out, const struct ck_item *item)
{
	if (item->kind == CK_PER_RANK) {
		ck_buf_add_str(out, "per-rank bytes");
		return;
	}
	ck_buf_addf(out, "%s ", ck_dtype_name((int)item->dtype));
	ck_shape_print(out, item->ndim, item->shape);
}

static bool same(const struct ck_item *a, const struct ck_item *b)
{
	if (a->kind != b->kind)
		return false;
	return a->kind == CK_PER_RANK ||
	       (a->dtype == b->dtype && a->ndim == b->ndim &&
		memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof(a->shape[0])) == 0);
}

/* Append one difference; either side may be missing. */
static void differ(struct ck_buf *out, size_t nth, const struct ck_item *saved,
		   const struct ck_item *program)
{
	if (nth >= LISTED)
		return;
	ck_buf_addf(out, "%s'", nth ? "; " : "");
	ck_buf_add_escaped(out, saved ? saved->name : program->name);
	ck_buf_add_str(out, "': ");
	if (saved && program) {
		ck_buf_add_str(out, "saved as ");
		describe(out, saved);
		ck_buf_add_str(out, ", the program has ");
		describe(out, program);
	} else {
		ck_buf_add_str(out, saved ? "only in the checkpoint" : "only in the program");
		if (program && program->kind == CK_PER_RANK)
			ck_buf_add_str(out, " (" CK_LEFT_OUT ")");
	}
}

int ck_items_compare(const struct ck_item_list *saved, const struct ck_item_list *program,
		     struct ck_error *err)
{
	size_t s = 0, p = 0, count = 0;
	struct ck_buf text = CK_BUF_INIT;
	int rc = 0;

	while (s < saved->count || p < program->count) {
		const struct ck_item *a = s < saved->count ? &saved->items[s] : NULL;
		const struct ck_item *b = p < program->count ? &program->items[p] : NULL;
		int order = !a ? 1 : !b ? -1 : strcmp(a->name, b->name);

		s += order <= 0;
		p += order >= 0;
		if (order < 0)
			differ(&text, count++, a, NULL);
		else if (order > 0)
			differ(&text, count++, NULL, b);
		else if (!same(a, b))
			differ(&text, count++, a, b);
	}
	if (count > LISTED)
		ck_buf_addf(&text, "; and %zu more", count - LISTED);
	if (count)
		rc = ck_buf_check(&text, err) ?: ck_fail(err, CK_EITEM, "%s", text.data);
	ck_buf_fini(&text);
	return rc;
}
