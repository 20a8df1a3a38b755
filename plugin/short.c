#include "short.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"

unsigned ck_short_count(const struct ck_short_start *starts, size_t count, int64_t overhead,
			bool no_time)
{
	unsigned n = 0;

	while (n < count && starts[n].by_limit && (no_time || starts[n].trained < overhead))
		n++;
	return n;
}

/* When the mark was written, by the file system's clock; 0: not known. */
static int64_t mark_time(const struct ck_io *io, const char *dir, uint64_t generation)
{
	char name[CK_NAME_MAX], claim[PATH_MAX], path[PATH_MAX];
	struct stat st;

	if (!ck_path_join(claim, dir, ck_name_generation(generation, name)) ||
	    !ck_path_join(path, claim, CK_MARK_FILE) || io->ops->lstat(io, path, &st))
		return 0;
	return st.st_mtime;
}

static bool load_start(const struct ck_io *io, const char *dir, uint64_t generation,
		       const struct ck_job *job, struct ck_short_start *out)
{
	struct ck_claim claim;
	struct ck_mark mark;
	int64_t trained;

	if (ck_mark_load(io, dir, generation, &mark, NULL) ||
	    ck_claim_load(io, dir, generation, &claim, NULL))
		return false;
	trained = mark_time(io, dir, generation) - claim.time - (int64_t)(mark.save_ms / 1000);
	*out = (struct ck_short_start){
		.by_limit = mark.want == CK_WANT_REQUEUE &&
			    strcmp(mark.reason, "time limit") == 0 &&
			    strcmp(claim.job.job_id, job->job_id) == 0 &&
			    strcmp(claim.job.cluster, job->cluster) == 0,
		.trained = trained > 0 ? trained : 0,
	};
	ck_claim_fini(&claim);
	return true;
}

size_t ck_short_load(const struct ck_io *io, const char *dir, const struct ck_job *job,
		     struct ck_short_start out[static CK_SHORT_MAX])
{
	uint64_t *generations;
	size_t ngenerations, count = 0;

	if (ck_generations_load(io, dir, &generations, &ngenerations, NULL))
		return 0;
	while (count < ngenerations && count < CK_SHORT_MAX &&
	       load_start(io, dir, generations[count], job, &out[count]))
		count++;
	free(generations);
	return count;
}
