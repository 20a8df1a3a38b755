#include "gather.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "catalog.h"
#include "fields.h"
#include "short.h"

/* This step as the library writes it into claims and marks. */
static struct ck_job identity(const struct ck_watch *watch)
{
	struct ck_job job = {.restart_count = watch->start.restarts};

	snprintf(job.cluster, sizeof(job.cluster), "%s", watch->start.cluster);
	snprintf(job.job_id, sizeof(job.job_id), "%" PRIu32, watch->start.job_id);
	snprintf(job.step_id, sizeof(job.step_id), "%" PRIu32, watch->step_id);
	return job;
}

static void gather_job(const struct ck_watch *watch, struct ck_gathered *out)
{
	struct ck_end *end = &out->end;
	int rc;

	end->restarts_noted = watch->start.restarts;
	end->start_noted = watch->noted.start;
	end->batch = !watch->known || watch->noted.batch;
	end->most = watch->most;
	end->margin = watch->margin;
	end->lost_run = watch->lost_run;
	rc = ck_jobinfo_load(watch->start.job_id, &out->job, NULL);
	end->loaded = rc == 0;
	end->forgotten = rc == CK_ENOENT;
	if (!end->loaded)
		return;
	end->batch = out->job.batch;
	end->restarts = out->job.restarts;
	end->start = out->job.start;
	end->state = out->job.state;
	end->may_requeue = out->job.may_requeue;
	end->limit = out->job.end ? out->job.end - out->job.start : 0;
}

/* Ranks that mpirun starts beside itself know no step; it ends with an srun of its own, this one. */
static bool find_mark(const struct ck_io *io, const char *dir, struct ck_job self,
		      struct ck_mark *mark)
{
	if (ck_mark_find(io, dir, &self, mark, NULL) == 0)
		return true;
	self.step_id[0] = '\0';
	return ck_mark_find(io, dir, &self, mark, NULL) == 0;
}

/* Does the newest claim belong to another job? What cannot be read, belongs to nobody. */
static bool is_another(const struct ck_io *io, const char *dir, const struct ck_job *self)
{
	struct ck_claim claim;
	bool other;

	if (ck_owner_load(io, dir, &claim, NULL))
		return false;
	other = *claim.job.job_id && (strcmp(claim.job.job_id, self->job_id) != 0 ||
				      strcmp(claim.job.cluster, self->cluster) != 0);
	ck_claim_fini(&claim);
	return other;
}

static unsigned short_starts(const struct ck_io *io, const struct ck_watch *watch,
			     const struct ck_job *self, const struct ck_end *end)
{
	struct ck_short_start starts[CK_SHORT_MAX];
	size_t count = ck_short_load(io, watch->start.run, self, starts);
	int64_t overhead = count ? time(NULL) - watch->began - starts[0].trained : 0;

	return ck_short_count(starts, count, overhead,
			      end->limit > 0 && end->limit <= (int64_t)end->margin);
}

static void gather_run(const struct ck_io *io, const struct ck_watch *watch,
		       struct ck_gathered *out)
{
	const char *dir = watch->start.run;
	struct ck_catalog catalog = {NULL, 0};
	struct ck_job self = identity(watch);
	struct ck_end *end = &out->end;
	struct ck_run run;
	uint64_t highest = 0, newest = 0;

	if (ck_run_load(io, dir, &run, NULL) == 0 && run.complete) {
		end->complete = true;
		end->complete_step = run.complete_step;
	}
	if (find_mark(io, dir, self, &out->mark)) {
		end->has_mark = true;
		end->want = out->mark.want;
		end->mark_step = out->mark.step;
		end->mark_reason = out->mark.reason;
		end->short_starts = short_starts(io, watch, &self, end);
	}
	if (ck_catalog_load(io, dir, &catalog, NULL) == 0 && catalog.count) {
		out->has_checkpoint = true;
		newest = catalog.steps[0].generation;
	}
	ck_catalog_fini(&catalog);
	if (ck_generation_highest(io, dir, &highest, NULL) == 0 && highest > 0) {
		end->library = true;
		end->superseded = is_another(io, dir, &self);
		end->fruitless = highest > newest ? highest - newest : 0;
	}
}

void ck_gather(const struct ck_io *io, const struct ck_watch *watch, int exit_code,
	       struct ck_gathered *out)
{
	*out = (struct ck_gathered){.end = {.exit_code = exit_code, .at_limit = exit_code < 0}};
	gather_job(watch, out);
	gather_run(io, watch, out);
}

/* Is the newest claim of this run held by one of these steps of our job? */
static bool is_held(const struct ck_io *io, const char *run, const struct ck_job *self,
		    const uint32_t *steps, size_t count, uint32_t *step)
{
	struct ck_claim claim = {.generation = 0};
	struct ck_job other = *self;
	bool held = false;

	if (ck_owner_load(io, run, &claim, NULL))
		return false;
	for (size_t i = 0; i < count && !held; i++) {
		snprintf(other.step_id, sizeof(other.step_id), "%" PRIu32, steps[i]);
		held = ck_job_equal(&claim.job, &other);
		*step = steps[i];
	}
	ck_claim_fini(&claim);
	return held;
}

bool ck_gather_other_step(const struct ck_io *io, const struct ck_watch *watch, bool any,
			  uint32_t *step)
{
	uint32_t steps[CK_STEPS_MAX];
	size_t count = 0, others = 0;
	struct ck_names names = {NULL, 0};
	struct ck_job self = identity(watch);
	char run[PATH_MAX];
	bool found = false;

	if (ck_jobinfo_steps(watch->start.job_id, steps, &count, NULL))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (steps[i] != watch->step_id)
			steps[others++] = steps[i];
	}
	if (others == 0 || any) {
		*step = steps[0];
		return others > 0;
	}
	if (ck_io_list(io, watch->start.base, &names, NULL))
		return false;
	for (size_t i = 0; i < names.count && !found; i++) {
		if (names.names[i][0] != '.' &&
		    ck_path_join(run, watch->start.base, names.names[i]))
			found = is_held(io, run, &self, steps, others, step);
	}
	ck_names_fini(&names);
	return found;
}
