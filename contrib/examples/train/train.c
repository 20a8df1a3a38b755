/*
 * A small language model, trained by all ranks together, which stops and resumes bit for bit.
 *
 *	#SBATCH --ckpt
 *	srun --mpi=pmix ./train --steps 2000
 *
 * The same command line the first time and every time after. All that a further step depends on is
 * registered in register_state(); with the same number of ranks and one kind of CPU (by which libm
 * chooses its code) a resumed run ends in the same bits as one that was never stopped.
 * Errors of MPI end the program, which is what MPI does unless told otherwise.
 */
#include <ckpt.h>
#include <ckpt_mpi.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "data.h"
#include "memory.h"
#include "model.h"
#include "optim.h"
#include "options.h"
#include "rng.h"

#define EXIT_USAGE 2
#define WARMUP_STEPS 20
#define LAST_LR 0.1 /* of the highest, where the cosine ends */

struct train {
	struct options options;
	struct data data;
	struct model model;
	struct optim optim;
	struct rng rng;      /* this rank's */
	uint64_t consumed;   /* samples, by all ranks together, since the run began */
	double loss;         /* mean over the last global batch */
	double *rank_losses; /* [world] */
	FILE *losses;        /* --losses, on rank 0 */
	char hyper[512];     /* hyper-parameters as JSON */
	int has_stepped;     /* in this process */
};

static void train_step(struct train *t, uint64_t step);
static _Noreturn void give_up(const char *where, const char *what);

/* The checkpoint part begins. */
static int register_state(ckpt *ck, struct train *t)
{
	const struct ckpt_rank_callbacks rng = {sizeof(rng), &t->rng, rng_size,
						rng_get,     rng_set, rng_reassign};
	const uint64_t n = t->optim.params, begin = t->optim.begin, count = t->optim.count;
	struct optim *o = &t->optim;

	return ckpt_add_replicated(ck, "param_fp16", CKPT_F16, 1, &n, o->fp16) ||
	       ckpt_add_sharded(ck, "adam/master", CKPT_F32, 1, &n, &begin, &count, o->master) ||
	       ckpt_add_sharded(ck, "adam/exp_avg", CKPT_F32, 1, &n, &begin, &count, o->exp_avg) ||
	       ckpt_add_sharded(ck, "adam/exp_avg_sq", CKPT_F32, 1, &n, &begin, &count,
				o->exp_avg_sq) ||
	       ckpt_add_replicated(ck, "data/consumed", CKPT_U64, 0, NULL, &t->consumed) ||
	       ckpt_add_replicated(ck, "loss", CKPT_F64, 0, NULL, &t->loss) ||
	       ckpt_add_rank(ck, "rng", &rng) || ckpt_set_flat(ck, "adam/master") ||
	       ckpt_set_user(ck, t->hyper);
}

/* Returns 0 when the run is finished, CKPT_STOP when it is to be started again, or < 0. */
static int train(ckpt **ck, struct train *t)
{
	uint64_t step = 0;
	int rc = ckpt_open_mpi(ck, MPI_COMM_WORLD, NULL);

	if (rc == 0 && register_state(*ck, t) != 0)
		give_up("checkpoint", ckpt_error(*ck)); /* the other ranks do not know */
	if (rc == 0)
		rc = ckpt_restore(*ck, &step);
	if (rc == CKPT_COMPLETE && t->optim.rank == 0)
		printf("already complete at step %" PRIu64 "\n", step);
	if (rc < 0 || rc == CKPT_COMPLETE)
		return rc < 0 ? rc : 0;
	while (step < t->options.steps) {
		train_step(t, step++);
		rc = ckpt_step(*ck, step);
		if (rc != 0)
			return rc;
	}
	return ckpt_complete(*ck);
}
/* The checkpoint part ends. */

/* A failure of this rank alone. */
static _Noreturn void give_up(const char *where, const char *what)
{
	fprintf(stderr, "train: %s: %s\n", where, what);
	MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
	exit(EXIT_FAILURE);
}

