/*
 * <ckpt.h>: checkpoints that survive preemption, time limits and dead nodes.
 *
 *	ckpt *ck;
 *	uint64_t step = 0;
 *	int rc = ckpt_open_mpi(&ck, MPI_COMM_WORLD, NULL);     once, all ranks
 *
 *	if (rc == 0)                                           what the state is
 *		rc = ckpt_add_replicated(ck, "weights", CKPT_F32, 1, &n, w);
 *	if (rc == 0)
 *		rc = ckpt_restore(ck, &step);                  fills it, or leaves it
 *	if (rc < 0)                                            never train on after a failure
 *		give_up(ckpt_error(ck));                       MPI_Abort: others may not know
 *	while (step < last) {
 *		train(step);
 *		if (ckpt_step(ck, ++step) == CKPT_STOP)        saves when it is time
 *			exit(CKPT_EXIT_REQUEUE);
 *	}
 *	ckpt_complete(ck);                                     final save; the run is finished
 *	ckpt_close(ck);
 *
 * Collective: every rank calls these, in the same order: ckpt_open, ckpt_prepare, ckpt_restore,
 * ckpt_step, ckpt_save, ckpt_wait, ckpt_complete, ckpt_close. The others are local.
 * A handle belongs to one thread at a time, and to the process that opened it: in a forked child its calls
 * return CKPT_EREFUSED, ckpt_close 0, and touch nothing. No call exits, aborts or raises.
 *
 * Off: with no run directory, neither from `ckpt_options.dir` nor from `sbatch --ckpt`
 * (SLURM_CKPT_DIR), every call succeeds, touches nothing, and ckpt_restore says CKPT_FRESH.
 *
 * A handle that is NULL is CKPT_EARG; 0 to ckpt_should_stop, ckpt_alive and ckpt_close.
 *
 * Errors: negative `enum ckpt_code`, the same on every rank for a collective call;
 * ckpt_error() has the text. A failed save is not an error of ckpt_step: older checkpoints stay,
 * training goes on, a line on stderr says why, and the save is tried again.
 */
#ifndef CKPT_H
#define CKPT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Exit with this after CKPT_STOP: the job is requeued and resumes. */
#define CKPT_EXIT_REQUEUE 75

/* An opaque handle: one run, opened for writing. */
typedef struct ckpt ckpt;

/* What ckpt_restore found. */
enum ckpt_restored {
	CKPT_FRESH = 0,     /* no checkpoint yet; the registered memory is untouched, *step = 0 */
	CKPT_RESUMED = 1,   /* the newest checkpoint is loaded */
	CKPT_FELL_BACK = 2, /* newer ones were bad; an older one is loaded */
	CKPT_COMPLETE = 3,  /* the run had finished at *step; that state is loaded */
};

/* ckpt_step, ckpt_save: state saved, committed and recorded on every rank; leave the loop. No ckpt_restore says it. */
#define CKPT_STOP 16

enum ckpt_code {
	CKPT_EARG = -1,    /* a bad argument or setting, or registrations that do not fit */
	CKPT_EIO = -2,     /* the file system failed */
	CKPT_ENOMEM = -3,  /* out of memory */
	CKPT_EFORMAT = -4, /* a file is not what it should be */
	CKPT_EDIGEST = -5, /* bytes differ from what was written */
	CKPT_ENOENT = -6,  /* a run, checkpoint or file is missing */
	CKPT_EEXIST = -7,  /* something is there already */
	CKPT_EFENCED =
		-8, /* a newer generation of this run has taken over: stop, do not exit with 75 */
	CKPT_EPEER = -9, /* a rank failed or does not answer: the handle is dead, call MPI_Abort */
	CKPT_EWORLD = -10, /* saved by another number of ranks */
	CKPT_EITEM = -11,  /* items of the program and of the checkpoint differ */
	CKPT_EREFUSED =
		-12 /* a rule forbids it: another job, another cluster, a missing directory */
};

/*
 * Element types: the names of safetensors, little endian. PyTorch's HuggingFaceStorageReader knows
 * F16, BF16, F32, F64, I8, U8, I16, I32 and I64; the rest load with current safetensors libraries.
 */
enum ckpt_dtype {
	CKPT_BOOL = 0,
	CKPT_U8 = 1,
	CKPT_I8 = 2,
	CKPT_I16 = 3,
	CKPT_I32 = 4,
	CKPT_I64 = 5,
	CKPT_F16 = 6,
	CKPT_BF16 = 7,
	CKPT_F32 = 8,
	CKPT_F64 = 9,
	CKPT_U16 = 10,
	CKPT_U32 = 11,
	CKPT_U64 = 12,
	CKPT_C64 = 13,
	CKPT_F8_E4M3 = 14,
	CKPT_F8_E5M2 = 15,
	CKPT_F8_E8M0 = 16,
	CKPT_F8_E4M3FNUZ = 17,
	CKPT_F8_E5M2FNUZ = 18
};

