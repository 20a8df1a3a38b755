/*
 * A save as a transaction: begin, each rank writes and records, rank 0 commits; or abandon.
 * Before the rename of .saving-… to step-… nothing exists; after it, everything does.
 */
#ifndef CK_COMMIT_H
#define CK_COMMIT_H

#include <stdbool.h>

#include "error.h"
#include "io.h"
#include "manifest.h"
#include "run.h"
#include "shard.h"

/*
 * mkdir of the staging directory, whose path is stored; a directory there already is fine. Every rank
 * before its first part. Returns 0; CK_ENOENT (no run directory); CK_EIO (also: a link or a file is there).
 */
int ck_save_begin(const struct ck_io *io, const char *dir, struct ck_step_id id,
		  char staging[static PATH_MAX], struct ck_error *err);

/*
 * Rank 0 after ck_save_begin: owner check, then save.json. `save` has everything but files.
 * Returns 0; CK_EFENCED; CK_ENOENT (not begun); CK_EIO; CK_EFORMAT.
 */
int ck_save_announce(const struct ck_io *io, const char *dir, const struct ck_manifest *save,
		     struct ck_error *err);

/*
 * Write all parts of a rank's plan into the staging directory (fsynced), then the record file.
 *   flat     name of the flat item or NULL: fills param_shard_* of the files
 *   options  see ck_shard_write_all; may be NULL
 * On success `record` lists the files (free with ck_record_fini). Returns 0; CK_EIO; CK_ENOMEM;
 * CK_ENOENT (not begun); CK_EEXIST (a part is there: ck_save_abandon first); CK_EFORMAT (save_id).
 */
int ck_save_write(const struct ck_io *io, const char *dir, struct ck_step_id id,
		  const char *save_id, uint32_t rank, const struct ck_plan *plan, const char *flat,
		  const struct ck_shard_options *options, struct ck_record *record,
		  struct ck_error *err);

/*
 * Rank 0, when all records are in: SHA256SUMS, manifest.json, unlink save.json, fsync, owner check,
 * rename, fsync the run directory; then `latest` and run.json's `committed`, whose failures do not
 * undo the commit.
 *
 *   manifest  complete, with files
 *   warning   may be NULL; the first failure behind the commit, code CK_OK when there is none
 * A rename that fails is looked at before it is believed: our manifest in the target is success. A
 * commit that cannot be made durable is taken back; where even that fails, it is committed, with a
 * warning. Returns 0; CK_EFENCED; CK_EIO; CK_ENOENT (not begun, or swept away); CK_EEXIST;
 * CK_EFORMAT; CK_ENOMEM; after a failure nothing is published and the staging directory is still
 * there (ck_save_abandon), unless a newer owner took it.
 */
int ck_save_commit(const struct ck_io *io, const char *dir, const struct ck_manifest *manifest,
		   struct ck_error *warning, struct ck_error *err);

/*
 * Remove what a failed save left: records, then the staging directory. Missing is fine. Goes on
 * after a failure and returns the first. No rank of the save may be writing.
 */
int ck_save_abandon(const struct ck_io *io, const char *dir, struct ck_step_id id,
		    struct ck_error *err);

/* Remove records-<step>/ of a committed save. */
int ck_save_tidy(const struct ck_io *io, const char *dir, struct ck_step_id id,
		 struct ck_error *err);

/*
 * The same but for run.json (ck_run_set_committed), for a staging directory at any path below `dir`, on behalf of
 * a generation that may be newer than the checkpoint's own: salvage.
 *   staging  path; becomes the step directory
 *   owner    must be the highest generation still
 */
int ck_commit_directory(const struct ck_io *io, const char *dir, const char *staging,
			const struct ck_manifest *manifest, uint64_t owner,
			struct ck_error *warning, struct ck_error *err);

/* What ck_salvage published. */
struct ck_salvaged {
	struct ck_step_id *steps;
	size_t count;
	size_t nlost;           /* saves that had begun, and were not complete */
	struct ck_step_id lost; /* the newest of them */
	bool unknown; /* one could not be looked at or committed: it may be the newest state there is */
};

/*
 * After a claim: every .saving-* of lower generations is renamed to .salvage-*, so that a late commit
 * finds nothing. A save that was complete (save.json and a record of every rank, or a manifest; every
 * file with its size) is committed, and keeps the generation that wrote it; its bytes are verified when
 * it is loaded. The others are renamed to .deleting-*, for ck_sweep. Files and links of such names stay.
 *   generation  our own
 * Goes on after a failure and returns the first: CK_EFENCED; CK_EIO (it is tried again by the next opener).
 */
int ck_salvage(const struct ck_io *io, const char *dir, uint64_t generation,
	       struct ck_salvaged *out, struct ck_error *err);
void ck_salvaged_fini(struct ck_salvaged *salvaged);

/*
 * What would ck_salvage do with this .saving-*, whose writer is dead? Changes nothing.
 *   seized  it is a .salvage-*: an opener died over it
 *   out  the manifest that it would get; free with ck_manifest_fini
 * Returns 0: publish it; CK_EIO, CK_ENOMEM: not known; else discard it: CK_EEXIST: it is committed already,
 * CK_ENOENT, CK_EFORMAT: it was not complete.
 */
int ck_salvage_look(const struct ck_io *io, const char *dir, struct ck_step_id id, bool seized,
		    struct ck_manifest *out, struct ck_error *err);

/*
 * Sweeping. `names` is a listing of `dir`, made by whoever knows that it owns the run (ck_owner_list): who is fenced
 * touches nothing. A file or a link that only has such a name is somebody else's, and stays. All go on after a
 * failure and return the first: CK_EIO. They take as long as unlinking takes.
 */

/* What was un-published or discarded: .deleting-*. */
int ck_sweep_deleting(const struct ck_io *io, const char *dir, const struct ck_names *names,
		      struct ck_error *err);

/*
 * After a commit of ours: .saving-* of lower generations, of writers that do not know yet that they are fenced. Not
 * before: until then they may be salvaged.
 */
int ck_sweep_fenced(const struct ck_io *io, const char *dir, const struct ck_names *names,
		    uint64_t generation, struct ck_error *err);

/*
 * Before a save of ours: what earlier ones that failed have left, where it could not be removed at once. No rank of them
 * may be writing.
 *   current  the save under way, whose directories stay
 *   records  look for records as well, which takes a listing more
 */
int ck_sweep_own(const struct ck_io *io, const char *dir, const struct ck_names *names,
		 struct ck_step_id current, bool records, struct ck_error *err);

/*
 * What lower generations left, once the run is ours: .deleting-*; their records, unless a save of theirs waits to be
 * salvaged; temporary files. Those in the run directory bear no generation, so the listing must be older than
 * the first write of this process there.
 */
int ck_sweep(const struct ck_io *io, const char *dir, const struct ck_names *names,
	     uint64_t generation, struct ck_error *err);

#endif