/* A function of the step alone, so that nothing of it needs to be saved. */
static double learning_rate(const struct options *o, uint64_t step)
{
	double share = (double)(step + 1) / (double)o->steps;

	if (step < WARMUP_STEPS)
		return o->lr * (double)(step + 1) / WARMUP_STEPS;
	return o->lr * (LAST_LR + (1 - LAST_LR) * 0.5 * (1 + cos(acos(-1) * share)));
}

/*
 * This rank's share of the global batch, whose size does not depend on the number of ranks.
 * Returns the sum of the losses.
 */
static double train_own_samples(struct train *t)
{
	uint64_t batch = t->options.global_batch;
	uint64_t rank = (uint64_t)t->optim.rank, world = (uint64_t)t->optim.world;
	uint64_t end = batch * (rank + 1) / world;
	float *grad = t->optim.grad;
	double loss = 0;

	memset(grad, 0, t->optim.params * sizeof(float));
	for (uint64_t g = batch * rank / world; g < end; g++)
		loss += model_train(&t->model, data_sample(&t->data, t->consumed + g), &t->rng,
				    grad);
	return loss;
}

static double mean_in_rank_order(struct train *t, double own)
{
	double sum = 0;

	MPI_Allgather(&own, 1, MPI_DOUBLE, t->rank_losses, 1, MPI_DOUBLE, MPI_COMM_WORLD);
	for (int r = 0; r < t->optim.world; r++)
		sum += t->rank_losses[r];
	return sum / (double)t->options.global_batch;
}

