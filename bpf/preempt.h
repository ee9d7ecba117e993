/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Preemption: a task that wakes up takes the CPU in whose queue it waits from one that has had more
 * by a quantum. Credits do not count: they are for who looks for work.
 *
 * Who has run for a quantum since it last slept asks for as long again, up to all credits together.
 * It is ordered by what it will have had, as by a deadline, and nothing of the first quantum is
 * left to it: who runs for a moment and sleeps goes first, as long as it has not had more by that.
 * Who sleeps now and then is left its quantum. So is who says that it is about to sleep, as it
 * wakes another (SCX_WAKE_SYNC: for a pipe or a socket). A sender then sends many messages in a
 * row, and they are read in a row.
 */
#ifndef HEARTH_PREEMPT_H
#define HEARTH_PREEMPT_H

#include "credit.h"
#include "queues.h"

/* Who has run for a quantum since it last slept asks for as long again; who has not, for little. */
static __always_inline void usage_request(struct task_struct *p, struct hearth_task *tc)
{
	u64 ran = tc->last_cpu >= 0 ? p->se.sum_exec_runtime - tc->woke_ns : 0;
	u64 asks = ran * tc->inverse_weight >> 16;
	u64 most = weighed(sums.foreign, tc->inverse_weight);

	if (ran < policy.quantum_ns)
		asks = 0;
	tc->request = asks < most ? asks : most;
}

/* A task has yielded, and others wait. It is charged for the quantum that it gives up, so that they
 * go first, one after the other, and among them those that compute. */
static __always_inline void yield_charge(struct hearth_task *tc)
{
	tc->usage += policy.quantum_ns * tc->inverse_weight >> 16;
}

/* Notes what who wakes is compared with. */
static __always_inline void running_note(struct hearth_task *tc, s32 cpu, u64 now)
{
	struct cpu_ctx *cc = cpu_ctx(cpu);

	cc->inverse_weight = tc->inverse_weight;
	cc->weight = tc->weight;
	cc->running_usage = usage_of(tc);
	cc->running_request = tc->request;
	cc->noted_ns = now;
}

/* The task that runs here wakes another. An interrupt that does says nothing of the task. */
static __always_inline void waker_note(u64 wake_flags)
{
	if (wake_flags & SCX_WAKE_SYNC && !is_in_interrupt())
		cpu_ctx(bpf_get_smp_processor_id())->sleeps_soon = true;
}

/* Whether who runs is left the rest of a quantum: what it asks for beyond that does not count. */
static __always_inline bool is_left_its_quantum(struct cpu_ctx *cc, u64 now)
{
	return cc->sleeps_soon && now < cc->runs_since + policy.quantum_ns;
}

/* Whether a task of this usage comes before who runs by a quantum. Who runs is charged up
 * to now, not to the last tick. */
static __always_inline bool comes_first(u64 usage, s32 cpu, u64 now)
{
	struct cpu_ctx *cc = cpu_ctx(cpu);
	u64 running = cc->running_usage;

	if (!is_left_its_quantum(cc, now))
		running += cc->running_request;
	if (now > cc->noted_ns)
		running += (now - cc->noted_ns) * cc->inverse_weight >> 16;
	return usage + credit_here(policy.quantum_ns, cpu) < running;
}

/* A task that wakes up, and has just come to wait, preempts one that has had more; whether it did.
 */
verified_alone int preempt(struct task_struct *p __arg_trusted,
			   struct hearth_task *tc __arg_nonnull)
{
	s32 cpu = cpu_of_queue(tc->queue);

	if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr) ||
	    !comes_first(usage_of(tc), cpu, tc->waits_since))
		return false;
	stats_count(&stats_of(cpu)->preempted);
	cpu_ctx(cpu)->expired = true;
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	return true;
}

#endif
