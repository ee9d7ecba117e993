/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Idle CPUs: which of them a task takes that wakes up or has to wait, and which are woken at a
 * tick for what waits beside them. Once taken, a CPU does not count as idle any more: it is
 * claimed.
 */
#ifndef HEARTH_IDLE_H
#define HEARTH_IDLE_H

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

/* An idle CPU for a task that waits at a CPU. */
static __always_inline s32 any_idle_cpu(struct task_struct *p, struct hearth_task *tc, s32 at,
					u64 will_wait)
{
	s32 attached = attached_to(p, tc);

	if (is_placed(tc))
		return idle_cpu_of_plan(p, tc);
	if (attached >= 0)
		return scx_bpf_test_and_clear_cpu_idle(attached) ? attached : NO_CPU;
	if (is_steady() && tc->last_cpu >= 0)
		return idle_cpu_in_reach(p, tc, at, will_wait);
	return scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
}

/* The idle CPU where the task has most credit. With fair a new one, which has none, begins near
 * who made it, whose files and memory it shares; in the papers it takes any. */
static __always_inline s32 idle_cpu(struct task_struct *p, struct hearth_task *tc, s32 prev_cpu,
				    u64 wake_flags)
{
	bool begins_near = policy.discipline == HEARTH_FAIR && tc->last_cpu < 0;
	s32 last = begins_near ? prev_cpu : tc->last_cpu;
	bool is_idle = false;
	s32 cpu;

	if (is_attached())
		return any_idle_cpu(p, tc, prev_cpu, 0);
	if (is_steady() && !begins_near) {
		u64 will_wait;

		cpu = claim_here(p, prev_cpu);
		if (cpu >= 0)
			return cpu;
		will_wait = wait_expect(prev_cpu, queued_at(prev_cpu));
		return distance(last, prev_cpu) == DISTANCE_CACHE
			       ? idle_cpu_in_reach(p, tc, prev_cpu, will_wait)
			       : claim_paid(p, tc, prev_cpu, DISTANCE_CACHE, will_wait);
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

/* A task waits here beside an idle CPU that it may run on: it came in the very moment in which that
 * CPU looked, or has paid for the move by now. The first that may go elsewhere are looked at; of
 * the run queue as many as who searches looks at. */
verified_alone int spill(s32 queue)
{
	s32 at = cpu_of_queue(queue);
	u64 will_wait = is_steady() ? wait_expect(at, queued_at(at) - 1) : 0;
	struct task_struct *p;
	u32 looks = 0;

	bpf_for_each(scx_dsq, p, queue, 0) {
		struct hearth_task *tc = task_ctx(p);
		s32 idle;

		if (!tc || is_kept_apart(p, tc))
			continue;
		if (is_steady())
			wait_collect(tc, at);
		idle = is_migration_disabled(p) ? NO_CPU : any_idle_cpu(p, tc, at, will_wait);
		if (idle >= 0)
			wake(idle);
		if (++looks == (queue == RUN_QUEUE ? MOST_SEARCHED : MOST_LOOKS))
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

/* At a tick, and when a higher class takes the CPU: has idle ones look for what waits here. */
static __always_inline void offer_to_idle(s32 cpu)
{
	if (has_run_queue() && run_queue.waiting > 0)
		spill(RUN_QUEUE);
	if (queue_ctx(shared_queue(cpu))->waiting > 0)
		spill(shared_queue(cpu));
	if (queue_ctx(bound_queue(cpu))->strays > 0)
		spill(bound_queue(cpu));
	if (queue_ctx(bound_queue(cpu))->of_fragments > 0)
		offer_fragments(cpu);
}

#endif
