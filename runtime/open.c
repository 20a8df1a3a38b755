/* Opening and closing a run. */
#include "open.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "commit.h"
#include "dirfile.h"
#include "env.h"
#include "handle.h"
#include "leave.h"
#include "leftover.h"
#include "parse.h"
#include "save.h"
#include "signals.h"
#include "takeover.h"

static int start_io(ckpt *ck, struct ck_error *err)
{
	const char *rules = getenv(CK_ENV_IO_FAULT);
	int rc;

	ck->io = &ck_io_posix;
	if (!rules || !*rules)
		return 0;
	rc = ck_io_fault_new(&ck->fault, &ck_io_posix, rules, err);
	if (rc) {
		ck_error_prefix(err, CK_ENV_IO_FAULT);
	} else {
		ck->io = ck_io_fault_io(ck->fault);
		ck_log(ck, "warning: rehearsing failures: " CK_ENV_IO_FAULT "=%s", rules);
	}
	return rc;
}

/* Collective: rank 0's settings become everybody's; others are noted. */
static int agree_settings(ckpt *ck, const struct ckpt_options *options, struct ck_error *err)
{
	char notice[CK_ERROR_TEXT], *dir;
	uint64_t differs;
	int rc = ck_settings_load(getenv, options, &ck->set, notice, err);

	if (!rc && *notice)
		ck_log(ck, "%s", notice);
	if ((rc = ck_comm_agree(&ck->comm, rc, err)))
		return rc;
	dir = strdup(ck->set.dir);
	if ((rc = ck_comm_bcast(&ck->comm, 0, &ck->set, sizeof(ck->set), err))) {
		free(dir);
		return rc;
	}
	differs = dir && strcmp(dir, ck->set.dir) != 0;
	free(dir);
	rc = ck_comm_allreduce_max(&ck->comm, &differs, 1, err);
	if (!rc && differs)
		ck_log(ck, "warning: ranks were given different run directories; %s counts",
		       ck->set.off ? "none, as on rank 0," : ck->set.dir);
	ck->comm.timeout_ms = ck->set.timeout_ms;
	return rc;
}

/* Rank 0: no run.json. May we make one? */
static int may_begin(const ckpt *ck, const struct ck_error *missing, struct ck_error *err)
{
	const struct ck_settings *set = &ck->set;
	struct ck_names names = {0};
	int rc = ck_io_list(ck->io, set->dir, &names, NULL);
	size_t count = names.count;

	ck_names_fini(&names);
	if (rc == CK_ENOENT && set->job.restart_count > 0)
		return ck_fail(
			err, CK_EREFUSED,
			"%s: is missing, but this job has run before: is the file system mounted? "
			"To start over, create the empty directory",
			set->dir);
	if (!rc && count > 0 && set->job.restart_count > 0)
		return ck_fail(err, CK_EREFUSED,
			       "%s: this job has run before, but there is no " CK_RUN_FILE
			       " (%s). To start over, empty the directory",
			       set->dir, missing->text);
	return 0;
}

/* The same number may come again when a cluster's job ids are reset. */
static int is_our_job(const ckpt *ck, struct ck_error *err)
{
	const struct ck_settings *set = &ck->set;
	char theirs[32], ours[32];

	if (!*set->job.job_id || !set->submit_time || !ck->run.submit_time ||
	    strcmp(ck->run.job_id, set->job.job_id) != 0 ||
	    strcmp(ck->run.cluster, set->job.cluster) != 0 ||
	    ck->run.submit_time == set->submit_time)
		return 0;
	return ck_fail(
		err, CK_EREFUSED,
		"%s: belongs to job %s submitted %s, this is job %s submitted %s: give it another "
		"--ckpt-name, or remove the old run",
		set->dir, ck->run.job_id, ck_format_time(ck->run.submit_time, theirs),
		set->job.job_id, ck_format_time(set->submit_time, ours));
}

