/*
 * The checkpoints of a run, from readdir alone; and loading one's manifest.
 */
#ifndef CK_CATALOG_H
#define CK_CATALOG_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "error.h"
#include "io.h"
#include "manifest.h"
#include "names.h"

struct ck_catalog {
	struct ck_step_id *steps; /* newest first: by generation, then step */
	size_t count;
};

/* Names that are not exactly a step's are ignored. Returns 0; CK_ENOENT (no directory); CK_EIO. */
int ck_catalog_load(const struct ck_io *io, const char *dir, struct ck_catalog *out,
		    struct ck_error *err);
/* The same from a listing of the directory. Returns 0; CK_ENOMEM. */
int ck_catalog_from(const struct ck_names *names, struct ck_catalog *out, struct ck_error *err);
void ck_catalog_fini(struct ck_catalog *catalog);

/*
 * Read and check manifest.json of a step directory, and that step and generation are those of the
 * directory's name. Returns 0 (ck_manifest_fini); CK_ENOENT (gone, or no manifest); CK_EFORMAT (also: a link
 * or a file where the directory should be); CK_EIO.
 */
int ck_step_load(const struct ck_io *io, const char *dir, struct ck_step_id id,
		 struct ck_manifest *out, struct ck_error *err);

/* The same, and the text of the file, for whoever needs its digest (ck_buf_fini). */
int ck_step_read(const struct ck_io *io, const char *dir, struct ck_step_id id,
		 struct ck_manifest *out, struct ck_buf *text, struct ck_error *err);

/*
 * ck_step_load, and SHA256SUMS must vouch for the manifest (ck_sums_check, whose answers it has besides):
 * for whoever goes by what the manifest says, and does not only tell it.
 */
int ck_step_load_summed(const struct ck_io *io, const char *dir, struct ck_step_id id,
			struct ck_manifest *out, struct ck_error *err);

/*
 * Every file of the manifest is there, regular, and has its size. For one rank's files only with
 * rank >= 0. Returns 0; CK_ENOENT naming the file; CK_EFORMAT: both sizes; CK_EIO.
 */
int ck_step_sized(const struct ck_io *io, const char *dir, const struct ck_manifest *manifest,
		  int64_t rank, struct ck_error *err);

/* Is this one of the names that a step directory has, by its manifest? */
bool ck_step_has_name(const struct ck_manifest *manifest, const char *name);

/*
 * A *.safetensors in the step directory that its manifest does not know: other readers would load it. Stores the first
 * one's name, "" when there is none. Returns 0; CK_ENOENT; CK_EIO; CK_ENOMEM.
 */
int ck_step_stray(const struct ck_io *io, const char *dir, const struct ck_manifest *manifest,
		  char stray[static NAME_MAX + 1], struct ck_error *err);
bool ck_is_safetensors(const char *name);

/*
 * Which directory does the user mean by RUN or RUN@STEP or RUN@latest or a step directory itself?
 *   run   out: the run directory          id  out: the step; has_step false: the run as a whole
 * "latest" is the newest by name; of a step that several generations have, the newest is meant. A
 * run directory is one with run.json or a checkpoint. Returns 0; CK_ENOENT (the text lists what is
 * there); CK_EARG (no step's number); CK_EFORMAT (a file); CK_EIO; CK_ENOMEM. Outputs are untouched on failure.
 */
int ck_resolve(const struct ck_io *io, const char *text, char run[static PATH_MAX], bool *has_step,
	       struct ck_step_id *id, struct ck_error *err);

#endif
