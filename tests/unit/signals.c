/* signals.h: flags, chaining, forked children, several handles. */
#include "signals.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

static volatile sig_atomic_t chained;

static void before_us(int signum)
{
	chained = signum;
}

static const int stop[] = {SIGTERM, SIGUSR1, 0}, save[] = {SIGUSR2, 0};

static void flags(void)
{
	struct ck_error err = CK_ERROR_INIT;

	signal(SIGTERM, before_us);
	is_int(ck_signals_install(stop, save, &err), 0, "installed");
	is_int(ck_signals_stop(), 0, "nothing seen yet");
	raise(SIGUSR2);
	raise(SIGUSR2);
	is_int(ck_signals_stop(), 0, "a save signal is no stop");
	is_u64(ck_signals_saves(), 2, "two save signals");
	raise(SIGTERM);
	is_int(ck_signals_stop(), SIGTERM, "a stop");
	is_int(chained, SIGTERM, "the handler from before us was called");
	raise(SIGUSR1);
	is_int(ck_signals_stop(), SIGTERM, "a second one changes nothing");
	ck_signals_remove();
	chained = 0;
	raise(SIGTERM);
	is_int(chained, SIGTERM, "after the end the old handler is back");
}

static void children(void)
{
	struct ck_error err = CK_ERROR_INIT;
	int status = -1;
	pid_t pid;

	chained = 0;
	is_int(ck_signals_install(stop, save, &err), 0, "installed again");
	is_int(ck_signals_stop(), 0, "with a clean slate");
	pid = fork();
	if (pid == 0) {
		raise(SIGTERM);
		_exit(ck_signals_stop() == 0 && chained == SIGTERM ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	is_int(status, 0, "a forked child takes no note of a signal: who had it before us has it");
	ck_signals_remove();
}

/* What a child that `make` makes does with a signal. */
static int status_of(pid_t (*make)(void), int signum, bool opens)
{
	struct ck_error err = CK_ERROR_INIT;
	int status = -1;
	pid_t pid = make();

	if (pid == 0) {
		if (opens && ck_signals_install(stop, save, &err))
			_exit(99);
		kill(getpid(), signum);
		_exit(ck_signals_stop());
	}
	waitpid(pid, &status, 0);
	return status;
}

static pid_t plain_fork(void)
{
	return fork();
}

/* Nobody is told of it: as a fork by a runtime of another language. */
static pid_t bare_fork(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

/* As a worker of Python's multiprocessing, which is ended by SIGTERM. */
static void dispositions(void)
{
	struct ck_error err = CK_ERROR_INIT;
	int status;

	signal(SIGTERM, SIG_DFL);
	ck_signals_install(stop, save, &err);
	status = status_of(plain_fork, SIGTERM, false);
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM, "SIGTERM ends a forked child");
	status = status_of(plain_fork, SIGUSR2, false);
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR2, "so does SIGUSR2");
	status = status_of(bare_fork, SIGTERM, false);
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM, "and one that fork(3) did not make");
	status = status_of(plain_fork, SIGTERM, true);
	ok(WIFEXITED(status) && WEXITSTATUS(status) == SIGTERM,
	   "a child that opens a run of its own sees SIGTERM: %d", status);
	raise(SIGTERM);
	is_int(ck_signals_stop(), SIGTERM, "and the parent goes on as before");
	ck_signals_remove();
}

static void later_handlers(void)
{
	struct ck_error err = CK_ERROR_INIT;

	ck_signals_install(stop, save, &err);
	ck_signals_install(stop, save, &err);
	ck_signals_remove();
	raise(SIGUSR1);
	is_int(ck_signals_stop(), SIGUSR1, "two handles: the first to close leaves the handlers");
	signal(SIGTERM, before_us);
	ck_signals_remove();
	chained = 0;
	raise(SIGTERM);
	is_int(chained, SIGTERM, "a handler installed after ours is left alone");
}

static void refused(void)
{
	struct ck_error err = CK_ERROR_INIT;
	static const int bad[] = {SIGKILL, 0};

	is_int(ck_signals_install(bad, save, &err), CK_EARG, "SIGKILL cannot be caught");
	like(err.text, "signal 9", "named");
	is_int(ck_signals_install(stop, stop, &err), CK_EARG, "a signal for both purposes");
	like(err.text, "signal 10: is to stop, and to save and go on", "named");
}

/* ---- signals named again ---- */

static void named_again(void)
{
	static const int twice[] = {SIGTERM, SIGTERM, 0}, more[] = {SIGHUP, SIGTERM, 0};
	static const int none[] = {0}, other[] = {SIGTERM, 0};
	struct ck_error err = CK_ERROR_INIT;

	signal(SIGTERM, before_us);
	signal(SIGHUP, SIG_IGN);
	is_int(ck_signals_install(twice, save, &err), 0, "a signal named twice");
	chained = 0;
	raise(SIGTERM);
	is_int(chained, SIGTERM, "is passed on once, to the handler from before");
	is_int(ck_signals_install(none, other, &err), CK_EARG,
	       "a second handle cannot give it another purpose");
	is_int(ck_signals_install(more, none, &err), 0, "but may name more signals");
	is_int(ck_signals_stop(), SIGTERM, "what was seen stays");
	raise(SIGHUP);
	ck_signals_remove();
	raise(SIGHUP);
	ck_signals_remove();
	chained = 0;
	raise(SIGTERM);
	is_int(chained, SIGTERM, "in the end the old handler is back");
}

/* ---- a handler above ours ---- */

static struct sigaction ours;

static void above_us(int signum)
{
	chained++;
	ours.sa_sigaction(signum, NULL, NULL);
}

static void called_from_above(void)
{
	struct sigaction above = {.sa_handler = above_us};
	struct ck_error err = CK_ERROR_INIT;

	signal(SIGTERM, SIG_DFL);
	ck_signals_install(stop, save, &err);
	sigaction(SIGTERM, &above, &ours);
	ck_signals_remove();
	is_int(ck_signals_install(stop, save, &err), 0,
	       "installed above a handler that calls ours");
	chained = 0;
	raise(SIGTERM);
	is_int(chained, 1, "they call each other once");
	is_int(ck_signals_stop(), SIGTERM, "and the stop is seen");
	ck_signals_remove();
}

int main(void)
{
	refused();
	flags();
	children();
	dispositions();
	later_handlers();
	named_again();
	called_from_above();
	return done_testing();
}
