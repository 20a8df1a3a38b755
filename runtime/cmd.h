/*
 * The `ckpt` command: what its verbs share.
 *
 * A verb is one function in one file, cmd_<verb>.c, entered in the table of cmd_main.c. Results go
 * to stdout, everything else to stderr. Whatever is printed as a line has its control characters
 * escaped here, so that a name on disk cannot steer a terminal.
 */
#ifndef CK_CMD_H
#define CK_CMD_H

#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "buf.h"
#include "error.h"
#include "io.h"
#include "io_fault.h"
#include "names.h"
#include "run.h"

/* What the command exits with. */
enum ck_cmd_exit {
	CK_CMD_FINE = 0,
	CK_CMD_BAD = 1,       /* a bad checkpoint, or a negative answer */
	CK_CMD_USAGE = 2,     /* the command line */
	CK_CMD_UNCHECKED = 3, /* something could not be looked at */
	CK_CMD_INTERRUPTED = 130
};

struct ck_cmd {
	const char *verb; /* "" before it is known */
	const struct ck_io *io;
};

struct ck_cmd_verb {
	const char *name;
	const char *synopsis; /* what follows `ckpt`, one line per form */
	const char *summary;  /* one line without a period */
	const char *help;     /* options and exit codes, lines ending in '\n' */
	/* argv[0] is the verb. Returns the exit code. */
	int (*run)(struct ck_cmd *cmd, int argc, char **argv);
};

extern const struct ck_cmd_verb ck_cmd_ls;
extern const struct ck_cmd_verb ck_cmd_verify;
extern const struct ck_cmd_verb ck_cmd_reshard;
extern const struct ck_cmd_verb ck_cmd_export;
extern const struct ck_cmd_verb ck_cmd_diff;
extern const struct ck_cmd_verb ck_cmd_stop;
extern const struct ck_cmd_verb ck_cmd_save;
extern const struct ck_cmd_verb ck_cmd_pin;

/* cmd_main.c: print a verb's help to stdout. Returns CK_CMD_FINE. */
int ck_cmd_help(const struct ck_cmd_verb *verb);

/* --- cmd_say.c: lines for people --- */

