/*
 * srun's wait, once the job is requeued, for the end of the batch script: as long as srun does not
 * return, no line of the script after it runs.
 *
 * Slurm sends SIGTERM to the script and to srun, and SIGKILL after KillWait. A script without a trap
 * dies of the first. A shell that has a trap on SIGTERM runs it when its foreground command has ended:
 * so srun ends as soon as the signal has arrived.
 */
#ifndef CK_OUTLIVE_H
#define CK_OUTLIVE_H

#include "watch.h"

enum ck_requeuer {
	CK_BY_REQUEST, /* ours */
	CK_BY_SCRIPT, /* Slurm, when the script has ended of the SIGTERM that we had sent to it alone */
	CK_BY_OTHERS /* before our step ended; our SIGTERM may have come and gone */
};

enum ck_outlived {
	CK_OUTLIVED, /* the script is dead, or has a trap to run */
	CK_FORGOTTEN /* slurmctld knows nothing of the requeue (it was restarted): ask again */
};

/*
 * Returns when the script ends, whenever that is: Slurm is asked now and then where the job is, and a
 * script that was left behind, since its node did not hear of the requeue, is ended here.
 *
 *   parent  of this process, as it was when the step began
 * All signals are blocked in the caller.
 */
enum ck_outlived ck_outlive(const struct ck_watch *watch, enum ck_requeuer by, pid_t parent);

#endif
