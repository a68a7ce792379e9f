/* SPDX-License-Identifier: MIT
 *
 * Purpose: the background: the parent returns to mount(8) when the child says that the mount is usable, or why not.
 *
 * Invariants
 *   I1  The parent exits with the code that the child reported, or with EXIT_INTERNAL when the child died without a word.
 *   I2  The child keeps standard error until it reports: its messages are its user's.
 *
 * Uses: nothing.
 */
#ifndef FS_DAEMONIZE_H
#define FS_DAEMONIZE_H

/* exit codes of mount(8) */
enum exit_code {
	EXIT_USAGE = 1,
	EXIT_SYSTEM = 2,
	EXIT_INTERNAL = 4,
	EXIT_INTERRUPTED = 8,
	EXIT_MOUNT = 32,
};

/* Forks. Returns the descriptor for daemonize_report() in the child, -1 when it failed (said why). Does not return in the
 * parent. */
int daemonize_fork(void);

/* Child: the mount is usable. Lets go of the terminal and of the parent. */
void daemonize_report(int fd);

#endif
