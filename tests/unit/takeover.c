/* takeover.h: does a process run, and is it the one that claimed? */
#include "takeover.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tap.h"

#define REST " 1 1 1 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 12000 1 1"

static void texts(void)
{
	static const struct {
		const char *name, *stat, *uptime;
		bool runs;
	} rows[] = {
		{"a process", "77 (train) S" REST, "500.25 1.0", true},
		{"a name with a parenthesis", "77 (tr) Z (ain) R" REST, "500.25 1.0", true},
		{"a zombie", "77 (train) Z" REST, "500.25 1.0", false},
		{"a dead one", "77 (train) X" REST, "500.25 1.0", false},
		{"nothing", "", "500.25 1.0", false},
		{"cut short", "77 (train) S 1 1", "500.25 1.0", false},
		{"no uptime", "77 (train) S" REST, "", false},
	};
	int64_t since = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		is_int(ck_process_runs(rows[i].stat, rows[i].uptime, 100, 100000, &since),
		       rows[i].runs, "%s", rows[i].name);
	ck_process_runs(rows[0].stat, rows[0].uptime, 100, 100000, &since);
	is_int(since, 100000 - 380, "it began 120 s after the boot, 380 s ago");
}

/* The clock was set, forward or back, between the claim and now. */
static void clock_steps(void)
{
	static const int64_t steps[] = {-86400, -3, 0, 3, 3600};
	struct ck_claim ours = {.pid = 1}, owner = {.time = 0};

	ck_claim_sign(&ck_io_posix, &owner);
	strcpy(ours.host, owner.host);
	is_u64(owner.pid, (uint64_t)getpid(), "our pid");
	ok(*owner.boot_id && owner.start_ticks, "boot and start: %s, %llu", owner.boot_id,
	   (unsigned long long)owner.start_ticks);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		owner.time = time(NULL) - steps[i] - 60;
		ok(ck_owner_seems_alive(&ck_io_posix, &owner, &ours), "it runs: a step of %lld s",
		   (long long)steps[i]);
	}
	owner.time = time(NULL) + 60;
	owner.start_ticks--;
	ok(!ck_owner_seems_alive(&ck_io_posix, &owner, &ours), "another process of its number");
	owner.start_ticks++;
	owner.boot_id[0] ^= 1;
	ok(!ck_owner_seems_alive(&ck_io_posix, &owner, &ours), "one of another boot");
	owner.boot_id[0] = '\0';
	ok(ck_owner_seems_alive(&ck_io_posix, &owner, &ours), "of a claim without, by the clock");
	owner.time = time(NULL) - 3600;
	ok(!ck_owner_seems_alive(&ck_io_posix, &owner, &ours), "or not");
}

static void processes(void)
{
	struct ck_claim ours = {.pid = (uint64_t)getpid(), .host = "here"}, owner = ours;
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	owner.pid = (uint64_t)pid;
	owner.time = time(NULL) + 1;
	ok(ck_owner_seems_alive(&ck_io_posix, &owner, &ours), "a process that runs");
	ok(!ck_owner_is_gone(&ck_io_posix, &owner, "here"), "is not gone");
	owner.time = time(NULL) - 3600;
	ok(!ck_owner_seems_alive(&ck_io_posix, &owner, &ours),
	   "one that began after the claim is another");
	owner.time = time(NULL) + 1;
	owner.ended = true;
	ok(!ck_owner_seems_alive(&ck_io_posix, &owner, &ours), "an owner that closed the run");
	ok(ck_owner_is_gone(&ck_io_posix, &owner, "here"), "is gone");
	owner.ended = false;
	strcpy(owner.host, "there");
	ok(!ck_owner_seems_alive(&ck_io_posix, &owner, &ours), "another host");
	ok(!ck_owner_is_gone(&ck_io_posix, &owner, "here"), "of which nothing is known");
	strcpy(owner.host, "here");
	kill(pid, SIGKILL);
	waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT);
	ok(!ck_owner_seems_alive(&ck_io_posix, &owner, &ours), "a zombie is dead");
	ok(ck_owner_is_gone(&ck_io_posix, &owner, "here"), "and gone");
	waitpid(pid, NULL, 0);
	ok(!ck_owner_seems_alive(&ck_io_posix, &owner, &ours), "a process that is gone");
	ok(ck_owner_is_gone(&ck_io_posix, &owner, "here"), "is gone");
	strcpy(owner.job.job_id, "1");
	ok(!ck_owner_is_gone(&ck_io_posix, &owner, "here"), "one of a job is not judged");
}

int main(void)
{
	texts();
	clock_steps();
	processes();
	return done_testing();
}
