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
#include "enter.h"
#include "env.h"
#include "handle.h"
#include "leave.h"
#include "leftover.h"
#include "parse.h"
#include "rival.h"
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

/* On the background thread: unlinking takes its time. */
static void sweep(void *arg)
{
	const ckpt *ck = arg;

	ck_sweep(ck->io, ck->set.dir, &ck->found, ck->generation,
		 NULL); /* what stays is tried again by the next */
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
	rc = ck_rival_claim(ck, err);
	if (rc)
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

/* A partition's limit is not known to who submits the job, nor when in it the program begins. */
static void warn_of_limit(const ckpt *ck)
{
	double left = (double)ck->set.end_time - (double)time(NULL);

	if (ck->set.end_time && ck_is_root(ck) && left <= ck->set.margin_seconds)
		ck_log(ck,
		       "warning: %.0f s are left until the time limit, and the margin before it is "
		       "%.0f s: there is no time to train",
		       left, ck->set.margin_seconds);
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
	int rc = ck_enter_run(ck, err);

	if (rc)
		return rc;
	if (ck_is_root(ck))
		rc = claim(ck, err);
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
	ck->opened_at = ck->last_save_at = ck->asked_at = ck_now();
	if (!rc && !ck->off)
		note_launcher(ck);
	if (!rc && !ck->off)
		warn_of_limit(ck);
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
