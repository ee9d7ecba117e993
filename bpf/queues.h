/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Queues: one for each CPU, a dispatch queue whose id is the CPU's number,
 * ordered by usage. A runnable task waits in the queue of the CPU where it last
 * ran, so all tasks of a queue have the same credit on any CPU and only its
 * head needs to be looked at.
 *
 * Each CPU's head is kept as a number beside the queue, and each domain knows
 * the CPU whose head comes first. All queues of a domain but a CPU's own give a
 * task the same credit there, so looking for work costs one comparison for the
 * own queue and one for each domain, whatever the number of CPUs and tasks.
 *
 * On a real kernel CPUs race for these numbers, which are then a moment old: a
 * CPU may take a task that is not quite the first. What may not happen is that
 * a task is forgotten, so tasks are counted exactly, each once when it comes
 * and once when it leaves; who finds nothing where the count says otherwise
 * looks into every queue (take_anything).
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

static __always_inline void head_set(s32 cpu, u64 usage)
{
	struct cpu_ctx *cc = cpu_ctx(cpu);

	cc->head = usage;
	if (policy.discipline == HEARTH_UNIX)
		cc->head_epoch = epoch;
}

/* Looks for the first of a domain's heads. */
verified_alone int domain_refresh(u32 domain)
{
	u64 best = NO_USAGE;
	s32 first = NO_CPU;
	u32 i;

	bpf_for(i, first_member(domain), end_of_members(domain)) {
		s32 cpu = member(i);
		u64 usage = head_usage(cpu);

		if (usage < best) {
			best = usage;
			first = cpu;
		}
	}
	domain_ctx(domain)->first = first;
	return 0;
}

/* The usage of a queue's first task, from the queue itself. */
static __always_inline u64 head_look(s32 cpu)
{
	struct task_struct *p = dsq_first(cpu);
	struct hearth_task *tc;

	if (!p)
		return NO_USAGE;
	if (policy.discipline == HEARTH_FAIR)
		return p->scx.dsq_vtime;
	tc = task_ctx(p);
	return tc ? usage_of(tc) : 0;
}

/* The head of a queue may have changed. */
verified_alone int head_refresh(s32 cpu)
{
	struct domain_ctx *domain = domain_ctx(domain_of(cpu));
	u64 usage = NO_USAGE;

	if (cpu_ctx(cpu)->waiting > 0) {
		usage = head_look(cpu);
		/* It is counted and not yet linked in: somebody shall look again, soon. */
		if (usage == NO_USAGE)
			usage = 0;
	}
	head_set(cpu, usage);
	if (domain->waiting <= 0)
		domain->first = NO_CPU;
	else if (domain->first == cpu || domain->first < 0)
		domain_refresh(domain_of(cpu));
	return 0;
}

/* A task of this queue was moved to a CPU, where it will run: a lone one leaves the
 * queue empty, and nobody needs to look. */
static __always_inline void queue_taken(s32 cpu)
{
	struct cpu_ctx *cc = cpu_ctx(cpu);
	struct domain_ctx *domain = domain_ctx(domain_of(cpu));

	if (cc->waiting != 1)
		return;
	head_set(cpu, NO_USAGE);
	cc->head_is_known = true;
	if (domain->waiting == 1)
		domain->first = NO_CPU;
	else if (domain->first == cpu)
		domain_refresh(domain_of(cpu));
}

/* A task no longer waits: it runs, or is not runnable any more. */
static __always_inline void queue_left(struct hearth_task *tc)
{
	s32 cpu = tc->queue;

	if (cpu < 0)
		return;
	tc->queue = NO_CPU;
	__sync_fetch_and_add(&cpu_ctx(cpu)->waiting, -1);
	__sync_fetch_and_add(&domain_ctx(domain_of(cpu))->waiting, -1);
	if (cpu_ctx(cpu)->head_is_known)
		cpu_ctx(cpu)->head_is_known = false;
	else
		head_refresh(cpu);
}

/* The kernel links the task in when the callback has returned. */
static __always_inline void queue_insert(struct task_struct *p, struct hearth_task *tc, s32 cpu,
					 u64 slice, u64 enq_flags)
{
	struct domain_ctx *domain = domain_ctx(domain_of(cpu));
	u64 usage = usage_of(tc);
	s32 first = domain->first;

	tc->queue = cpu;
	__sync_fetch_and_add(&cpu_ctx(cpu)->waiting, 1);
	__sync_fetch_and_add(&domain->waiting, 1);
	if (usage < head_usage(cpu))
		head_set(cpu, usage);
	if (first < 0 || usage < head_usage(first))
		domain->first = cpu;
	scx_bpf_dsq_insert_vtime(p, cpu, slice, usage, enq_flags);
}

/* Puts a queue in order anew after a decay. */
verified_alone int queue_renew(s32 cpu)
{
	struct task_struct *p;

	cpu_ctx(cpu)->queue_epoch = epoch;
	bpf_for_each(scx_dsq, p, cpu, 0) {
		struct hearth_task *tc = task_ctx(p);

		if (!tc)
			continue;
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, usage_of(tc));
		scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, cpu, 0);
	}
	return head_refresh(cpu);
}

#endif
