#include "optim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "half.h"
#include "memory.h"

#define BETA1 0.9
#define BETA2 0.999
#define EPSILON 1e-8f

/* Make the fp16 copies of this rank's slice and hand them to all. */
static void share_weights(struct optim *o)
{
	uint16_t *own = o->fp16 + (size_t)o->rank * o->slice;

	for (size_t i = 0; i < o->slice; i++)
		own[i] = half_from_float(o->master[i]);
	MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, o->fp16, (int)o->slice, MPI_UINT16_T,
		      o->comm);
}

void optim_init(struct optim *o, MPI_Comm comm, const float *weights, size_t params)
{
	size_t padded;

	*o = (struct optim){.comm = comm, .params = params};
	MPI_Comm_rank(comm, &o->rank);
	MPI_Comm_size(comm, &o->world);
	o->slice = (params + (size_t)o->world - 1) / (size_t)o->world;
	padded = (size_t)o->world * o->slice;
	o->begin = (size_t)o->rank * o->slice;
	if (o->begin > params)
		o->begin = params;
	o->count = params - o->begin < o->slice ? params - o->begin : o->slice;
	o->master = memory_zeroed(o->slice, sizeof(float));
	o->exp_avg = memory_zeroed(o->slice, sizeof(float));
	o->exp_avg_sq = memory_zeroed(o->slice, sizeof(float));
	o->grad = memory_zeroed(padded, sizeof(float));
	o->incoming = memory_zeroed(padded, sizeof(float));
	o->fp16 = memory_zeroed(padded, sizeof(uint16_t));
	memcpy(o->master, weights + o->begin, o->count * sizeof(float));
	share_weights(o);
}

void optim_free(struct optim *o)
{
	free(o->master);
	free(o->exp_avg);
	free(o->exp_avg_sq);
	free(o->grad);
	free(o->incoming);
	free(o->fp16);
	*o = (struct optim){.comm = MPI_COMM_NULL};
}

/* The sum over all ranks of the gradient of element i of this slice. */
static float sum_in_rank_order(const struct optim *o, size_t i)
{
	float sum = 0;

	for (int r = 0; r < o->world; r++)
		sum += o->incoming[(size_t)r * o->slice + i];
	return sum;
}

void optim_step(struct optim *o, uint64_t samples, double lr, uint64_t number)
{
	const float beta1 = (float)BETA1, beta2 = (float)BETA2;
	float mean = (float)(1.0 / (double)samples);
	float rate = (float)(lr / (1 - pow(BETA1, (double)number)));
	float correction = (float)(1 / (1 - pow(BETA2, (double)number)));

	MPI_Alltoall(o->grad, (int)o->slice, MPI_FLOAT, o->incoming, (int)o->slice, MPI_FLOAT,
		     o->comm);
	for (size_t i = 0; i < o->count; i++) {
		float g = sum_in_rank_order(o, i) * mean;

		o->exp_avg[i] = beta1 * o->exp_avg[i] + (1 - beta1) * g;
		o->exp_avg_sq[i] = beta2 * o->exp_avg_sq[i] + (1 - beta2) * g * g;
		o->master[i] -=
			rate * o->exp_avg[i] / (sqrtf(o->exp_avg_sq[i] * correction) + EPSILON);
	}
	share_weights(o);
}
