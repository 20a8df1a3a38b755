/*
 * A run directory: run.json, generations and their claims, marks, events.
 *
 * `dir` may be a symbolic link, below it none is followed. The …_parse functions return 0,
 * CK_EFORMAT with `where` in front, or CK_ENOMEM. The …_print functions append, and return 0,
 * CK_EFORMAT (a reader would refuse it: texts are UTF-8 without control characters) or CK_ENOMEM.
 */
#ifndef CK_RUN_H
#define CK_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "error.h"
#include "io.h"
#include "manifest.h"

/* run.json: made once, complete, then replaced by rename. */
struct ck_run {
	char run_id[CK_RUN_ID_HEX + 1];
	char name[CK_NAME_MAX * 3];
	char cluster[CK_SHORT_TEXT]; /* of the creating job; "" outside of Slurm */
	char job_id[64];
	int64_t submit_time; /* of the creating job; 0 when unknown */
	int64_t created;
	bool committed;         /* a checkpoint has been committed here */
	bool complete;          /* the training has finished ... */
	uint64_t complete_step; /* ... with so many steps */
};

int ck_run_parse(const char *where, const char *text, size_t bytes, struct ck_run *out,
		 struct ck_error *err);
int ck_run_print(const struct ck_run *run, struct ck_buf *out, struct ck_error *err);

/* Returns 0; CK_ENOENT (no run.json, or no directory); CK_EFORMAT; CK_EIO; CK_ENOMEM. */
int ck_run_load(const struct ck_io *io, const char *dir, struct ck_run *out, struct ck_error *err);

/*
 * Make the directory (parents too, 0777 & ~umask) and run.json with a new run_id, unless it is
 * there; either way `run` holds what stands there now (in: name, cluster, job_id, submit_time of
 * the caller; run_id, if it is not "", and committed, of a run that goes on there). Of several callers one wins. Returns 0; CK_EIO; CK_ENOENT (a link to nothing is in
 * the way); CK_EFORMAT (what stands there, or the caller's name); CK_ENOMEM.
 */
int ck_run_create(const struct ck_io *io, const char *dir, struct ck_run *run,
		  struct ck_error *err);

/*
 * Make run.json again, linked into place, where it is gone: by the owner, who knows what stood there. *mended: it was
 * gone, and is there now. Returns 0 (also where it cannot be looked at); CK_ENOENT (no such directory); CK_EFORMAT;
 * CK_EIO; CK_ENOMEM.
 */
int ck_run_mend(const struct ck_io *io, const char *dir, const struct ck_run *run, bool *mended,
		struct ck_error *err);

/* Set `committed` unless it is. As ck_run_store. */
int ck_run_set_committed(const struct ck_io *io, const char *dir, struct ck_error *err);

/* Replace run.json by rename, fsync the directory. Returns 0; CK_ENOENT; CK_EFORMAT; CK_EIO. */
int ck_run_store(const struct ck_io *io, const char *dir, const struct ck_run *run,
		 struct ck_error *err);

#define CK_BOOT_ID_MAX 63

/* claim.json: who opened the run for writing as this generation. */
struct ck_claim {
	uint64_t generation;
	struct ck_job job;
	int64_t submit_time;
	char host[CK_SHORT_TEXT];
	uint64_t pid;
	/* Which process had the pid: the boot of its host, "" where that is not known, and its start in that. */
	char boot_id[CK_BOOT_ID_MAX + 1];
	uint64_t start_ticks;
	int64_t time;
	char nonce[CK_RUN_ID_HEX + 1];
	uint32_t world_size;
	/* The resume choice: "" (not yet), "fresh", "resumed", "fell-back", "complete", "held". */
	char resume[16];
	struct ck_step_id resumed; /* what was loaded */
	bool ended;                /* the handle was closed */
	char **refused; /* names of checkpoints refused, with the reason: "step-… : why" */
	size_t nrefused;
};

void ck_claim_fini(struct ck_claim *claim);
int ck_claim_parse(const char *where, const char *text, size_t bytes, struct ck_claim *out,
		   struct ck_error *err);
int ck_claim_print(const struct ck_claim *claim, struct ck_buf *out, struct ck_error *err);

/*
 * Claim the next generation: mkdir .gen-<n>, on EEXIST the next, then claim.json in it. n is one more than the highest
 * in any name there: of generations, and of checkpoints, saves and pins, whose .gen-* may have been removed.
 * Fills claim->generation and nonce; the rest is the caller's. Returns 0; CK_ENOENT (run
 * directory); CK_EFENCED: as below; CK_EFORMAT; CK_EIO. After a failure the claim is untouched, and the number is
 * given back where that is possible: without a claim it would only fence the present owner.
 */
int ck_claim_take(const struct ck_io *io, const char *dir, struct ck_claim *claim,
		  struct ck_error *err);
/*
 * The same for who has looked up to generation `after` (ck_owner_wait) and found nobody there: CK_EEXIST when
 * somebody else has made one above it, which is to be looked at first. The run is as before then.
 */
int ck_claim_take_after(const struct ck_io *io, const char *dir, uint64_t after,
			struct ck_claim *claim, struct ck_error *err);
/*
 * The highest generation, 0 if none, once it has its claim: one that is being claimed has none yet. Waits for that
 * at most CK_CLAIM_SECONDS; then its claimant is dead. Returns 0; CK_ENOENT (no such directory); CK_EIO; CK_ENOMEM.
 */
