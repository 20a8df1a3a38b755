/* Generations and their claims: claim.json of run.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dirfile.h"
#include "fields.h"
#include "json.h"
#include "leave.h"
#include "names.h"
#include "run.h"

#define CLAIM_FILE_MAX (UINT64_C(16) << 20)
#define REFUSED_TEXT_MAX 8192

static const char *const resume_words[] = {"", "fresh", "resumed", "fell-back", "complete", "held"};

void ck_claim_fini(struct ck_claim *claim)
{
	for (size_t i = 0; i < claim->nrefused; i++)
		free(claim->refused[i]);
	free(claim->refused);
	claim->refused = NULL;
	claim->nrefused = 0;
}

/* --- text --- */

static int parse_resume(const char *where, const cJSON *tree, struct ck_claim *claim,
			struct ck_error *err)
{
	const char *name;
	int rc;

	rc = ck_field_text(where, tree, "resume", claim->resume, sizeof(claim->resume), err);
	if (rc)
		return rc;
	for (size_t i = 0; strcmp(claim->resume, resume_words[i]) != 0;)
		if (++i == sizeof(resume_words) / sizeof(resume_words[0]))
			return ck_fail(err, CK_EFORMAT,
				       "%s: resume: '%s' is neither \"\" nor fresh, resumed, "
				       "fell-back, complete or held",
				       where, claim->resume);
	if (!ck_json_has(tree, "resumed"))
		return 0;
	rc = ck_json_string(where, tree, "resumed", CK_NAME_MAX, &name, err);
	if (!rc && !ck_is_step(name, &claim->resumed))
		rc = ck_fail(err, CK_EFORMAT, "%s: resumed: no name of a checkpoint", where);
	return rc;
}

static int parse_refused(const char *where, const cJSON *tree, struct ck_claim *claim,
			 struct ck_error *err)
{
	const cJSON *array;
	size_t n;
	int rc;

	rc = ck_json_array(where, tree, "refused", &array, err);
	if (rc)
		return rc;
	n = (size_t)cJSON_GetArraySize(array);
	claim->refused = calloc(n ? n : 1, sizeof(char *));
	if (!claim->refused)
		return ck_fail_nomem(err, n * sizeof(char *));
	for (const cJSON *text = array->child; text; text = text->next) {
		if (!cJSON_IsString(text) || strlen(text->valuestring) > REFUSED_TEXT_MAX)
			return ck_fail(err, CK_EFORMAT,
				       "%s: refused[%zu]: no string of at most %d bytes", where,
				       claim->nrefused, REFUSED_TEXT_MAX);
		rc = ck_text_check(where, "refused", text->valuestring, err);
		if (rc)
			return rc;
		claim->refused[claim->nrefused] = strdup(text->valuestring);
		if (!claim->refused[claim->nrefused++])
			return ck_fail_nomem(err, strlen(text->valuestring));
	}
	return 0;
}

/* Earlier writers had neither. */
static int parse_process(const char *where, const cJSON *tree, struct ck_claim *claim,
			 struct ck_error *err)
{
	int rc;

	if (!ck_json_has(tree, "boot_id"))
		return 0;
	rc = ck_field_text(where, tree, "boot_id", claim->boot_id, sizeof(claim->boot_id), err);
	if (!rc)
		rc = ck_json_u64(where, tree, "start_ticks", CK_JSON_INT_MAX, &claim->start_ticks,
				 err);
	return rc;
}

int ck_claim_parse(const char *where, const char *text, size_t bytes, struct ck_claim *out,
		   struct ck_error *err)
{
	struct ck_claim claim = {.refused = NULL};
	cJSON *tree;
	int rc;

	rc = ck_field_parse(where, text, bytes, &tree, err);
	if (!rc)
		rc = ck_json_u64(where, tree, "generation", CK_STEP_MAX, &claim.generation, err);
	if (!rc)
		rc = ck_field_job(where, tree, &claim.job, err);
	if (!rc)
		rc = ck_field_time_or_null(where, tree, "submit_time", &claim.submit_time, err);
	if (!rc)
		rc = ck_field_text(where, tree, "host", claim.host, sizeof(claim.host), err);
	if (!rc)
		rc = ck_json_u64(where, tree, "pid", CK_JSON_INT_MAX, &claim.pid, err);
	if (!rc)
		rc = parse_process(where, tree, &claim, err);
	if (!rc)
		rc = ck_field_time(where, tree, "time", &claim.time, err);
	if (!rc)
		rc = ck_field_hex(where, tree, "nonce", CK_RUN_ID_HEX, claim.nonce, err);
	if (!rc)
		rc = ck_field_u32(where, tree, "world_size", CK_WORLD_MAX, &claim.world_size, err);
	if (!rc)
		rc = parse_resume(where, tree, &claim, err);
	if (!rc)
		rc = parse_refused(where, tree, &claim, err);
	if (!rc && ck_json_has(tree, "ended"))
		rc = ck_json_bool(where, tree, "ended", &claim.ended, err);
	cJSON_Delete(tree);
	if (rc)
		ck_claim_fini(&claim);
	else
		*out = claim;
	return rc;
}

