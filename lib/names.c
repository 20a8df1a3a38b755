#include "names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int ck_step_id_cmp(const struct ck_step_id *a, const struct ck_step_id *b)
{
	if (a->generation != b->generation)
		return a->generation < b->generation ? -1 : 1;
	return (a->step > b->step) - (a->step < b->step);
}

static char *print_id(const char *prefix, struct ck_step_id id, char *out)
{
	snprintf(out, CK_NAME_MAX, "%s%010" PRIu64 ".g%" PRIu64, prefix, id.step, id.generation);
	return out;
}

char *ck_name_step(struct ck_step_id id, char out[static CK_NAME_MAX])
{
	return print_id("step-", id, out);
}

char *ck_name_saving(struct ck_step_id id, char out[static CK_NAME_MAX])
{
	return print_id(".saving-", id, out);
}

char *ck_name_deleting(struct ck_step_id id, char out[static CK_NAME_MAX])
{
	return print_id(".deleting-", id, out);
}

char *ck_name_salvage(struct ck_step_id id, char out[static CK_NAME_MAX])
{
	return print_id(".salvage-", id, out);
}

char *ck_name_pin(struct ck_step_id id, char out[static CK_NAME_MAX])
{
	return print_id(".pin-", id, out);
}

static char *print_number(const char *prefix, uint64_t generation, char *out)
{
	snprintf(out, CK_NAME_MAX, "%s%" PRIu64, prefix, generation);
	return out;
}

char *ck_name_generation(uint64_t generation, char out[static CK_NAME_MAX])
{
	return print_number(".gen-", generation, out);
}

char *ck_name_leaving(uint64_t generation, char out[static CK_NAME_MAX])
{
	return print_number(".leaving-", generation, out);
}

char *ck_name_left(uint64_t generation, char out[static CK_NAME_MAX])
{
	return print_number(".left-", generation, out);
}

char *ck_name_records(uint64_t step, char out[static CK_NAME_MAX])
{
	snprintf(out, CK_NAME_MAX, "records-%010" PRIu64, step);
	return out;
}

char *ck_name_record(uint32_t rank, char out[static CK_NAME_MAX])
{
	snprintf(out, CK_NAME_MAX, "rank-%05" PRIu32 ".json", rank);
	return out;
}

char *ck_name_shard(uint32_t rank, uint32_t part, char out[static CK_NAME_MAX])
{
	snprintf(out, CK_NAME_MAX, "rank-%05" PRIu32 ".%" PRIu32 ".safetensors", rank, part);
	return out;
}

/* Move *text behind `literal` if it begins with it. */
static bool take(const char **text, const char *literal)
{
	size_t len = strlen(literal);

	if (strncmp(*text, literal, len) != 0)
		return false;
	*text += len;
	return true;
}

/* Move *text behind a number up to `max`. How it is written, the caller checks by printing it. */
static bool take_number(const char **text, uint64_t max, uint64_t *value)
{
	const char *p = *text;

	*value = 0;
	for (; *p >= '0' && *p <= '9'; p++) {
		*value = *value * 10 + (uint64_t)(*p - '0');
		if (*value > max)
			return false;
	}
	if (p == *text)
		return false;
	*text = p;
	return true;
}

static bool parse_id(const char *prefix, const char *name, struct ck_step_id *id)
{
	char again[CK_NAME_MAX];
	struct ck_step_id found;
	const char *p = name;

	if (!take(&p, prefix) || !take_number(&p, CK_STEP_MAX, &found.step) || !take(&p, ".g") ||
	    !take_number(&p, CK_STEP_MAX, &found.generation) || found.generation == 0 ||
	    strcmp(print_id(prefix, found, again), name) != 0)
		return false;
	*id = found;
	return true;
}

bool ck_is_step(const char *name, struct ck_step_id *id)
{
	return parse_id("step-", name, id);
}

bool ck_is_saving(const char *name, struct ck_step_id *id)
{
	return parse_id(".saving-", name, id);
}

bool ck_is_deleting(const char *name, struct ck_step_id *id)
{
	return parse_id(".deleting-", name, id);
}

bool ck_is_salvage(const char *name, struct ck_step_id *id)
{
	return parse_id(".salvage-", name, id);
}

bool ck_is_pin(const char *name, struct ck_step_id *id)
{
	return parse_id(".pin-", name, id);
}

static bool parse_number(const char *prefix, const char *name, uint64_t *generation)
{
	char again[CK_NAME_MAX];
	const char *p = name;
	uint64_t found;

	if (!take(&p, prefix) || !take_number(&p, CK_STEP_MAX, &found) || found == 0 ||
	    strcmp(print_number(prefix, found, again), name) != 0)
		return false;
	*generation = found;
	return true;
}

bool ck_is_generation(const char *name, uint64_t *generation)
{
	return parse_number(".gen-", name, generation);
}

bool ck_is_leaving(const char *name, uint64_t *generation)
{
	return parse_number(".leaving-", name, generation);
}

bool ck_is_left(const char *name, uint64_t *generation)
{
	return parse_number(".left-", name, generation);
}

bool ck_is_shard(const char *name, uint32_t *rank, uint32_t *part)
{
	char again[CK_NAME_MAX];
	uint64_t found_rank, found_part;
	const char *p = name;

	if (!take(&p, "rank-") || !take_number(&p, CK_WORLD_MAX - 1, &found_rank) ||
	    !take(&p, ".") || !take_number(&p, CK_PARTS_MAX - 1, &found_part) ||
	    strcmp(ck_name_shard((uint32_t)found_rank, (uint32_t)found_part, again), name) != 0)
		return false;
	*rank = (uint32_t)found_rank;
	*part = (uint32_t)found_part;
	return true;
}

bool ck_is_temporary(const char *name, const char *of)
{
	const char *p = name;

	return take(&p, of) && take(&p, ".tmp-") && strlen(p) == 16 &&
	       strspn(p, "0123456789abcdef") == 16;
}

bool ck_path_join(char out[static PATH_MAX], const char *dir, const char *name)
{
	int bytes = -1;

	if (*dir && *name)
		bytes = snprintf(out, PATH_MAX, "%s/%s", dir, name);
	if (bytes >= 0 && bytes < PATH_MAX)
		return true;
	out[0] = '\0'; /* a path cut short would be somebody else's */
	return false;
}
