/* SPDX-License-Identifier: MIT
 *
 * Purpose: a run that does not end before its alarm() has failed, and says so.
 * Uses: nothing.
 */
#ifndef PF_TEST_HANG_H
#define PF_TEST_HANG_H

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static inline void on_alarm(int sig)
{
	static const char text[] = "FAIL: hangs\n";
	(void)sig;
	(void)!write(STDOUT_FILENO, text, sizeof(text) - 1);
	abort();
}

static inline void catch_hangs(void)
{
	signal(SIGALRM, on_alarm);
}

#endif
