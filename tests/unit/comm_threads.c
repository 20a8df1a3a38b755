/* The table of a thread, and of a process alone, to the letter of <ckpt.h>. */
#include "comm_threads.h"

#include <stdlib.h>
#include <string.h>

#include "comm.h"
#include "tap.h"

/* Look once; it has to have ended. */
static struct ckpt_message finished(struct ckpt_comm *table, void **request, int *rc)
{
	struct ckpt_message message = {.peer = -7};
	int done = 0;

	*rc = table->test(table->ctx, request, &done, &message);
	return done ? message : (struct ckpt_message){.peer = -8};
}

static int pending(struct ckpt_comm *table, void **request)
{
	int done = 1;

	return table->test(table->ctx, request, &done, NULL) == 0 && !done;
}

static void test_messages(struct ck_threads *threads, struct ckpt_comm *a, struct ckpt_comm *b)
{
	struct ckpt_message message;
	void *send[4], *recv[4];
	char in[4][8] = {{0}};
	int rc;

	a->isend(a->ctx, "one", 4, 1, 5, &send[0]);
	a->isend(a->ctx, "two", 4, 1, 5, &send[1]);
	a->isend(a->ctx, "tag6", 5, 1, 6, &send[2]);
	b->irecv(b->ctx, in[0], 8, CKPT_ANY_PEER, 6, &recv[0]);
	b->irecv(b->ctx, in[1], 8, 0, 5, &recv[1]);
	b->irecv(b->ctx, in[2], 8, CKPT_ANY_PEER, 5, &recv[2]);
	b->irecv(b->ctx, in[3], 8, 0, 5, &recv[3]);
	message = finished(b, &recv[0], &rc);
	ok(!strcmp(in[0], "tag6") && message.peer == 0 && message.bytes == 5, "a tag picks");
	finished(b, &recv[1], &rc);
	finished(b, &recv[2], &rc);
	ok(!strcmp(in[1], "one") && !strcmp(in[2], "two"), "of one tag, in order");
	ok(pending(b, &recv[3]), "a receive without a message waits");
	is_int(b->cancel_recv(b->ctx, &recv[3]), 0, "until it is cancelled");
	ok(recv[3] == NULL, "and is gone");
	for (int i = 0; i < 3; i++)
		finished(a, &send[i], &rc);
	ok(!send[0] && !send[1] && !send[2], "short sends have ended");

	b->irecv(b->ctx, in[0], 2, 0, 5, &recv[0]);
	a->isend(a->ctx, "long", 5, 1, 5, &send[0]);
	finished(b, &recv[0], &rc);
	ok(rc < 0 && !recv[0], "a message longer than its room is an error of test");
	finished(a, &send[0], &rc);

	ck_threads_set_eager(threads, 0);
	a->isend(a->ctx, "late", 5, 1, 5, &send[0]);
	ok(pending(a, &send[0]), "a send that waits for its receiver");
	b->irecv(b->ctx, in[1], 8, 0, 5, &recv[0]);
	finished(a, &send[0], &rc);
	ok(!send[0] && !strcmp(in[1], "late"), "ends with it");
	finished(b, &recv[0], &rc);
	a->isend(a->ctx, NULL, 0, 1, 5, &send[0]);
	b->irecv(b->ctx, NULL, 0, 0, 5, &recv[0]);
	message = finished(b, &recv[0], &rc);
	ok(rc == 0 && message.bytes == 0 && message.peer == 0, "an empty message is one");
	finished(a, &send[0], &rc);
	ok(a->isend(a->ctx, "x", 1, 2, 5, &send[0]) < 0, "no such rank");
	ok(a->isend(a->ctx, "x", 1, 1, 256, &send[0]) < 0, "no such tag");
}