/* The reasons quote paths and names from outside, so they are escaped. */
static void print_refused(const struct ck_claim *claim, struct ck_buf *out)
{
	struct ck_buf text = CK_BUF_INIT;

	ck_buf_add_str(out, "\t\"refused\": [");
	for (size_t i = 0; i < claim->nrefused; i++) {
		ck_buf_clear(&text);
		ck_buf_add_escaped(&text, claim->refused[i]);
		ck_buf_add_str(out, i ? ",\n\t\t" : "\n\t\t");
		ck_buf_add_json_string(out, text.data ? text.data : "");
	}
	ck_buf_add_str(out, claim->nrefused ? "\n\t]" : "]");
	out->failed = out->failed || text.failed;
	ck_buf_fini(&text);
}

static void print(const struct ck_claim *claim, struct ck_buf *out)
{
	char name[CK_NAME_MAX];

	ck_buf_addf(out, "{\n\t\"schema_version\": %d,\n\t\"generation\": %" PRIu64 ",\n\t",
		    CK_SCHEMA_VERSION, claim->generation);
	ck_field_print_job(out, &claim->job, true);
	ck_buf_add_str(out, ",\n\t");
	ck_field_print_time_or_null(out, "submit_time", claim->submit_time);
	ck_buf_add_str(out, ",\n\t");
	ck_field_print_text(out, "host", claim->host);
	ck_buf_addf(out, ",\n\t\"pid\": %" PRIu64 ",\n\t", claim->pid);
	if (*claim->boot_id) {
		ck_field_print_text(out, "boot_id", claim->boot_id);
		ck_buf_addf(out, ",\n\t\"start_ticks\": %" PRIu64 ",\n\t", claim->start_ticks);
	}
	ck_field_print_time(out, "time", claim->time);
	ck_buf_addf(out, ",\n\t\"nonce\": \"%s\",\n\t\"world_size\": %u,\n\t", claim->nonce,
		    claim->world_size);
	ck_field_print_text(out, "resume", claim->resume);
	if (claim->resumed.generation)
		ck_buf_addf(out, ",\n\t\"resumed\": \"%s\",\n", ck_name_step(claim->resumed, name));
	else
		ck_buf_add_str(out, ",\n\t\"resumed\": null,\n");
	print_refused(claim, out);
	ck_buf_addf(out, ",\n\t\"ended\": %s\n}\n", claim->ended ? "true" : "false");
}

/* The text is read back, so that nothing is written which a reader would refuse. */
int ck_claim_print(const struct ck_claim *claim, struct ck_buf *out, struct ck_error *err)
{
	struct ck_claim again = {.refused = NULL};
	struct ck_buf text = CK_BUF_INIT;
	int rc;

	print(claim, &text);
	rc = ck_buf_check(&text, err);
	if (!rc)
		rc = ck_claim_parse(CK_CLAIM_FILE, text.data, text.len, &again, err);
	ck_claim_fini(&again);
	return ck_field_finish(out, &text, rc, err);
}

/* --- files --- */

static int compare_falling(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x < y) - (x > y);
}

int ck_generations_load(const struct ck_io *io, const char *dir, uint64_t **out, size_t *count,
			struct ck_error *err)
{
	struct ck_names names;
	uint64_t *list;
	size_t n = 0;
	int rc;

	rc = ck_dirfile_list(io, dir, &names, err);
	if (rc)
		return rc;
	list = calloc(names.count + 1, sizeof(*list));
	for (size_t i = 0; list && i < names.count; i++)
		if (ck_is_generation(names.names[i], &list[n]))
			n++;
	ck_names_fini(&names);
	if (!list)
		return ck_fail_nomem(err, (names.count + 1) * sizeof(*list));
	qsort(list, n, sizeof(*list), compare_falling);
	*out = list;
	*count = n;
	return 0;
}

int ck_claim_store(const struct ck_io *io, const char *dir, const struct ck_claim *claim,
		   struct ck_error *err)
{
	struct ck_error why = CK_ERROR_INIT;
	struct ck_buf text = CK_BUF_INIT;
	int rc;

	rc = ck_claim_print(claim, &text, &why);
	if (!rc)
		rc = ck_dirfile_store_of(io, dir, claim->generation, CK_CLAIM_FILE, &text, &why);
	ck_buf_fini(&text);
	/* A newer owner sweeps away what was about to be renamed. */
	if (rc == CK_ENOENT && ck_owner_check(io, dir, claim->generation, err) == CK_EFENCED)
		return CK_EFENCED;
	return rc ? ck_fail(err, rc, "%s", why.text) : 0;
}

