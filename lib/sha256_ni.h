/*
 * The compression function of SHA-256 over several streams at once, with the SHA instructions of
 * x86-64: one stream alone waits for its own results most of the time.
 * Source: FIPS 180-4; Intel, SHA extensions (sha256rnds2, sha256msg1, sha256msg2).
 */
#ifndef CK_SHA256_NI_H
#define CK_SHA256_NI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CK_SHA256_LANES 4
#define CK_SHA256_BLOCK 64

struct ck_sha256_lane {
	uint32_t *state;           /* eight words, as in FIPS 180-4 */
	const unsigned char *data; /* any alignment; moves on */
};

/* Has this CPU what ck_sha256_ni needs? Where it is false, that must not be called. */
bool ck_sha256_ni_here(void);

/* Advance 1 ... CK_SHA256_LANES lanes by `blocks` blocks of 64 bytes each. */
void ck_sha256_ni(struct ck_sha256_lane *lanes, size_t count, size_t blocks);

#endif
