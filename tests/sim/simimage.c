/* SPDX-License-Identifier: MIT */
#include "sim/simimage.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define FANOUT_SHIFT 9
#define FANOUT       (1u << FANOUT_SHIFT)

/* Two levels of nodes under each root: a root covers 1 GiB. */
struct page {
	atomic_uint refs;
	uint8_t bytes[SIM_PAGE_BYTES];
};
struct leaf {
	atomic_uint refs;
	struct page *pages[FANOUT];
};
struct root {
	atomic_uint refs;
	struct leaf *leaves[FANOUT];
};
struct sim_image {
	uint64_t size_bytes;
	uint64_t nr_roots;
	struct root **roots;
};

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

static void ref(atomic_uint *refs)
{
	atomic_fetch_add_explicit(refs, 1, memory_order_relaxed);
}
static bool unref(atomic_uint *refs)
{
	return atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel) == 1;
}
static bool shared(atomic_uint *refs)
{
	return atomic_load_explicit(refs, memory_order_acquire) > 1;
}

static void page_put(struct page *page)
{
	if (page && unref(&page->refs))
		free(page);
}

static void leaf_put(struct leaf *leaf)
{
	if (!leaf || !unref(&leaf->refs))
		return;
	for (unsigned i = 0; i < FANOUT; i++)
		page_put(leaf->pages[i]);
	free(leaf);
}

static void root_put(struct root *root)
{
	if (!root || !unref(&root->refs))
		return;
	for (unsigned i = 0; i < FANOUT; i++)
		leaf_put(root->leaves[i]);
	free(root);
}

/* -- copies of what is shared ------------------------------------------------------------------------------------ */
static struct root *root_own(struct root **slot)
{
	struct root *old = *slot;
	if (old && !shared(&old->refs))
		return old;
	struct root *own = must(calloc(1, sizeof(*own)));
	atomic_init(&own->refs, 1);
	for (unsigned i = 0; old && i < FANOUT; i++) {
		own->leaves[i] = old->leaves[i];
		if (own->leaves[i])
			ref(&own->leaves[i]->refs);
	}
	root_put(old);
	return *slot = own;
}

static struct leaf *leaf_own(struct leaf **slot)
{
	struct leaf *old = *slot;
	if (old && !shared(&old->refs))
		return old;
	struct leaf *own = must(calloc(1, sizeof(*own)));
	atomic_init(&own->refs, 1);
	for (unsigned i = 0; old && i < FANOUT; i++) {
		own->pages[i] = old->pages[i];
		if (own->pages[i])
			ref(&own->pages[i]->refs);
	}
	leaf_put(old);
	return *slot = own;
}

static struct page *page_own(struct page **slot)
{
	struct page *old = *slot;
	if (old && !shared(&old->refs))
		return old;
	struct page *own = must(malloc(sizeof(*own)));
	atomic_init(&own->refs, 1);
	if (old)
		memcpy(own->bytes, old->bytes, SIM_PAGE_BYTES);
	else
		memset(own->bytes, 0, SIM_PAGE_BYTES);
	page_put(old);
	return *slot = own;
}

static const struct page *page_find(const struct sim_image *image, uint64_t nr)
{
	const struct root *root = image->roots[nr >> 2 * FANOUT_SHIFT];
	const struct leaf *leaf = root ? root->leaves[nr >> FANOUT_SHIFT & (FANOUT - 1)] : NULL;
	return leaf ? leaf->pages[nr & (FANOUT - 1)] : NULL;
}

static struct page **page_slot(struct sim_image *image, uint64_t nr)
{
	struct root *root = root_own(&image->roots[nr >> 2 * FANOUT_SHIFT]);
	struct leaf *leaf = leaf_own(&root->leaves[nr >> FANOUT_SHIFT & (FANOUT - 1)]);
	return &leaf->pages[nr & (FANOUT - 1)];
}

/* -- images ------------------------------------------------------------------------------------------------------ */
static uint64_t roots_for(uint64_t size_bytes)
{
	uint64_t root_bytes = (uint64_t)SIM_PAGE_BYTES << 2 * FANOUT_SHIFT;
	return size_bytes / root_bytes + 1;
}

struct sim_image *sim_image_new(uint64_t size_bytes)
{
	struct sim_image *image = must(calloc(1, sizeof(*image)));
	image->size_bytes = size_bytes;
	image->nr_roots = roots_for(size_bytes);
	image->roots = must(calloc(image->nr_roots, sizeof(*image->roots)));
	return image;
}

