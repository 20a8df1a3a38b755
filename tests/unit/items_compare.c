/* ck_items_compare: are the items of a checkpoint those of the program? */
#include <stdio.h>
#include <string.h>

#include "items.h"
#include "tap.h"

static struct ck_error err;

/* A list of sharded F32 items of shape [n], by name, from "a:4 b:8 r:rank". */
static void build(struct ck_item_list *list, const char *text)
{
	char copy[512], *save = NULL;
	size_t item, block;

	*list = (struct ck_item_list){0};
	snprintf(copy, sizeof(copy), "%s", text);
	for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		char *colon = strchr(word, ':');
		uint64_t n = 0;

		*colon = '\0';
		if (strcmp(colon + 1, "rank") == 0) {
			ck_item_list_add_rank(list, word, &item, NULL);
			continue;
		}
		sscanf(colon + 1, "%lu", &n);
		ck_item_list_add_block(list, word, CK_F32, 1, &n,
				       &(struct ck_box){.ndim = 1, .extent = {n}}, &item, &block,
				       NULL);
	}
}

static int compare(const char *saved, const char *program)
{
	struct ck_item_list a, b;
	int rc;

	build(&a, saved);
	build(&b, program);
	err = (struct ck_error)CK_ERROR_INIT;
	rc = ck_items_compare(&a, &b, &err);
	ck_item_list_fini(&a);
	ck_item_list_fini(&b);
	return rc;
}

int main(void)
{
	is_int(compare("a:4 b:8", "a:4 b:9"), CK_EITEM, "another shape");
	like(err.text, "'b': saved as F32 [8], the program has F32 [9]", "is told with both");
	is_int(compare("a:4 b:8", "a:4"), CK_EITEM, "an item the program does not have");
	like(err.text, "'b': only in the checkpoint", "by name");
	is_int(compare("a:4", "a:4 c:1"), CK_EITEM, "an item the checkpoint does not have");
	like(err.text, "'c': only in the program", "by name");
	is_int(compare("a:4", "a:4 r:rank"), CK_EITEM, "one of each rank that it does not have");
	like(err.text, "'r': only in the program (`ckpt reshard --per-rank=drop` leaves such items",
	     "with what may have left it out, and the remedy");
	is_int(compare("a:4 r:rank", "a:4 r:8"), CK_EITEM, "another kind");
	like(err.text, "saved as per-rank bytes, the program has F32 [8]", "is told");
	is_int(compare("a:1 b:1 c:1 d:1 e:1 f:1 g:1 h:1 i:1 j:1", ""), CK_EITEM, "ten differences");
	like(err.text, "; and 2 more", "eight are listed, the rest is counted");
	is_int(compare("a:4 r:rank", "a:4 r:rank"), 0, "the same");
	is_int(compare("", ""), 0, "nothing on both sides");
	return done_testing();
}
