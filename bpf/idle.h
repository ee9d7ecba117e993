/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Idle CPUs: which of them a task takes that wakes up or has to wait. Once taken, a CPU does not
 * count as idle any more: it is claimed.
 */
#ifndef HEARTH_IDLE_H
#define HEARTH_IDLE_H

/* Our own note spares most questions to the kernel. A CPU that is about to go idle may
 * not have made it yet, and looks again when it has (hearth_update_idle). */
static __always_inline bool claim_idle(s32 cpu)
{
	return cpu_ctx(cpu)->is_idle && scx_bpf_test_and_clear_cpu_idle(cpu);
}

/* Of a task that a plan has placed: its home if that is idle, else an idle CPU of its part. Of one
 * of a fragment: only the fragment's home. */
verified_alone int idle_cpu_of_plan(struct task_struct *p __arg_trusted,
				    struct hearth_task *tc __arg_nonnull)
{
	struct hearth_shape *shape = shape_at(shape_index(tc->planned));
	s32 home = fragment_cpu(p, tc);
	u32 i;

	if (home >= 0)
		return scx_bpf_test_and_clear_cpu_idle(home) ? home : NO_CPU;
	if (tc->home >= 0 && bpf_cpumask_test_cpu(tc->home, p->cpus_ptr) &&
	    scx_bpf_test_and_clear_cpu_idle(tc->home))
		return tc->home;
	if (tc->part < 0)
		return scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	bpf_for(i, 0, topology.nr_online) {
		s32 cpu = shape->member[i & (HEARTH_MAX_CPUS - 1)];

		if (part_of(shape, cpu) == (u32)tc->part &&
		    bpf_cpumask_test_cpu(cpu, p->cpus_ptr) && claim_idle(cpu))
			return cpu;
	}
	return NO_CPU;
}

/* An idle CPU for a task that waits. */
static __always_inline s32 any_idle_cpu(struct task_struct *p, struct hearth_task *tc)
{
	s32 attached = attached_to(p, tc);

	if (is_placed(tc))
		return idle_cpu_of_plan(p, tc);
	if (attached >= 0)
		return scx_bpf_test_and_clear_cpu_idle(attached) ? attached : NO_CPU;
	return scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
}

/* What to do with an idle CPU that is found. */
enum {
	CLAIM = 0,
	/* Only if its core idles with all its threads. */
	CLAIM_CORE = 1,
	/* Leave it. */
	LOOK = 2,
};

verified_alone int idle_cpu_of_cell(struct task_struct *p __arg_trusted, u32 cell, u32 how)
{
	u32 i;

	bpf_for(i, first_member(cell), end_of_members(cell)) {
		s32 cpu = member(cell, i);

		if (!cpu_ctx(cpu)->is_idle || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr) ||
		    (how == CLAIM_CORE && !is_core_idle(cpu)))
			continue;
		if (how == LOOK || claim_idle(cpu))
			return cpu;
	}
	return NO_CPU;
}

/* An idle CPU that may take at once what has waited for another for so long (stays.h): of its
 * own cell first, for a cache of many CPUs has several. */
verified_alone int idle_cpu_near(struct task_struct *p __arg_trusted, s32 at, u64 waited, u32 how)
{
	u32 own = cell_in(0, at), cell;
	s32 cpu;

	if (bpf_cpumask_test_cpu(at, p->cpus_ptr) &&
	    (how == CLAIM || (how == CLAIM_CORE && is_core_idle(at))) && claim_idle(at))
		return at;
	cpu = idle_cpu_of_cell(p, own, how);
	if (cpu >= 0)
		return cpu;
	bpf_for(cell, 0, shape_at(0)->nr_cells) {
		if (cell == own || stay_of(at, member(cell, first_member(cell))) > waited)
			continue;
		cpu = idle_cpu_of_cell(p, cell, how);
		if (cpu >= 0)
			return cpu;
	}
	return NO_CPU;
}

/* The same. Where only a thread beside a busy one is idle, a whole core anywhere is better: a move
 * costs once, a sibling for as long as it runs. */