/* Rank 0: the run's file, made if this is the first time. */
static int open_run(ckpt *ck, struct ck_error *err)
{
	struct ck_catalog catalog = {0};
	struct ck_error missing = CK_ERROR_INIT;
	int rc = ck_run_load(ck->io, ck->set.dir, &ck->run, &missing);

	if (!rc)
		return is_our_job(ck, err);
	if (rc == CK_EFORMAT)
		return ck_fail(err, rc,
			       "%s: restore that file, or move the directory away to start over",
			       missing.text);
	if (rc != CK_ENOENT) {
		*err = missing;
		return rc;
	}
	if ((rc = may_begin(ck, &missing, err)))
		return rc;
	rc = ck_catalog_load(ck->io, ck->set.dir, &catalog, &missing);
	if (ck_is_unseen(rc))
		return ck_fail(err, rc, "%s", missing.text);
	rc = 0;
	if (catalog.count)
		rc = ck_fail(err, CK_EREFUSED,
			     "%s: has %zu checkpoint%s, but no " CK_RUN_FILE
			     ": restore that file, or move the directory away to start over",
			     ck->set.dir, catalog.count, ck_plural(catalog.count));
	ck_catalog_fini(&catalog);
	if (rc)
		return rc;
	strcpy(ck->run.name, ck->set.name);
	strcpy(ck->run.cluster, ck->set.job.cluster);
	strcpy(ck->run.job_id, ck->set.job.job_id);
	ck->run.submit_time = ck->set.submit_time;
	return ck_run_create(ck->io, ck->set.dir, &ck->run, err);
}

/* On the background thread: unlinking takes its time. */
static void sweep(void *arg)
{
	const ckpt *ck = arg;

	ck_sweep(ck->io, ck->set.dir, &ck->found, ck->generation,
		 NULL); /* what stays is tried again by the next */
}

/*
 * Rank 0: does the present owner still run? Where the plugin gave the directory, it has looked before the step began;
 * here processes of this host are looked at, those of a job that names the directory itself as well. Another handle of this process is nobody else's to see.
 */
static int may_supersede(ckpt *ck, struct ck_error *err)
{
	const struct ck_claim *ours = &ck->claim;
	struct ck_claim owner;
	bool found;
	int rc;

	if (ck->set.takeover)
		return 0;
	rc = ck_owner_ask(ck->io, ck->set.dir, &owner, &found, err);
	if (rc || !found)
		return rc;
	if (ck_signals_used() && ck_owner_is_us(ck->io, &owner, ours))
		rc = ck_fail(err, CK_EREFUSED,
			     "%s: is open already in this process (generation %" PRIu64
			     "): ckpt_close that handle first, or take over with "
			     "ckpt_options.takeover",
			     ck->set.dir, owner.generation);
	else if (!ck->set.planned && ck_owner_seems_alive(ck->io, &owner, ours))
		rc = ck_fail(err, CK_EREFUSED,
			     "%s: is in use by process %" PRIu64 " on %s (generation %" PRIu64
			     "): end it first, or take over with --ckpt-takeover",
			     ck->set.dir, owner.pid, owner.host, owner.generation);
	ck_claim_fini(&owner);
	return rc;
}

/*
 * Rank 0: claim the number that came next when the owner was looked at, and no other: whoever has opened the run
 * since, however long ago that was, has that number, and is looked at as well.
 */
static int supersede(ckpt *ck, struct ck_error *err)
{
	uint64_t next;
	int rc;

	for (unsigned tries = 0; tries < CK_CLAIM_TRIES; tries++) {
		rc = ck_claim_next(ck->io, ck->set.dir, &next, err);
		if (!rc)
			rc = may_supersede(ck, err);
		if (!rc)
			rc = ck_claim_take_number(ck->io, ck->set.dir, next, &ck->claim, err);
		if (rc != CK_EEXIST)
			return rc;
	}
	return ck_fail(err, CK_EIO, "%s: no generation can be claimed", ck->set.dir);
}

/* Rank 0: a generation of our own. */
static int claim(ckpt *ck, struct ck_error *err)
{
	struct ck_claim *c = &ck->claim;
	int rc;

	c->job = ck->set.job;
	c->submit_time = ck->set.submit_time;
	c->world_size = (uint32_t)ck->comm.table.size;
	ck_claim_sign(ck->io, c);
	if ((rc = supersede(ck, err)))
		return rc;
	ck->generation = c->generation;
	/* Of those who open it at once all may get this far; only the last of them need go on. */
	if ((rc = ck_owner_check(ck->io, ck->set.dir, ck->generation, err)))
		return rc;
	ck_deadline_recall(ck);
	if ((rc = ck_leftover_salvage(ck, err)))
		return rc;
	/* Before we write here ourselves: sweeping could not tell our files from those of the dead. */
	return ck_dirfile_list(ck->io, ck->set.dir, &ck->found, err);
}