/* At most this many dimensions. */
#define CKPT_MAX_NDIM 32

/* irecv: from any rank. */
#define CKPT_ANY_PEER (-1)

/* What a finished receive was. */
struct ckpt_message {
	int peer;
	size_t bytes;
};

/*
 * How ranks talk. ckpt_open_mpi makes one from an MPI communicator; a process group of another
 * kind fills it in itself; one process alone passes NULL to ckpt_open.
 *
 * Nothing in it blocks. Each function returns 0, or a negative value when the communicator is
 * broken. A request is started by iallreduce_max, isend or irecv, which store it in *request, and
 * ends when test reports done or cancel_recv returns; the buffers belong to it until then.
 * All calls come from the thread that uses the handle. Messages between two ranks with one tag
 * arrive in order. Reductions are matched by the order of their posting.
 */
struct ckpt_comm {
	size_t struct_size; /* sizeof(struct ckpt_comm) */
	int rank;           /* 0 … size - 1 */
	int size;
	void *ctx; /* handed to every function */

	/* out[i] = largest in[i] of all ranks. `in` and `out` do not overlap. */
	int (*iallreduce_max)(void *ctx, const uint64_t *in, uint64_t *out, int count,
			      void **request);
	/* Tags are 0 … 255. */
	int (*isend)(void *ctx, const void *data, size_t bytes, int peer, int tag, void **request);
	/* A message longer than `bytes` is an error of test. peer: a rank or CKPT_ANY_PEER. */
	int (*irecv)(void *ctx, void *data, size_t bytes, int peer, int tag, void **request);
	/* *done = 0 or 1; when 1 the request is gone (*request = NULL). `message` may be NULL. */
	int (*test)(void *ctx, void **request, int *done, struct ckpt_message *message);
	/* Give up a receive that has matched nothing. */
	int (*cancel_recv)(void *ctx, void **request);
	/* End all ranks of the program, as MPI_Abort does. Called for nothing but a dead peer. */
	void (*abort)(void *ctx, int exit_code);
	/* Free ctx; called by ckpt_close, as the last thing. NULL: ctx is the program's. */
	void (*release)(void *ctx);
};

/* Settings of the program. Zero or NULL: as sbatch --ckpt-… said, else the default. "" is CKPT_EARG. */
struct ckpt_options {
	size_t struct_size;    /* sizeof(struct ckpt_options) */
	const char *dir;       /* run directory */
	const char *every;     /* "30min", "900s", "1:00:00", "500steps" (default 30min) */
	int keep;              /* checkpoints kept (default 3) */
	double margin_seconds; /* kept free before the end time (default 60) */
	const char *resume;    /* "auto", "fresh", or a step: holds until this job has committed */
	const char *from; /* run or step directory to begin from when this run has no checkpoint */
	const char
		*verify;   /* "auto" (SHA-256 after a start, CRC-32 within it), "crc32", "sha256" */
	const char *fail;  /* "warn"; "error": ckpt_step fails after 3 failed saves in a row */
	const char *world; /* "any" number of ranks may resume; "fixed": only as many as saved */
	const char *staging;     /* "auto"; "off": no copies, saves wait; "2G": of a rank at most */
	int takeover;            /* 1: supersede an owner of the run that seems to be running */
	const int *stop_signals; /* 0-terminated; default { SIGTERM, SIGUSR1, 0 }: save and stop */
	const int *save_signals; /* 0-terminated; default { SIGUSR2, 0 }: save and go on */
	/* Receives each message, one line without newline, on rank 0 only (default: stderr). */
	void (*log)(void *log_arg, const char *line);
	void *log_arg;
};

/*
 * Open the run for writing. Collective; settings come from rank 0.
 *
 *   ck       the new handle. After a failure it is one that only ckpt_error and ckpt_close
 *            accept (NULL when there was not even memory for that)
 *   comm     copied; its ctx must live until ckpt_close. NULL: this process is the only rank
 *   options  copied. NULL: everything from the environment
 *
 * A run is open once: while another process, or another handle of this one, has it, CKPT_EREFUSED, unless
 * options.takeover is set; then that one is fenced. A handle that is dead is closed first, too.
 *
 * Installs the signal handlers; they only set a flag, and go on to a handler that was there before.
 * Returns 0; CKPT_EARG, CKPT_EIO, CKPT_EREFUSED, CKPT_EFENCED (another program opens it at the same time, and has
 * got it), CKPT_EPEER, CKPT_ENOMEM.
 */