/* One line, escaped, to a stream; the newline is added. */
void ck_cmd_line(FILE *stream, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "ckpt <verb>: …" to stderr, after what stdout still holds. */
void ck_cmd_complain(const struct ck_cmd *cmd, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The same with " (see 'ckpt help <verb>')" behind it. Returns CK_CMD_USAGE. */
int ck_cmd_usage(const struct ck_cmd *cmd, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Tell a failure; 0 is none, and one that comes from an interrupt says nothing. Returns the exit
 * code: not there or not what it should be, usage, could not look.
 */
enum ck_cmd_exit ck_cmd_tell(const struct ck_cmd *cmd, int code, const struct ck_error *err);

/* Of two exit codes the one to report: interrupted, usage, bad, unchecked, fine. */
enum ck_cmd_exit ck_cmd_worse(enum ck_cmd_exit a, enum ck_cmd_exit b);

/* Ends stdout; output that could not be written (a full disk) is told and makes CK_CMD_UNCHECKED. */
int ck_cmd_finish(const struct ck_cmd *cmd, int exit_code);

/* --- cmd_options.c: the command line --- */

/* Returned by ck_cmd_getopt after a mistake that has been told. */
#define CK_CMD_OPT_BAD '?'

/*
 * getopt_long with messages of our own: one line that names the option, what was wrong, and a
 * near match. `shorts` begins with ':'. Returns as getopt_long does.
 */
int ck_cmd_getopt(const struct ck_cmd *cmd, int argc, char **argv, const char *shorts,
		  const struct option *longs);

/* The word of a list that `text` is likely to mean, or NULL. A word that `text` begins counts. */
const char *ck_cmd_closest(const char *text, const char *const *words, size_t count);

/* --- cmd_io.c: the file system as the command sees it --- */

/*
 * The operating system's calls, or the rules of SLURM_CKPT_IO_FAULT over them; once SIGINT or
 * SIGTERM has come, every call that would read fails with ECANCELED, so that whatever is under way ends soon.
 */
struct ck_cmd_io {
	struct ck_io io;
	struct ck_io_ops ops;
	const struct ck_io *below;
	struct ck_io_fault *fault;
};

/* Catches both, too, unless ignored. `rules` may be NULL. Returns 0; CK_EARG. */
int ck_cmd_io_init(struct ck_cmd_io *cmd_io, const char *rules, struct ck_error *err);
void ck_cmd_io_fini(struct ck_cmd_io *cmd_io);

/* Has SIGINT or SIGTERM come? */
bool ck_cmd_interrupted(void);
/* The calls that go on after it, for `io` of a command: to end what must not be left half done, and to clean up. */
const struct ck_io *ck_cmd_io_below(const struct ck_io *io);

/* --- cmd_table.c --- */

#define CK_CMD_COLUMNS_MAX 16

struct ck_cmd_column {
	const char *head;
	bool right; /* numbers */
};

/* A table of texts: as wide as its cells need, two spaces between them, none at the end. */
struct ck_cmd_table {
	const struct ck_cmd_column *columns;
	size_t ncolumns;
	char **cells; /* row after row */
	size_t count;
	size_t capacity;
	bool failed; /* out of memory */
};

/* The next cell, from left to right; escaped. */
void ck_cmd_table_add(struct ck_cmd_table *table, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Head and rows, nothing when there is no row. Returns 0 or CK_ENOMEM (of any addition). */
int ck_cmd_table_print(const struct ck_cmd_table *table, FILE *stream, struct ck_error *err);
void ck_cmd_table_fini(struct ck_cmd_table *table);

/* Columns that a text takes on a terminal: its characters. */
size_t ck_cmd_width(const char *text);

/* "2026-11-29 20:37": the minute, in UTC. Returns out. */
char *ck_cmd_minute(int64_t epoch, char out[static 32]);

/* --- cmd_json.c: output for programs --- */

/* One JSON object, one member per line. Zeros, then ck_cmd_json_open(json, NULL, '{'). */
struct ck_cmd_json {
	struct ck_buf text;
	unsigned depth;
	bool has_member; /* a comma comes before the next */
};

/* `key` is NULL in an array and for the outermost. A string that is NULL becomes null. */
void ck_cmd_json_open(struct ck_cmd_json *json, const char *key, char bracket);
void ck_cmd_json_close(struct ck_cmd_json *json, char bracket);
void ck_cmd_json_text(struct ck_cmd_json *json, const char *key, const char *text);
void ck_cmd_json_number(struct ck_cmd_json *json, const char *key, uint64_t value);
void ck_cmd_json_seconds(struct ck_cmd_json *json, const char *key, double seconds);
void ck_cmd_json_flag(struct ck_cmd_json *json, const char *key, bool value);
void ck_cmd_json_null(struct ck_cmd_json *json, const char *key);
void ck_cmd_json_time(struct ck_cmd_json *json, const char *key, int64_t epoch);
/* Print and free. Returns 0 or CK_ENOMEM. */
int ck_cmd_json_print(struct ck_cmd_json *json, FILE *stream, struct ck_error *err);

/* --- cmd_progress.c --- */

/* A line on stderr that says how far it is; only on a terminal, and only after a second. */
struct ck_cmd_progress {
	bool on;
	const char *label;
	bool in_bytes;
	uint64_t total; /* 0: not known */
	atomic_uint_fast64_t done;
	double started;
	double drawn; /* when, 0: never */
	pthread_mutex_t lock;
};

/* Can there be a bar at all? Then `total` is worth finding out. */
bool ck_cmd_progress_wanted(void);
void ck_cmd_progress_begin(struct ck_cmd_progress *progress, const char *label, bool in_bytes,
			   uint64_t total);
/* A ck_progress; any thread. */
void ck_cmd_progress_add(void *progress, uint64_t amount);
/* Take the line away, to print something; it comes back with the next addition. */
void ck_cmd_progress_clear(struct ck_cmd_progress *progress);
void ck_cmd_progress_end(struct ck_cmd_progress *progress);

/* Monotonic seconds. */
double ck_cmd_clock(void);

/* --- cmd_targets.c: what the arguments mean --- */

/* A run, or one checkpoint of it. */
struct ck_cmd_target {
	char *run; /* directory */
	bool has_step;
	bool named;        /* of `ckpt verify`: this checkpoint itself, not its run */
	unsigned renewals; /* of RUN@latest: how often ck_cmd_target_renew may look it up again */
	struct ck_step_id id;
};

struct ck_cmd_targets {
	struct ck_cmd_target *items;
	size_t count;
};

/*
 * Add what RUN, RUN@STEP, RUN@latest or a step directory means.
 *   expand  a directory that is no run but holds some stands for these (one level)
 * Returns 0; CK_ENOENT, CK_EARG, CK_EIO as ck_resolve; CK_ENOMEM.
 */
int ck_cmd_targets_add(const struct ck_cmd *cmd, const char *text, bool expand,
		       struct ck_cmd_targets *targets, struct ck_error *err);
/* Has the checkpoint been removed since, as rotation does? */
bool ck_cmd_target_is_gone(const struct ck_io *io, const struct ck_cmd_target *target);
/*
 * For RUN@latest whose checkpoint is gone: take the one that is newest now. Returns false when that is not so, or there
 * is no other.
 */
bool ck_cmd_target_renew(const struct ck_io *io, struct ck_cmd_target *target);
/* Nothing was named: $SLURM_CKPT_DIR, else the current directory. CK_EARG: it is no help. */
int ck_cmd_targets_default(const struct ck_cmd *cmd, const char *environment,
			   struct ck_cmd_targets *targets, struct ck_error *err);
int ck_cmd_targets_push(struct ck_cmd_targets *targets, const char *run,
			const struct ck_step_id *id, struct ck_error *err);
void ck_cmd_targets_fini(struct ck_cmd_targets *targets);

/* --- cmd_look.c: a run at a glance, without reading shards --- */

enum ck_cmd_state {
	CK_CMD_WHOLE = 0, /* manifest parses, every file is there with its size */
	CK_CMD_DAMAGED,
	CK_CMD_UNKNOWN,  /* could not look */
	CK_CMD_SAVING,   /* a save under way */
	CK_CMD_LEFT_OVER /* a save whose writer did not end it and is gone */
};

/* "ok", "bad", "unknown", "saving", "left-over" */
const char *ck_cmd_state_name(enum ck_cmd_state state);

/* A checkpoint, or a save that is not one yet. */
struct ck_cmd_row {
	struct ck_step_id id;
	enum ck_cmd_state state;
	const char *what; /* of a bad one, in two words: "file missing"; "" otherwise */
	/*
	 * The whole text, or NULL. Of a whole one: why the last start refused it all the same. Of
	 * one left over: what the next start does with it.
	 */
	char *reason;
	bool described; /* world_size, created and save_id are known */
	bool foreign;   /* its run_id is not the run's */
	bool pinned;
	bool salvageable; /* of one left over: it was complete, and the next start commits it ... */
	bool unseen;      /* ... or may have been */
	bool seized;      /* a start died while it did so: a .salvage-* */
	uint32_t world_size;
	int64_t created; /* of a save: when it began */
	char save_id[CK_RUN_ID_HEX + 1];
	uint64_t files; /* of a save: so far */
	uint64_t bytes; /* of a save: 0, unless it is salvageable */
};

/* Of its directory. */
const char *ck_cmd_row_name(const struct ck_cmd_row *row, char name[static CK_NAME_MAX]);

/* What a start of the program would do here, as far as a glance tells. */
enum ck_cmd_resume {
	CK_CMD_FRESH = 0,
	CK_CMD_RESUMES,
	CK_CMD_FALLS_BACK,
	CK_CMD_COMPLETE,
	CK_CMD_UNREAD, /* the newest that is not bad could not be looked at; who cannot either, is refused */
	CK_CMD_FAILS,  /* checkpoints are there and none is whole */
	CK_CMD_REFUSES /* run.json and the checkpoints do not fit together */
};

struct ck_cmd_facts {
	const char *dir; /* the caller's */
	bool has_run;    /* run.json could be read */
	struct ck_run run;
	int run_code; /* when not: why */
	char *run_reason;
	uint64_t generation; /* highest, 0: none */
	bool has_claim;      /* of that generation */
	struct ck_claim claim;
	bool owner_gone;         /* it was ended, or its process is known to be dead */
	char *held;              /* the last start refused to go on: why; or NULL */
	struct ck_cmd_row *rows; /* newest first */
	size_t nrows;
	size_t nsteps;                /* rows that are checkpoints */
	size_t nbad;                  /* of these, not whole */
	size_t nsalvageable;          /* rows that will be checkpoints */
	bool vanished;                /* what was listed was gone when it was looked at */
	bool unchecked;               /* something could not be looked at */
	enum ck_cmd_resume resume;    /* what a start would do ... */
	const struct ck_cmd_row *row; /* ... with which checkpoint; NULL: with none */
	size_t newer_bad;             /* than that one; all, where there is none */
};

/*
 * Look at a run. `progress` counts files. Returns 0 (free with ck_cmd_facts_fini); CK_ENOENT;
 * CK_EIO; CK_ENOMEM.
 */
int ck_cmd_look(const struct ck_io *io, const char *dir, struct ck_cmd_progress *progress,
		struct ck_cmd_facts *out, struct ck_error *err);
void ck_cmd_facts_fini(struct ck_cmd_facts *facts);

#endif
