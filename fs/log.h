/* SPDX-License-Identifier: MIT
 *
 * Purpose: where the daemon's messages go: standard error while somebody watches, syslog once it is in the background.
 *
 * Invariants
 *   I1  One message is one line, also when several threads log.
 *
 * Uses: base/env (poolfs.h).
 */
#ifndef FS_LOG_H
#define FS_LOG_H

#include "poolfs.h"

/* What stands in front of messages on standard error; "mount.poolfs" otherwise. @name stays the caller's. */
void log_set_name(const char *name);

/* A message of the program to its user, on standard error. */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A message of the running daemon. */
void log_line(enum pf_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* From now on log_line() and log_engine() write to syslog; before that to standard error. */
void log_to_syslog(void);
/* Debug and info messages are dropped unless @verbose. */
void log_set_verbose(int verbose);

/* For struct pf_env: @arg is not used. */
void log_engine(void *arg, enum pf_log_level level, const char *message);

#endif
