/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Preemption in the papers: a task that wakes up takes the CPU from one that has had more.
 *
 * With fair it does so on the CPU in whose queue it waits; else on the CPU that handles the
 * wake-up, as in the paper on cache affinity (section 5.3). It goes by rank, with all credits of
 * who runs there. One of the run queue goes by the plain priority: credits are for who searches.
 */
#ifndef HEARTH_PAPERS_PREEMPT_H
#define HEARTH_PAPERS_PREEMPT_H

#include "run_queue.h"

/* Notes what who wakes is compared with. */
static __always_inline void running_note(struct hearth_task *tc, s32 cpu, u64 now)
{
	struct cpu_ctx *cc = cpu_ctx(cpu);

	cc->inverse_weight = tc->inverse_weight;
	cc->running_usage = usage_of(tc);
	papers_cpu(cpu)->running_rank = running_rank(tc, cpu);
}

/* Whether it did. */
verified_alone int preempt(struct task_struct *p __arg_trusted,
			   struct hearth_task *tc __arg_nonnull)
{
	bool here = policy.discipline != HEARTH_FAIR;
	s32 cpu = here ? (s32)bpf_get_smp_processor_id() : cpu_of_queue(tc->queue);
	struct cpu_ctx *cc = cpu_ctx(cpu);

	if (tc->queue == RUN_QUEUE) {
		if (!may_take(p, tc, cpu) || usage_of(tc) >= cc->running_usage)
			return false;
	} else if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr) ||
		   rank_of_task(tc, p->pid, cpu, 0) >= papers_cpu(cpu)->running_rank) {
		return false;
	}
	stats_count(&stats_of(cpu)->preempted);
	cc->expired = true;
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	return true;
}

#endif
