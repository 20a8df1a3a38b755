#include "comm_mpi.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

#include "open.h"

/* A matched receive whose sender is gone never ends; so often is enough for one that can. */
#define CANCEL_TESTS 1000

struct context {
	MPI_Comm comm;
	int pending; /* requests that have not ended */
};

struct request {
	MPI_Request mpi;
	int receives;
};

/* A negative code out of MPI's. */
static int code_of(int mpi_code)
{
	int class = MPI_ERR_UNKNOWN;

	if (mpi_code == MPI_SUCCESS)
		return 0;
	MPI_Error_class(mpi_code, &class);
	return class > 0 ? -class : -MPI_ERR_UNKNOWN;
}

static int mpi_runs(void)
{
	int begun = 0, ended = 0;

	return MPI_Initialized(&begun) == MPI_SUCCESS && MPI_Finalized(&ended) == MPI_SUCCESS &&
	       begun && !ended;
}

static struct request *new_request(int receives)
{
	struct request *request = malloc(sizeof(*request));

	if (request)
		*request = (struct request){.mpi = MPI_REQUEST_NULL, .receives = receives};
	return request;
}

/* What MPI said when it was to start `request`. */
static int started(struct context *context, struct request *request, int mpi_code, void **out)
{
	if (mpi_code != MPI_SUCCESS) {
		free(request);
		return code_of(mpi_code);
	}
	context->pending++;
	*out = request;
	return 0;
}

static void ended(struct context *context, void **request)
{
	context->pending--;
	free(*request);
	*request = NULL;
}

static int iallreduce_max(void *ctx, const uint64_t *in, uint64_t *out, int count, void **request)
{
	struct context *context = ctx;
	struct request *new;

	if (!mpi_runs())
		return -MPI_ERR_OTHER;
	new = new_request(0);
	if (!new)
		return -MPI_ERR_NO_MEM;
	return started(context, new,
		       MPI_Iallreduce(in, out, count, MPI_UINT64_T, MPI_MAX, context->comm,
				      &new->mpi),
		       request);
}

static int isend(void *ctx, const void *data, size_t bytes, int peer, int tag, void **request)
{
	struct context *context = ctx;
	struct request *new;

	if (!mpi_runs())
		return -MPI_ERR_OTHER;
	if (bytes > INT_MAX)
		return -MPI_ERR_COUNT;
	new = new_request(0);
	if (!new)
		return -MPI_ERR_NO_MEM;
	return started(context, new,
		       MPI_Isend(data, (int)bytes, MPI_BYTE, peer, tag, context->comm, &new->mpi),
		       request);
}

static int irecv(void *ctx, void *data, size_t bytes, int peer, int tag, void **request)
{
	int source = peer == CKPT_ANY_PEER ? MPI_ANY_SOURCE : peer;
	struct context *context = ctx;
	struct request *new;

	if (!mpi_runs())
		return -MPI_ERR_OTHER;
	if (bytes > INT_MAX)
		return -MPI_ERR_COUNT;
	new = new_request(1);
	if (!new)
		return -MPI_ERR_NO_MEM;
	return started(context, new,
		       MPI_Irecv(data, (int)bytes, MPI_BYTE, source, tag, context->comm, &new->mpi),
		       request);
}

static int describe(MPI_Status *status, struct ckpt_message *message)
{
	int bytes = 0, rc;

	rc = MPI_Get_count(status, MPI_BYTE, &bytes);
	if (rc == MPI_SUCCESS && bytes == MPI_UNDEFINED)
		return -MPI_ERR_COUNT;
	*message = (struct ckpt_message){.peer = status->MPI_SOURCE, .bytes = (size_t)bytes};
	return code_of(rc);
}

static int test(void *ctx, void **request, int *done, struct ckpt_message *message)
{
	struct context *context = ctx;
	struct request *this = *request;
	MPI_Status status;
	int flag = 0, rc;

	*done = 0;
	if (!mpi_runs())
		return -MPI_ERR_OTHER;
	rc = MPI_Test(&this->mpi, &flag, &status);
	if (rc == MPI_SUCCESS && !flag)
		return 0;
	rc = code_of(rc);
	if (rc == 0 && message) {
		*message = (struct ckpt_message){.peer = CKPT_ANY_PEER, .bytes = 0};
		if (this->receives)
			rc = describe(&status, message);
	}
	/* After an error MPI may keep the request: then the memory is still its own. */
	if (flag || this->mpi == MPI_REQUEST_NULL) {
		*done = 1;
		ended(context, request);
	}
	return rc;
}

