/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Spilling: idle CPUs are woken for what waits beside them.
 */
#ifndef HEARTH_SPILL_H
#define HEARTH_SPILL_H

#include "rule.h"

/* A task waits here beside an idle CPU that it may run on: it came in the very moment in which that
 * CPU looked, or has paid for the move by now. The first that may go elsewhere are looked at. */
verified_alone int spill(s32 queue, u32 most)
{
	s32 at = cpu_of_queue(queue);
	u64 now = scx_bpf_now(), will_wait = wait_expect(at, queued_at(at) - 1, now);
	struct task_struct *p;
	u32 looks = 0;

	bpf_for_each(scx_dsq, p, queue, 0) {
		struct hearth_task *tc = task_ctx(p);
		s32 idle;

		if (!tc || is_kept_apart(p, tc))
			continue;
		wait_collect(tc, at, now);
		idle = is_migration_disabled(p) ? NO_CPU : any_idle_cpu(p, tc, at, will_wait);
		if (idle >= 0)
			kick_idle(idle);
		if (++looks == most)
			break;
	}
	return 0;
}

/* At a tick, and when a higher class takes the CPU: has idle ones look for what waits here. */
static __always_inline void offer_to_idle(s32 cpu)
{
	offer_run_queue();
	if (queue_ctx(shared_queue(cpu))->waiting > 0)
		spill(shared_queue(cpu), MOST_LOOKS);
	if (queue_ctx(pinned_queue(cpu))->strays > 0)
		spill(pinned_queue(cpu), MOST_LOOKS);
	offer_fragments(cpu);
}

#endif
