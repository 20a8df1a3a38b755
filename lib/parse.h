/*
 * Parsing and printing of small values: numbers, durations, names, times. Each parser says what it
 * wanted when it fails: "<what>: <text>: what is wrong". `what` names the option or field; a `text`
 * of NULL is refused as a missing value. Outputs are untouched on failure.
 */
#ifndef CK_PARSE_H
#define CK_PARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "error.h"

/* Decimal digits only, no sign, no blank, [min, max]. Returns 0 or CK_EARG. */
int ck_parse_u64(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *out,
		 struct ck_error *err);

/* The longest duration, about 31 years: as nanoseconds it still fits an int64_t. */
#define CK_SECONDS_MAX UINT64_C(1000000000)

/*
 * A duration with a unit: "900s", "15m" or "15min", "2h", "1d", "1:00:00" (h:m:s), "90:00" (m:s).
 * Behind a colon stand two digits below 60. At most CK_SECONDS_MAX; "0s" is a duration.
 * A bare number is refused, its readings shown: "500: a number needs a unit: 500s, 500min or
 * 500steps" (steps only where `steps_too`). Returns 0 or CK_EARG.
 */
int ck_parse_seconds(const char *what, const char *text, bool steps_too, uint64_t *seconds,
		     struct ck_error *err);

/* When to save: a time or a number of steps; exactly one of both is not 0. */
struct ck_interval {
	uint64_t seconds;
	uint64_t steps;
};

/* A duration as above, or "500steps", "1step", below 2^53. 0 is refused. Returns 0 or CK_EARG. */
int ck_parse_interval(const char *what, const char *text, struct ck_interval *out,
		      struct ck_error *err);

/*
 * A size with a unit, more than 0 and below 2^53: "512M", "2G", "2GiB" (of 1024), "5GB" (of 1000),
 * "4096B". A bare number is refused, its readings shown. Returns 0 or CK_EARG.
 */
int ck_parse_bytes(const char *what, const char *text, uint64_t *bytes, struct ck_error *err);

/* A run's name: [A-Za-z0-9._-], 1 to 128 characters, not beginning with '.' or '-'. 0 or CK_EARG. */
int ck_parse_run_name(const char *what, const char *text, struct ck_error *err);

/* Length of the valid UTF-8 sequence at the front of text (1-4), 0 if there is none. */
int ck_utf8_sequence(const unsigned char *text, uint64_t bytes);

/*
 * The first host of a list as Slurm writes it, "n[01-03,7],m2": "n01". Into out, cut to size. Returns out;
 * "" for a list without one.
 */
char *ck_first_host(const char *list, char *out, size_t size);

/* "1.5 GiB", "37 KiB", "512 B" into out (at least 16 bytes). Returns out. */
char *ck_format_bytes(uint64_t bytes, char out[static 16]);

/* "2h 05m", "15m 30s", "4.2 s", "42 ms" into out (at least 16 bytes). Returns out. */
char *ck_format_seconds(double seconds, char out[static 16]);

/* The end of a noun: "" for one of them, else "s". */
static inline const char *ck_plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

/*
 * RFC 3339 in UTC, whole seconds: "2026-11-29T20:37:50Z" (at least 32 bytes). Returns out.
 * Times outside of the years 0000 to 9999 are printed as the nearest end of them.
 */
char *ck_format_time(int64_t epoch, char out[static 32]);
/* The inverse: exactly what ck_format_time prints. Returns 0 or CK_EFORMAT. */
int ck_parse_time(const char *what, const char *text, int64_t *epoch, struct ck_error *err);

#endif
