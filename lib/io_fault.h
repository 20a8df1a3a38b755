/*
 * A ck_io that misbehaves by rule, over another one. For tests, and for whoever wants to see what a
 * full disk does to a run: SLURM_CKPT_IO_FAULT holds rules for a whole program (see runtime).
 *
 * Rules, separated by ';', the first that matches a call acts:
 *
 *	<op>[,<op>…]:<glob of the last path component or path>[:<key>=<value>…]
 *
 *	op      open close pread pwrite fsync fallocate fstat lstat mkdir rmdir rename link unlink
 *	        readdir lock queue submit reap; "meta" = none of pread, pwrite and the last three; "any"
 *		pread and pwrite are transfers of a queue as well; "queue" is to make one,
 *		"submit" to begin a transfer, "reap" to hear of its end; "queue" and "reap" have
 *		no path: "queue:*:errno=ENOSYS" is a kernel without io_uring
 *	errno=  ENOSPC, EIO, EINTR, …: the call fails with it and is not made (a close is made: the
 *	        descriptor is gone, as it is with the real one)
 *	done=1  with errno: the call is made before it fails, as when the answer of a server is lost
 *	cut=N   pread, pwrite: at most N bytes are done
 *	flip=N  pread, not of a queue: the lowest bit of the file's byte N is read wrongly
 *	delay=N milliseconds before the call
 *	after=N the rule acts from the (N+1)-th matching call on
 *	times=N and at most N times
 *	until=PATH wait before the call until PATH exists, however long: what a test does meanwhile
 *	        is done while the call is under way
 *	kill=SIG raise(SIG) before the call: a process that dies in the middle of a save. The handler has run,
 *	        or the process was stopped and continued, before the call is made, whatever the thread blocks
 *
 *	pwrite:*.safetensors:errno=ENOSPC:after=2:times=1;meta:*:delay=500
 *
 * A rule that matches but does not act (before `after`, beyond `times`) leaves the call to the
 * rules behind it. One without keys changes nothing; it counts, and shields from the rules behind
 * it. Several keys act together, in the order delay, until, kill, errno, cut. An empty rule is skipped.
 *
 * In a glob (fnmatch) '*' matches '/' too. rename and link match either path. Calls on a descriptor
 * match the path it was opened with through this ck_io. Thread-safe.
 */
#ifndef CK_IO_FAULT_H
#define CK_IO_FAULT_H

#include <stdint.h>

#include "error.h"
#include "io.h"

struct ck_io_fault;

/* Returns 0; CK_EARG naming the rule and what was expected; CK_ENOMEM. `below` must outlive it. */
int ck_io_fault_new(struct ck_io_fault **out, const struct ck_io *below, const char *rules,
		    struct ck_error *err);
/* The ck_io to use; lives as long as the fault. */
const struct ck_io *ck_io_fault_io(struct ck_io_fault *fault);
/*
 * How many calls rule number `rule` (0 …, empty ones not counted) has matched: by operation and
 * glob, whether it then acted or not, and not those on which an earlier rule acted. 0 for a rule
 * that does not exist.
 */
uint64_t ck_io_fault_count(struct ck_io_fault *fault, unsigned rule);
/* NULL is fine. No call may be under way. */
void ck_io_fault_free(struct ck_io_fault *fault);

#endif
