/*
 * Signals: handlers that store a flag and nothing else.
 *
 * Signal dispositions belong to the process, so this module holds the runtime's only process-wide state.
 * Several handles may be open (ranks as threads); each sees every signal. A forked child that still
 * has the handlers ignores them: the flag belongs to the process that installed them.
 */
#ifndef CK_SIGNALS_H
#define CK_SIGNALS_H

#include <stdbool.h>

#include "error.h"

/*
 * Install handlers for both 0-terminated lists, where they do not stand already; counted. A handler *function*
 * that was there before is called after ours; SIG_DFL and SIG_IGN are replaced.
 * Returns 0; CK_EARG (sigaction refuses; a signal is in both lists, or in the other one of an earlier call).
 * Thread-safe.
 */
int ck_signals_install(const int *stop, const int *save, struct ck_error *err);

/* Undo one install; the last puts the old handlers back where ours still stand. Thread-safe. */
void ck_signals_remove(void);

/* Is an install of this very process, not of its parent, not undone yet: has it a run open? Thread-safe. */
bool ck_signals_used(void);

/* The stop signal seen by this process, 0 if none. It stays. Async-signal-safe. */
int ck_signals_stop(void);

/* How many save signals this process has seen so far. */
unsigned ck_signals_saves(void);

#endif
