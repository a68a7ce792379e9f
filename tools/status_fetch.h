/* SPDX-License-Identifier: MIT
 *
 * Purpose: the state of a mounted pool, as its daemon tells it.
 *
 * Uses: poolfs.h.
 */
#ifndef TOOLS_STATUS_FETCH_H
#define TOOLS_STATUS_FETCH_H

/* One JSON object, of the pool in which @fd is open, allocated. 0, or a negative errno with @text NULL. */
int status_fetch(int fd, char **text);

#endif
