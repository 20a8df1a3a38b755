/* signals.h: flags, chaining, forked children, several handles. */
#include "signals.h"

#include <signal.h>
#include <stdlib.h>
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
		_exit(ck_signals_stop() == 0 && chained == 0 ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	is_int(status, 0, "a forked child neither notes nor passes on a signal, and lives on");
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
}

int main(void)
{
	refused();
	flags();
	children();
	later_handlers();
	return done_testing();
}