/* What saves need on this rank. */
static int prepare_saves(ckpt *ck, struct ck_error *err)
{
	int rc = ck_background_new(&ck->background, err);

	if (rc)
		return rc;
	ck->report = ck_parcel_new(CK_REPORT_BYTES);
	if (!ck->report)
		return ck_fail_nomem(err, CK_REPORT_BYTES);
	if (!ck_is_root(ck))
		return 0;
	ck->records = ck_records_new((uint32_t)ck->comm.table.size);
	if (!ck->records)
		return ck_fail_nomem(err, (size_t)ck->comm.table.size);
	ck->rotation = (struct ck_rotation){
		.io = ck->io,
		.dir = ck->set.dir,
		.generation = ck->generation,
		.keep = ck->set.keep,
		.keep_every = ck->set.keep_every,
		.run = &ck->run,
	};
	rc = ck_requests_new(&ck->requests, ck->io, ck->set.dir, err);
	return rc ? rc : ck_background_post(ck->background, sweep, ck, err);
}

/* Rank 0: the newest checkpoint that the run had when it became ours. */
static bool find_newest(const ckpt *ck, struct ck_step_id *newest)
{
	struct ck_step_id id;
	bool found = false;

	for (size_t i = 0; i < ck->found.count; i++) {
		if (!ck_is_step(ck->found.names[i], &id))
			continue;
		if (!found || ck_step_id_cmp(&id, newest) > 0)
			*newest = id;
		found = true;
	}
	return found;
}

/* Collective: what rank 0 found, to everybody. Who has not loaded what is there must not save over it. */
static int share_claim(ckpt *ck, struct ck_error *err)
{
	struct {
		uint64_t generation;
		char nonce[CK_RUN_ID_HEX + 1];
		bool has_steps;
		struct ck_step_id newest;
	} claim = {.generation = ck->generation};
	int rc;

	claim.has_steps = find_newest(ck, &claim.newest);
	strcpy(claim.nonce, ck->claim.nonce);
	rc = ck_comm_bcast(&ck->comm, 0, &claim, sizeof(claim), err);
	if (rc)
		return rc;
	ck->generation = claim.generation;
	strcpy(ck->nonce, claim.nonce);
	if (claim.has_steps)
		ck_fail(&ck->no_saves, CK_EREFUSED,
			"call ckpt_restore first: the run has a checkpoint, step %" PRIu64,
			claim.newest.step);
	return 0;
}

/* Collective. */
static int open_directory(ckpt *ck, struct ck_error *err)
{
	int rc = 0;

	if (ck_is_root(ck)) {
		rc = open_run(ck, err);
		if (!rc)
			rc = claim(ck, err);
	}
	if ((rc = ck_comm_agree(&ck->comm, rc, err)) || (rc = share_claim(ck, err)))
		return rc;
	if (ck->set.staging.mode == CK_STAGING_AUTO &&
	    (rc = ck_room_ranks(&ck->comm, &ck_io_posix, ck->root, &ck->room.ranks, err)))
		return rc;
	rc = prepare_saves(ck, err);
	if (!rc)
		rc = ck_signals_install(ck->set.stop_signals, ck->set.save_signals, err);
	ck->opened = rc == 0;
	ck->saves_seen = ck_signals_saves();
	return ck_comm_agree(&ck->comm, rc, err);
}

/* Rank 0: under mpirun less is promised, and the run's first event says so. */
static void note_launcher(const ckpt *ck)
{
	/* Set by Open MPI's daemons, 4 and 5, for the ranks that they start. */
	bool mpirun = getenv("OMPI_MCA_orte_local_daemon_uri") || getenv("PRTE_LAUNCHED");

	if (mpirun && *ck->set.job.job_id)
		ck_note(ck, "launcher", 0,
			"started by mpirun, not srun: a preemption's SIGTERM ends its daemons "
			"before the "
			"ranks can save, so up to one interval may be lost");
}

