/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Queues: one for each CPU, a dispatch queue whose id is the CPU's number,
 * ordered by usage. A runnable task waits in the queue of the CPU where it last
 * ran, so all tasks of a queue have the same credit on any CPU and only its
 * head needs to be looked at.
 *
 * Each CPU's head is kept as a number beside the queue, and each domain knows
 * the CPU whose head comes first: looking for work costs one comparison for
 * each CPU of the own domain and one for each other domain, whatever the number
 * of tasks.
 */
#ifndef HEARTH_QUEUES_H
#define HEARTH_QUEUES_H

/* attached: tasks that have not run yet, and are bound to no CPU. */
#define UNBOUND HEARTH_MAX_CPUS

static __always_inline u64 head_usage(s32 cpu)
{
	struct cpu_ctx *cc = cpu_ctx(cpu);

	return cc->head == NO_USAGE ? NO_USAGE : decayed(cc->head, cc->head_epoch);
}

static void head_set(s32 cpu, u64 usage)
{
	struct cpu_ctx *cc = cpu_ctx(cpu);

	cc->head = usage;
	cc->head_epoch = epoch;
}

/* Looks for the first of a domain's heads. */
static void domain_refresh(u32 domain)
{
	u64 best = NO_USAGE;
	s32 first = NO_CPU;
	u32 cpu;

	bpf_for(cpu, 0, topology.nr_cpus) {
		u64 usage;

		if (domain_of(cpu) != domain)
			continue;
		usage = head_usage(cpu);
		if (usage < best) {
			best = usage;
			first = cpu;
		}
	}
	domain_ctx(domain)->first = first;
}

/* The head of a queue may have changed. */
static void head_refresh(s32 cpu)
{
	struct task_struct *p;
	u64 usage = NO_USAGE;

	bpf_for_each(scx_dsq, p, cpu, 0) {
		struct task_ctx *tc = task_ctx(p);

		if (tc)
			usage = usage_of(tc);
		break;
	}
	head_set(cpu, usage);
	domain_refresh(domain_of(cpu));
}

static void queue_insert(struct task_struct *p, struct task_ctx *tc, s32 cpu, u64 slice,
			 u64 enq_flags)
{
	struct domain_ctx *domain = domain_ctx(domain_of(cpu));
	u64 usage = usage_of(tc);

	scx_bpf_dsq_insert_vtime(p, cpu, slice, usage, enq_flags);
	tc->queue = cpu;
	__sync_fetch_and_add(&domain->waiting, 1);
	if (usage < head_usage(cpu))
		head_set(cpu, usage);
	if (domain->first < 0 || usage < head_usage(domain->first))
		domain->first = cpu;
}

/* A task no longer waits: it runs, or is not runnable any more. */
static void queue_left(struct task_ctx *tc)
{
	s32 cpu = tc->queue;

	if (cpu < 0)
		return;
	tc->queue = NO_CPU;
	__sync_fetch_and_add(&domain_ctx(domain_of(cpu))->waiting, -1);
	head_refresh(cpu);
}

/* Puts a queue in order anew after a decay. */
static void queue_renew(s32 cpu)
{
	struct cpu_ctx *cc = cpu_ctx(cpu);
	struct task_struct *p;

	if (cc->queue_epoch == epoch)
		return;
	cc->queue_epoch = epoch;
	bpf_for_each(scx_dsq, p, cpu, 0) {
		struct task_ctx *tc = task_ctx(p);

		if (!tc)
			continue;
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, usage_of(tc));
		scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, cpu, 0);
	}
	head_refresh(cpu);
}

#endif