int ckpt_open(ckpt **ck, const struct ckpt_comm *comm, const struct ckpt_options *options);

/*
 * Register this rank's block of an item whose distinct blocks tile a tensor of `global_shape`.
 * Call it again with the same name for a further block of this rank. Ranks may hold the same
 * block (it is stored once and restored to each); blocks that overlap otherwise are an error of
 * the next ckpt_prepare, ckpt_restore, ckpt_step or ckpt_save. A rank without a block registers
 * an empty one (an extent of 0) or nothing.
 *
 *   name          1-1024 bytes of UTF-8, not beginning with "rank-<digits>/"
 *   global_shape  ndim extents, in elements; ndim 0 is a scalar and the shapes may be NULL
 *   offset        where the block begins, ndim values
 *   shape         extents of the block, ndim values
 *   data          row-major, contiguous, product(shape) elements; read by saves, written by
 *                 ckpt_restore; stays the program's and must outlive the handle
 *
 * Local. Returns 0; CKPT_EARG (a block outside of the tensor, another shape or dtype than before).
 */
int ckpt_add_sharded(ckpt *ck, const char *name, enum ckpt_dtype dtype, int ndim,
		     const uint64_t *global_shape, const uint64_t *offset, const uint64_t *shape,
		     void *data);

/* Register a tensor that every rank holds whole: stored once, restored to all. Otherwise as above. */
int ckpt_add_replicated(ckpt *ck, const char *name, enum ckpt_dtype dtype, int ndim,
			const uint64_t *shape, void *data);

/* What one rank of those that saved had of a per-rank item. */
struct ckpt_rank_value {
	const void *data; /* aligned to 16 bytes */
	size_t bytes;
};

/*
 * State that belongs to one rank (a random-number generator, a data iterator), as bytes.
 *
 * After a change of the number of ranks there is no "same rank" to give it back to: then `reassign`
 * decides, with everything the old ranks had before it. Common cases:
 *
 *	position in the data, as a global count   not per-rank at all: ckpt_add_replicated
 *	random-number streams                     ckpt_reassign_drop, and seed them anew from the run's
 *	                                          seed, the rank, and the step that ckpt_restore gave
 *	one queue or iterator for each old rank   a function of your own that divides them up
 */
struct ckpt_rank_callbacks {
	size_t struct_size; /* sizeof(struct ckpt_rank_callbacks) */
	void *arg;          /* handed to each callback */
	/* How many bytes it has now; may change from save to save. */
	size_t (*size)(void *arg);
	/* Write exactly `bytes` bytes to `dst`; 0, or not 0 to fail the save. */
	int (*get)(void *arg, void *dst, size_t bytes);
	/* Take back what get gave; 0, or not 0 to refuse the checkpoint. */
	int (*set)(void *arg, const void *src, size_t bytes);
	/*
	 * May be NULL (or left out, by struct_size): then another number of ranks is CKPT_EITEM. Called
	 * instead of `set` on every rank, with values[r] of old rank r; they are gone when it
	 * returns. 0, or not 0 to refuse the checkpoint.
	 */
	int (*reassign)(void *arg, uint32_t old_world, const struct ckpt_rank_value *values);
};

/*
 * A `reassign` that leaves the item as the program has made it, and does not bring the old values. With it the
 * checkpoint may lack the item: `ckpt reshard --per-rank=drop` leaves it out.
 */
int ckpt_reassign_drop(void *arg, uint32_t old_world, const struct ckpt_rank_value *values);

/* Register a per-rank item; every rank does, under the same name. Local. Returns 0; CKPT_EARG. */
int ckpt_add_rank(ckpt *ck, const char *name, const struct ckpt_rank_callbacks *callbacks);

/* For memory that memcpy cannot read or write (a GPU's). Both copy `bytes` bytes and return 0, or not 0 to fail. */
struct ckpt_copier {
	size_t struct_size; /* sizeof(struct ckpt_copier) */
	void *arg;          /* handed to both */
	/* From registered memory (or a place within it) to the host's; before the save's call returns. */
	int (*read)(void *arg, void *host, const void *src, size_t bytes);
	/* From the host's to the registered memory, in ckpt_restore. */
	int (*write)(void *arg, void *dst, const void *host, size_t bytes);
};

/* Give an item, registered before, a copier. Copied. Local. Returns 0; CKPT_EARG. */
int ckpt_set_copier(ckpt *ck, const char *name, const struct ckpt_copier *copier);

/*
 * Name the one-dimensional sharded item (a flat, ZeRO-like partition) whose ranges the manifest
 * reports as param_shard_offset and param_shard_numel. Local. Returns 0; CKPT_EARG.
 */
int ckpt_set_flat(ckpt *ck, const char *name);

