/*
 * Adam (Kingma & Ba 2015) with ZeRO-1 partition (Rajbhandari et al. 2020): each rank holds the fp32
 * master weights and both moments of one slice of the parameters; all hold fp16 copies of all.
 *
 * Slices have equal length, so the flat array is padded to a multiple of the world size; the
 * padding is never part of the state. Gradients are added in the order of the ranks, whatever
 * their placement: a sum by MPI_Allreduce might depend on it.
 */
#ifndef TRAIN_OPTIM_H
#define TRAIN_OPTIM_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

struct optim {
	MPI_Comm comm;
	int rank, world;
	size_t params;
	size_t slice;        /* length of a slice, padding included */
	size_t begin, count; /* this rank's parameters, without padding; count may be 0 */
	float *master;       /* [slice] */
	float *exp_avg;      /* [slice] */
	float *exp_avg_sq;   /* [slice] */
	float *grad;         /* [world * slice]: sums over this rank's samples, the caller's */
	float *incoming;     /* [world][slice]: every rank's grad of this rank's slice */
	uint16_t *fp16;      /* [world * slice], the same on all ranks */
};

/* Begin with these weights [params], the same on all ranks. Collective. */
void optim_init(struct optim *o, MPI_Comm comm, const float *weights, size_t params);
void optim_free(struct optim *o);

/* One update from the mean of the gradients over `samples`, as step number 1, 2, …. Collective. */
void optim_step(struct optim *o, uint64_t samples, double lr, uint64_t number);

#endif
