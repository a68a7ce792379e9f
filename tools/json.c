/* SPDX-License-Identifier: MIT */
#include "json.h"

#include "utf8.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

void json_init(struct json *j, FILE *out)
{
	*j = (struct json){ .out = out };
}

static void put_bytes(struct json *j, const void *value, size_t len)
{
	const unsigned char *p = value;
	fputc('"', j->out);
	while (len) {
		size_t n = utf8_length(p, len);
		if (n == 0) {
			fputs("\\ufffd", j->out);
			n = 1;
		} else if (n > 1) {
			fwrite(p, 1, n, j->out);
		} else if (*p == '"' || *p == '\\') {
			fprintf(j->out, "\\%c", *p);
		} else if (*p < 0x20 || *p == 0x7f) {
			fprintf(j->out, "\\u%04x", *p);
		} else {
			fputc(*p, j->out);
		}
		p += n;
		len -= n;
	}
	fputc('"', j->out);
}

static void newline(struct json *j)
{
	fputc('\n', j->out);
	for (unsigned i = 0; i < j->depth; i++)
		fputs("  ", j->out);
}

/* Comma, line and key of the next value. */
static void begin(struct json *j, const char *key)
{
	if (j->has_value[j->depth])
		fputc(',', j->out);
	j->has_value[j->depth] = true;
	if (j->depth)
		newline(j);
	if (key) {
		put_bytes(j, key, strlen(key));
		fputs(": ", j->out);
	}
}

static void open_level(struct json *j, const char *key, char bracket)
{
	begin(j, key);
	fputc(bracket, j->out);
	assert(j->depth < JSON_MAX_DEPTH);
	j->has_value[++j->depth] = false;
}

static void close_level(struct json *j, char bracket)
{
	assert(j->depth > 0);
	bool was_empty = !j->has_value[j->depth--];
	if (!was_empty)
		newline(j);
	fputc(bracket, j->out);
}

void json_object(struct json *j, const char *key)
{
	open_level(j, key, '{');
}

void json_array(struct json *j, const char *key)
{
	open_level(j, key, '[');
}

void json_end_object(struct json *j)
{
	close_level(j, '}');
}

void json_end_array(struct json *j)
{
	close_level(j, ']');
}

void json_bytes(struct json *j, const char *key, const void *value, size_t len)
{
	begin(j, key);
	put_bytes(j, value, len);
}

void json_string(struct json *j, const char *key, const char *value)
{
	if (value)
		json_bytes(j, key, value, strlen(value));
	else
		json_null(j, key);
}

static bool is_utf8(const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t left = strlen(text), n;
	for (; left; p += n, left -= n) {
		n = utf8_length(p, left);
		if (n == 0)
			return false;
	}
	return true;
}

void json_name(struct json *j, const char *key, const char *name)
{
	json_string(j, key, name);
	if (!key || !name || is_utf8(name))
		return;
	char hex_key[64];
	snprintf(hex_key, sizeof(hex_key), "%s_hex", key);
	begin(j, hex_key);
	fputc('"', j->out);
	for (const unsigned char *p = (const unsigned char *)name; *p; p++)
		fprintf(j->out, "%02x", *p);
	fputc('"', j->out);
}

void json_number(struct json *j, const char *key, uint64_t value)
{
	begin(j, key);
	fprintf(j->out, "%" PRIu64, value);
}

void json_signed(struct json *j, const char *key, int64_t value)
{
	begin(j, key);
	fprintf(j->out, "%" PRId64, value);
}

void json_hex(struct json *j, const char *key, uint64_t value)
{
	begin(j, key);
	fprintf(j->out, "\"0x%016" PRIx64 "\"", value);
}

void json_bool(struct json *j, const char *key, bool value)
{
	begin(j, key);
	fputs(value ? "true" : "false", j->out);
}

void json_null(struct json *j, const char *key)
{
	begin(j, key);
	fputs("null", j->out);
}

void json_uuid(struct json *j, const char *key, const uint8_t uuid[16])
{
	begin(j, key);
	fputc('"', j->out);
	for (unsigned i = 0; i < 16; i++)
		fprintf(j->out, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
	fputc('"', j->out);
}

void json_finish(struct json *j)
{
	assert(j->depth == 0);
	fputc('\n', j->out);
}

void json_copy(struct json *j, const struct json_value *v)
{
	switch (v->type) {
	case JSON_NULL:
		json_null(j, v->key);
		break;
	case JSON_BOOL:
		json_bool(j, v->key, v->truth);
		break;
	case JSON_NUMBER:
		begin(j, v->key);
		fputs(v->text, j->out);
		break;
	case JSON_STRING:
		json_name(j, v->key, v->text);
		break;
	case JSON_ARRAY:
	case JSON_OBJECT:
		open_level(j, v->key, v->type == JSON_ARRAY ? '[' : '{');
		for (const struct json_value *c = v->children; c; c = c->next)
			json_copy(j, c);
		close_level(j, v->type == JSON_ARRAY ? ']' : '}');
		break;
	}
}
