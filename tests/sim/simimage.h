/* SPDX-License-Identifier: MIT
 *
 * Purpose: the content of a disk in memory: sparse, and cheap to copy. A tree of shared pages; a copy shares them all, and a
 * write copies the page and the way to it. So a crash state of a big pool costs what it changes.
 *
 * Invariants
 *   I1  A page that was never written, or was written with zeros only by sim_image_zero(), reads as zeros and takes no memory.
 *   I2  Different images may be used by different threads at the same time, also when they share pages; one image may not.
 *
 * Uses: nothing.
 */
#ifndef SIM_IMAGE_H
#define SIM_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#define SIM_PAGE_BYTES 4096u

struct sim_image;

/* Everything below aborts when there is no memory: these are tests. */
struct sim_image *sim_image_new(uint64_t size_bytes);
struct sim_image *sim_image_copy(const struct sim_image *image);
void sim_image_free(struct sim_image *image);

/* Any offset and length within the size. */
void sim_image_read(const struct sim_image *image, uint64_t off_bytes, void *buf, size_t len_bytes);
void sim_image_write(struct sim_image *image, uint64_t off_bytes, const void *buf, size_t len_bytes);
void sim_image_zero(struct sim_image *image, uint64_t off_bytes, uint64_t len_bytes);
void sim_image_resize(struct sim_image *image, uint64_t size_bytes);
uint64_t sim_image_size(const struct sim_image *image);

/* The next page at or after @page that has memory, or UINT64_MAX; *data gets its bytes. */
uint64_t sim_image_next(const struct sim_image *image, uint64_t page, const void **data);

#endif
