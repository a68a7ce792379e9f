/* SPDX-License-Identifier: MIT
 *
 * Purpose: the two superblock rings of one member, read. Private to member/.
 *
 * Invariants
 *   I1  A superblock counts only where its generation and its own size of the member put it: so neither a misdirected write
 *       nor the end ring of the last partition, seen through the whole disk, is taken for this member's.
 *   I2  A slot that cannot be read, or is damaged, does not keep the others from counting.
 *
 * Uses: ondisk, member/aio.
 */
#ifndef PF_MEMBER_SUPER_RING_H
#define PF_MEMBER_SUPER_RING_H

#include "member/aio.h"
#include "ondisk/super.h"

/* pf_set_read_super() with all slots in flight at once. */
int pf_super_ring_read(struct pf_aio *aio, struct pf_io *io, struct pf_super *out, unsigned *nr_bad);

#endif
