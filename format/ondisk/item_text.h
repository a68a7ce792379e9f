/* SPDX-License-Identifier: MIT
 *
 * Purpose: keys, items, nodes and addresses in words, for dump and for messages. Writes into a buffer, prints nothing.
 *
 * Invariants
 *   I1  Every function fills @buf with a terminated string of at most @cap bytes and returns it.
 *   I2  Bytes from disk are judged by the codec of the item; one that it refuses is shown as invalid, with its bytes in
 *       hexadecimal, never interpreted.
 *
 * Uses: base, ondisk.
 */
#ifndef PF_ONDISK_ITEM_TEXT_H
#define PF_ONDISK_ITEM_TEXT_H

#include "ondisk/super.h"

enum { PF_ITEM_TEXT_BYTES = 1024 }; /* room for any of them, long values cut */

/* "2:4711" (member and block), "none" for 0. */
char *pf_addr_to_text(pf_addr addr, char *buf, size_t cap);
/* "2:4711 generation 12 crc 0x..."; "none". */
char *pf_ptr_to_text(const struct pf_ptr *ptr, char *buf, size_t cap);
/* Short name of a type of key: "inode", "extent", ...; "type 77". */
char *pf_key_type_to_text(unsigned type, char *buf, size_t cap);
/* "inode 17", "name dir 1 cookie 3", "extent data 18 block 256". */
char *pf_key_to_text(struct pf_key key, char *buf, size_t cap);
/* What the item says, without its key. */
char *pf_item_to_text(struct pf_key key, const void *data, unsigned len, char *buf, size_t cap);

#endif
