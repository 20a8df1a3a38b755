#include "crc32.h"

#include <zlib.h>

#ifdef CK_HAVE_ISAL
#include <isa-l/crc.h>

/*
 * ISA-L leaves the upper halves of the vector registers dirty, which slows the SSE code behind it
 * (SHA-256) by a third.
 */
static void clean_registers(void)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx"))
		__asm__ volatile("vzeroupper");
#endif
}

uint32_t ck_crc32(uint32_t crc, const void *data, size_t bytes)
{
	if (bytes == 0)
		return crc;
	crc = crc32_gzip_refl(crc, data, bytes);
	clean_registers();
	return crc;
}

const char *ck_crc32_name(void)
{
	return "isa-l";
}
#else
uint32_t ck_crc32(uint32_t crc, const void *data, size_t bytes)
{
	return bytes ? (uint32_t)crc32_z(crc, data, bytes) : crc;
}

const char *ck_crc32_name(void)
{
	return "zlib";
}
#endif

uint32_t ck_crc32_combine(uint32_t a, uint32_t b, uint64_t b_bytes)
{
	return (uint32_t)crc32_combine(a, b, (z_off_t)b_bytes);
}