/* The generation that a name of a run directory bears, 0 if none. */
static uint64_t generation_in(const char *name)
{
	struct ck_step_id id;
	uint64_t generation;

	if (ck_is_generation(name, &generation) || ck_is_leaving(name, &generation) ||
	    ck_is_left(name, &generation))
		return generation;
	if (ck_is_step(name, &id) || ck_is_saving(name, &id) || ck_is_salvage(name, &id) ||
	    ck_is_deleting(name, &id) || ck_is_pin(name, &id))
		return id.generation;
	return 0;
}

/*
 * The number above all that names bear. A .gen-* may have been removed by hand while its program runs: with
 * its number given out again that program would not be fenced, and two would write the same names.
 */
static int next_generation(const struct ck_io *io, const char *dir, uint64_t *out,
			   struct ck_error *err)
{
	struct ck_names names;
	uint64_t next = 1;
	int rc;

	rc = ck_dirfile_list(io, dir, &names, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < names.count; i++) {
		uint64_t generation = generation_in(names.names[i]);

		if (generation >= next)
			next = generation + 1;
	}
	ck_names_fini(&names);
	*out = next;
	return 0;
}

static int make_generation(const struct ck_io *io, const char *dir, uint64_t generation,
			   struct ck_error *err)
{
	char path[PATH_MAX];
	int rc = ck_dirfile_generation(path, dir, generation, err);

	return rc ? rc : ck_io_mkdir(io, path, err);
}

/* Each try that fails is a claim of somebody else: more than can start at once. */
#define CLAIM_TRIES 1000

/* The first number from `from` on that nobody has: mkdir decides between claimants. */
static int make_first_free(const struct ck_io *io, const char *dir, uint64_t from, uint64_t *out,
			   struct ck_error *err)
{
	int rc;

	for (unsigned tries = 0; tries < CLAIM_TRIES; tries++) {
		rc = make_generation(io, dir, from + tries, err);
		if (!rc)
			*out = from + tries;
		if (rc != CK_EEXIST)
			return rc;
	}
	return ck_fail(err, CK_EIO, "%s: no generation from %" PRIu64 " on can be claimed", dir,
		       from);
}

/* A number without a claim would fence whoever still holds the run, for nothing. */
static void give_back(const struct ck_io *io, const char *dir, uint64_t generation)
{
	char path[PATH_MAX];

	ck_leave_close(io, dir, generation);
	if (ck_dirfile_generation(path, dir, generation, NULL) == 0)
		ck_io_remove_tree(io, path, NULL);
}

/* Write the claim into the generation that we have made, and close the way out of the ones before it. */
static int sign(const struct ck_io *io, const char *dir, uint64_t generation,
		struct ck_claim *claim, struct ck_error *err)
{
	struct ck_claim taken = *claim;
	int rc = ck_random_hex(taken.nonce, CK_RUN_ID_HEX / 2, err);

	taken.generation = generation;
	if (!rc)
		rc = ck_leave_open(io, dir, generation, err);
	if (!rc)
		rc = ck_claim_store(io, dir, &taken, err);
	if (!rc)
		rc = ck_leave_seize(io, dir, generation, err);
	if (!rc)
		rc = ck_dirfile_sync(io, dir, err);
	if (rc)
		give_back(io, dir, generation);
	else
		*claim = taken;
	return rc;
}

int ck_claim_take(const struct ck_io *io, const char *dir, struct ck_claim *claim,
		  struct ck_error *err)
{
	uint64_t next, generation = 0;
	int rc;

	rc = next_generation(io, dir, &next, err);
	if (!rc)
		rc = make_first_free(io, dir, next, &generation, err);
	return rc ? rc : sign(io, dir, generation, claim, err);
}

int ck_claim_take_after(const struct ck_io *io, const char *dir, uint64_t after,
			struct ck_claim *claim, struct ck_error *err)
{
	uint64_t next, highest;
	int rc;

	/* In this order: whoever claims between the two is seen, or has taken our number. */
	rc = next_generation(io, dir, &next, err);
	if (!rc)
		rc = ck_generation_highest(io, dir, &highest, err);
	if (!rc && highest > after)
		rc = ck_fail(err, CK_EEXIST, "%s: generation %" PRIu64 " has come", dir, highest);
	if (!rc)
		rc = make_generation(io, dir, next, err);
	return rc ? rc : sign(io, dir, next, claim, err);
}

int ck_claim_load(const struct ck_io *io, const char *dir, uint64_t generation,
		  struct ck_claim *out, struct ck_error *err)
{
	struct ck_buf text = CK_BUF_INIT;
	char path[PATH_MAX];
	int rc;

	rc = ck_dirfile_read_of(io, dir, generation, CK_CLAIM_FILE, CLAIM_FILE_MAX, path, &text,
				err);
	if (!rc)
		rc = ck_claim_parse(path, text.data, text.len, out, err);
	ck_buf_fini(&text);
	return rc;
}