static int cancel_recv(void *ctx, void **request)
{
	struct context *context = ctx;
	struct request *this = *request;
	int flag = 0, rc;

	if (!mpi_runs())
		return -MPI_ERR_OTHER;
	rc = MPI_Cancel(&this->mpi);
	for (int i = 0; rc == MPI_SUCCESS && !flag && i < CANCEL_TESTS; i++)
		rc = MPI_Test(&this->mpi, &flag, MPI_STATUS_IGNORE);
	/* Whether it was cancelled, or has received after all, well or badly: it is over. */
	if (flag || this->mpi == MPI_REQUEST_NULL) {
		ended(context, request);
		return 0;
	}
	return rc == MPI_SUCCESS ? -MPI_ERR_PENDING : code_of(rc);
}

static void abort_all(void *ctx, int exit_code)
{
	struct context *context = ctx;

	if (mpi_runs())
		MPI_Abort(context->comm, exit_code);
}

static int failed(struct ck_error *err, const char *what, int mpi_code)
{
	char text[MPI_MAX_ERROR_STRING] = "unknown error";
	int length = 0;

	MPI_Error_string(mpi_code, text, &length);
	return ck_fail(err, CK_EPEER, "%s: %s", what, text);
}

static int check(MPI_Comm comm, struct ck_error *err)
{
	int begun = 0, over = 0, inter = 0, rc;

	MPI_Initialized(&begun);
	if (!begun)
		return ck_fail(err, CK_EARG,
			       "MPI is not initialised: call MPI_Init before "
			       "ckpt_open_mpi");
	MPI_Finalized(&over);
	if (over)
		return ck_fail(err, CK_EARG,
			       "MPI is finalised: call ckpt_open_mpi before "
			       "MPI_Finalize");
	if (comm == MPI_COMM_NULL)
		return ck_fail(err, CK_EARG, "the communicator is MPI_COMM_NULL");
	rc = MPI_Comm_test_inter(comm, &inter);
	if (rc != MPI_SUCCESS)
		return failed(err, "MPI_Comm_test_inter", rc);
	if (inter)
		return ck_fail(err, CK_EARG,
			       "an inter-communicator: merge it with "
			       "MPI_Intercomm_merge, or pass an intra-communicator");
	return 0;
}

static int duplicate(MPI_Comm comm, struct context *context, struct ckpt_comm *out,
		     struct ck_error *err)
{
	int rank = 0, size = 0, rc;

	rc = MPI_Comm_dup(comm, &context->comm);
	if (rc != MPI_SUCCESS)
		return failed(err, "MPI_Comm_dup", rc);
	rc = MPI_Comm_set_errhandler(context->comm, MPI_ERRORS_RETURN);
	if (rc == MPI_SUCCESS)
		rc = MPI_Comm_rank(context->comm, &rank);
	if (rc == MPI_SUCCESS)
		rc = MPI_Comm_size(context->comm, &size);
	if (rc != MPI_SUCCESS) {
		MPI_Comm_free(&context->comm);
		return failed(err, "the duplicated communicator", rc);
	}
	*out = (struct ckpt_comm){
		.struct_size = sizeof(*out),
		.rank = rank,
		.size = size,
		.ctx = context,
		.iallreduce_max = iallreduce_max,
		.isend = isend,
		.irecv = irecv,
		.test = test,
		.cancel_recv = cancel_recv,
		.abort = abort_all,
	};
	return 0;
}

int ck_mpi_comm_new(MPI_Comm comm, struct ckpt_comm *out, struct ck_error *err)
{
	struct context *context;
	int rc;

	rc = check(comm, err);
	if (rc)
		return rc;
	context = calloc(1, sizeof(*context));
	if (!context)
		return ck_fail_nomem(err, sizeof(*context));
	rc = duplicate(comm, context, out, err);
	if (rc)
		free(context);
	return rc;
}

void ck_mpi_comm_free(void *ctx)
{
	struct context *context = ctx;

	if (!context)
		return;
	if (!context->pending && mpi_runs())
		MPI_Comm_free(&context->comm);
	/* A table with requests is still used by whoever has them. */
	if (!context->pending)
		free(context);
}

int ckpt_open_mpi(ckpt **ck, MPI_Comm comm, const struct ckpt_options *options)
{
	struct ck_error err = CK_ERROR_INIT;
	struct ckpt_comm table;
	int rc;

	if (!ck)
		return CKPT_EARG;
	if (ck_mpi_comm_new(comm, &table, &err))
		return ck_open_failed(ck, &err);
	table.release = ck_mpi_comm_free;
	rc = ckpt_open(ck, &table, options);
	if (!*ck) /* no memory for a handle that could release it */
		ck_mpi_comm_free(table.ctx);
	return rc;
}
