#include "records.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dirfile.h"
#include "json.h"
#include "parallel.h"

struct ck_records {
	pthread_mutex_t lock;
	pthread_cond_t all;
	uint32_t size;
	uint64_t number;
	struct ck_step_id id;
	char save_id[CK_RUN_ID_HEX + 1];
	struct ck_record *ranks; /* nfiles 0: none yet */
	bool *reported;
	uint32_t nreported, nfailed;
	bool given_up;
	uint32_t failed_rank;    /* the lowest */
	struct ck_error failure; /* its */
};

struct ck_records *ck_records_new(uint32_t size)
{
	struct ck_records *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->size = size;
	r->ranks = calloc(size, sizeof(*r->ranks));
	r->reported = calloc(size, sizeof(*r->reported));
	if (!r->ranks || !r->reported) {
		free(r->ranks);
		free(r->reported);
		free(r);
		return NULL;
	}
	pthread_mutex_init(&r->lock, NULL);
	ck_cond_init(&r->all);
	return r;
}

static void clear(struct ck_records *r)
{
	for (uint32_t i = 0; i < r->size; i++)
		ck_record_fini(&r->ranks[i]);
	memset(r->ranks, 0, r->size * sizeof(*r->ranks));
	memset(r->reported, 0, r->size * sizeof(*r->reported));
	r->nreported = r->nfailed = 0;
	r->given_up = false;
}

void ck_records_free(struct ck_records *r)
{
	if (!r)
		return;
	clear(r);
	pthread_cond_destroy(&r->all);
	pthread_mutex_destroy(&r->lock);
	free(r->ranks);
	free(r->reported);
	free(r);
}

void ck_records_begin(struct ck_records *r, uint64_t number, struct ck_step_id id,
		      const char *save_id)
{
	pthread_mutex_lock(&r->lock);
	clear(r);
	r->number = number;
	r->id = id;
	snprintf(r->save_id, sizeof(r->save_id), "%s", save_id);
	pthread_mutex_unlock(&r->lock);
}

/* With the lock held. */
static void report(struct ck_records *r, uint32_t rank)
{
	r->reported[rank] = true;
	if (++r->nreported == r->size)
		pthread_cond_signal(&r->all);
}

/* With the lock held. */
static void report_failure(struct ck_records *r, uint32_t rank, int code, const char *text)
{
	if (r->nfailed++ == 0 || rank < r->failed_rank) {
		r->failed_rank = rank;
		ck_fail(&r->failure, code, "%s", text);
	}
	report(r, rank);
}

static bool is_awaited(const struct ck_records *r, uint64_t number, uint32_t rank)
{
	return number == r->number && rank < r->size && !r->reported[rank];
}

void ck_records_put(struct ck_records *r, uint64_t number, uint32_t rank, const char *text,
		    size_t bytes)
{
	struct ck_error err = CK_ERROR_INIT;
	struct ck_record record = {0};
	int rc = ck_record_parse("record", text, bytes, &record, &err);

	pthread_mutex_lock(&r->lock);
	if (!is_awaited(r, number, rank)) {
		ck_record_fini(&record);
	} else if (rc) {
		report_failure(r, rank, rc, err.text);
	} else if (record.rank != rank || strcmp(record.save_id, r->save_id) != 0) {
		ck_record_fini(&record);
		report_failure(r, rank, CK_EFORMAT, "its record is of another save or rank");
	} else {
		r->ranks[rank] = record;
		report(r, rank);
	}
	pthread_mutex_unlock(&r->lock);
}

void ck_records_fail(struct ck_records *r, uint64_t number, uint32_t rank, int code,
		     const char *text)
{
	pthread_mutex_lock(&r->lock);
	if (is_awaited(r, number, rank))
		report_failure(r, rank, code, text);
	pthread_mutex_unlock(&r->lock);
}

void ck_records_give_up(struct ck_records *r)
{
	pthread_mutex_lock(&r->lock);
	r->given_up = true;
	pthread_cond_signal(&r->all);
	pthread_mutex_unlock(&r->lock);
}

int ck_records_wait(struct ck_records *r, unsigned timeout_ms)
{
	struct timespec until = ck_cond_deadline(timeout_ms);
	int rc = 0;

	pthread_mutex_lock(&r->lock);
	while (r->nreported < r->size && !r->given_up && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&r->all, &r->lock, &until);
	rc = r->nreported == r->size ? 1 : r->given_up ? CK_EPEER : 0;
	pthread_mutex_unlock(&r->lock);
	return rc;
}

static bool has_reported(struct ck_records *r, uint32_t rank)
{
	bool yes;

	pthread_mutex_lock(&r->lock);
	yes = r->reported[rank];
	pthread_mutex_unlock(&r->lock);
	return yes;
}

/* A record of an earlier try at this step has another save_id and is not ours. */
static bool is_ours(const struct ck_records *r, const char *text, size_t bytes)
{
	struct ck_record record = {0};
	bool ours = ck_record_parse("record", text, bytes, &record, NULL) == 0 &&
		    strcmp(record.save_id, r->save_id) == 0;

	ck_record_fini(&record);
	return ours;
}

void ck_records_look(struct ck_records *r, const struct ck_io *io, const char *dir)
{
	char generation[PATH_MAX], records[PATH_MAX], path[PATH_MAX], name[CK_NAME_MAX];

	if (ck_dirfile_generation(generation, dir, r->id.generation, NULL) ||
	    ck_dirfile_path(records, generation, ck_name_records(r->id.step, name), NULL))
		return;
	for (uint32_t rank = 0; rank < r->size; rank++) {
		struct ck_buf text = CK_BUF_INIT;

		if (has_reported(r, rank))
			continue;
		if (ck_dirfile_read(io, records, ck_name_record(rank, name), CK_JSON_MAX_BYTES,
				    path, &text, NULL) == 0 &&
		    is_ours(r, text.data, text.len))
			ck_records_put(r, r->number, rank, text.data, text.len);
		ck_buf_fini(&text);
	}
}

int ck_records_take(struct ck_records *r, struct ck_file **files, size_t *count,
		    struct ck_error *err)
{
	size_t total = 0, n = 0;
	struct ck_file *all;

	if (r->nfailed) {
		*err = r->failure;
		if (r->nfailed > 1)
			ck_error_prefix(err, "rank %u (and %u more)", r->failed_rank,
					r->nfailed - 1);
		else if (r->size > 1)
			ck_error_prefix(err, "rank %u", r->failed_rank);
		return err->code;
	}
	for (uint32_t rank = 0; rank < r->size; rank++)
		total += r->ranks[rank].nfiles;
	all = malloc((total + 1) * sizeof(*all));
	if (!all)
		return ck_fail_nomem(err, total * sizeof(*all));
	for (uint32_t rank = 0; rank < r->size; rank++) {
		memcpy(all + n, r->ranks[rank].files, r->ranks[rank].nfiles * sizeof(*all));
		n += r->ranks[rank].nfiles;
		r->ranks[rank].nfiles = 0; /* their chunk tables have moved */
	}
	*files = all;
	*count = total;
	return 0;
}
