// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * How long threads are within fragments: in CPU time, which tells what an enter costs, and in time,
 * which tells how many threads there are.
 *
 * A sample reads the CPU time twice, by system calls that take a microsecond together: so there is
 * one in 1 ms of a thread's time within fragments, and one in 1024 enters at least. How many are
 * between two is random, so that no regular program has the same fragment measured each time.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "samples.h"
#include "clock.h"
#include "pays.h"

#define EACH_NS 1000000
#define MOST_ENTERS 1024

uint64_t hearth_cpu_time_ns(void)
{
	return (uint64_t)hearth_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void hearth_sample_begin(struct hearth_samples *samples, uint32_t depth, int is_away)
{
	if (samples->depth)
		return;
	samples->depth = depth;
	samples->is_away = is_away;
	samples->entered_ns = (uint64_t)hearth_clock_ns(CLOCK_MONOTONIC);
	samples->begin_cpu_ns = hearth_cpu_time_ns();
}

uint32_t hearth_sample_end(struct hearth_samples *samples, struct hearth_home *home)
{
	uint64_t used = hearth_cpu_time_ns() - samples->begin_cpu_ns;
	uint64_t now = (uint64_t)hearth_clock_ns(CLOCK_MONOTONIC),
		 enters = samples->weight ? samples->weight : 1;
	uint64_t within = (now - samples->entered_ns) * enters;

	/* No thread has been within for longer than since it was measured last. */
	if (within > now - samples->left_ns)
		within = now - samples->left_ns;
	samples->left_ns = now;
	samples->ended += samples->ended < UINT32_MAX;
	samples->depth = 0;
	samples->weight = EACH_NS / (used + 1) + 1;
	if (samples->weight > MOST_ENTERS)
		samples->weight = MOST_ENTERS;
	samples->random = samples->random * 1664525 + 1013904223;
	if (home) {
		hearth_took(home, !samples->is_away, used, enters);
		atomic_fetch_add_explicit(&home->load_ns, within, memory_order_relaxed);
	}
	return (samples->random >> 16) % (2 * (uint32_t)samples->weight - 1);
}