static void report(const struct train *t, uint64_t step, double lr)
{
	if (t->optim.rank != 0)
		return;
	if (step % t->options.log_every == 0 || step == t->options.steps)
		printf("step %" PRIu64 " loss %.4f lr %.3g\n", step, t->loss, lr);
	if (t->losses != NULL && fprintf(t->losses, "%" PRIu64 " %a\n", step, t->loss) < 0)
		give_up("--losses", strerror(errno));
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void sleep_until(uint64_t ms)
{
	struct timespec until = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

/* How long a step takes at least; with --pace its owner may change that while the run goes on. */
static uint64_t step_ms(const struct options *o)
{
	uint64_t ms = o->step_ms;
	FILE *pace = o->pace != NULL ? fopen(o->pace, "r") : NULL;

	if (pace == NULL)
		return ms;
	if (fscanf(pace, "%" SCNu64, &ms) != 1)
		ms = o->step_ms; /* it is being written */
	fclose(pace);
	return ms;
}

/* `step` steps are completed; complete one more. Collective. */
static void train_step(struct train *t, uint64_t step)
{
	const struct options *o = &t->options;
	double lr = learning_rate(o, step);
	uint64_t earliest_end = now_ms() + step_ms(o);

	if (t->has_stepped && step == o->die_step && (uint64_t)t->optim.rank == o->die_rank)
		raise(SIGKILL);
	model_set_weights(&t->model, t->optim.fp16);
	t->loss = mean_in_rank_order(t, train_own_samples(t));
	optim_step(&t->optim, o->global_batch, lr, step + 1);
	t->consumed += o->global_batch;
	t->has_stepped = 1;
	report(t, step + 1, lr);
	sleep_until(earliest_end);
}

/* Append what each rank has, `each` bytes, `all` bytes without padding. Collective. */
static void write_gathered(FILE *out, const struct optim *o, const void *own, size_t each,
			   size_t all)
{
	char *buffer = o->rank == 0 ? memory_zeroed((size_t)o->world, each) : NULL;

	MPI_Gather(own, (int)each, MPI_BYTE, buffer, (int)each, MPI_BYTE, 0, o->comm);
	if (out != NULL)
		fwrite(buffer, 1, all, out);
	free(buffer);
}

/* Loss and state, for `cmp` with those of another run. Collective; rank 0 writes. */
static void write_final(struct train *t)
{
	const struct optim *o = &t->optim;
	size_t slice = o->slice * sizeof(float), all = o->params * sizeof(float);
	FILE *out = o->rank == 0 ? fopen(t->options.final, "wb") : NULL;
	int failed;

	if (o->rank == 0 && out == NULL)
		give_up(t->options.final, strerror(errno));
	if (out != NULL) {
		fprintf(out, "loss %a consumed %" PRIu64 "\n", t->loss, t->consumed);
		fwrite(o->fp16, sizeof(uint16_t), o->params, out);
	}
	write_gathered(out, o, o->master, slice, all);
	write_gathered(out, o, o->exp_avg, slice, all);
	write_gathered(out, o, o->exp_avg_sq, slice, all);
	write_gathered(out, o, &t->rng, sizeof(t->rng), (size_t)o->world * sizeof(t->rng));
	failed = out != NULL && ferror(out);
	if (out != NULL && (fclose(out) != 0 || failed))
		give_up(t->options.final, "cannot be written");
}

/* Model, optimizer and random numbers at the beginning of the run. Collective. */
static void start(struct train *t, int rank)
{
	const struct options *o = &t->options;

	model_init(&t->model, o->context, o->embed, o->hidden, (float)o->dropout, o->seed);
	optim_init(&t->optim, MPI_COMM_WORLD, t->model.weights, t->model.params);
	t->rng = rng_start(o->seed, (uint64_t)rank);
	t->rank_losses = memory_zeroed((size_t)t->optim.world, sizeof(double));
	snprintf(t->hyper, sizeof(t->hyper),
		 "{\"steps\":%" PRIu64 ",\"global_batch\":%" PRIu64 ",\"context\":%" PRIu64
		 ",\"embed\":%" PRIu64 ",\"hidden\":%" PRIu64 ",\"lr\":%.17g,\"dropout\":%.17g"
		 ",\"seed\":%" PRIu64 ",\"text_bytes\":%zu}",
		 o->steps, o->global_batch, o->context, o->embed, o->hidden, o->lr, o->dropout,
		 o->seed, t->data.size);
	if (o->losses == NULL || rank != 0)
		return;
	t->losses = fopen(o->losses, "a");
	if (t->losses == NULL)
		give_up(o->losses, strerror(errno));
	setvbuf(t->losses, NULL, _IOLBF, 0);
}

/* Train, and turn the outcome into the exit code. Collective. */
static int run(struct train *t)
{
	ckpt *ck = NULL;
	int rc = train(&ck, t);

	if (rc < 0 && t->optim.rank == 0)
		fprintf(stderr, "train: checkpoint: %s\n", ckpt_error(ck));
	if (rc == CKPT_EPEER)
		MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
	if (rc == 0 && t->options.final != NULL)
		write_final(t);
	if (ckpt_close(ck) < 0 && rc == 0)
		rc = CKPT_EIO;
	return rc == CKPT_STOP ? CKPT_EXIT_REQUEUE : rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Returns the exit code. Collective. */
static int set_up_and_run(struct train *t, int argc, char **argv, int rank)
{
	struct options *o = &t->options;
	char error[512];
	int rc = options_parse(o, argc, argv, error, sizeof(error));

	if (rc == 0 && o->help) {
		if (rank == 0)
			options_usage(stdout);
		return EXIT_SUCCESS;
	}
	if (rc == 0)
		rc = data_load(&t->data, MPI_COMM_WORLD, o->text, o->context, o->seed, error,
			       sizeof(error));
	if (rc != 0) {
		if (rank == 0)
			fprintf(stderr, "train: %s\n", error);
		return EXIT_USAGE;
	}
	start(t, rank);
	return run(t);
}

int main(int argc, char **argv)
{
	struct train t = {.losses = NULL};
	int exit_code, rank, provided;

	/* The library writes in a thread of its own, but calls MPI from this one only. */
	MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
	if (provided < MPI_THREAD_FUNNELED)
		give_up("MPI", "built without thread support");
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	setvbuf(stdout, NULL, _IOLBF, 0);
	exit_code = set_up_and_run(&t, argc, argv, rank);
	if (t.losses != NULL && fclose(t.losses) != 0)
		give_up("--losses", strerror(errno));
	free(t.rank_losses);
	optim_free(&t.optim);
	model_free(&t.model);
	data_free(&t.data);
	MPI_Finalize();
	return exit_code;
}
