/*
 * Two things for which slurmstepd waits at a task's end.
 *
 * With SLURM_KILL_BAD_EXIT srun signals all other ranks as soon as it hears of one that has exited
 * with 75, and a rank killed on its way out would hide the 75 in srun's exit code. So slurmstepd
 * hears of it a little later. The deadline is one for all tasks of the node, in memory that
 * survives the fork which some releases make around this callback.
 *
 * A batch script without a trap dies of the SIGTERM that Slurm sends to the whole job, and slurmstepd
 * would then kill its srun, whose tasks have KillWait to save, and which is to ask for the requeue.
 */
#include <dirent.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "begin.h"
#include "env.h"
#include "plugin.h"

#define LINGER_MS 2000
/* Slurm's SIGKILL comes after KillWait, 30 s by default, and ends the wait. */
#define SCRIPT_SECONDS 180
#define SCRIPT_TICK_MS 100

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

static void sleep_ms(int64_t ms)
{
	struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&pause, NULL);
}

static void linger(void)
{
	int64_t left;

	if (*linger_until == 0)
		*linger_until = now_ms() + LINGER_MS;
	left = *linger_until - now_ms();
	if (left > 0 && left <= LINGER_MS)
		sleep_ms(left);
}

/* Process group of a checkpointed job's script that was killed by SIGTERM; 0: of no such. */
static pid_t group_of_killed_script(spank_t spank)
{
	uint32_t step_id = NO_VAL;
	char **env = NULL;
	pid_t pid = 0;
	int status = 0;

	if (spank_get_item(spank, S_JOB_STEPID, &step_id) != ESPANK_SUCCESS ||
	    step_id != SLURM_BATCH_SCRIPT ||
	    spank_get_item(spank, S_TASK_EXIT_STATUS, &status) != ESPANK_SUCCESS ||
	    !WIFSIGNALED(status) || WTERMSIG(status) != SIGTERM ||
	    spank_get_item(spank, S_JOB_ENV, &env) != ESPANK_SUCCESS ||
	    !ck_begin_getenv(env, CK_ENV_SUBMITTED) ||
	    spank_get_item(spank, S_TASK_PID, &pid) != ESPANK_SUCCESS)
		return 0;
	return pid > 1 ? pid : 0;
}

/* Is this process an srun of that group, and no zombie? */
static bool is_srun_of(const char *pid, pid_t group)
{
	char path[300], stat[512] = "", *name;
	int its_group = 0;
	char state = 'Z';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (!fgets(stat, sizeof(stat), file))
		stat[0] = '\0';
	fclose(file);
	name = strstr(stat, " (srun) ");
	return name && sscanf(name + 8, "%c %*d %d", &state, &its_group) == 2 && state != 'Z' &&
	       its_group == group;
}

/* Whatever else the script has started is ended with it, as ever. */
static bool has_srun(pid_t group)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	bool found = false;

	while (proc && !found && (entry = readdir(proc)))
		found = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
			is_srun_of(entry->d_name, group);
	if (proc)
		closedir(proc);
	return found;
}

void ck_linger_task_exit(spank_t spank)
{
	pid_t group = group_of_killed_script(spank);

	if (linger_until && is_requeue_exit(spank))
		linger();
	for (int i = 0; group && i < SCRIPT_SECONDS * 1000 / SCRIPT_TICK_MS && has_srun(group); i++)
		sleep_ms(SCRIPT_TICK_MS);
}
