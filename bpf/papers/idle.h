/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Idle CPUs under the papers' policies: they go by the kernel's own mask.
 */
#ifndef HEARTH_PAPERS_IDLE_H
#define HEARTH_PAPERS_IDLE_H

#include "../state.h"

/* Our own note spares most questions to the kernel. */
static __always_inline bool claim_idle(s32 cpu)
{
	return cpu_ctx(cpu)->is_idle && scx_bpf_test_and_clear_cpu_idle(cpu);
}

static __always_inline bool idle_set(s32 cpu)
{
	return false;
}

/* The kernel's own search: a CPU, its cache domain, its node, any; whole cores before those whose
 * sibling is busy. For a wake-up of who is about to sleep, also the CPU that makes it. */
static __always_inline s32 idle_cpu_near(struct task_struct *p, s32 at, u64 wake_flags)
{
	bool is_idle = false;
	s32 cpu = scx_bpf_select_cpu_dfl(p, at, wake_flags, &is_idle);

	return is_idle ? cpu : NO_CPU;
}

static __always_inline s32 claim_any(struct task_struct *p, s32 at)
{
	return scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
}

#endif
