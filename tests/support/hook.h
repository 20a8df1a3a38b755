/*
 * A ck_io over the system's that lets a test do something between two calls: what another process might do there.
 */
#ifndef TESTS_HOOK_H
#define TESTS_HOOK_H

#include "io.h"

struct hook {
	struct ck_io io; /* to use; set by hook_init */
	/* Before each call that names a path: its operation ("rename", ...) and, of two paths, the first. */
	void (*before)(struct hook *hook, const char *op, const char *path);
	void *arg;      /* of the test */
	unsigned calls; /* so far; those that `before` makes itself are not counted */
	bool off;
};

void hook_init(struct hook *hook,
	       void (*before)(struct hook *hook, const char *op, const char *path), void *arg);

/* Nothing is done any more between calls. */
void hook_end(struct hook *hook);

#endif
