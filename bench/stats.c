/* SPDX-License-Identifier: MIT */
#include "stats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint64_t stats_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static int compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* The smallest sample that is not below @per_10000 of all. */
static uint64_t nearest_rank(const uint64_t *sorted, size_t nr, uint64_t per_10000)
{
	uint64_t rank = (nr * per_10000 + 9999) / 10000;
	return sorted[rank ? rank - 1 : 0];
}

void stats_tail(uint64_t *ns, size_t nr, struct stats_tail *out)
{
	*out = (struct stats_tail){ .nr = nr };
	if (!nr)
		return;
	qsort(ns, nr, sizeof(*ns), compare_u64);
	double sum = 0;
	for (size_t i = 0; i < nr; i++)
		sum += (double)ns[i];
	out->mean_ns = sum / (double)nr;
	out->p50_ns = nearest_rank(ns, nr, 5000);
	out->p95_ns = nearest_rank(ns, nr, 9500);
	out->p99_ns = nearest_rank(ns, nr, 9900);
	out->p999_ns = nearest_rank(ns, nr, 9990);
	out->p9999_ns = nearest_rank(ns, nr, 9999);
	out->max_ns = ns[nr - 1];
}

double stats_median(double *values, size_t nr)
{
	if (!nr)
		return 0;
	qsort(values, nr, sizeof(*values), compare_double);
	return nr % 2 ? values[nr / 2] : (values[nr / 2 - 1] + values[nr / 2]) / 2;
}

const char *stats_verdict_text(enum stats_verdict verdict)
{
	static const char *const texts[] = {
		[STATS_FEW_ROUNDS] = "too few rounds",
		[STATS_NO_DIFFERENCE] = "no difference shown",
		[STATS_FASTER] = "faster",
		[STATS_SLOWER] = "slower",
	};
	return texts[verdict];
}

static enum stats_verdict judge(const struct stats_ratio *r, size_t nr)
{
	if (nr < STATS_MIN_ROUNDS)
		return STATS_FEW_ROUNDS;
	return r->low > 1 ? STATS_FASTER : r->high < 1 ? STATS_SLOWER : STATS_NO_DIFFERENCE;
}

int stats_paired(const double *ratios, size_t nr, uint64_t seed, struct stats_ratio *out)
{
	*out = (struct stats_ratio){ 0 };
	if (!nr)
		return -EINVAL;
	double *sample = malloc(nr * sizeof(*sample));
	double *medians = malloc(STATS_RESAMPLES * sizeof(*medians));
	int err = sample && medians ? 0 : -ENOMEM;
	if (err)
		goto out;
	memcpy(sample, ratios, nr * sizeof(*sample));
	out->ratio = stats_median(sample, nr);
	for (size_t i = 0; i < STATS_RESAMPLES; i++) {
		for (size_t k = 0; k < nr; k++)
			sample[k] = ratios[stats_random(&seed) % nr];
		medians[i] = stats_median(sample, nr);
	}
	qsort(medians, STATS_RESAMPLES, sizeof(*medians), compare_double);
	out->low = medians[STATS_RESAMPLES * 25 / 1000];
	out->high = medians[STATS_RESAMPLES * 975 / 1000 - 1];
	out->verdict = judge(out, nr);
out:
	free(sample);
	free(medians);
	return err;
}
