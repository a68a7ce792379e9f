/* SPDX-License-Identifier: MIT
 *
 * Purpose: records of the intent log in words, for dump and for messages. Writes into a buffer, prints nothing.
 *
 * Invariants
 *   I1  Every function fills @buf with a terminated string of at most @cap bytes and returns it.
 *   I2  Bytes from disk are judged by the codec; a record that it refuses is shown as invalid, with its bytes in hexadecimal,
 *       never interpreted.
 *
 * Uses: base, ondisk.
 */
#ifndef PF_ONDISK_RECORD_TEXT_H
#define PF_ONDISK_RECORD_TEXT_H

#include "ondisk/record.h"

enum { PF_RECORD_TEXT_BYTES = 2560 }; /* room for any of them, both names of a rename whole, long targets and values cut */

/* "create", "rename", ...; "type 77". */
char *pf_record_type_to_text(unsigned type, char *buf, size_t cap);
/* What the record says, its type first. Of a file record only how many ranges it has. */
char *pf_record_to_text(const void *data, uint32_t len, char *buf, size_t cap);
/* "blocks [0, 12) at 1:4711 crc 0x...", for the ranges that pf_record_next_range() gives. */
char *pf_record_range_to_text(const struct pf_record_range *range, char *buf, size_t cap);

#endif
