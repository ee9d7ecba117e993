/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How long threads are within fragments: see samples.c. */
#ifndef HEARTH_SAMPLES_H
#define HEARTH_SAMPLES_H

#include "fragments.h"

/* A thread's; at first all 0. */
struct hearth_samples {
	uint32_t depth; /* of the enter that is measured; 0: none is */
	uint32_t random;
	uint32_t ended; /* how many have, until the count is full */
	int is_away;	/* from the home of the fragment that is measured */
	uint64_t begin_cpu_ns, entered_ns, left_ns;
	uint64_t weight; /* enters that a sample stands for */
};

/* The CPU time of this thread. */
uint64_t hearth_cpu_time_ns(void);

void hearth_sample_begin(struct hearth_samples *samples, uint32_t depth, int is_away);

/* Adds what was measured to the fragment, unless it is no more known. Enters until the next one. */
uint32_t hearth_sample_end(struct hearth_samples *samples, struct hearth_home *home);

#endif
