/* SPDX-License-Identifier: MIT
 *
 * Purpose: which features a format version has. Code asks for a feature, never for a version number.
 *
 * Invariants
 *   I1  version.def is the one source: mkfs, the mount checks, FORMAT.md's table, tests and the benchmark follow it.
 *   I2  An unknown incompat bit refuses to open, an unknown ro-compat bit opens read-only; both are named.
 *
 * Uses: base.
 */
#ifndef PF_ONDISK_VERSION_H
#define PF_ONDISK_VERSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Up to the default they are released: their layout is frozen. A later one may still change, so that other builds cannot read it. */
enum { PF_VERSION_FIRST = 1, PF_VERSION_NEWEST = 6, PF_VERSION_DEFAULT = 6 };

/* The three masks of a superblock. */
struct pf_features {
	uint64_t compat;
	uint64_t ro_compat;
	uint64_t incompat;
};

enum pf_feature_class { PF_COMPAT, PF_RO_COMPAT, PF_INCOMPAT };

enum pf_feature {
#define FEATURE(NAME, class, bit, since, name, sentence) PF_FEAT_##NAME,
#define VERSION(number, sentence)
#include "ondisk/version.def"
#undef FEATURE
#undef VERSION
	PF_FEAT_COUNT
};

struct pf_feature_info {
	enum pf_feature_class class;
	unsigned bit;
	unsigned since_version;
	const char *name;
	const char *sentence;
};

const struct pf_feature_info *pf_feature_info(enum pf_feature feature);
const char *pf_version_sentence(unsigned version);

/* The masks of @version (PF_VERSION_FIRST to PF_VERSION_NEWEST). */
struct pf_features pf_version_features(unsigned version);

bool pf_has(const struct pf_features *features, enum pf_feature feature);

/* Bits that this build does not know. */
struct pf_features pf_features_unknown(const struct pf_features *features);

#endif