struct sim_image *sim_image_copy(const struct sim_image *image)
{
	struct sim_image *copy = sim_image_new(image->size_bytes);
	for (uint64_t i = 0; i < image->nr_roots; i++) {
		copy->roots[i] = image->roots[i];
		if (copy->roots[i])
			ref(&copy->roots[i]->refs);
	}
	return copy;
}

void sim_image_free(struct sim_image *image)
{
	if (!image)
		return;
	for (uint64_t i = 0; i < image->nr_roots; i++)
		root_put(image->roots[i]);
	free(image->roots);
	free(image);
}

uint64_t sim_image_size(const struct sim_image *image)
{
	return image->size_bytes;
}

void sim_image_resize(struct sim_image *image, uint64_t size_bytes)
{
	if (size_bytes < image->size_bytes)
		sim_image_zero(image, size_bytes, image->size_bytes - size_bytes);
	uint64_t nr_roots = roots_for(size_bytes);
	for (uint64_t i = nr_roots; i < image->nr_roots; i++)
		root_put(image->roots[i]);
	image->roots = must(realloc(image->roots, nr_roots * sizeof(*image->roots)));
	for (uint64_t i = image->nr_roots; i < nr_roots; i++)
		image->roots[i] = NULL;
	image->nr_roots = nr_roots;
	image->size_bytes = size_bytes;
}

/* The part of [off, off + len) that lies in one page. */
static size_t step(uint64_t off_bytes, uint64_t len_bytes)
{
	uint64_t in_page = SIM_PAGE_BYTES - off_bytes % SIM_PAGE_BYTES;
	return (size_t)(len_bytes < in_page ? len_bytes : in_page);
}

void sim_image_read(const struct sim_image *image, uint64_t off_bytes, void *buf, size_t len_bytes)
{
	uint8_t *to = buf;
	while (len_bytes > 0) {
		size_t n = step(off_bytes, len_bytes);
		const struct page *page = page_find(image, off_bytes / SIM_PAGE_BYTES);
		if (page)
			memcpy(to, page->bytes + off_bytes % SIM_PAGE_BYTES, n);
		else
			memset(to, 0, n);
		to += n;
		off_bytes += n;
		len_bytes -= n;
	}
}

void sim_image_write(struct sim_image *image, uint64_t off_bytes, const void *buf, size_t len_bytes)
{
	const uint8_t *from = buf;
	while (len_bytes > 0) {
		size_t n = step(off_bytes, len_bytes);
		struct page *page = page_own(page_slot(image, off_bytes / SIM_PAGE_BYTES));
		memcpy(page->bytes + off_bytes % SIM_PAGE_BYTES, from, n);
		from += n;
		off_bytes += n;
		len_bytes -= n;
	}
}

void sim_image_zero(struct sim_image *image, uint64_t off_bytes, uint64_t len_bytes)
{
	while (len_bytes > 0) {
		size_t n = step(off_bytes, len_bytes);
		uint64_t nr = off_bytes / SIM_PAGE_BYTES;
		if (page_find(image, nr)) {
			struct page **slot = page_slot(image, nr);
			if (n == SIM_PAGE_BYTES) {
				page_put(*slot);
				*slot = NULL;
			} else {
				memset(page_own(slot)->bytes + off_bytes % SIM_PAGE_BYTES, 0, n);
			}
		}
		off_bytes += n;
		len_bytes -= n;
	}
}

uint64_t sim_image_next(const struct sim_image *image, uint64_t page, const void **data)
{
	uint64_t nr_pages = (image->size_bytes + SIM_PAGE_BYTES - 1) / SIM_PAGE_BYTES;
	while (page < nr_pages) {
		const struct root *root = image->roots[page >> 2 * FANOUT_SHIFT];
		const struct leaf *leaf = root ? root->leaves[page >> FANOUT_SHIFT & (FANOUT - 1)] : NULL;
		unsigned skip_shift = !root ? 2 * FANOUT_SHIFT : !leaf ? FANOUT_SHIFT : 0;
		const struct page *p = leaf ? leaf->pages[page & (FANOUT - 1)] : NULL;
		if (p) {
			*data = p->bytes;
			return page;
		}
		page = ((page >> skip_shift) + 1) << skip_shift;
	}
	return UINT64_MAX;
}
