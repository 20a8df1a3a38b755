/*
 * TAP 13 for test programs in C: prove runs them.
 *
 *	int main(void)
 *	{
 *		is_int(ck_foo(NULL, &err), CK_EARG, "no argument");
 *		like(err.text, "foo: ", "and the text says what");
 *		return done_testing();
 *	}
 *
 * Each check prints one line, returns whether it held, and on failure tells file, line, what it
 * got and what it wanted. The name is a printf format and is needed. Threads may check at the same
 * time; a forked child must not (its parent checks what it exits with).
 */
#ifndef TESTS_TAP_H
#define TESTS_TAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ok(cond, ...) tap_ok(__FILE__, __LINE__, (cond), #cond, __VA_ARGS__)
/* Signed and unsigned integers of any width. */
#define is_int(got, want, ...) tap_is_int(__FILE__, __LINE__, (got), (want), __VA_ARGS__)
#define is_u64(got, want, ...) tap_is_u64(__FILE__, __LINE__, (got), (want), __VA_ARGS__)
/* Strings; NULL equals only NULL. */
#define is_str(got, want, ...) tap_is_str(__FILE__, __LINE__, (got), (want), __VA_ARGS__)
/* `text` has, or has not, the substring `needle`. A `text` of NULL fails both. */
#define like(text, needle, ...) tap_like(__FILE__, __LINE__, (text), (needle), true, __VA_ARGS__)
#define unlike(text, needle, ...) tap_like(__FILE__, __LINE__, (text), (needle), false, __VA_ARGS__)

/* Count one check that this machine cannot do, and say why. */
void skip(const char *why, ...) __attribute__((format(printf, 1, 2)));

/* A line for the reader of the log, "# …". */
void diag(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Print the plan. Returns what main returns: 0; 1 when a check failed or there was none. */
int done_testing(void);

/*
 * A fresh directory below ${TEST_TMPDIR:-/var/tmp} (a real disk: O_DIRECT works), another one at
 * each call. Removed when the process that asked ends by exit or return, unless TEST_KEEP=1. The
 * string lives until then. Ends the program ("Bail out!") when it cannot be made.
 */
const char *test_tmpdir(void);

/*
 * How often to go round where each round proves the same once more: under CK_FULL=1, of `make check-full`; as a
 * rule; under ThreadSanitizer, which looks at how threads meet, not at how much they move.
 */
size_t rounds(size_t full, size_t usual, size_t tsan);

/* The time since some moment, for tests of how long something takes. */
double seconds(void);
/* The processor time of this process, for tests of how much work it is: other processes do not count. */
double cpu_seconds(void);

/* What the macros call. */
bool tap_ok(const char *file, int line, bool cond, const char *text, const char *name, ...)
	__attribute__((format(printf, 5, 6)));
bool tap_is_int(const char *file, int line, long long got, long long want, const char *name, ...)
	__attribute__((format(printf, 5, 6)));
bool tap_is_u64(const char *file, int line, uint64_t got, uint64_t want, const char *name, ...)
	__attribute__((format(printf, 5, 6)));
bool tap_is_str(const char *file, int line, const char *got, const char *want, const char *name,
		...) __attribute__((format(printf, 5, 6)));
bool tap_like(const char *file, int line, const char *text, const char *needle, bool wanted,
	      const char *name, ...) __attribute__((format(printf, 6, 7)));

#endif
