/* SPDX-License-Identifier: MIT */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
	int err;
	int posix;
	const char *text;
} table[] = {
#define X(name, posix, text) { PF_##name, posix, text },
#include "base/error.def"
#undef X
};

int pf_errno(int err)
{
	if (err < 0)
		err = -err;
	if (err <= PF_ERROR_BASE)
		return err;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (table[i].err == err)
			return table[i].posix;
	}
	return EIO;
}

const char *pf_strerror(int err)
{
	if (err < 0)
		err = -err;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (table[i].err == err)
			return table[i].text;
	}
	const char *text = strerrordesc_np(err);
	return text ? text : "unknown error";
}

int pf_is_damage(int err)
{
	if (err < 0)
		err = -err;
	return err >= PF_ESB_CSUM && err <= PF_ELOG_INVALID;
}

int pf_diag_set(struct pf_diag *diag, int err, const char *fmt, ...)
{
	if (!diag || diag->text[0])
		return err;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(diag->text, sizeof(diag->text), fmt, ap);
	va_end(ap);
	return err;
}
