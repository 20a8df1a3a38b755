#include "signals.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

/* What one signal number means to us, and who had it before. */
struct slot {
	bool installed;
	bool stops;
	struct sigaction before;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned users;
static struct slot slots[NSIG];
static atomic_int owner_pid;
static atomic_int stop_seen;
static atomic_uint saves_seen;
/* Of this thread. The model needs no memory at the first use, which may be in a handler. */
static _Thread_local volatile sig_atomic_t inside[NSIG] __attribute__((tls_model("initial-exec")));

static void call_before(const struct sigaction *before, int signum, siginfo_t *info, void *context)
{
	if (before->sa_flags & SA_SIGINFO)
		before->sa_sigaction(signum, info, context);
	else if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN)
		before->sa_handler(signum);
}

static void on_signal(int signum, siginfo_t *info, void *context)
{
	const struct slot *slot = &slots[signum];
	int saved_errno = errno, none = 0;

	if (getpid() != atomic_load(&owner_pid)) {
		/* A child made without pthread_atfork: it behaves as if we were not there. */
		sigaction(signum, &slot->before, NULL);
		kill(getpid(), signum);
	} else {
		if (slot->stops)
			atomic_compare_exchange_strong(&stop_seen, &none, signum);
		else
			atomic_fetch_add(&saves_seen, 1);
		/* A handler put above ours calls ours, and is above ours still when we come back under it. */
		if (!inside[signum]) {
			inside[signum] = 1;
			call_before(&slot->before, signum, info, context);
			inside[signum] = 0;
		}
	}
	errno = saved_errno;
}

static bool is_in(int signum, const int *list)
{
	while (*list && *list != signum)
		list++;
	return *list;
}

/* A signal may be named more than once, by one handle or several, but for one purpose. */
static int check(const int *stop, const int *save, struct ck_error *err)
{
	for (int signum = 1; signum < NSIG; signum++) {
		const struct slot *slot = &slots[signum];
		bool stops = is_in(signum, stop) || (slot->installed && slot->stops);
		bool saves = is_in(signum, save) || (slot->installed && !slot->stops);

		if (stops && saves)
			return ck_fail(err, CK_EARG,
				       "signal %d: is to stop, and to save and go on: name it "
				       "for one of them, alike in all handles of a process",
				       signum);
	}
	return 0;
}

static int install_one(int signum, bool stops, struct ck_error *err)
{
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct slot *slot = &slots[signum];

	if (slot->installed)
		return 0;
	sigemptyset(&action.sa_mask);
	slot->stops = stops;
	/* `before` is complete before our handler can run. */
	if (sigaction(signum, NULL, &slot->before) || sigaction(signum, &action, NULL))
		return ck_fail(err, CK_EARG, "signal %d: cannot be caught: %s", signum,
			       strerror(errno));
	slot->installed = true;
	return 0;
}

static void remove_all(void)
{
	for (int signum = 1; signum < NSIG; signum++) {
		struct sigaction now;

		if (!slots[signum].installed)
			continue;
		if (sigaction(signum, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
		    now.sa_sigaction == on_signal)
			sigaction(signum, &slots[signum].before, NULL);
		slots[signum].installed = false;
	}
}

/*
 * A child gets the dispositions that were there before: who ends it by SIGTERM means it, and its saves are not ours.
 * What it opens itself begins anew.
 */
static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
	remove_all();
	users = 0;
	atomic_store(&stop_seen, 0);
	atomic_store(&saves_seen, 0);
	pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork, in_child);
}

static int install_all(const int *stop, const int *save, struct ck_error *err)
{
	int rc = check(stop, save, err);

	for (; !rc && *stop; stop++)
		rc = install_one(*stop, true, err);
	for (; !rc && *save; save++)
		rc = install_one(*save, false, err);
	return rc;
}

int ck_signals_install(const int *stop, const int *save, struct ck_error *err)
{
	static pthread_once_t watched = PTHREAD_ONCE_INIT;
	int rc = 0;

	pthread_once(&watched, watch_forks);
	pthread_mutex_lock(&lock);
	if (users == 0) {
		atomic_store(&owner_pid, getpid());
		atomic_store(&stop_seen, 0);
		atomic_store(&saves_seen, 0);
	}
	rc = install_all(stop, save, err);
	if (!rc)
		users++;
	else if (users == 0)
		remove_all();
	pthread_mutex_unlock(&lock);
	return rc;
}

void ck_signals_remove(void)
{
	pthread_mutex_lock(&lock);
	if (users == 1)
		remove_all();
	users -= users > 0;
	pthread_mutex_unlock(&lock);
}

bool ck_signals_used(void)
{
	bool used;

	pthread_mutex_lock(&lock);
	used = users > 0 && atomic_load(&owner_pid) == getpid();
	pthread_mutex_unlock(&lock);
	return used;
}

int ck_signals_stop(void)
{
	return atomic_load(&stop_seen);
}

unsigned ck_signals_saves(void)
{
	return atomic_load(&saves_seen);
}