static int open_collective(ckpt *ck, const struct ckpt_options *options, struct ck_error *err)
{
	int rc = start_io(ck, err);

	if (!rc)
		rc = ck_agreement_init(&ck->agreement, err);
	rc = ck_comm_agree(&ck->comm, rc, err);
	if (!rc)
		rc = agree_settings(ck, options, err);
	ck->off = !rc && ck->set.off;
	if (!rc && !ck->off)
		rc = open_directory(ck, err);
	ck->opened_at = ck->last_save_at = ck_now();
	if (!rc && !ck->off)
		note_launcher(ck);
	return rc;
}

int ckpt_open(ckpt **out, const struct ckpt_comm *comm, const struct ckpt_options *options)
{
	struct ck_error err = CK_ERROR_INIT;
	struct ckpt_comm self = {.struct_size = sizeof(self)};
	ckpt *ck;
	int rc = 0;

	if (!out)
		return CK_EARG;
	ck = calloc(1, sizeof(*ck));
	*out = ck;
	if (!ck)
		return CK_ENOMEM;
	ck->root = "";
	ck->pid = getpid();
	if (options && options->struct_size == sizeof(*options)) {
		ck->log = options->log;
		ck->log_arg = options->log_arg;
	}
	if (!comm && !(rc = ck_self_new(&self, &err))) {
		self.release = ck_self_free;
		comm = &self;
	}
	if (!rc)
		rc = ck_comm_init(&ck->comm, comm, UINT64_C(1000) * CK_DEFAULT_TIMEOUT_SECONDS,
				  &err);
	if (!rc) {
		ck->has_comm = true;
		rc = open_collective(ck, options, &err);
	}
	if (rc) {
		ck_log(ck, "cannot open: %s", err.text);
		ck_keep(ck, rc, &err);
		ck->dead = rc;
	}
	return rc;
}

int ck_open_failed(ckpt **out, const struct ck_error *err)
{
	ckpt *ck = calloc(1, sizeof(*ck));

	*out = ck;
	if (!ck)
		return CK_ENOMEM;
	ck->pid = getpid();
	ck->dead = err->code;
	return ck_keep(ck, err->code, err);
}

/* Rank 0: let the next opener know that nobody holds the run any more. */
static void end_claim(ckpt *ck)
{
	if (!ck_is_root(ck) || !ck->generation)
		return;
	ck_leave_close(ck->io, ck->set.dir, ck->generation);
	ck->claim.ended = true;
	ck_claim_store(ck->io, ck->set.dir, &ck->claim, NULL);
}

/* Let go of the background thread and of what it used. A dead handle's save ends as it may. */
static void end_saves(ckpt *ck)
{
	if (ck->records)
		ck_records_give_up(ck->records);
	ck_background_free(ck->background);
	ck_requests_free(ck->requests);
	ck_save_drop(ck);
	ck_records_free(ck->records);
	ck_rotation_fini(&ck->rotation);
	ck_stage_fini(&ck->stage);
	ck_end_time_forget(&ck->end_query);
	if (ck->report)
		ck_parcel_free(&ck->comm, ck->report);
}

int ckpt_close(ckpt *ck)
{
	struct ck_error err = CK_ERROR_INIT;
	struct ck_say said;
	int rc = 0;

	if (!ck ||
	    ck->pid != getpid()) /* the thread to wait for, the signals, the claim: the parent's */
		return 0;
	if (!ck->dead && ck->opened) {
		rc = ck_agreement_collect(&ck->comm, &ck->agreement, &said, &err);
		if (!rc)
			rc = ck_save_finish(ck, &err);
	}
	if (ck->opened)
		ck_signals_remove();
	end_saves(ck);
	end_claim(ck);
	ck_registry_fini(&ck->registry);
	ck_dealt_fini(&ck->dealt);
	ck_claim_fini(&ck->claim);
	ck_names_fini(&ck->found);
	free(ck->user);
	ck_io_fault_free(ck->fault);
	if (ck->has_comm) {
		ck_agreement_fini(&ck->comm, &ck->agreement);
		ck_comm_fini(&ck->comm);
		if (ck->comm.table.release)
			ck->comm.table.release(ck->comm.table.ctx);
	}
	free(ck);
	return rc;
}

const char *ckpt_error(const ckpt *ck)
{
	return ck ? ck->error.text
		  : "no handle: ckpt_open has failed for lack of memory, or has not been given a "
		    "place for it";
}
