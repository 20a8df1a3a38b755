/* How a save begins: gather, agree on where it is written from, copy aside, hand over. */
#include "save.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "parallel.h"

#define WRITER "slurm-ckpt " CK_VERSION

/* What the ranks agree on before a save, by the largest of each. */
enum word { WORD_CHANGED, WORD_STAGING, WORD_BYTES, WORDS };

/* ---- what is saved ---- */

/* What this rank stores, as it is now. */
static int gather(ckpt *ck, struct ck_save *save, struct ck_error *err)
{
	size_t count = 0;
	int rc = ck_registry_stored(&ck->registry, &ck->dealt.duty, save->rank, &save->stored,
				    &count, &save->rank_bytes, &save->nrank_bytes, err);

	return rc ? rc
		  : ck_shard_plan(save->rank, (uint32_t)ck->comm.table.size, save->stored, count,
				  &save->plan, err);
}

static void forget(struct ck_save *save)
{
	ck_plan_fini(&save->plan);
	ck_rank_bytes_free(save->rank_bytes, save->nrank_bytes);
	free(save->stored);
	save->plan = (struct ck_plan){0};
	save->rank_bytes = NULL;
	save->nrank_bytes = 0;
	save->stored = NULL;
}

/*
 * How this rank alone would save; memory is looked at only before the buffer grows. What is there by the numbers may
 * be refused all the same (ulimit -v, Slurm's VSizeFactor, vm.overcommit_memory=2), so it is reserved before the ranks
 * agree.
 */
static uint64_t staging_word(ckpt *ck, uint64_t needed)
{
	const struct ck_staging *setting = &ck->set.staging;
	enum ck_staging_answer answer;
	uint64_t allowed;

	/* The kernel's own files, not the storage whose failures are rehearsed. */
	if (setting->mode == CK_STAGING_AUTO && needed > ck->stage.bytes)
		ck_room_look(&ck_io_posix, ck->root, &ck->room);
	answer = ck_staging_decide(setting, needed, ck->stage.bytes, &ck->room, &allowed);
	if (answer == CK_STAGED && ck_stage_reserve(&ck->stage, needed, CK_STAGING_RESERVE, NULL))
		answer = CK_DIRECT_REFUSED;
	return ck_staging_pack(answer, needed, allowed);
}

/* The ranks agree in pages, rounded down; our own setting is known to the byte, if it is the one. */
static uint64_t exactly(const struct ck_staging *setting, enum ck_staging_answer answer,
			uint64_t allowed)
{
	bool own = answer == CK_DIRECT_MOST && setting->mode == CK_STAGING_MOST;

	return own && setting->most - allowed < CK_STAGING_PAGE ? setting->most : allowed;
}

/* Once: who has asked for it knows. */
static void say_direct(ckpt *ck, enum ck_staging_answer answer, uint64_t needed, uint64_t allowed)
{
	static const char *const where[] = {
		[CK_DIRECT_MOST] = "allowed by --ckpt-staging",
		[CK_DIRECT_NODE] = "available on its node",
		[CK_DIRECT_LIMIT] = "available within its memory limit",
	};
	char need[16], room[16];

	if (answer <= CK_DIRECT_ASKED || ck->direct_told)
		return;
	ck->direct_told = true;
	if (answer == CK_DIRECT_REFUSED) {
		ck_log(ck,
		       "note: a rank needs %s for staging, and the system does not give it that "
		       "much memory (ulimit -v, vm.overcommit_memory): saves are synchronous",
		       ck_format_bytes(needed, need));
		return;
	}
	allowed = exactly(&ck->set.staging, answer, allowed);
	ck_log(ck, "note: a rank needs %s for staging, %s %s: saves are synchronous",
	       ck_format_bytes(needed, need), ck_format_bytes(allowed, room), where[answer]);
}

/*
 * Collective: gather, and agree on whether it is copied aside. What was gathered for registrations that
 * have changed on another rank is gathered again: nobody has copied anything yet, so that each rank has seen
 * the memory as it was before.
 */
static int assemble(ckpt *ck, struct ck_save *save, struct ck_error *err)
{
	uint64_t words[WORDS], needed, allowed;
	enum ck_staging_answer answer;
	int rc;

	do {
		words[WORD_CHANGED] = !ck_deal_is_current(ck);
		words[WORD_STAGING] = words[WORD_BYTES] = 0;
		forget(save);
		if (!words[WORD_CHANGED] && !(save->refused = gather(ck, save, &save->error))) {
			words[WORD_BYTES] = ck_stage_bytes(&save->plan);
			if (save->staged)
				words[WORD_STAGING] = staging_word(ck, words[WORD_BYTES]);
		}
		rc = ck_comm_allreduce_max(&ck->comm, words, WORDS, err);
		if (!rc && words[WORD_CHANGED])
			rc = ck_deal_renew(ck, err);
	} while (!rc && words[WORD_CHANGED]);
	if (rc)
		return rc;
	answer = ck_staging_unpack(words[WORD_STAGING], &needed, &allowed);
	say_direct(ck, answer, needed, allowed);
	if (save->staged && answer != CK_STAGED)
		ck_stage_fini(&ck->stage); /* what was reserved for it, or is too small by now */
	save->staged = save->staged && answer == CK_STAGED;
	save->most_bytes = words[WORD_BYTES];
	return 0;
}