static __always_inline s32 idle_cpu_within(struct task_struct *p, s32 at, u64 waited)
{
	s32 cpu;

	if (topology.has_siblings) {
		cpu = idle_cpu_near(p, at, waited, CLAIM_CORE);
		if (cpu >= 0 || idle_cpu_near(p, at, waited, LOOK) < 0)
			return cpu;
		cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, SCX_PICK_IDLE_CORE);
		if (cpu >= 0)
			return cpu;
	}
	return idle_cpu_near(p, at, waited, CLAIM);
}

/* An idle CPU for a task that has waited in a queue for so long. */
static __always_inline s32 idle_cpu_beside(struct task_struct *p, struct hearth_task *tc, s32 queue,
					   u64 waited)
{
	if (tc->counted & COUNTED_SHARED && is_staying(tc, cpu_of_queue(queue)))
		return idle_cpu_within(p, cpu_of_queue(queue), waited);
	return any_idle_cpu(p, tc);
}

/* The idle CPU where the task has most credit. */
static __always_inline s32 idle_cpu(struct task_struct *p, struct hearth_task *tc, u64 wake_flags)
{
	s32 last = tc->last_cpu;
	bool is_idle = false;
	s32 cpu;

	if (is_attached())
		return any_idle_cpu(p, tc);
	if (last >= 0 && sums.stays) {
		cpu = idle_cpu_within(p, last, tc->waited_ns);
		/* What it is woken for may be in the cache of who wakes it. */
		return cpu >= 0 ? cpu : idle_cpu_within(p, bpf_get_smp_processor_id(), 0);
	}
	if (last >= 0 && (policy.llc_ns || policy.node_ns)) {
		/* What that search finds first, without the call. */
		if (!topology.has_siblings && !(wake_flags & SCX_WAKE_SYNC) &&
		    bpf_cpumask_test_cpu(last, p->cpus_ptr) &&
		    scx_bpf_test_and_clear_cpu_idle(last))
			return last;
		/* The kernel's own search: the last CPU, its cache domain, its node, any; whole
		 * cores before those whose sibling is busy. For a wake-up of who is about to
		 * sleep, also the CPU that makes it. */
		cpu = scx_bpf_select_cpu_dfl(p, last, wake_flags, &is_idle);
		return is_idle ? cpu : NO_CPU;
	}
	if (last >= 0 && (policy.time_ns || policy.processor_ns) &&
	    bpf_cpumask_test_cpu(last, p->cpus_ptr) && scx_bpf_test_and_clear_cpu_idle(last))
		return last;
	return scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
}

/* Has a CPU that was idle, and is claimed, look for work. */
static __always_inline void wake(s32 cpu)
{
	cpu_ctx(cpu)->is_claimed = true;
	scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/* Tasks of its queue that a CPU looks at in a tick, for others that idle. */
#define MOST_LOOKS 8

/* A task waits here beside an idle CPU that it may run on, which looked in the very moment in
 * which the task came; or, of the first, before it had stayed. Masks are few; the first tasks are
 * looked at. */
verified_alone int spill(s32 queue)
{
	struct task_struct *p;
	u32 looks = 0;

	bpf_for_each(scx_dsq, p, queue, 0) {
		struct hearth_task *tc = task_ctx(p);
		u64 waited = tc && sums.stays && !looks ? waited_since(tc->waits_since) : 0;
		s32 idle = tc && !is_migration_disabled(p) ? idle_cpu_beside(p, tc, queue, waited)
							   : NO_CPU;

		if (idle >= 0) {
			wake(idle);
			break;
		}
		if (++looks == MOST_LOOKS)
			break;
	}
	return 0;
}

/* Tasks of fragments wait here beside an idle CPU, which takes what it may (fragment_take). */
verified_alone int offer_fragments(s32 cpu)
{
	struct task_struct *p;
	u32 looks = 0;

	bpf_for_each(scx_dsq, p, bound_queue(cpu), 0) {
		s32 idle;

		if (++looks > MOST_LOOKS)
			break;
		if (!is_of_batch(p))
			continue;
		idle = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
		if (idle >= 0)
			wake(idle);
		break;
	}
	return 0;
}

#endif
