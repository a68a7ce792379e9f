/* SPDX-License-Identifier: MIT
 *
 * Purpose: the life of the daemon: open the pool, mount, serve, unmount, close.
 *
 * Invariants
 *   I1  daemonize_report() is called only when the mount answers.
 *   I2  The pool is closed after the last worker has ended and nothing is mounted any more; the error of closing is logged
 *       and becomes the exit code.
 *   I3  A signal to end (TERM, INT, HUP) first writes back what the kernel holds.
 *
 * Uses: options, spec, transport, ops.
 */
#ifndef FS_DAEMON_H
#define FS_DAEMON_H

#include "options.h"
#include "spec.h"

/* Blocks the signals that daemon_run() waits for; before any thread exists. */
void daemon_block_signals(void);

/* @report_fd: of daemonize_fork(), or -1 in the foreground. Returns an exit code. */
int daemon_run(const struct options *opt, const struct spec *spec, int report_fd);

/* The environment of the engine in this program: the system's clock, our log. */
struct pf_env daemon_env(void);

#endif
