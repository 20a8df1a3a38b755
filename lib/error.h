/*
 * Errors: a code and one line of text.
 *
 * Functions return 0 or a negative enum ck_code and take a struct ck_error last, which may be NULL.
 * Who sees the failure writes "path: object: what was wrong, with the numbers: cause"; callers
 * only put in front what they know (step, rank). Outputs are untouched on failure.
 */
#ifndef CK_ERROR_H
#define CK_ERROR_H

#include <stdbool.h>
#include <stddef.h>

/* The values equal those of enum ckpt_code in <ckpt.h>. */
enum ck_code {
	CK_OK = 0,
	CK_EARG = -1, /* bad argument or setting */
	CK_EIO = -2,  /* the file system failed */
	CK_ENOMEM = -3,
	CK_EFORMAT = -4, /* bytes are not what the format says */
	CK_EDIGEST = -5, /* bytes differ from what was written */
	CK_ENOENT = -6,
	CK_EEXIST = -7,
	CK_EFENCED = -8, /* a newer generation owns the run */
	CK_EPEER = -9,   /* a rank failed or is silent */
	CK_EWORLD = -10, /* another world size */
	CK_EITEM = -11,  /* items of program and checkpoint differ */
	CK_EREFUSED = -12
};

#define CK_ERROR_TEXT 1024

struct ck_error {
	int code;
	char text[CK_ERROR_TEXT]; /* NUL-terminated; longer texts are cut and end in "..." */
};

/* clang-format off */ /* its releases differ on a body in braces */
#define CK_ERROR_INIT {.code = CK_OK, .text = ""}
/* clang-format on */

/*
 * Fill `err` (may be NULL) and return `code`, which is below 0. These are macros so that compilers and
 * analyzers see that the result of a failure is never 0; `code` is evaluated once.
 */
#define ck_fail(err, code, ...)                                \
	__extension__({                                        \
		int ck_code_ = (code);                         \
		ck_error_set((err), ck_code_, 0, __VA_ARGS__); \
		ck_code_ < 0 ? ck_code_ : CK_EIO;              \
	})

/*
 * The same for a failed system call: ": <strerror(errnum)>" is appended. The code is CK_ENOENT for ENOENT,
 * CK_EEXIST for EEXIST, CK_ENOMEM for ENOMEM, else CK_EIO.
 */
#define ck_fail_errno(err, errnum, ...)                                        \
	__extension__({                                                        \
		int ck_errno_ = (errnum), ck_code_ = ck_errno_code(ck_errno_); \
		ck_error_set((err), ck_code_, ck_errno_, __VA_ARGS__);         \
		ck_code_ < 0 ? ck_code_ : CK_EIO;                              \
	})

/* CK_ENOMEM with a text that says how many bytes. */
#define ck_fail_nomem(err, bytes) \
	ck_fail((err), CK_ENOMEM, "out of memory: %zu bytes wanted", (size_t)(bytes))

/* What the macros call: errnum 0 adds nothing. */
void ck_error_set(struct ck_error *err, int code, int errnum, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
int ck_errno_code(int errnum);

/* Put "<text>: " in front of an error that is set. */
void ck_error_prefix(struct ck_error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Could something not be looked at (CK_EIO, CK_ENOMEM: the file system, descriptors, memory, permission)? Then
 * nothing is known of it: it is neither bad nor missing, it is tried again or left as it is, and never deleted.
 */
static inline bool ck_is_unseen(int code)
{
	return code == CK_EIO || code == CK_ENOMEM;
}

/* Is it a failure for lack of space: a full disk, or a quota? By its text, which a message of another rank has too. */
bool ck_error_is_space(const struct ck_error *err);

/* A few words for a code, for messages that have no text: "bad argument", "digest mismatch" ... */
const char *ck_code_name(int code);

#endif
