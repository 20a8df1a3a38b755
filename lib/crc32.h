/*
 * CRC-32 as in zlib (polynomial 0xedb88320, reflected), by the fastest code that was there at build
 * time: ISA-L's, else zlib's. zlib is the reference; both give the same values.
 */
#ifndef CK_CRC32_H
#define CK_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* Go on from `crc` (0 at the beginning of a stream). Any alignment. */
uint32_t ck_crc32(uint32_t crc, const void *data, size_t bytes);

/* Of a stream of crc `a` followed by one of crc `b` and `b_bytes` bytes. */
uint32_t ck_crc32_combine(uint32_t a, uint32_t b, uint64_t b_bytes);

/* "isa-l" or "zlib", for reports. */
const char *ck_crc32_name(void);

#endif
