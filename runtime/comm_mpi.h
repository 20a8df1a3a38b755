/*
 * A struct ckpt_comm over MPI. For comm_mpi.c, which is the only file that calls MPI, and its test.
 */
#ifndef CK_COMM_MPI_H
#define CK_COMM_MPI_H

#include "ckpt_mpi.h"
#include "error.h"

/*
 * Duplicate `comm` and make a table over the duplicate, which returns errors of MPI (as minus the
 * error class) instead of ending the program. Collective over `comm`; like every duplication it
 * waits for all ranks, without a limit.
 *
 *   comm  an intra-communicator; stays the caller's
 *   out   the table; ends with ck_mpi_comm_free(out->ctx). Untouched after a failure
 *
 * Messages have at most INT_MAX bytes; the table refuses longer ones. After MPI_Finalize it refuses
 * everything. Returns 0; CK_EARG (MPI is not initialised or finalised already, no communicator, an
 * inter-communicator); CK_EPEER (MPI failed, with its text); CK_ENOMEM. Without MPI the failure is
 * local.
 */
int ck_mpi_comm_new(MPI_Comm comm, struct ckpt_comm *out, struct ck_error *err);

/*
 * Free the duplicate. Where requests are left (the ck_comm over it has died) or MPI is finalised,
 * MPI is not called: the duplicate stays with MPI. NULL is fine.
 */
void ck_mpi_comm_free(void *ctx);

#endif
