#include <stdlib.h>
#include <string.h>

#include "verify_impl.h"

/* Every seen block, by item, then file. */
struct table {
	struct ck_seen *seen;
	size_t count;
};

static int compare_seen(const void *a, const void *b)
{
	const struct ck_seen *x = a, *y = b;

	if (x->item != y->item)
		return x->item < y->item ? -1 : 1;
	return (x->file > y->file) - (x->file < y->file);
}

static int collect(const struct ck_verification *v, struct table *table, struct ck_error *err)
{
	size_t bytes = 0, at = 0;

	for (size_t i = 0; i < v->manifest->nfiles; i++)
		bytes += v->results[i].seen.len;
	table->count = bytes / sizeof(struct ck_seen);
	table->seen = malloc(bytes + 1);
	if (!table->seen)
		return ck_fail_nomem(err, bytes);
	for (size_t i = 0; i < v->manifest->nfiles; i++) {
		const struct ck_buf *seen = &v->results[i].seen;

		if (seen->len)
			memcpy((char *)table->seen + at, seen->data, seen->len);
		at += seen->len;
	}
	qsort(table->seen, table->count, sizeof(*table->seen), compare_seen);
	return 0;
}

/* A stored box and the file that it stands in. */
struct placed {
	struct ck_box box;
	const char *path;
};

static void place(const struct ck_verification *v, const struct ck_item *item,
		  const struct ck_seen *seen, struct placed *out)
{
	const struct ck_buf *coords = &v->results[seen->file].coords;
	size_t bytes = (size_t)item->ndim * sizeof(uint64_t);
	const char *at = coords->data + seen->at * sizeof(uint64_t);

	*out = (struct placed){.path = v->manifest->files[seen->file].path};
	out->box.ndim = item->ndim;
	if (bytes) {
		memcpy(out->box.offset, at, bytes);
		memcpy(out->box.extent, at + bytes, bytes);
	}
}

static int compare_placed(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;
	int order = ck_box_cmp(&x->box, &y->box);

	return order ? order : strcmp(x->path, y->path);
}

/* Blocks sorted by box -> pointers to the distinct ones; says which stand twice. */
static size_t distinct(struct ck_verification *v, const struct ck_item *item,
		       const struct placed *blocks, size_t count, const struct ck_box **boxes)
{
	struct ck_buf shown = CK_BUF_INIT;
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		if (i == 0 || !ck_box_equal(&blocks[i - 1].box, &blocks[i].box)) {
			boxes[n++] = &blocks[i].box;
			continue;
		}
		ck_buf_clear(&shown);
		ck_box_print(&shown, &blocks[i].box);
		ck_finding_add(&v->findings, CK_BAD, CK_EITEM,
			       "item '%s': block %s is stored twice, in %s and in %s", item->name,
			       shown.data ? shown.data : "", blocks[i - 1].path, blocks[i].path);
	}
	ck_buf_fini(&shown);
	return n;
}

static int check_tiling(struct ck_verification *v, const struct ck_item *item,
			const struct ck_seen *seen, size_t count, struct ck_error *err)
{
	struct placed *blocks = calloc(count + 1, sizeof(*blocks));
	const struct ck_box **boxes = calloc(count + 1, sizeof(*boxes));
	struct ck_error why = CK_ERROR_INIT;
	size_t n;
	int rc = 0;

	if (!blocks || !boxes) {
		rc = ck_fail_nomem(err, (count + 1) * sizeof(*blocks));
		goto out;
	}
	for (size_t i = 0; i < count; i++)
		place(v, item, &seen[i], &blocks[i]);
	qsort(blocks, count, sizeof(*blocks), compare_placed);
	n = distinct(v, item, blocks, count, boxes);
	rc = ck_tiling_check(item->ndim, item->shape, boxes, n, &why);
	if (rc == CK_ENOMEM)
		ck_fail(err, rc, "%s", why.text);
	else if (rc)
		ck_finding_add(&v->findings, CK_BAD, rc, "item '%s': %s", item->name, why.text);
	rc = rc == CK_ENOMEM ? rc : 0;
out:
	free(boxes);
	free(blocks);
	return rc;
}

/* Files come by rank, so the ranks must come as 0, 1, 2 ... */
static void check_per_rank(struct ck_verification *v, const struct ck_item *item,
			   const struct ck_seen *seen, size_t count)
{
	const struct ck_file *files = v->manifest->files;
	uint32_t next = 0;

	for (size_t i = 0; i < count; i++) {
		const struct ck_file *file = &files[seen[i].file];

		if (i > 0 && files[seen[i - 1].file].rank == file->rank) {
			ck_finding_add(&v->findings, CK_BAD, CK_EITEM,
				       "item '%s' of rank %u is stored twice, in %s and in %s",
				       item->name, file->rank, files[seen[i - 1].file].path,
				       file->path);
			continue;
		}
		for (; next < file->rank; next++)
			ck_finding_add(&v->findings, CK_BAD, CK_EITEM,
				       "item '%s' of rank %u is stored in no file", item->name,
				       next);
		next = file->rank + 1;
	}
	for (; next < v->manifest->world_size; next++)
		ck_finding_add(&v->findings, CK_BAD, CK_EITEM,
			       "item '%s' of rank %u is stored in no file", item->name, next);
}

int ck_verify_items(struct ck_verification *v, struct ck_error *err)
{
	const struct ck_item_list *items = &v->manifest->items;
	struct table table;
	size_t at = 0;
	int rc;

	rc = collect(v, &table, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < items->count && !rc; i++) {
		size_t first = at;

		while (at < table.count && table.seen[at].item == i)
			at++;
		if (items->items[i].kind == CK_PER_RANK)
			check_per_rank(v, &items->items[i], table.seen + first, at - first);
		else
			rc = check_tiling(v, &items->items[i], table.seen + first, at - first, err);
	}
	free(table.seen);
	return rc;
}
