#include "watch.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gather.h"
#include "lost.h"
#include "place.h"

/* How long before the time limit a job is requeued that has not stopped by itself. */
#define LEAD_SECONDS 3
/* After an accepted requeue Slurm kills us, at the latest after KillWait (30 s by default). */
#define KILL_SECONDS 120
#define BATCH_SECONDS 30
#define REQUEUE_TRIES 3
#define CMDLINE_BYTES 65536

static struct {
	struct ck_watch watch;
	pid_t pid; /* children that srun forks inherit its exit handlers */
	pid_t parent;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool closing;     /* the exit handler has begun */
	bool requeued;    /* accepted by Slurm */
	bool batch_ended; /* by ending the batch script */
	bool said;        /* why it is not requeued */
	enum ck_nodes nodes;
	char lost[CK_NODE_NAME];
} state = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static void sleep_ms(long ms)
{
	struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&pause, NULL);
}

/* One line, with write(): stdio and Slurm's log may be closed already. */
static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *fmt, ...)
{
	struct ck_buf line = CK_BUF_INIT;
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	if (!text)
		return;
	ck_buf_add_str(&line, "ckpt: ");
	ck_buf_add_escaped(&line, text);
	ck_buf_add_str(&line, "\n");
	if (!line.failed && write(STDERR_FILENO, line.data, line.len) < 0)
		sleep_ms(0); /* nobody is left to be told */
	ck_buf_fini(&line);
	free(text);
}

/*
 * The job is requeued and everything of it about to be killed: do not let the script go on. Once
 * our parent is dead nobody waits for us any more, and we may outlive the kill (mpirun's srun has
 * a process group of its own, which proctrack/pgid does not see).
 */
static void wait_for_kill(void)
{
	for (int i = 0; i < KILL_SECONDS * 10; i++) {
		if (getppid() != state.parent)
			return;
		/* A script that catches SIGTERM waits for us before it acts on it. */
		if (state.batch_ended && i == BATCH_SECONDS * 10)
			ck_jobinfo_signal_batch(&state.watch.noted, SIGKILL, NULL);
		sleep_ms(100);
	}
	say("the job still runs %d s after it was requeued; going on", KILL_SECONDS);
}

static void requeue(const struct ck_jobinfo *job, bool held, const char *reason)
{
	struct ck_error err;
	int rc = -1;

	/* Said first: an accepted requeue may leave no time for it. */
	say("%s: %s", held ? "requeueing, held" : "requeueing", reason);
	if (held)
		say("'scontrol release' lets the job try again");
	state.batch_ended = !held && ck_jobinfo_grace_requeues(job) &&
			    ck_jobinfo_signal_batch(job, SIGTERM, NULL) == 0;
	if (state.batch_ended)
		rc = 0;
	for (int i = 0; rc && i < REQUEUE_TRIES; i++) {
		if (i > 0)
			sleep_ms(1000);
		rc = held ? ck_jobinfo_requeue_held(job, reason, &err)
			  : ck_jobinfo_requeue(job, &err);
	}
	if (rc)
		say("not requeued: Slurm says: %s", err.text);
	state.requeued = rc == 0;
	state.said = true;
}

/* From 24.05 on Slurm requeues a job that ends in the grace time of a preemption, unless it may not. */
static void forbid(struct ck_jobinfo *job)
{
	struct ck_error err;

	if (!ck_jobinfo_grace_requeues(job))
		return;
	job->may_requeue = ck_jobinfo_forbid_requeue(job, &err) != 0;
	if (job->may_requeue)
		say("Slurm requeues the job, since it is being preempted: %s", err.text);
	else
		say("the job is set to Requeue=0, or Slurm would requeue it after the preemption");
}

static void say_not_requeued(const struct ck_gathered *seen, const char *reason)
{
	bool hint = seen->has_checkpoint && seen->end.exit_code > 0 && !seen->end.superseded;

	if (hint && seen->end.loaded &&
	    !seen->job.may_requeue) /* not even by hand, once it has ended */
		say("not requeued: %s; submit it again with --ckpt-name=%s to resume", reason,
		    state.watch.start.name);
	else
		say("not requeued: %s%s", reason,
		    hint ? "; 'scontrol requeue' resumes the job" : "");
}

