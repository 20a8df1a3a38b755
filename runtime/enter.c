#include "enter.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "catalog.h"
#include "handle.h"
#include "names.h"

/* Rank 0: no run.json. May we make one? */
static int may_begin(const ckpt *ck, const struct ck_error *missing, struct ck_error *err)
{
	const struct ck_settings *set = &ck->set;
	struct ck_names names = {0};
	int rc = ck_io_list(ck->io, set->dir, &names, NULL);
	size_t count = names.count;
	/* Slurm counts a launch that failed as well. */
	bool restarted = set->job.restart_count > 0 && !set->first;

	ck_names_fini(&names);
	if (rc == CK_ENOENT && restarted)
		return ck_fail(
			err, CK_EREFUSED,
			"%s: is missing, but this job has run before: is the file system mounted? "
			"To start over, create the empty directory",
			set->dir);
	if (!rc && count > 0 && restarted)
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

/*
 * The plugin has found or made this job's run, so it is there: what we see is another directory under its path.
 * `seen`: the id of the run there, NULL for none.
 */
static int refuse_directory(const ckpt *ck, const char *wanted, const char *seen,
			    struct ck_error *err)
{
	char host[CK_SHORT_TEXT] = "";

	if (gethostname(host, sizeof(host) - 1))
		strcpy(host, "?");
	if (seen)
		return ck_fail(err, CK_EREFUSED,
			       "%s: on %s there is run %s in place of this job's, %s: is the file "
			       "system mounted there, and in the container?",
			       ck->set.dir, host, seen, wanted);
	return ck_fail(err, CK_EREFUSED,
		       "%s: on %s there is no " CK_RUN_FILE
		       ", where this job's run, %s, should be: is the file system mounted there, "
		       "and in the container?",
		       ck->set.dir, host, wanted);
}

/* Rank 0: the run's file, made if this is the first time. */
static int open_run(ckpt *ck, struct ck_error *err)
{
	struct ck_catalog catalog = {0};
	struct ck_error missing = CK_ERROR_INIT;
	int rc = ck_run_load(ck->io, ck->set.dir, &ck->run, &missing);

	if (!rc && *ck->set.run_id && strcmp(ck->run.run_id, ck->set.run_id) != 0)
		return refuse_directory(ck, ck->set.run_id, ck->run.run_id, err);
	if (!rc)
		return is_our_job(ck, err);
	if (rc == CK_ENOENT && *ck->set.run_id)
		return refuse_directory(ck, ck->set.run_id, NULL, err);
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

/* Another rank: is the run that rank 0 has opened here as well? */
static int see_run(const ckpt *ck, const char *run_id, struct ck_error *err)
{
	struct ck_names names = {0};
	struct ck_run run;
	int rc = ck_run_load(ck->io, ck->set.dir, &run, err);

	/* Made a moment ago on another node, maybe: listing makes NFS ask its server. */
	if (rc == CK_ENOENT && ck_io_list(ck->io, ck->set.dir, &names, NULL) == 0) {
		ck_names_fini(&names);
		rc = ck_run_load(ck->io, ck->set.dir, &run, err);
	}
	if (rc == CK_ENOENT)
		return refuse_directory(ck, run_id, NULL, err);
	if (!rc && strcmp(run.run_id, run_id) != 0)
		return refuse_directory(ck, run_id, run.run_id, err);
	return rc;
}

int ck_enter_run(ckpt *ck, struct ck_error *err)
{
	char run_id[CK_RUN_ID_HEX + 1] = "";
	int rc = ck_comm_agree(&ck->comm, ck_is_root(ck) ? open_run(ck, err) : 0, err);

	if (rc)
		return rc;
	strcpy(run_id, ck->run.run_id);
	rc = ck_comm_bcast(&ck->comm, 0, run_id, sizeof(run_id), err);
	if (rc)
		return rc;
	return ck_comm_agree(&ck->comm, ck_is_root(ck) ? 0 : see_run(ck, run_id, err), err);
}
