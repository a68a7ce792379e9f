/* SPDX-License-Identifier: MIT
 * The reading half of json.h. */
#include "json.h"

#include <stdlib.h>
#include <string.h>

struct reader {
	const char *p;
	bool failed;
};

static void skip_space(struct reader *r)
{
	r->p += strspn(r->p, " \t\r\n");
}

static bool take(struct reader *r, const char *word)
{
	size_t n = strlen(word);
	if (strncmp(r->p, word, n) != 0)
		return false;
	r->p += n;
	return true;
}

static int hex4(const char *p)
{
	int value = 0;
	for (int i = 0; i < 4; i++) {
		static const char digits[] = "0123456789abcdef";
		const char *d = p[i] ? strchr(digits, p[i] | 0x20) : NULL;
		if (!d)
			return -1;
		value = value << 4 | (int)(d - digits);
	}
	return value;
}

static char *put_utf8(char *out, unsigned c)
{
	if (c < 0x80) {
		*out++ = (char)c;
	} else if (c < 0x800) {
		*out++ = (char)(0xc0 | c >> 6);
		*out++ = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		*out++ = (char)(0xe0 | c >> 12);
		*out++ = (char)(0x80 | (c >> 6 & 0x3f));
		*out++ = (char)(0x80 | (c & 0x3f));
	} else {
		*out++ = (char)(0xf0 | c >> 18);
		*out++ = (char)(0x80 | (c >> 12 & 0x3f));
		*out++ = (char)(0x80 | (c >> 6 & 0x3f));
		*out++ = (char)(0x80 | (c & 0x3f));
	}
	return out;
}

/* After the backslash of an escape. A \u0000 would end our strings early: it is refused. */
static char *read_escape(struct reader *r, char *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	char c = *r->p;
	const char *known = c ? strchr(from, c) : NULL;
	if (known) {
		r->p++;
		*out++ = to[known - from];
		return out;
	}
	int unit = c == 'u' ? hex4(r->p + 1) : -1;
	if (unit <= 0) {
		r->failed = true;
		return out;
	}
	r->p += 5;
	unsigned point = (unsigned)unit;
	if (unit >= 0xd800 && unit < 0xdc00) {
		int low = r->p[0] == '\\' && r->p[1] == 'u' ? hex4(r->p + 2) : -1;
		if (low < 0xdc00 || low > 0xdfff) {
			r->failed = true;
			return out;
		}
		r->p += 6;
		point = 0x10000 + ((point - 0xd800) << 10) + ((unsigned)low - 0xdc00);
	}
	return put_utf8(out, point);
}

static char *read_string(struct reader *r)
{
	if (!take(r, "\"")) {
		r->failed = true;
		return NULL;
	}
	/* An escape never becomes longer than it is written. */
	char *text = malloc(strlen(r->p) + 1), *out = text;
	if (!text)
		r->failed = true;
	while (!r->failed && *r->p != '"') {
		if ((unsigned char)*r->p < 0x20)
			r->failed = true;
		else if (take(r, "\\"))
			out = read_escape(r, out);
		else
			*out++ = *r->p++;
	}
	if (r->failed) {
		free(text);
		return NULL;
	}
	r->p++;
	*out = '\0';
	return text;
}

static struct json_value *read_value(struct reader *r, unsigned depth);

static void read_children(struct reader *r, struct json_value *v, unsigned depth)
{
	const char *closing = v->type == JSON_OBJECT ? "}" : "]";
	struct json_value **link = &v->children;
	skip_space(r);
	if (take(r, closing))
		return;
	do {
		skip_space(r);
		char *key = NULL;
		if (v->type == JSON_OBJECT) {
			key = read_string(r);
			skip_space(r);
			if (!take(r, ":"))
				r->failed = true;
		}
		struct json_value *child = r->failed ? NULL : read_value(r, depth + 1);
		if (!child) {
			free(key);
			r->failed = true;
			return;
		}
		child->key = key;
		*link = child;
		link = &child->next;
		skip_space(r);
	} while (take(r, ","));
	if (!take(r, closing))
		r->failed = true;
}

static void read_scalar(struct reader *r, struct json_value *v)
{
	size_t n = strspn(r->p, "+-.0123456789eE");
	if (*r->p == '"') {
		v->type = JSON_STRING;
		v->text = read_string(r);
	} else if (take(r, "true")) {
		v->type = JSON_BOOL;
		v->truth = true;
	} else if (take(r, "false")) {
		v->type = JSON_BOOL;
	} else if (take(r, "null")) {
		v->type = JSON_NULL;
	} else if (n) {
		v->type = JSON_NUMBER;
		v->text = strndup(r->p, n);
		r->p += n;
		r->failed |= !v->text;
	} else {
		r->failed = true;
	}
}

static struct json_value *read_value(struct reader *r, unsigned depth)
{
	struct json_value *v = depth < JSON_MAX_DEPTH ? calloc(1, sizeof(*v)) : NULL;
	if (!v) {
		r->failed = true;
		return NULL;
	}
	skip_space(r);
	if (take(r, "{")) {
		v->type = JSON_OBJECT;
		read_children(r, v, depth);
	} else if (take(r, "[")) {
		v->type = JSON_ARRAY;
		read_children(r, v, depth);
	} else {
		read_scalar(r, v);
	}
	if (!r->failed)
		return v;
	json_free(v);
	return NULL;
}

struct json_value *json_parse(const char *text)
{
	struct reader r = { .p = text };
	struct json_value *v = read_value(&r, 0);
	skip_space(&r);
	if (v && *r.p) {
		json_free(v);
		v = NULL;
	}
	return v;
}

void json_free(struct json_value *v)
{
	while (v) {
		struct json_value *next = v->next;
		json_free(v->children);
		free(v->key);
		free(v->text);
		free(v);
		v = next;
	}
}

const struct json_value *json_get(const struct json_value *v, const char *key)
{
	if (!v || v->type != JSON_OBJECT)
		return NULL;
	for (const struct json_value *c = v->children; c; c = c->next) {
		if (!strcmp(c->key, key))
			return c;
	}
	return NULL;
}

uint64_t json_get_number(const struct json_value *v, const char *key, uint64_t otherwise)
{
	const struct json_value *m = json_get(v, key);
	return m && m->type == JSON_NUMBER ? strtoull(m->text, NULL, 10) : otherwise;
}

const char *json_get_string(const struct json_value *v, const char *key, const char *otherwise)
{
	const struct json_value *m = json_get(v, key);
	return m && m->type == JSON_STRING ? m->text : otherwise;
}

bool json_get_bool(const struct json_value *v, const char *key, bool otherwise)
{
	const struct json_value *m = json_get(v, key);
	return m && m->type == JSON_BOOL ? m->truth : otherwise;
}
