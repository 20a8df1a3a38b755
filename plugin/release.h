/*
 * Where the releases of libslurm differ, so far as we call it. Each function exists in all of them;
 * its name or its arguments changed.
 */
#ifndef CK_RELEASE_H
#define CK_RELEASE_H

#include <errno.h>
#include <slurm/slurm.h>

#define VERSION_AT_LEAST(major, minor) (SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(major, minor, 0))

#if VERSION_AT_LEAST(24, 11)
#define slurm_get_errno() errno
#endif

#if VERSION_AT_LEAST(26, 5)
#define slurm_free_ctl_conf(conf) slurm_free_conf(conf)
#endif

#if VERSION_AT_LEAST(23, 11)
typedef hostlist_t *ck_hostlist;
#else
typedef hostlist_t ck_hostlist;
#endif

#endif