static int copy_aside(ckpt *ck, struct ck_save *save, struct ck_error *err)
{
	return save->staged ? ck_stage_copy(&ck->stage, &save->plan, &ck->registry, err)
			    : ck_stage_copy_some(&ck->stage, &save->plan, &ck->registry, err);
}

int ck_save_reserve(ckpt *ck, struct ck_error *err)
{
	struct ck_save *save = calloc(1, sizeof(*save));
	int rc;

	if (!save)
		return ck_comm_die(&ck->comm, err, "rank %d: out of memory", ck->comm.table.rank);
	save->rank = (uint32_t)ck->comm.table.rank;
	save->staged = true;
	rc = assemble(ck, save, err);
	if (!rc) {
		rc = save->refused ? save->refused : copy_aside(ck, save, &save->error);
		if (rc)
			*err = save->error;
		rc = ck_comm_agree(&ck->comm, rc, err);
	}
	ck_save_free(save);
	return rc;
}

/* ---- what it is called ---- */

/* Alike on all ranks without a message: the claim's nonce and the save's number. */
static int make_save_id(const ckpt *ck, struct ck_save *save, struct ck_error *err)
{
	char seed[CK_RUN_ID_HEX + 64], hex[CK_SHA256_HEX + 1];
	int n = snprintf(seed, sizeof(seed), "%s %" PRIu64, ck->nonce, save->number);
	int rc = ck_sha256_hex(seed, (size_t)n, hex, err);

	if (!rc)
		snprintf(save->head.save_id, sizeof(save->head.save_id), "%.*s", CK_RUN_ID_HEX,
			 hex);
	return rc;
}

static int describe(const ckpt *ck, struct ck_save *save, struct ck_error *err)
{
	const char *flat = ck->registry.list.flat;
	struct ck_manifest *m = &save->head;

	if (flat && !(save->flat = strdup(flat)))
		return ck_fail_nomem(err, strlen(flat));
	if (!ck_is_root(ck))
		return 0;
	m->world_size = (uint32_t)ck->comm.table.size;
	m->wall_clock_seconds = ck->wall_clock_before + ck_now() - ck->opened_at;
	m->job = ck->set.job;
	m->created = time(NULL);
	strcpy(m->writer, WRITER);
	strcpy(m->run_id, ck->run.run_id);
	strcpy(m->run, ck->run.name);
	m->items = ck->dealt.deal.table; /* stays as it is while a save is under way */
	if (ck->user && !(m->user = strdup(ck->user)))
		return ck_fail_nomem(err, strlen(ck->user));
	return 0;
}

/* ---- starting ---- */

/* A second thread where the rank has CPUs for it: one alone can be slower than the disk. */
struct ck_shard_options ck_transfer_options(ckpt *ck)
{
	return (struct ck_shard_options){.threads = ck_parallel_cpus() >= 2 ? 2 : 1,
					 .direct = true,
					 .sha = ck->set.sha,
					 .notes = &ck->notes};
}

static struct ck_save *save_new(ckpt *ck, uint64_t step, bool staged)
{
	struct ck_save *save = calloc(1, sizeof(*save));

	if (!save)
		return NULL;
	save->io = ck->io;
	save->dir = ck->set.dir;
	save->options = ck_transfer_options(ck);
	save->rank = (uint32_t)ck->comm.table.rank;
	save->head.id = (struct ck_step_id){.step = step, .generation = ck->generation};
	save->started = ck_now();
	save->staged = staged;
	return save;
}

/* The save is agreed on: name it and copy what has to be copied. What fails, fails the save. */
static void fill(ckpt *ck, struct ck_save *save)
{
	int rc = make_save_id(ck, save, &save->error);

	if (!rc && save->refused)
		return;
	if (!rc)
		rc = describe(ck, save, &save->error);
	if (!rc)
		rc = copy_aside(ck, save, &save->error);
	save->refused = rc;
	if (!save->staged) /* the program waits: its CPUs are free */
		save->options.threads = ck_parallel_cpus();
}

int ck_save_start(ckpt *ck, uint64_t step, bool staged, struct ck_error *err)
{
	struct ck_save *save = save_new(ck, step, staged);
	int rc;

	if (!save) /* the others have begun: there is no way back for this rank alone */
		return ck_comm_die(&ck->comm, err, "rank %d: out of memory", ck->comm.table.rank);
	rc = assemble(ck, save, err);
	if (rc) {
		ck_save_free(save);
		return rc;
	}
	save->number = ++ck->saves_started;
	ck->last_save_at = save->started;
	ck->tried = step;
	ck->skipped = 0;
	fill(ck, save);
	if (ck_is_root(ck)) {
		save->records = ck->records;
		save->rotation = &ck->rotation;
		ck_records_begin(ck->records, save->number, save->head.id, save->head.save_id);
	}
	ck->save = save;
	ck->stall_seconds = ck_now() - save->started;
	if (ck_background_post(ck->background, ck_save_run, save, err)) {
		ck_save_free(save);
		ck->save = NULL;
		return ck_comm_die(&ck->comm, err, "rank %d: out of memory", ck->comm.table.rank);
	}
	return 0;
}
