/*
 * <ckpt_mpi.h>: <ckpt.h> over MPI. Link with -lckpt_mpi -lckpt.
 */
#ifndef CKPT_MPI_H
#define CKPT_MPI_H

#include <ckpt.h>
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * ckpt_open over a duplicate of `comm`, which is freed by ckpt_close; so ckpt_close comes before
 * MPI_Finalize. Collective over `comm`. MPI needs no thread support (MPI_THREAD_FUNNELED when other
 * threads exist): MPI is called from the calling thread alone. Errors of MPI are returned.
 */
int ckpt_open_mpi(ckpt **ck, MPI_Comm comm, const struct ckpt_options *options);

#ifdef __cplusplus
}
#endif

#endif
