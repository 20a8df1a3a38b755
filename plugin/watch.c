#include "watch.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "gather.h"
#include "io.h"
#include "lost.h"
#include "outlive.h"
#include "place.h"
#include "say.h"

/* How long before the time limit a job is requeued that has not stopped by itself. */
#define LEAD_SECONDS 3
/* Pauses between questions to a slurmctld that does not answer. */
#define ASK_FIRST_MS 1000
#define ASK_MOST_MS 15000
/* A limit may be lowered, or set, while the job runs: so long it may go unnoticed. */
#define LOOK_SECONDS 45
#define CMDLINE_BYTES 65536

static struct {
	struct ck_watch watch;
	pid_t pid; /* children that srun forks inherit its exit handlers */
	pid_t parent;
	/* Held for the flags alone, never over a question to Slurm or to the file system. */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool closing; /* the exit handler has begun */
	bool busy;    /* the thread decides */
	/* Of whoever decides, one after the other. */
	bool requeued; /* accepted by Slurm, */
	enum ck_requeuer by;
	bool unfinished; /* requeued or not: the script must not take this step for done */
	bool announced;  /* that, or why, it is requeued */
	bool said;       /* why it is not requeued */
	enum ck_nodes nodes;
	char lost[CK_NODE_NAME];
} state = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static void sleep_ms(long ms)
{
	struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&pause, NULL);
}

/* Returns false when there was no answer. */
static bool fail_job(const struct ck_jobinfo *job, const char *reason)
{
	struct ck_error err;
	int rc;

	if (!state.announced)
		ck_say("ending the job, which must not end as COMPLETED: %s", reason);
	state.announced = state.said = true;
	rc = ck_jobinfo_end(job, CK_EXIT_REFUSED, &err);
	if (rc == CK_EREFUSED)
		ck_say("the job is not ended: Slurm says: %s", err.text);
	state.requeued = rc == 0; /* its end is waited for likewise */
	state.by = CK_BY_REQUEST;
	return rc == 0 || rc == CK_EREFUSED;
}

static void say_by_hand(const char *reason)
{
	const struct ck_start *start = &state.watch.start;
	struct ck_buf args = CK_BUF_INIT, command = CK_BUF_INIT;

	if (!ck_io_read_stream(&ck_io_posix, "/proc/self/cmdline", CMDLINE_BYTES, &args, NULL) &&
	    args.len)
		ck_place_command(args.data, args.len, start->name, start->base, &command);
	if (command.len && !command.failed)
		ck_say("%s; an interactive job is not requeued, to go on: %s", reason,
		       command.data);
	ck_buf_fini(&args);
	ck_buf_fini(&command);
}

/*
 * The last step out requeues: others of this job that hold a run would be killed in the middle of
 * their save. During a preemption all others count; Slurm ends the wait with the grace time.
 */
static void wait_for_others(const struct ck_gathered *seen)
{
	long pause_ms = 250;
	bool said = false;
	uint32_t other;
	struct ck_jobinfo job = seen->job;

	if (seen->end.state != CK_JOB_RUNNING)
		return;
	while (ck_gather_other_step(&ck_io_posix, &state.watch, job.preempted != 0, &other)) {
		if (!said)
			ck_say("waiting for step %" PRIu32 " before the job is requeued", other);
		said = true;
		sleep_ms(pause_ms);
		pause_ms = pause_ms < 4000 ? pause_ms * 2 : pause_ms;
		if (ck_jobinfo_load(job.job_id, &job, NULL) || job.state != CK_JOB_RUNNING ||
		    job.restarts != seen->job.restarts)
			return;
	}
}

static bool wants_requeue(enum ck_end_action action)
{
	return action == CK_END_REQUEUE || action == CK_END_HOLD;
}

/* Said first: an accepted requeue may leave no time for it. */
static void announce(bool held, const char *reason)
{
	if (state.announced)
		return;
	ck_say("%s: %s", held ? "requeueing, held" : "requeueing", reason);
	if (held)
		ck_say("'scontrol release' lets the job try again");
	state.announced = state.said = true;
}

