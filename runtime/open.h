/*
 * Between the libraries of the runtime: not for programs.
 */
#ifndef CK_OPEN_H
#define CK_OPEN_H

#include "ckpt.h"
#include "error.h"

/* The dead handle of an open that failed before there was a communicator. Returns err->code. */
int ck_open_failed(ckpt **ck, const struct ck_error *err);

#endif
