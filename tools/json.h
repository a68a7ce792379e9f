/* SPDX-License-Identifier: MIT
 *
 * Purpose: writes JSON (RFC 8259), indented, straight to a stream; and reads it, for what a mounted pool answers.
 *
 * Invariants
 *   I1  What is written is valid JSON in UTF-8 whatever bytes a name holds: each byte that is not part of a UTF-8 sequence
 *       becomes U+FFFD. json_name() then adds a member "KEY_hex" with all the bytes of the name in hexadecimal, so no
 *       name is lost.
 *   I2  Numbers are integers; 64-bit ones are written exactly.
 *   I3  The reader never recurses deeper than JSON_MAX_DEPTH and never reads past the terminating NUL.
 *
 * Uses: nothing.
 */
#ifndef TOOLS_JSON_H
#define TOOLS_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { JSON_MAX_DEPTH = 16 };

struct json {
	FILE *out;
	unsigned depth;
	bool has_value[JSON_MAX_DEPTH + 1];
};

void json_init(struct json *j, FILE *out);
/* @key: NULL inside an array and at the top. */
void json_object(struct json *j, const char *key);
void json_array(struct json *j, const char *key);
void json_end_object(struct json *j);
void json_end_array(struct json *j);
void json_string(struct json *j, const char *key, const char *value);
void json_bytes(struct json *j, const char *key, const void *value, size_t len);
void json_name(struct json *j, const char *key, const char *name);
void json_number(struct json *j, const char *key, uint64_t value);
void json_signed(struct json *j, const char *key, int64_t value);
void json_hex(struct json *j, const char *key, uint64_t value); /* as the string "0x..." */
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);
void json_uuid(struct json *j, const char *key, const uint8_t uuid[16]);
void json_finish(struct json *j); /* the newline at the end */

/* -- reading -------------------------------------------------------------------------------------------------------- */
enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json_value {
	enum json_type type;
	char *key;         /* of a member of an object */
	char *text;        /* string: the characters; number: its digits */
	bool truth;
	struct json_value *children, *next;
};

/* NULL: not JSON, or no memory. */
struct json_value *json_parse(const char *text);
void json_free(struct json_value *v);
/* Member @key of object @v; NULL when @v is NULL, no object, or has none. */
const struct json_value *json_get(const struct json_value *v, const char *key);
uint64_t json_get_number(const struct json_value *v, const char *key, uint64_t otherwise);
const char *json_get_string(const struct json_value *v, const char *key, const char *otherwise);
/* Writes @v again, so that what was read becomes valid and indented whatever its bytes are. */
void json_copy(struct json *j, const struct json_value *v);
bool json_get_bool(const struct json_value *v, const char *key, bool otherwise);

#endif
