#include "comm.h"
#include "comm_threads.h"

int ck_self_new(struct ckpt_comm *out, struct ck_error *err)
{
	struct ck_threads *world = ck_threads_new(1);

	if (!world)
		return ck_fail(err, CK_ENOMEM, "out of memory: a communicator of one rank wanted");
	ck_threads_comm(world, 0, out);
	return 0;
}

void ck_self_free(void *ctx)
{
	if (ctx)
		ck_threads_free(ck_threads_of(ctx));
}
