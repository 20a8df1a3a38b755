/*
 * To be preloaded into srun: its first request for a requeue goes astray, in the way that LOST_REQUEUE
 * says. In LOST_REQUEUE_DIR the file `lost` tells that it has; srun goes on once there is a file `go`.
 *
 *   request    slurmctld never hears of it, and srun gets no answer
 *   reply      slurmctld requeues the job, and srun gets no answer
 *   forgotten  srun gets its answer, and slurmctld knows nothing of it (it died before it saved that)
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <slurm/slurm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WAIT_SECONDS 60

typedef int requeue2(char *job_id, uint32_t flags, job_array_resp_msg_t **resp);

/* For srun alone, not for its tasks. */
__attribute__((constructor)) static void leave_environment(void)
{
	unsetenv("LD_PRELOAD");
}

static void path_of(const char *name, char path[static 4096])
{
	const char *dir = getenv("LOST_REQUEUE_DIR");

	snprintf(path, 4096, "%s/%s", dir ? dir : ".", name);
}

static void meet_test(void)
{
	const struct timespec tick = {.tv_nsec = 50000000};
	char path[4096];
	int fd;

	path_of("lost", path);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd >= 0)
		close(fd);
	path_of("go", path);
	for (int i = 0; i < WAIT_SECONDS * 20 && access(path, F_OK); i++)
		nanosleep(&tick, NULL);
}

__attribute__((visibility("default"))) int slurm_requeue2(char *job_id, uint32_t flags,
							  job_array_resp_msg_t **resp)
{
	static bool lost;
	const char *how = getenv("LOST_REQUEUE");
	requeue2 *real = (requeue2 *)dlsym(RTLD_NEXT, "slurm_requeue2");

	if (lost || !how)
		return real(job_id, flags, resp);
	lost = true;
	*resp = NULL;
	if (strcmp(how, "reply") == 0) {
		real(job_id, flags, resp);
		*resp = NULL; /* a leak of the test's */
	}
	meet_test();
	if (strcmp(how, "forgotten") == 0)
		return 0;
	errno = ETIMEDOUT;
	return -1;
}