/* Returns false when the request got no answer: it may have been heard or not. */
static bool requeue(const struct ck_jobinfo *job, bool held, const char *reason)
{
	struct ck_error err;
	int rc, by_script = held ? 0 : ck_jobinfo_grace_requeues(job);

	announce(held, reason);
	state.unfinished = true;
	/* In doubt never both ways: the job would be requeued twice. */
	if (by_script < 0)
		return false;
	state.by = by_script ? CK_BY_SCRIPT : CK_BY_REQUEST;
	if (by_script)
		rc = ck_jobinfo_signal_batch(job, SIGTERM, &err);
	else if (held)
		rc = ck_jobinfo_requeue_held(job, reason, &err);
	else
		rc = ck_jobinfo_requeue(job, &err);
	if (rc == CK_EREFUSED)
		ck_say("not requeued: Slurm says: %s", err.text);
	state.requeued = rc == 0;
	return rc == 0 || rc == CK_EREFUSED;
}

/* From 24.05 on Slurm requeues a job that ends in the grace time of a preemption, unless it may not. */
static void forbid(struct ck_jobinfo *job)
{
	struct ck_error err;

	if (ck_jobinfo_grace_requeues(job) <= 0)
		return;
	job->may_requeue = ck_jobinfo_forbid_requeue(job, &err) != 0;
	if (job->may_requeue)
		ck_say("Slurm requeues the job, since it is being preempted: %s", err.text);
	else
		ck_say("the job is set to Requeue=0, or Slurm would requeue it after the "
		       "preemption");
}

static void say_not_requeued(const struct ck_gathered *seen, const char *reason)
{
	bool hint = seen->has_checkpoint && seen->end.exit_code > 0 && !seen->end.superseded;

	if (hint && seen->end.loaded &&
	    !seen->job.may_requeue) /* not even by hand, once it has ended */
		ck_say("not requeued: %s; submit it again with --ckpt-name=%s to resume", reason,
		       state.watch.start.name);
	else
		ck_say("not requeued: %s%s", reason,
		       hint ? "; 'scontrol requeue' resumes the job" : "");
}

/* There is nothing to ask Slurm for. */
static void tell(struct ck_gathered *seen, enum ck_end_action action, const char *reason)
{
	/* What was announced has not come about. */
	bool news = !state.said || state.announced;

	if (action == CK_END_RESUME_BY_HAND && seen->end.exit_code >= 0)
		say_by_hand(reason);
	if (action == CK_END_WAIT) {
		state.requeued = state.unfinished = true;
		if (!state.announced)
			state.by = CK_BY_OTHERS;
	}
	if (action != CK_END_SAY && action != CK_END_FORBID)
		return;
	if (action == CK_END_FORBID && news)
		forbid(&seen->job);
	if (news)
		say_not_requeued(seen, reason);
	state.said = true;
}

static void say_line(const char *line)
{
	ck_say("%s", line);
}

/* Did the step fail because it lost a node? Slurm may requeue the job meanwhile. */
static void look_for_lost(void)
{
	enum ck_nodes nodes = ck_lost_wait(&state.watch, say_line, state.lost);

	state.nodes = nodes == CK_NODES_UNKNOWN ? CK_NODES_HEALTHY : nodes;
}

static enum ck_end_action look(int exit_code, struct ck_gathered *seen,
			       char reason[static CK_END_REASON])
{
	ck_gather(&ck_io_posix, &state.watch, exit_code, seen);
	seen->end.nodes = state.nodes;
	seen->end.lost = state.lost;
	return ck_end_decide(&seen->end, reason);
}

/* A failover of slurmctld takes two minutes. Nobody else gets these nodes before it is back. */
static void pause_asking(long *pause_ms)
{
	if (*pause_ms == ASK_FIRST_MS)
		ck_say("slurmctld does not answer; waiting for it, to know whether to requeue the "
		       "job");
	sleep_ms(*pause_ms);
	*pause_ms = *pause_ms * 2 < ASK_MOST_MS ? *pause_ms * 2 : ASK_MOST_MS;
}

/*
 * The job is looked up before each try: its owner may have cancelled it, and a request that got no
 * answer may have been heard. exit_code -1: the step runs, and the time limit is here; then there is
 * one try. Returns false when nothing is decided.
 */
static bool decide(int exit_code)
{
	long pause_ms = ASK_FIRST_MS;
	bool waited = exit_code < 0;
	char reason[CK_END_REASON];
	struct ck_gathered seen;
	enum ck_end_action action;

	for (;;) {
		action = look(exit_code, &seen, reason);
		if (action == CK_END_LOOK) {
			look_for_lost();
			continue;
		}
		if (wants_requeue(action) && !waited) {
			wait_for_others(&seen);
			waited = true;
			continue;
		}
		if (action == CK_END_FAIL && fail_job(&seen.job, reason))
			return true;
		if (action != CK_END_ASK && action != CK_END_FAIL && !wants_requeue(action)) {
			tell(&seen, action, reason);
			return true;
		}
		if (wants_requeue(action) && requeue(&seen.job, action == CK_END_HOLD, reason))
			return true;
		if (exit_code < 0)
			return false;
		pause_asking(&pause_ms);
	}
}

