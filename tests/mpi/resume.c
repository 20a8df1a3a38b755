/*
 * A program that resumes, looks at what it got, and saves: what resume-*.t start, with any number of ranks.
 *
 *	resume DIR [NAME=VALUE ...]
 *
 *	save=1       save a step more
 *	drop=1       ckpt_reassign_drop for the item of each rank
 *	big=MIB      one large item more
 *	budget=MIB   RLIMIT_DATA: what it has before ckpt_open, with all of its state, and so much
 *	faulty=RANK  SLURM_CKPT_IO_FAULT is for this rank alone
 *
 * Each rank prints a line of facts when it ends:
 *
 *	rank=2 code=1 step=3 wrong=0 own=ok untouched=0 seconds=0.1 read=12345 state=1234 extra=5678
 *	again=0 text=...
 *
 *	code, text  of ckpt_restore; wrong: elements; own: ok, new (not brought), wrong; untouched: nothing
 *	registered has changed; read: bytes of ckpt_restore through the seam; state, extra: KiB of the state,
 *	and by how much memory in use has grown at most from before ckpt_open until after ckpt_restore;
 *	again: what the call after it returns, and `took` its seconds; saved: what the save returned
 */
#include <mpi.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ckpt_mpi.h"
#include "counted.h"
#include "env.h"
#include "handle.h"
#include "state.h"

#define WATCHDOG_SECONDS 200

struct facts {
	int code, again, saved;
	uint64_t step, wrong, read;
	double seconds, took;
	bool untouched;
	unsigned long state, extra; /* KiB */
	char text[CK_ERROR_TEXT];
};

static uint64_t option(char **argv, const char *name, uint64_t none)
{
	size_t length = strlen(name);

	for (; *argv; argv++)
		if (strncmp(*argv, name, length) == 0 && (*argv)[length] == '=')
			return strtoull(*argv + length + 1, NULL, 10);
	return none;
}

/* A line of /proc/self/status, in KiB. */
static unsigned long status_kib(const char *name)
{
	FILE *file = fopen("/proc/self/status", "r");
	unsigned long value = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, name, strlen(name)) == 0)
			value = strtoul(line + strlen(name) + 1, NULL, 10);
	if (file)
		fclose(file);
	return value;
}

/* The most that was in use begins anew. */
static void forget_peak(void)
{
	FILE *file = fopen("/proc/self/clear_refs", "w");

	if (!file || fputs("5", file) < 0 || fclose(file))
		abort();
}

static void set_budget(uint64_t mib)
{
	struct rlimit limit;

	if (!mib)
		return;
	limit.rlim_cur = limit.rlim_max = ((rlim_t)status_kib("VmData:") << 10) + (mib << 20);
	if (setrlimit(RLIMIT_DATA, &limit))
		abort();
}

static int save(ckpt *ck, struct state *state, uint64_t step)
{
	int rc;

	state_fill(state, (int64_t)step);
	rc = ckpt_save(ck, step);
	return rc ? rc : ckpt_wait(ck);
}

static void restore(ckpt *ck, struct state *state, struct counted *counted, struct facts *f)
{
	double began = MPI_Wtime();

	if (!ck->fault)
		ck->io = &counted->io;
	f->code = ckpt_restore(ck, &f->step);
	f->seconds = MPI_Wtime() - began;
	f->read = atomic_load(&counted->bytes);
	snprintf(f->text, sizeof(f->text), "%s", ckpt_error(ck));
	f->untouched = state_is_spoilt(state);
	f->wrong = f->code > 0 ? state_wrong(state, (int64_t)f->step) : 0;
}

static void work(struct state *state, char **argv, struct facts *f)
{
	struct ckpt_options options = {
		.struct_size = sizeof(options), .dir = argv[1], .keep = 100, .every = "1d"};
	struct counted counted;
	unsigned long before;
	double began;
	ckpt *ck;

	counted_init(&counted);
	f->state = (unsigned long)(state->bytes >> 10);
	forget_peak();
	before = status_kib("VmRSS:");
	set_budget(option(argv, "budget", 0));
	f->code = ckpt_open_mpi(&ck, MPI_COMM_WORLD, &options);
	if (!f->code)
		f->code = state_register(state, ck, option(argv, "drop", 0) != 0);
	if (f->code)
		snprintf(f->text, sizeof(f->text), "%s", ckpt_error(ck));
	else
		restore(ck, state, &counted, f);
	f->extra = status_kib("VmHWM:") - before;
	began = MPI_Wtime();
	f->again = f->code < 0 ? ckpt_step(ck, f->step) : 0;
	f->took = MPI_Wtime() - began;
	if (f->code >= 0 && option(argv, "save", 0))
		f->saved = save(ck, state, f->step + 1);
	ckpt_close(ck);
}

/* In one write, so that the lines of the ranks do not mix. */
static void print(const struct facts *f, const struct state *state)
{
	const char *own = state->own_wrong                          ? "wrong"
			  : state->was_set || state->seen_world > 0 ? "ok"
								    : "new";
	char line[CK_ERROR_TEXT + 512];
	int n = snprintf(line, sizeof(line),
			 "rank=%d code=%d step=%" PRIu64 " wrong=%" PRIu64
			 " own=%s untouched=%d seconds=%.1f read=%" PRIu64
			 " state=%lu extra=%lu again=%d took=%.1f saved=%d text=%s\n",
			 state->rank, f->code, f->step, f->wrong, own, f->untouched, f->seconds,
			 f->read, f->state, f->extra, f->again, f->took, f->saved, f->text);

	if (write(STDOUT_FILENO, line, (size_t)n) != n)
		abort();
}

int main(int argc, char **argv)
{
	struct facts facts = {.code = 0};
	struct state state;
	int rank, size;

	alarm(WATCHDOG_SECONDS);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc < 2)
		MPI_Abort(MPI_COMM_WORLD, 2);
	if ((uint64_t)rank != option(argv, "faulty", (uint64_t)rank))
		unsetenv(CK_ENV_IO_FAULT);
	state_init(&state, rank, size, option(argv, "big", 0) << 20);
	work(&state, argv, &facts);
	print(&facts, &state);
	state_fini(&state);
	/* Where a rank is dead MPI_Finalize would wait for it. */
	if (facts.code == CKPT_EPEER)
		_exit(0);
	MPI_Finalize();
	return 0;
}
