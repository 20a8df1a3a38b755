/*
 * With SLURM_KILL_BAD_EXIT srun signals all other ranks as soon as it hears of one that has exited
 * with 75, and a rank killed on its way out would hide the 75 in srun's exit code. So slurmstepd
 * hears of it a little later. The deadline is one for all tasks of the node, in memory that
 * survives the fork which some releases make around this callback.
 */
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "begin.h"
#include "env.h"
#include "plugin.h"

#define LINGER_MS 2000

static _Atomic int64_t *linger_until;

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void ck_linger_init(void)
{
	void *page = mmap(NULL, sizeof(*linger_until), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (page != MAP_FAILED)
		linger_until = page;
}

static bool is_requeue_exit(spank_t spank)
{
	uint32_t step_id = NO_VAL, tasks = 0;
	char **env = NULL;
	int status = 0;

	return spank_get_item(spank, S_JOB_STEPID, &step_id) == ESPANK_SUCCESS &&
	       step_id < SLURM_MAX_NORMAL_STEP_ID &&
	       spank_get_item(spank, S_TASK_EXIT_STATUS, &status) == ESPANK_SUCCESS &&
	       WIFEXITED(status) && WEXITSTATUS(status) == CK_EXIT_REQUEUE &&
	       spank_get_item(spank, S_JOB_TOTAL_TASK_COUNT, &tasks) == ESPANK_SUCCESS &&
	       tasks > 1 && spank_get_item(spank, S_JOB_ENV, &env) == ESPANK_SUCCESS &&
	       ck_begin_getenv(env, CK_ENV_SEAL);
}

void ck_linger_task_exit(spank_t spank)
{
	struct timespec pause;
	int64_t left;

	if (!linger_until || !is_requeue_exit(spank))
		return;
	if (*linger_until == 0)
		*linger_until = now_ms() + LINGER_MS;
	left = *linger_until - now_ms();
	if (left <= 0 || left > LINGER_MS)
		return;
	pause = (struct timespec){.tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000};
	nanosleep(&pause, NULL);
}
