/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Beginnings of the papers' schedulers.
 */
#ifndef HEARTH_PAPERS_BEGIN_H
#define HEARTH_PAPERS_BEGIN_H

#include "decay.h"

static __always_inline void stopped(struct hearth_task *tc)
{
	tc->stopped_at = scx_bpf_now();
}

static __always_inline void task_begin_more(struct hearth_task *tc, struct hearth_task *of_maker)
{
	tc->attached_cpu = of_maker ? of_maker->attached_cpu : NO_CPU;
	tc->epoch = epoch;
}

static __always_inline s32 machine_begin_more(void)
{
	u64 watchdog_ns = watchdog_ms * 1000000ull;
	u32 i;

	sums.slept = sums.foreign + policy.quantum_ns;
	papers_sums.point_ns = policy.discipline == HEARTH_BSD ? BSD_POINT_NS : SYSTEM_V_POINT_NS;
	papers_sums.fragment_patience = policy.fragment_ns / policy.tick_ns;
	papers_sums.split = watchdog_ns / 100 / policy.tick_ns;
	bpf_for(i, 0, topology.nr_cpus) {
		papers_cpu(i)->moves_from = NO_CPU;
		papers_cpu(i)->least_usage = NO_USAGE;
	}
	return scx_bpf_create_dsq(RUN_QUEUE, -1);
}

#endif