static void test_reductions(struct ckpt_comm *a, struct ckpt_comm *b)
{
	uint64_t in[3] = {1, 20, 3}, other[3] = {10, 2, 3}, out[4][3];
	void *ra[2], *rb[2];
	int rc;

	a->iallreduce_max(a->ctx, in, out[0], 3, &ra[0]);
	a->iallreduce_max(a->ctx, in, out[1], 1, &ra[1]);
	ok(pending(a, &ra[0]), "a reduction waits for all");
	b->iallreduce_max(b->ctx, other, out[2], 3, &rb[0]);
	finished(a, &ra[0], &rc);
	ok(out[0][0] == 10 && out[0][1] == 20 && out[0][2] == 3, "the largest of each");
	ok(pending(a, &ra[1]), "the second is not the first");
	b->iallreduce_max(b->ctx, other, out[3], 1, &rb[1]);
	finished(b, &rb[1], &rc);
	finished(b, &rb[0], &rc);
	finished(a, &ra[1], &rc);
	ok(out[1][0] == 10 && out[3][0] == 10 && out[2][1] == 20, "ends in any order");
	a->iallreduce_max(a->ctx, in, out[0], 3, &ra[0]);
	ok(b->iallreduce_max(b->ctx, other, out[1], 2, &rb[0]) < 0, "another count is refused");
}

static void test_death(struct ck_threads *threads, struct ckpt_comm *a, struct ckpt_comm *b)
{
	void *sent, *lost, *recv;
	char in[8];
	int exit_code = 0;

	ck_threads_set_eager(threads, 4096);
	b->isend(b->ctx, "never", 6, 0, 9, &lost);
	ck_threads_kill(threads, 1);
	a->irecv(a->ctx, in, 8, 1, 9, &recv);
	ok(pending(a, &recv), "what a dead rank sent never comes");
	is_int(a->cancel_recv(a->ctx, &recv), 0, "cancelled");
	ck_threads_set_eager(threads, 0);
	is_int(a->isend(a->ctx, "x", 1, 1, 9, &sent), 0, "a send to it starts");
	ok(pending(a, &sent), "and never ends");
	ok(b->isend(b->ctx, "x", 1, 0, 9, &lost) < 0, "it cannot send");
	ok(b->irecv(b->ctx, in, 8, 0, 9, &lost) < 0, "nor receive");
	ok(b->iallreduce_max(b->ctx, NULL, NULL, 0, &lost) < 0, "nor reduce");
	is_int(ck_threads_aborted(threads, &exit_code), 0, "nobody has aborted");
	a->abort(a->ctx, 17);
	is_int(ck_threads_aborted(threads, &exit_code), 1, "abort");
	is_int(exit_code, 17, "its exit code");
	ok(a->irecv(a->ctx, in, 8, 0, 9, &recv) < 0, "kills all");
}

static void test_self(void)
{
	uint64_t in[2] = {5, 6}, out[2] = {0};
	struct ck_error err = CK_ERROR_INIT;
	struct ckpt_message message;
	void *send, *recv, *reduction;
	struct ckpt_comm self;
	char text[8] = "";
	int rc;

	is_int(ck_self_new(&self, &err), 0, "a process alone");
	ok(self.rank == 0 && self.size == 1, "is rank 0 of 1");
	self.irecv(self.ctx, text, 8, CKPT_ANY_PEER, 3, &recv);
	ok(pending(&self, &recv), "has no message from others");
	self.isend(self.ctx, "me", 3, 0, 3, &send);
	message = finished(&self, &recv, &rc);
	ok(!strcmp(text, "me") && message.peer == 0 && message.bytes == 3, "sends to itself");
	finished(&self, &send, &rc);
	self.iallreduce_max(self.ctx, in, out, 2, &reduction);
	finished(&self, &reduction, &rc);
	ok(out[0] == 5 && out[1] == 6, "reduces by copying");
	ck_self_free(self.ctx);
	ck_self_free(NULL);
}

int main(void)
{
	struct ck_threads *threads = ck_threads_new(2);
	struct ckpt_comm a, b;

	ck_threads_comm(threads, 0, &a);
	ck_threads_comm(threads, 1, &b);
	test_messages(threads, &a, &b);
	test_reductions(&a, &b);
	test_death(threads, &a, &b);
	ck_threads_free(threads);
	ck_threads_free(NULL);
	test_self();
	return done_testing();
}
