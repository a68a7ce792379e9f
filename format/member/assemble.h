/* SPDX-License-Identifier: MIT
 *
 * Purpose: which member is which, whether each is the right one, and the words for it when it is not. Private to member/.
 *
 * Invariants
 *   I1  Reads only.
 *   I2  After success set->nr, members[].io, .geo, .super_generation, .stale and set->super are set, and every io has been
 *       moved to its member. After a failure all ios are still in @ios.
 *
 * Uses: member/set, member/super_ring.
 */
#ifndef PF_MEMBER_ASSEMBLE_H
#define PF_MEMBER_ASSEMBLE_H

#include "member/set.h"

int pf_assemble(struct pf_set *set, struct pf_io **ios, unsigned nr, unsigned flags, struct pf_diag *diag);

/* -- words (assemble_text.c) ---------------------------------------------------------------------------------------- */
#define PF_TEXT_BYTES 192
/* pool "label" (uuid), or pool uuid. Returns @text. */
const char *pf_text_pool(const struct pf_super *super, char text[PF_TEXT_BYTES]);
const char *pf_text_uuid(const uint8_t uuid[16], char text[PF_TEXT_BYTES]);
const char *pf_text_size(uint64_t bytes, char text[PF_TEXT_BYTES]);
const char *pf_text_time(int64_t time_ns, char text[PF_TEXT_BYTES]);
/* bit 3, or: bits 3, 5 */
const char *pf_text_bits(uint64_t mask, char text[PF_TEXT_BYTES]);

/* Sets @diag to: the member at @path has ro-compat features that this program does not know, and what to do. -PF_EFEATURE */
int pf_text_only_readable(const char *path, const struct pf_super *super, const char *what_to_do, struct pf_diag *diag);

#endif
