/* SPDX-License-Identifier: MIT
 *
 * Purpose: the JSON of pf_pool_status_json() as a table for people.
 *
 * Invariants
 *   I1  A key that is missing leaves its line or column out; it is never guessed.
 *
 * Uses: json, cli.
 */
#ifndef TOOLS_STATUS_TEXT_H
#define TOOLS_STATUS_TEXT_H

#include "json.h"

/* @v: an object. @state: "mounted", "in use", or NULL (then the text says clean or not). */
void status_print(const struct json_value *v, const char *state);

#endif