static void say_by_hand(const char *reason)
{
	const struct ck_start *start = &state.watch.start;
	struct ck_buf command = CK_BUF_INIT;
	char *args = malloc(CMDLINE_BYTES);
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t len = args && fd >= 0 ? read(fd, args, CMDLINE_BYTES - 1) : -1;

	if (len > 0) {
		args[len] = '\0';
		ck_place_command(args, (size_t)len, start->name, start->base, &command);
	}
	if (command.len && !command.failed)
		say("%s; an interactive job is not requeued, to go on: %s", reason, command.data);
	if (fd >= 0)
		close(fd);
	free(args);
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
			say("waiting for step %" PRIu32 " before the job is requeued", other);
		said = true;
		sleep_ms(pause_ms);
		pause_ms = pause_ms < 4000 ? pause_ms * 2 : pause_ms;
		if (ck_jobinfo_load(job.job_id, &job, NULL) || job.state != CK_JOB_RUNNING ||
		    job.restarts != seen->job.restarts)
			return;
	}
}

static void say_line(const char *line)
{
	say("%s", line);
}

static void gather(int exit_code, struct ck_gathered *seen)
{
	ck_gather(&ck_io_posix, &state.watch, exit_code, seen);
	seen->end.nodes = state.nodes;
	seen->end.lost = state.lost;
}

/* Did the step fail because it lost a node? Slurm may requeue the job meanwhile. */
static enum ck_end_action look_for_lost(struct ck_gathered *seen, char reason[static CK_END_REASON])
{
	enum ck_nodes nodes = ck_lost_wait(&state.watch, say_line, state.lost);
	enum ck_end_action action;

	state.nodes = nodes == CK_NODES_UNKNOWN ? CK_NODES_HEALTHY : nodes;
	gather(seen->end.exit_code, seen);
	action = ck_end_decide(&seen->end, reason);
	/* Requeued by Slurm: no line of the script may run, as after a requeue of ours. */
	if (nodes == CK_NODES_UNKNOWN && action == CK_END_NOTHING)
		state.requeued = state.said = true;
	return action;
}

/* exit_code -1: the step runs, and the time limit is here. Called with the lock held. */
static void decide(int exit_code)
{
	char reason[CK_END_REASON];
	struct ck_gathered seen;
	enum ck_end_action action;

	gather(exit_code, &seen);
	action = ck_end_decide(&seen.end, reason);
	if (action == CK_END_LOOK)
		action = look_for_lost(&seen, reason);
	if ((action == CK_END_REQUEUE || action == CK_END_HOLD) && exit_code >= 0) {
		wait_for_others(&seen);
		gather(exit_code, &seen);
		action = ck_end_decide(&seen.end, reason);
	}
	if (action == CK_END_FORBID && !state.said)
		forbid(&seen.job);
	if (action == CK_END_REQUEUE || action == CK_END_HOLD)
		requeue(&seen.job, action == CK_END_HOLD, reason);
	else if (action == CK_END_RESUME_BY_HAND && exit_code >= 0)
		say_by_hand(reason);
	else if ((action == CK_END_SAY || action == CK_END_FORBID) && !state.said)
		say_not_requeued(&seen, reason);
	if (action == CK_END_SAY || action == CK_END_FORBID)
		state.said = true;
}

static void at_exit(int status, void *unused)
{
	sigset_t all;

	(void)unused;
	if (getpid() != state.pid)
		return;
	/* The requeue's SIGTERM is for the batch script; we are to outlive it. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	pthread_mutex_lock(&state.lock);
	state.closing = true;
	pthread_cond_signal(&state.wake);
	if (!state.requeued)
		decide(status & 0xff);
	pthread_mutex_unlock(&state.lock);
	if (state.requeued)
		wait_for_kill();
}

/* Sleep until shortly before the time limit, which may be moved meanwhile; then decide. */
static void *at_limit(void *unused)
{
	struct ck_jobinfo job = state.watch.noted;
	struct timespec until = {.tv_sec = job.end - LEAD_SECONDS};

	(void)unused;
	pthread_mutex_lock(&state.lock);
	while (!state.closing && job.end) {
		if (time(NULL) < until.tv_sec) {
			pthread_cond_timedwait(&state.wake, &state.lock, &until);
			continue;
		}
		until.tv_sec = time(NULL) + 1;
		if (ck_jobinfo_load(job.job_id, &job, NULL))
			continue; /* ask again */
		if (job.end - LEAD_SECONDS > time(NULL)) {
			until.tv_sec = job.end - LEAD_SECONDS;
			continue;
		}
		if (job.end)
			decide(-1);
		break;
	}
	pthread_mutex_unlock(&state.lock);
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
	if (watch->noted.batch && watch->noted.end && watch->most != 0)
		start_thread();
}
