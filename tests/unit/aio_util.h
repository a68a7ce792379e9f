/* SPDX-License-Identifier: MIT
 *
 * Purpose: image files in a directory of their own, opened, for tests of I/O on descriptors.
 * Invariants: none. Uses: check, member/io_open.
 */
#ifndef PF_TEST_AIO_UTIL_H
#define PF_TEST_AIO_UTIL_H

#include "member/io_open.h"

#include <check.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* @dir ends in six characters that are made unique. Bit i of @buffered: the i-th without direct I/O. */
static inline void open_files(char *dir, struct pf_io **ios, unsigned nr, uint64_t size_bytes, unsigned buffered)
{
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	for (unsigned i = 0; i < nr; i++) {
		char path[64];
		snprintf(path, sizeof(path), "%s/%u.img", dir, i);
		int fd = open(path, O_RDWR | O_CREAT, 0600);
		ck_assert_int_eq(ftruncate(fd, (off_t)size_bytes), 0);
		close(fd);
		int flags = PF_IO_OPEN_WRITE | (buffered >> i & 1 ? PF_IO_OPEN_BUFFERED : 0);
		ck_assert_int_eq(pf_io_open(path, flags, 0, pf_env_system(), &ios[i], NULL), 0);
	}
}

#endif
