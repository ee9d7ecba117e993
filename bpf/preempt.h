/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Preemption: a task that wakes up takes the CPU from one that has had more.
 *
 * With fair it does so on the CPU in whose queue it waits; else on the CPU that handles the
 * wake-up, as in the paper (section 5.3). It goes by rank, with all credits of who runs there. One
 * of the run queue goes by the plain priority: credits are for who searches.
 *
 * Under a steady policy any goes by plain usage, and only if it comes first by a quantum. Who has
 * run for a quantum since it last slept has asked for another (usage_request), so nothing of the
 * first is left to it. Who sleeps now and then is left its quantum.
 */
#ifndef HEARTH_PREEMPT_H
#define HEARTH_PREEMPT_H

/* Of the task that runs here, or would go on. */
static __always_inline s64 running_rank(struct hearth_task *tc, s32 cpu)
{
	return is_in_row(tc) ? FIRST_RANK : rank(order_of(tc), running_credit(tc, cpu));
}

/* Notes what who wakes is compared with. */
static __always_inline void running_note(struct hearth_task *tc, s32 cpu)
{
	struct cpu_ctx *cc = cpu_ctx(cpu);

	cc->inverse_weight = tc->inverse_weight;
	cc->running_rank = running_rank(tc, cpu);
	cc->running_usage = usage_of(tc);
	cc->running_request = tc->request;
	if (is_steady())
		cc->noted_ns = scx_bpf_now();
}

/* steady: whether a task of this usage comes before who runs by a quantum. Who runs is charged up
 * to now, not to the last tick. */
static __always_inline bool comes_first(u64 usage, s32 cpu)
{
	struct cpu_ctx *cc = cpu_ctx(cpu);
	u64 now = scx_bpf_now(), running = cc->running_usage + cc->running_request;

	if (now > cc->noted_ns)
		running += (now - cc->noted_ns) * cc->inverse_weight >> 16;
	return usage + credit_here(policy.quantum_ns, cpu) < running;
}

/* A task that wakes up preempts one that has had more; whether it did. */
verified_alone int preempt(struct task_struct *p __arg_trusted,
			   struct hearth_task *tc __arg_nonnull)
{
	bool here = policy.discipline != HEARTH_FAIR;
	s32 cpu = here ? (s32)bpf_get_smp_processor_id() : cpu_of_queue(tc->queue);
	struct cpu_ctx *cc = cpu_ctx(cpu);

	if (tc->queue == RUN_QUEUE) {
		if (!may_take(p, tc, cpu) || usage_of(tc) >= cc->running_usage)
			return false;
	} else if (is_steady()) {
		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr) || !comes_first(usage_of(tc), cpu))
			return false;
	} else if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr) ||
		   rank_of_task(tc, p->pid, cpu, 0) >= cc->running_rank) {
		return false;
	}
	stats_count(&stats_of(cpu)->preempted);
	cc->expired = true;
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	return true;
}

#endif
