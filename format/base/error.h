/* SPDX-License-Identifier: MIT
 *
 * Purpose: error codes of the format library and messages that say what, where and what to do.
 *
 * Invariants
 *   I1  A function returns 0 (or a count) or a negative code: -errno, or one of error.def.
 *   I2  Private codes start at 1000 and never collide with an errno.
 *   I3  Only the edges translate: fs/ to errno by pf_errno(), tools/ to exit codes.
 *
 * Uses: nothing.
 */
#ifndef PF_BASE_ERROR_H
#define PF_BASE_ERROR_H

#include <errno.h>
#include <stddef.h>

enum pf_error {
	PF_ERROR_BASE = 1000,
#define X(name, err, text) PF_##name,
#include "base/error.def"
#undef X
	PF_ERROR_END
};

/* The positive errno that a system call shows for @err (0, -errno or a private code). */
int pf_errno(int err);

/* A short lowercase text for @err, without full stop. Never NULL. */
const char *pf_strerror(int err);

/* True when @err says that bytes on disk are damaged (as opposed to an I/O error or a refusal). */
int pf_is_damage(int err);

/* A message for the user about one failed call: what, where, what to do. The first message is the
 * cause and is kept; pf_diag_set() on a non-empty diag does nothing. Always returns @err. */
struct pf_diag {
	char text[1024];
};

int pf_diag_set(struct pf_diag *diag, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
