/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Idle CPUs. Once one is taken for a task, it does not count as idle any more: it is claimed.
 */
#ifndef HEARTH_IDLE_H
#define HEARTH_IDLE_H

#include "state.h"

/* Tasks of a queue that are looked at, of many. */
#define MOST_LOOKS 8

/* Our own note spares most questions to the kernel. A CPU that is about to go idle may
 * not have made it yet, and looks again when it has (hearth_update_idle). */
static __always_inline bool claim_idle(s32 cpu)
{
	return cpu_ctx(cpu)->is_idle && scx_bpf_test_and_clear_cpu_idle(cpu);
}

/* The kernel's own search: a CPU, its cache domain, its node, any; whole cores before those whose
 * sibling is busy. For a wake-up of who is about to sleep, also the CPU that makes it. */
static __always_inline s32 idle_cpu_near(struct task_struct *p, s32 at, u64 wake_flags)
{
	bool is_idle = false;
	s32 cpu;

	/* What that search finds first, without the call. */
	if (!topology.has_siblings && !(wake_flags & SCX_WAKE_SYNC) &&
	    bpf_cpumask_test_cpu(at, p->cpus_ptr) && scx_bpf_test_and_clear_cpu_idle(at))
		return at;
	cpu = scx_bpf_select_cpu_dfl(p, at, wake_flags, &is_idle);
	return is_idle ? cpu : NO_CPU;
}

/* Has a CPU that was idle, and is claimed, look for work. */
static __always_inline void kick_idle(s32 cpu)
{
	cpu_ctx(cpu)->claimed = CLAIM_LOOK;
	scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

#endif
