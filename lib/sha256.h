/*
 * SHA-256 of one or of several streams at once: by our own kernel for several streams where the CPU
 * has the instructions (sha256_ni.h), else by libcrypto. Both give the same values.
 */
#ifndef CK_SHA256_H
#define CK_SHA256_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"

#define CK_SHA256_BYTES 32
#define CK_SHA256_HEX 64 /* without the NUL */

/* Who computes. */
enum ck_sha {
	CK_SHA_NONE = 0,      /* nobody: not asked for */
	CK_SHA_BEST = 1,      /* the kernel where it can run, else libcrypto */
	CK_SHA_LIBCRYPTO = 2, /* libcrypto in any case */
};

struct ck_sha256; /* a stream under way */

/* `sha` is not CK_SHA_NONE. Returns 0; CK_ENOMEM; CK_EIO (libcrypto refuses). */
int ck_sha256_new(struct ck_sha256 **out, enum ck_sha sha, struct ck_error *err);

/* The next bytes[i] bytes of stream i, which are advanced together. Returns 0 or CK_EIO. */
int ck_sha256_update(struct ck_sha256 *const *streams, const void *const *data, const size_t *bytes,
		     size_t count, struct ck_error *err);

/* Ends the stream. Returns 0 or CK_EIO. */
int ck_sha256_final(struct ck_sha256 *stream, unsigned char raw[static CK_SHA256_BYTES],
		    struct ck_error *err);
void ck_sha256_free(struct ck_sha256 *stream);

/* Of a short text, as lower-case hex. Returns 0 or CK_EIO. */
int ck_sha256_hex(const void *data, size_t bytes, char hex[static CK_SHA256_HEX + 1],
		  struct ck_error *err);

/* `count` bytes as 2 * count lower-case hex digits and a NUL. */
void ck_hex_print(char *hex, const unsigned char *bytes, size_t count);

#endif