/*
 * A JSON object of the program's own (hyper-parameters, notes), kept in the manifest of every later
 * checkpoint; rank 0's is stored. At most 16 MiB of text, 15 levels deep; integers, written without
 * fraction and exponent, are below 2^53 in size, other numbers finite as a double. NULL: none.
 * Copied. Local. Returns 0; CKPT_EARG, and what was set before stays; CKPT_ENOMEM.
 */
int ckpt_set_user(ckpt *ck, const char *json);

/*
 * Check the registrations of all ranks and reserve the memory that saves copy the state to (unless
 * options.staging or the memory forbids that), instead of at the first save. To learn the sizes it gathers
 * the state, so callbacks and copiers are called. A save under way is waited for. Collective. Returns 0;
 * CKPT_EARG (a callback fails, too); CKPT_ENOMEM; CKPT_EFENCED; CKPT_EPEER.
 */
int ckpt_prepare(ckpt *ck);

/*
 * Load the newest checkpoint that verifies into the registered memory. Collective.
 *
 *   step  completed steps: the loop goes on with *step. Untouched after a failure. NULL is CKPT_EARG
 *
 * The ranks may be more or fewer than those that saved, and hold other blocks: each gets what it has
 * registered. (ckpt_options.world = "fixed" makes another number CKPT_EWORLD.)
 *
 * Returns an enum ckpt_restored, and logs one line that says which; CKPT_EDIGEST, CKPT_EFORMAT or
 * CKPT_EIO when checkpoints exist and none is good; CKPT_EWORLD, CKPT_EITEM when the newest good
 * one does not fit this program; CKPT_ENOENT when committed ones, or the one asked for, are not there;
 * CKPT_EREFUSED: of another run, or no progress. The registered memory is undefined after a failure: then
 * ckpt_step, ckpt_save and ckpt_complete save nothing and return the same code, until a ckpt_restore succeeds.
 * They return CKPT_EREFUSED where the run has a checkpoint and ckpt_restore has not been called at all.
 */
int ckpt_restore(ckpt *ck, uint64_t *step);

/*
 * Tell that `step` steps are completed; begin a save when it is time. Collective: all ranks call it
 * equally often, with the same number. Calling it again with the same number is fine. A save copies the
 * state aside and is written beside training, or, where options.staging or the memory forbids that, is over
 * before the call returns; then the program may change its memory.
 *
 * Returns 0: go on. CKPT_STOP: the state is saved; exit with CKPT_EXIT_REQUEUE (so, too, when this last
 * save has failed: the job resumes from an older one). CKPT_EFENCED, CKPT_EPEER: end the program. CKPT_EARG:
 * the registrations of the ranks do not fit together, or their steps differ, or fall. CKPT_EIO: three
 * saves in a row have failed, with options.fail = "error". And what a ckpt_restore that failed has returned;
 * CKPT_EREFUSED: it has not been called.
 */
int ckpt_step(ckpt *ck, uint64_t step);

/*
 * Begin a save of the state as it is now; a save under way is waited for first. The program may change its
 * memory when the call returns. Collective, with the same step on all ranks. Returns 0: the save is under way
 * (ckpt_wait tells how it ended; `step` saved already counts). Without staging it is over by then, and a
 * failure of it is returned. CKPT_EARG, CKPT_EFENCED, CKPT_EPEER; CKPT_STOP, when that has been returned
 * before; after no ckpt_restore, or one that failed, as ckpt_step.
 */
int ckpt_save(ckpt *ck, uint64_t step);

/* Wait until a save under way is committed. Collective. Returns 0 (none is under way, too) or its failure. */
int ckpt_wait(ckpt *ck);

/*
 * The run is finished: save the last step given to ckpt_step, and note it in the run's directory,
 * so that starting the job again ends at once (ckpt_restore says CKPT_COMPLETE). Collective. Returns 0 or
 * the failure of the save or of the note; after no ckpt_restore, or one that failed, as ckpt_step.
 */
int ckpt_complete(ckpt *ck);

/* 1 when this process has received a stop signal; ckpt_step will act on it. Local, cheap. */
int ckpt_should_stop(const ckpt *ck);

/*
 * Tell other ranks that this one is at work: from within a step that takes longer than SLURM_CKPT_TIMEOUT
 * (10 min), at least twice in that time. Without it they take the rank for dead. Local, cheap. Returns
 * 0; CKPT_EPEER when they have given up.
 */
int ckpt_alive(ckpt *ck);

/* Text of the last failure, "" if none. Valid until the next call. `ck` may be NULL. Local. */
const char *ckpt_error(const ckpt *ck);

/* Wait for a save under way and free the handle. NULL is fine. Collective unless the handle is dead. */
int ckpt_close(ckpt *ck);

#ifdef __cplusplus
}
#endif

#endif
