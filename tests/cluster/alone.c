/*
 * A program of one process that uses the library: trains, a step each 50 ms, until the file "go" is there.
 * For the cluster tests, which compile it against what is installed.
 */
#include <ckpt.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static int train(ckpt *ck, uint64_t step)
{
	const struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};
	int rc = 0;

	printf("training from step %" PRIu64 "\n", step);
	while (rc == 0 && access("go", F_OK) != 0) {
		nanosleep(&pause, NULL);
		rc = ckpt_step(ck, ++step);
	}
	if (rc == 0)
		rc = ckpt_complete(ck);
	printf(rc == 0 ? "finished\n" : "stopped: %d\n", rc);
	return rc == CKPT_STOP ? CKPT_EXIT_REQUEUE : rc != 0;
}

int main(void)
{
	struct ckpt_options options = {.struct_size = sizeof(options), .every = "1d"};
	uint64_t step = 0, shape = 1, value = 42;
	ckpt *ck;
	int rc;

	setvbuf(stdout, NULL, _IOLBF, 0);
	rc = ckpt_open(&ck, NULL, &options);
	if (!rc)
		rc = ckpt_add_replicated(ck, "value", CKPT_U64, 1, &shape, &value);
	if (!rc)
		rc = ckpt_restore(ck, &step);
	rc = rc < 0 ? 1 : rc == CKPT_COMPLETE ? 0 : train(ck, step);
	ckpt_close(ck);
	return rc;
}
