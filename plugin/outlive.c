#include "outlive.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "parent.h"
#include "say.h"

#define TICK_MS 100
/* From the signal to a shell's death, if it dies of it: then its trap may run. */
#define SETTLE_MS 300
/* A script that catches SIGTERM has got it by then, though we have not seen it. */
#define OTHERS_MS 5000
#define REQUEST_MS 30000
/* One that does not end of our SIGTERM gets SIGKILL. */
#define SCRIPT_MS 30000
/* Slurm is asked where the job is: at first, and at most so far apart. */
#define LOOK_FIRST_MS 5000
#define LOOK_MOST_MS 60000

struct outlive {
	const struct ck_watch *watch;
	enum ck_requeuer by;
	pid_t parent;
	uint64_t wakeups;    /* of the parent, at the beginning */
	long ms, arrived_ms; /* arrived_ms -1: no SIGTERM yet */
	long next_look_ms;
	bool ended; /* by us */
};

static bool has_pending_term(void)
{
	sigset_t pending;

	return sigpending(&pending) == 0 && sigismember(&pending, SIGTERM) == 1;
}

/* Has the script a trap, and has it got its SIGTERM? */
static bool may_return(struct outlive *o)
{
	long latest = o->by == CK_BY_OTHERS ? OTHERS_MS : REQUEST_MS;
	struct ck_parent parent;
	bool arrived;

	if (!ck_parent_look(o->parent, &parent) || !parent.catches)
		return false;
	/* Its own SIGTERM alone: a shell that waits for a child has slept once more since. */
	arrived = has_pending_term() || (o->by == CK_BY_SCRIPT && parent.wakeups != o->wakeups) ||
		  o->ms >= latest;
	if (arrived && o->arrived_ms < 0)
		o->arrived_ms = o->ms;
	return o->arrived_ms >= 0 && o->ms >= o->arrived_ms + SETTLE_MS;
}

enum whereabouts { HERE, FORGOTTEN, ELSEWHERE };

static enum whereabouts look(const struct outlive *o)
{
	const struct ck_watch *watch = o->watch;
	struct ck_jobinfo job;
	int rc = ck_jobinfo_load(watch->start.job_id, &job, NULL);

	if (rc && rc != CK_ENOENT)
		return HERE; /* for all we know */
	if (rc == CK_ENOENT)
		return ELSEWHERE;
	if (job.state == CK_JOB_RUNNING && ck_watch_same_start(watch, &job))
		return o->by == CK_BY_SCRIPT ? HERE : FORGOTTEN;
	return job.completing ? HERE : ELSEWHERE;
}

static enum whereabouts look_in_time(struct outlive *o)
{
	long pause = o->next_look_ms < LOOK_MOST_MS ? o->next_look_ms : LOOK_MOST_MS;
	enum whereabouts job;

	if (o->ms < o->next_look_ms)
		return HERE;
	o->next_look_ms += pause;
	job = look(o);
	if (job == ELSEWHERE && !o->ended) {
		ck_say("the job has left this node, and Slurm has not ended this script: ending "
		       "it");
		o->ended = true;
		ck_parent_end(o->parent);
	}
	return job;
}

enum ck_outlived ck_outlive(const struct ck_watch *watch, enum ck_requeuer by, pid_t parent)
{
	struct outlive o = {
		.watch = watch,
		.by = by,
		.parent = parent,
		.arrived_ms = -1,
		.next_look_ms = LOOK_FIRST_MS,
	};
	const struct timespec tick = {.tv_nsec = TICK_MS * 1000000L};
	struct ck_parent script;

	if (ck_parent_look(parent, &script))
		o.wakeups = script.wakeups;
	/*
	 * Once the parent is dead nobody waits for us, and we may outlive the kill: mpirun's srun has
	 * a process group of its own, which proctrack/pgid does not see.
	 */
	for (; getppid() == parent && !may_return(&o); o.ms += TICK_MS) {
		if (by == CK_BY_SCRIPT && o.ms == SCRIPT_MS)
			ck_jobinfo_signal_batch(&watch->noted, SIGKILL, NULL);
		if (look_in_time(&o) == FORGOTTEN)
			return CK_FORGOTTEN;
		nanosleep(&tick, NULL);
	}
	return CK_OUTLIVED;
}
