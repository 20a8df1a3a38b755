/*
 * The half of json.h that looks at the text: is it one JSON object, to the letter of RFC 8259,
 * and within our limits? Used by ck_json_parse alone.
 */
#ifndef CK_JSON_SCAN_H
#define CK_JSON_SCAN_H

#include <stddef.h>

#include "error.h"

/*
 * Refused beyond the grammar: a byte order mark, \u0000, lone surrogates, more than
 * CK_JSON_MAX_DEPTH levels, numbers of more than 63 characters, more than CK_JSON_MAX_BYTES.
 * Returns 0; CK_EFORMAT with `where`, the byte offset and what is wrong there. Pure, no memory.
 */
int ck_json_scan(const char *where, const char *text, size_t bytes, struct ck_error *err);

#endif
