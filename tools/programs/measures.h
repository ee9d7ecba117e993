/* SPDX-License-Identifier: GPL-2.0-only */
/* What a program measured itself, told to `hearth emulate` by way of the file that HEARTH_MEASURES
 * names. */
#ifndef MEASURES_H
#define MEASURES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NS_PER_US 1000.0
#define NS_PER_S 1000000000.0

static inline uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline void tell(const char *name, double value)
{
	const char *path = getenv("HEARTH_MEASURES");
	FILE *file = path ? fopen(path, "a") : stdout;

	if (!file) {
		perror(path);
		exit(1);
	}
	fprintf(file, "%s %.6g\n", name, value);
	if (path)
		fclose(file);
}

static inline int by_size(const void *one, const void *other)
{
	uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

	return (a > b) - (a < b);
}

/* The 50th, 99th and 99.9th percentile by nearest rank, of times in ns. Sorts them. */
static inline void tell_percentiles(const char *what, uint64_t *times, size_t count)
{
	static const struct {
		const char *name;
		double share;
	} percentiles[] = {{"p50", 0.5}, {"p99", 0.99}, {"p999", 0.999}};
	char name[64];
	size_t i;

	if (!count)
		return;
	qsort(times, count, sizeof(*times), by_size);
	for (i = 0; i < sizeof(percentiles) / sizeof(*percentiles); i++) {
		size_t rank = (size_t)(percentiles[i].share * (double)count + 0.999999);

		snprintf(name, sizeof(name), "%s_us_%s", what, percentiles[i].name);
		tell(name, (double)times[(rank ? rank : 1) - 1] / NS_PER_US);
	}
}

#endif
