/* SPDX-License-Identifier: MIT */
#include "ondisk/version.h"

static const struct pf_feature_info features[] = {
#define FEATURE(NAME, class, bit, since, name, sentence) { PF_##class, bit, since, name, sentence },
#define VERSION(number, sentence)
#include "ondisk/version.def"
#undef FEATURE
#undef VERSION
};

static const char *const versions[] = {
#define FEATURE(NAME, class, bit, since, name, sentence)
#define VERSION(number, sentence) [number] = sentence,
#include "ondisk/version.def"
#undef FEATURE
#undef VERSION
};

const struct pf_feature_info *pf_feature_info(enum pf_feature feature)
{
	return &features[feature];
}

const char *pf_version_sentence(unsigned version)
{
	return version >= PF_VERSION_FIRST && version <= PF_VERSION_NEWEST ? versions[version] : "unknown";
}

static uint64_t *mask_of(struct pf_features *f, enum pf_feature_class class)
{
	switch (class) {
	case PF_COMPAT:
		return &f->compat;
	case PF_RO_COMPAT:
		return &f->ro_compat;
	default:
		return &f->incompat;
	}
}

struct pf_features pf_version_features(unsigned version)
{
	struct pf_features f = { 0 };
	for (size_t i = 0; i < PF_FEAT_COUNT; i++) {
		if (features[i].since_version <= version)
			*mask_of(&f, features[i].class) |= UINT64_C(1) << features[i].bit;
	}
	return f;
}

bool pf_has(const struct pf_features *f, enum pf_feature feature)
{
	struct pf_features copy = *f;
	return *mask_of(&copy, features[feature].class) >> features[feature].bit & 1;
}

struct pf_features pf_features_unknown(const struct pf_features *f)
{
	struct pf_features known = pf_version_features(PF_VERSION_NEWEST);
	return (struct pf_features){
		.compat = f->compat & ~known.compat,
		.ro_compat = f->ro_compat & ~known.ro_compat,
		.incompat = f->incompat & ~known.incompat,
	};
}
