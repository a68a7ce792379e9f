/* SPDX-License-Identifier: MIT
 * Umbrella of the public headers: all that fs, tools, bench and tests may include of the format library. */
#ifndef POOLFS_H
#define POOLFS_H
#include "base/env.h"
#include "base/error.h"
#include "base/thread.h"
#include "check/check.h"
#include "check/tables.h"
#include "check/walk.h"
#include "log/log_scan.h"
#include "member/complete.h"
#include "member/io.h"
#include "member/same.h"
#include "member/scan.h"
#include "member/set.h"
#include "object/posix.h"
#include "ondisk/item.h"
#include "ondisk/item_text.h"
#include "ondisk/record_text.h"
#include "ondisk/version.h"
#include "pool/control.h"
#include "pool/pool.h"
#endif