static void at_exit(int status, void *unused)
{
	int exit_code = status & 0xff;
	sigset_t all;

	(void)unused;
	if (getpid() != state.pid)
		return;
	/* The requeue's SIGTERM is for the batch script; we are to outlive it. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	pthread_mutex_lock(&state.lock);
	state.closing = true;
	pthread_cond_broadcast(&state.wake);
	while (state.busy)
		pthread_cond_wait(&state.wake, &state.lock);
	pthread_mutex_unlock(&state.lock);
	if (!state.requeued)
		decide(exit_code);
	while (state.requeued && ck_outlive(&state.watch, state.by, state.parent) == CK_FORGOTTEN) {
		state.requeued = false;
		decide(exit_code);
	}
	/* A script that goes on must not take it for done: srun ./train && touch DONE */
	if (state.unfinished && exit_code == 0)
		_exit(CK_EXIT_REQUEUE);
}

/* Until that second. Returns false when the exit handler has begun. */
static bool sleep_until(int64_t second)
{
	struct timespec until = {.tv_sec = second};
	bool closing;

	pthread_mutex_lock(&state.lock);
	while (!state.closing && time(NULL) < second)
		pthread_cond_timedwait(&state.wake, &state.lock, &until);
	closing = state.closing;
	pthread_mutex_unlock(&state.lock);
	return !closing;
}

/* As decide(), by the thread: the exit handler waits for it, or it leaves all to that. */
static bool decide_at_limit(void)
{
	bool closing, done;

	pthread_mutex_lock(&state.lock);
	closing = state.closing;
	state.busy = !closing;
	pthread_mutex_unlock(&state.lock);
	if (closing)
		return true;
	done = decide(-1);
	pthread_mutex_lock(&state.lock);
	state.busy = false;
	pthread_cond_broadcast(&state.wake);
	pthread_mutex_unlock(&state.lock);
	return done;
}

/* When to act on the limit. Slurm grants no more than the grace time to a job that is preempted. */
static int64_t acted_on(const struct ck_jobinfo *job)
{
	return job->end + (job->preempted ? 0 : state.watch.over_seconds) - LEAD_SECONDS;
}

/* When to look at the job again: then, but not later than LOOK_SECONDS from now. */
static int64_t next_look(const struct ck_jobinfo *job)
{
	int64_t look = time(NULL) + LOOK_SECONDS;

	return job->end && acted_on(job) < look ? acted_on(job) : look;
}

/* Sleep until shortly before the time limit, which may be moved meanwhile; then decide. */
static void *at_limit(void *unused)
{
	struct ck_jobinfo job = state.watch.noted;
	int64_t due = state.watch.known ? next_look(&job) : 0;

	(void)unused;
	while (sleep_until(due)) {
		due = time(NULL) + 1;
		if (ck_jobinfo_load(job.job_id, &job, NULL))
			continue; /* ask again */
		if (!job.batch)
			break;
		if (!job.end || acted_on(&job) > time(NULL))
			due = next_look(&job);
		else if (decide_at_limit())
			break;
	}
	return NULL;
}

/* No signal of srun's may be delivered to a thread of ours. */
static void start_thread(void)
{
	sigset_t all, before;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	if (pthread_create(&thread, NULL, at_limit, NULL) == 0)
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void ck_watch_start(const struct ck_watch *watch)
{
	if (state.pid)
		return;
	state.watch = *watch;
	state.watch.start.opts = NULL;
	state.pid = getpid();
	state.parent = getppid();
	state.watch.began = time(NULL);
	if (on_exit(at_exit, NULL))
		return;
	/* A job that could not be looked up may have a limit. */
	if (watch->most != 0 && !watch->lost_run && (!watch->known || watch->noted.batch))
		start_thread();
}

bool ck_watch_same_start(const struct ck_watch *watch, const struct ck_jobinfo *job)
{
	return job->restarts == watch->start.restarts &&
	       (!watch->known || job->start == watch->noted.start);
}