#define CK_CLAIM_SECONDS 3
int ck_owner_wait(const struct ck_io *io, const char *dir, uint64_t *out, struct ck_error *err);
/*
 * Replace claim.json of our own generation. Returns 0; CK_EFENCED: a newer one has taken over, and swept away what
 * was under way; CK_ENOENT; CK_EFORMAT; CK_EIO; CK_ENOMEM.
 */
int ck_claim_store(const struct ck_io *io, const char *dir, const struct ck_claim *claim,
		   struct ck_error *err);
int ck_claim_load(const struct ck_io *io, const char *dir, uint64_t generation,
		  struct ck_claim *out, struct ck_error *err);

/* The numbers of all .gen-*, highest first; free() them. Returns 0; CK_ENOENT; CK_EIO; CK_ENOMEM. */
int ck_generations_load(const struct ck_io *io, const char *dir, uint64_t **out, size_t *count,
			struct ck_error *err);

/* Highest .gen-* of the directory, 0 if none. */
int ck_generation_highest(const struct ck_io *io, const char *dir, uint64_t *out,
			  struct ck_error *err);

/*
 * The claim of the present owner, or of the last: of the highest generation that has one. What has none is
 * passed over, since nobody holds it: its claimant failed or died over it, or is about to claim (two at once are
 * told apart by ck_owner_check). So is a .gen-* that is no directory.
 * Returns 0 (free with ck_claim_fini); CK_ENOENT: nobody has claimed this run yet; CK_EFORMAT, CK_EIO: the claim
 * that decides cannot be read, so that it is not known whether somebody holds the run; CK_ENOMEM.
 */
int ck_owner_load(const struct ck_io *io, const char *dir, struct ck_claim *out,
		  struct ck_error *err);

/*
 * The same for who wants to take over: *found is false when nobody has claimed the run yet. A claim that decides
 * and cannot be read is CK_EREFUSED, with the way out.
 */
int ck_owner_ask(const struct ck_io *io, const char *dir, struct ck_claim *out, bool *found,
		 struct ck_error *err);

/*
 * Are we still the owner? A readdir, to be made after an entry of our own. Returns 0; CK_EFENCED
 * naming the newer; CK_ENOENT (no run directory); CK_EIO (also: our own generation is gone).
 */
int ck_owner_check(const struct ck_io *io, const char *dir, uint64_t generation,
		   struct ck_error *err);
/* The same, and what else stands in the run directory (ck_names_fini): what the owner does next, goes by it. */
int ck_owner_list(const struct ck_io *io, const char *dir, uint64_t generation,
		  struct ck_names *out, struct ck_error *err);

/* What the runtime wants to happen to the job when its step ends: .gen-<n>/mark.json. */
enum ck_want {
	CK_WANT_REQUEUE = 0,
	CK_WANT_STOP = 1,
	CK_WANT_HOLD = 2,
	CK_WANT_REFUSE = 3, /* only of ck_refusal_store */
	CK_WANTS
};

struct ck_mark {
	enum ck_want want;
	struct ck_job job; /* nodes is not stored */
	uint64_t step;
	char reason[CK_SHORT_TEXT]; /* "signal 15", "time limit", "ckpt stop" */
	/* The last save, made from the program's memory by all ranks at once; 0: there was none. */
	uint64_t save_ms;
	uint64_t save_bytes; /* of the rank that had most */
};

int ck_mark_parse(const char *where, const char *text, size_t bytes, struct ck_mark *out,
		  struct ck_error *err);
int ck_mark_print(const struct ck_mark *mark, struct ck_buf *out, struct ck_error *err);
int ck_mark_store(const struct ck_io *io, const char *dir, uint64_t generation,
		  const struct ck_mark *mark, struct ck_error *err);
/*
 * The step is started in a wrong way, and starting it again would not help: .gen-<n>/refusal.json, which outranks the
 * mark. By one who was refused, beside the owner, who knows nothing of it. `mark`: as above, its `want` is set here.
 */
int ck_refusal_store(const struct ck_io *io, const char *dir, uint64_t generation,
		     const struct ck_mark *mark, struct ck_error *err);
/* The mark of a generation. Returns 0; CK_ENOENT; CK_EFORMAT; CK_EIO; CK_ENOMEM. */
int ck_mark_load(const struct ck_io *io, const char *dir, uint64_t generation, struct ck_mark *out,
		 struct ck_error *err);
/*
 * The mark of a job step, a refusal before others: the first one, from the highest generation down, that names cluster,
 * job_id, restart_count and step_id of `job`. Returns 0; CK_ENOENT: none; CK_EIO or CK_EFORMAT:
 * none fits, and one could not be read.
 */
int ck_mark_find(const struct ck_io *io, const char *dir, const struct ck_job *job,
		 struct ck_mark *out, struct ck_error *err);

/*
 * Append one event to .gen-<n>/events.jsonl: {"time": …, "event": …, "step": …, "text": …}.
 * One writer. step UINT64_MAX: none. `event` is a word; in `text` what is not printable is escaped.
 * Durable on success. Failures (CK_ENOENT, CK_EIO) are for the caller to ignore or report.
 */
int ck_event_add(const struct ck_io *io, const char *dir, uint64_t generation, const char *event,
		 uint64_t step, const char *text, struct ck_error *err);

#endif
