/*
 * The rules of io_fault.h: their language, and which of them acts on a call. No I/O here.
 */
#ifndef CK_IO_FAULT_RULES_H
#define CK_IO_FAULT_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "error.h"

/* The operations of struct ck_io_ops. */
enum ck_fault_op {
	CK_FAULT_OPEN,
	CK_FAULT_CLOSE,
	CK_FAULT_PREAD,
	CK_FAULT_PWRITE,
	CK_FAULT_FSYNC,
	CK_FAULT_FALLOCATE,
	CK_FAULT_FSTAT,
	CK_FAULT_LSTAT,
	CK_FAULT_MKDIR,
	CK_FAULT_RMDIR,
	CK_FAULT_RENAME,
	CK_FAULT_LINK,
	CK_FAULT_UNLINK,
	CK_FAULT_READDIR,
	CK_FAULT_LOCK,
	CK_FAULT_QUEUE,
	CK_FAULT_SUBMIT,
	CK_FAULT_REAP,
	CK_FAULT_COUNT
};

#define CK_FAULT_RULES_MAX 32

/* What is done to a call on which a rule acts. */
struct ck_fault_action {
	uint64_t delay_ms;
	uint64_t cut;  /* UINT64_MAX: not cut */
	uint64_t flip; /* UINT64_MAX: nothing */
	int errnum;    /* 0: does not fail */
	int signal;    /* 0: none */
	char *until;   /* a path to wait for; NULL: none. The rule's. */
	uint64_t done; /* the call is made before it fails */
};

struct ck_fault_rule {
	unsigned ops; /* one bit per enum ck_fault_op */
	char *glob;
	struct ck_fault_action action;
	uint64_t after;
	uint64_t times;
	uint64_t count; /* matching calls so far */
};

struct ck_fault_rules {
	struct ck_fault_rule rules[CK_FAULT_RULES_MAX];
	unsigned count;
};

/*
 * Parse `text` (see io_fault.h) into `rules`, which are zeroed. Free with ck_fault_rules_fini,
 * after a failure too. Returns 0; CK_EARG naming the rule and what was expected; CK_ENOMEM.
 */
int ck_fault_rules_parse(struct ck_fault_rules *rules, const char *text, struct ck_error *err);

/*
 * What is to be done to a call: the action of the first rule that acts, else none. Counts the call
 * at every rule that it matches on the way. `other` is the second path of a call, or NULL.
 * Not thread-safe.
 */
struct ck_fault_action ck_fault_rules_decide(struct ck_fault_rules *rules, enum ck_fault_op op,
					     const char *path, const char *other);

void ck_fault_rules_fini(struct ck_fault_rules *rules);

#endif
